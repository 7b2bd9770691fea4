//! What stands in a request beside what it asks for: `_meta`. The keys that are known here reach a server unseen; every other
//! one is part of what a person is shown, of what an approval is bound to and of what is recorded.

use serde_json::Value;
use serde_json::value::RawValue;

use crate::arguments::Members;

/// What the protocol and the W3C define: tokens, ids and the context of a trace.
const KNOWN: [&str; 9] = [
    "progressToken",
    "traceparent",
    "tracestate",
    "baggage",
    "io.modelcontextprotocol/related-task",
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientInfo",
    "io.modelcontextprotocol/clientCapabilities",
    "io.modelcontextprotocol/logLevel",
];
/// What hosts add to each call for themselves. It differs between two calls that are the same, so that no approval could be
/// bound to it, and it is nothing to a server: it is not passed on.
const OF_HOSTS: [&str; 3] = ["claudecode/toolUseId", "x-codex-turn-metadata", "threadId"];
/// Bytes of a known value: `baggage` may be as long. A longer one is shown like an unknown one.
const LONGEST: usize = 8_192;

/// Whether a member is one that reaches a server unseen.
fn is_known(key: &str, value: &RawValue) -> bool {
    KNOWN.contains(&key) && value.get().len() <= LONGEST
}

/// The members that are not known, as JSON text; `None` if all are. What is not an object is not known as a whole.
pub(crate) fn unknown(meta: &RawValue) -> Option<String> {
    if meta.get() == "null" {
        return None;
    }
    let Ok(Members(members)) = serde_json::from_str::<Members<'_>>(meta.get()) else {
        return Some(meta.get().to_owned());
    };
    written(members.iter().filter(|(key, value)| !is_known(key, value) && !OF_HOSTS.contains(&&**key)))
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

/// These parameters as a server gets them: without what hosts add for themselves. `None` if there is nothing of that.
pub(crate) fn without_host_keys(params: &RawValue) -> Option<Box<RawValue>> {
    if !OF_HOSTS.iter().any(|key| embody_wire::message::may_have(params, key)) {
        return None;
    }
    let Members(members) = serde_json::from_str(params.get()).ok()?;
    let is_of_host = |(key, _): &&(String, &RawValue)| OF_HOSTS.contains(&&**key);
    let mut is_changed = false;
    let mut kept = Vec::with_capacity(members.len());
    for (name, value) in &members {
        let meta = if name == "_meta" { serde_json::from_str::<Members<'_>>(value.get()).ok() } else { None };
        match meta {
            Some(Members(meta)) if meta.iter().any(|one| is_of_host(&one)) => {
                is_changed = true;
                let meta = written(meta.iter().filter(|one| !is_of_host(one)));
                kept.extend(meta.map(|meta| member(name, &meta)));
            }
            _ => kept.push(member(name, value.get())),
        }
    }
    let written = || RawValue::from_string(format!("{{{}}}", kept.join(","))).ok();
    is_changed.then(written).flatten()
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
    fn only_known_keys_of_a_sane_length_are_unseen() {
        let meta =
            raw(r#"{"progressToken":1.0,"x/y":{"a":[1.0]},"traceparent":"00","claudecode/toolUseId":"t"}"#);
        assert_eq!(unknown(&meta).unwrap(), r#"{"x/y":{"a":[1.0]}}"#);
        assert_eq!(known(&meta).unwrap(), r#"{"progressToken":1.0,"traceparent":"00"}"#);
        for text in [r#"{"progressToken":"t"}"#, "{}", "null"] {
            assert_eq!(unknown(&raw(text)), None, "{text}");
        }
        // An unknown key of the protocol's own prefix is unknown, and so is what only looks like a known one.
        for text in [r#"{"io.modelcontextprotocol/x":1}"#, r#"{"ProgressToken":1}"#, "[1]", r#""text""#] {
            assert_eq!(unknown(&raw(text)).unwrap(), text);
        }
        let long = raw(&format!(r#"{{"baggage":"{}"}}"#, "x".repeat(LONGEST)));
        assert!(unknown(&long).is_some() && known(&long).is_none());
    }

    #[test]
    fn what_hosts_add_for_themselves_is_not_passed_on() {
        let without = |text: &str| without_host_keys(&raw(text)).map(|params| params.get().to_owned());
        assert_eq!(
            without(r#"{"name":"x", "_meta":{"claudecode/toolUseId":"t","progressToken":1.0},"n":1.0}"#)
                .unwrap(),
            r#"{"name":"x","_meta":{"progressToken":1.0},"n":1.0}"#
        );
        assert_eq!(without(r#"{"name":"x","_meta":{"threadId":"t"}}"#).unwrap(), r#"{"name":"x"}"#);
        assert_eq!(without(r#"{"name":"x","arguments":{"threadId":"t"},"_meta":{"x":1}}"#), None);
    }
}
