//! What a request carries besides what it asks for: `_meta`. Only the keys that are known here reach a server. Hosts add others for
//! themselves, which differ between two calls that are the same: no approval could be bound to them, so they are left out.

use serde_json::Value;
use serde_json::value::RawValue;

use crate::arguments::Members;

/// The task that a request belongs to.
const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
/// Bytes of a known value: `baggage` may be as long. A longer one is left out like an unknown one.
const LONGEST: usize = 8_192;

/// Whether a member reaches a server: one that the protocol or the W3C defines, with a value of the right kind. What a host says
/// about itself in the stateless era the broker says in its own words.
fn is_known(key: &str, value: &RawValue) -> bool {
    let text = value.get();
    let is_text = || text.starts_with('"') && text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    let is_number = || text.starts_with(|c: char| c == '-' || c.is_ascii_digit());
    text.len() <= LONGEST
        && match key {
            // It is exchanged on the way for one of the broker's own.
            "progressToken" => text.starts_with('"') || is_number(),
            "traceparent" | "tracestate" | "baggage" => is_text(),
            RELATED_TASK => serde_json::from_str::<Members<'_>>(text).is_ok_and(|Members(members)| {
                matches!(&members[..], [(name, id)] if name == "taskId" && id.get().starts_with('"'))
            }),
            _ => false,
        }
}

/// The members that are known, as JSON text; `None` if there are none.
pub(crate) fn known(meta: &RawValue) -> Option<String> {
    let Members(members) = serde_json::from_str(meta.get()).ok()?;
    written(members.iter().filter(|(key, value)| is_known(key, value)))
}

/// Whether all members are known.
pub(crate) fn is_known_whole(meta: &RawValue) -> bool {
    let members = serde_json::from_str::<Members<'_>>(meta.get());
    members.is_ok_and(|Members(members)| members.iter().all(|(key, value)| is_known(key, value)))
}

/// These parameters with the known members of their `_meta` only. `None` if there are no others.
pub(crate) fn params_with_known(params: &RawValue) -> Option<Box<RawValue>> {
    if !embody_wire::message::may_have(params, "_meta") {
        return None;
    }
    let Members(members) = serde_json::from_str(params.get()).ok()?;
    let is_changed = |(name, value): &(String, &RawValue)| name == "_meta" && !is_known_whole(value);
    if !members.iter().any(is_changed) {
        return None;
    }
    let kept = members.iter().filter_map(|one| {
        let (name, value) = one;
        let value = if is_changed(one) { known(value)? } else { value.get().to_owned() };
        Some(member(name, &value))
    });
    let kept: Vec<String> = kept.collect();
    RawValue::from_string(format!("{{{}}}", kept.join(","))).ok()
}

fn written<'a>(members: impl Iterator<Item = &'a (String, &'a RawValue)>) -> Option<String> {
    let members: Vec<String> = members.map(|(key, value)| member(key, value.get())).collect();
    (!members.is_empty()).then(|| format!("{{{}}}", members.join(",")))
}

/// A member of an object, with this value as JSON.
pub(crate) fn member(name: &str, value: &str) -> String {
    format!("{}:{value}", Value::from(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn only_known_keys_of_a_sane_length_reach_a_server() {
        let meta = raw(r#"{"progressToken":1.0,"x/y":{"a":[1.0]},"traceparent":"00","callId":"t"}"#);
        assert_eq!(known(&meta).unwrap(), r#"{"progressToken":1.0,"traceparent":"00"}"#);
        // An unknown key of the protocol's own prefix is unknown, and so is what only looks like a known one.
        let long = format!(r#"{{"baggage":"{}"}}"#, "x".repeat(LONGEST));
        for text in [
            r#"{"io.modelcontextprotocol/clientInfo":{"name":"x"}}"#,
            r#"{"baggage":{"bcc":"eve"}}"#,
            r#"{"progressToken":[1]}"#,
            r#"{"io.modelcontextprotocol/related-task":{"taskId":"1","bcc":"eve"}}"#,
            r#"{"io.modelcontextprotocol/x":1}"#,
            r#"{"ProgressToken":1}"#,
            "[1]",
            r#""text""#,
            &long,
        ] {
            assert_eq!(known(&raw(text)), None, "{text}");
            assert!(!is_known_whole(&raw(text)), "{text}");
        }
    }

    #[test]
    fn parameters_keep_every_byte_but_the_unknown_keys() {
        let with_known = |text: &str| params_with_known(&raw(text)).map(|params| params.get().to_owned());
        let text = r#"{"name":"x", "_meta":{"callId":"t","progressToken":1.0},"n":1.0}"#;
        assert_eq!(with_known(text).unwrap(), r#"{"name":"x","_meta":{"progressToken":1.0},"n":1.0}"#);
        assert_eq!(with_known(r#"{"name":"x","_meta":{"threadId":"t"}}"#).unwrap(), r#"{"name":"x"}"#);
        assert_eq!(with_known(r#"{"name":"x","\u005fmeta":{"bcc":"eve"}}"#).unwrap(), r#"{"name":"x"}"#);
        assert_eq!(
            with_known(r#"{"name":"x","arguments":{"_meta":{"a":1}},"_meta":{"progressToken":1}}"#),
            None
        );
    }
}
