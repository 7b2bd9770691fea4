//! Request parameters as raw text: members read, filtered and replaced in place.
//!
//! Only the keys of `_meta` that are known here reach a server. Other keys of hosts differ between equal calls, so that no
//! approval could be bound to them; they are dropped.

use embody_wire::server::{code, failure};
use embody_wire::{Outcome, splice};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::forward::printable;
use crate::json::Members;
use crate::trace_context::{is_baggage, is_traceparent, is_tracestate};

/// The longest progress token, in bytes. The broker replaces it with its own.
const PROGRESS_TOKEN_BYTES: usize = 8_192;
/// The longest URI or prompt name that a host may send. Each rule is compared with several readings of it.
pub(crate) const NAME_BYTES: usize = 16 * 1024;

/// Reads these members. A duplicate member is an error, because two parsers could choose different values.
pub(crate) fn read<'a, T: Deserialize<'a>>(method: &str, params: Option<&'a RawValue>) -> Result<T, Outcome> {
    serde_json::from_str(params.map_or("{}", RawValue::get)).map_err(|error| {
        let method = printable(method);
        failure(code::INVALID_PARAMS, format!("invalid parameters of `{method}`: {error}"))
    })
}

pub(crate) fn check_length(what: &str, name: &str) -> Result<(), Outcome> {
    if name.len() <= NAME_BYTES {
        return Ok(());
    }
    let message = format!("{what} has {} bytes; {NAME_BYTES} are allowed", name.len());
    Err(failure(code::INVALID_PARAMS, message))
}

/// The value with `part`, a slice of it, replaced by this string; no other byte changes.
pub(crate) fn replace_text(whole: &RawValue, part: &RawValue, by: &str) -> Option<Box<RawValue>> {
    splice::replace_raw(whole, part, &Value::from(by).to_string())
}

/// The parameters of a list with this cursor only, and with the known members of `_meta`.
pub(crate) fn with_cursor(params: Option<&RawValue>, cursor: Option<&str>) -> Option<Box<RawValue>> {
    let meta = params.and_then(|params| only(params, &[]));
    let Some(cursor) = cursor else { return meta };
    let cursor = member("cursor", &Value::from(cursor).to_string());
    let meta = meta.as_deref().map_or("{}", RawValue::get);
    let open = meta.trim_end().strip_suffix('}').unwrap_or(meta).trim_end();
    let comma = if open.trim() == "{" { "" } else { "," };
    RawValue::from_string(format!("{open}{comma}{cursor}}}")).ok()
}

/// The parameters with these members only, and with the known members of `_meta`; unchanged if they have no others.
pub(crate) fn only(params: &RawValue, names: &[&str]) -> Option<Box<RawValue>> {
    let Members(members) = serde_json::from_str(params.get()).ok()?;
    let members: Vec<(&str, &str)> = members.iter().map(|(name, value)| (&**name, value.get())).collect();
    match retain(&members, |name| names.contains(&name)) {
        None => Some(params.to_owned()),
        Some(kept) => object(&kept),
    }
}

/// The parameters, which have these members, with only the known members of `_meta`; no other byte changes. Also returns the
/// offset of the value of `name` in them.
pub(crate) fn with_known_meta(params: &RawValue, members: &[(&str, &str)]) -> (Box<RawValue>, Option<usize>) {
    let kept = retain(members, |_| true);
    let Some((kept, rebuilt)) = kept.and_then(|kept| object(&kept).map(|rebuilt| (kept, rebuilt))) else {
        let name = members.iter().find(|(name, _)| *name == "name");
        return (params.to_owned(), name.and_then(|(_, value)| splice::offset(params.get(), value)));
    };
    let key = "\"name\":";
    let index = kept.iter().position(|member| member.starts_with(key));
    let before = |index| kept.iter().take(index).map(|member| member.len() + ",".len()).sum::<usize>();
    (rebuilt, index.map(|index| "{".len() + before(index) + key.len()))
}

/// The parameters without `_meta`, for display and audit; `None` if they have no `_meta`.
pub(crate) fn without_meta(members: &[(&str, &str)]) -> Option<Box<RawValue>> {
    let others = members.iter().filter(|(name, _)| *name != "_meta");
    let others: Vec<String> = others.map(|(name, value)| member(name, value)).collect();
    if others.len() < members.len() { object(&others) } else { None }
}

pub(crate) fn member(name: &str, value: &str) -> String {
    format!("{}:{value}", Value::from(name))
}

fn object(members: &[String]) -> Option<Box<RawValue>> {
    RawValue::from_string(format!("{{{}}}", members.join(","))).ok()
}

/// The wanted members, and the known ones of `_meta`, as JSON; `None` if all are kept.
fn retain(members: &[(&str, &str)], is_wanted: impl Fn(&str) -> bool) -> Option<Vec<String>> {
    let is_kept = |(name, value): &(&str, &str)| match *name {
        "_meta" => is_known_whole(value),
        name => is_wanted(name),
    };
    if members.iter().all(is_kept) {
        return None;
    }
    let kept = members.iter().filter_map(|(name, value)| match *name {
        "_meta" => known_meta(value).map(|meta| member(name, &meta)),
        _ => is_wanted(name).then(|| member(name, value)),
    });
    Some(kept.collect())
}

/// The known members as JSON text; `None` if there are none, or if a key is repeated: parsers disagree on which of them
/// counts.
fn known_meta(meta: &str) -> Option<String> {
    let Members(members) = serde_json::from_str(meta).ok()?;
    let known = members.iter().filter(|(key, value)| is_known(key, value));
    let known: Vec<String> = known.map(|(key, value)| member(key, value.get())).collect();
    (!known.is_empty() && !has_repeated_keys(&members)).then(|| format!("{{{}}}", known.join(",")))
}

fn is_known_whole(meta: &str) -> bool {
    let members = serde_json::from_str::<Members<'_>>(meta);
    members.is_ok_and(|Members(members)| {
        members.iter().all(|(key, value)| is_known(key, value)) && !has_repeated_keys(&members)
    })
}

/// The prefix of the broker's keys in the `_meta` of a result.
const EMBODY_PREFIX: &str = "embody/";

/// Whether a member is forwarded: the protocol or the W3C defines it, and the value is valid. The broker sends its own client
/// info in the stateless era. Not `io.modelcontextprotocol/related-task`: hosts name a task in the parameters, where its id
/// is checked against those that the server returned.
fn is_known(key: &str, value: &RawValue) -> bool {
    let text = value.get();
    let is_number = || text.starts_with(|c: char| c == '-' || c.is_ascii_digit());
    let is_text =
        |is_good: fn(&str) -> bool| serde_json::from_str::<String>(text).is_ok_and(|text| is_good(&text));
    match key {
        "progressToken" => text.len() <= PROGRESS_TOKEN_BYTES && (text.starts_with('"') || is_number()),
        "traceparent" => is_text(is_traceparent),
        "tracestate" => is_text(is_tracestate),
        "baggage" => is_text(is_baggage),
        _ => false,
    }
}

fn has_repeated_keys(members: &[(String, &RawValue)]) -> bool {
    let mut keys: Vec<&str> = members.iter().map(|(key, _)| &**key).collect();
    keys.sort_unstable();
    keys.windows(2).any(|pair| matches!(pair, [one, other] if one == other))
}

/// The remaining members of `_meta` as JSON; `None` if none remains.
pub(crate) fn meta_without(meta: &RawValue, is_removed: impl Fn(&str) -> bool) -> Option<String> {
    let Ok(Members(members)) = serde_json::from_str::<Members<'_>>(meta.get()) else {
        return Some(meta.get().to_owned());
    };
    let kept = members.iter().filter(|(name, _)| !is_removed(name));
    let kept: Vec<String> = kept.map(|(name, value)| member(name, value.get())).collect();
    (!kept.is_empty()).then(|| format!("{{{}}}", kept.join(",")))
}

/// A server's outcome without the keys that only the broker may set, in `_meta` or in the `data` of an error.
pub(crate) fn strip_embody_keys(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Result(result) => Outcome::Result(strip_embody_members(result, "_meta")),
        Outcome::Error(error) => Outcome::Error(strip_embody_members(error, "data")),
    }
}

fn strip_embody_members(result: Box<RawValue>, place: &str) -> Box<RawValue> {
    // A key may be written with escapes.
    let may_have_key =
        |text: &str| text.contains(EMBODY_PREFIX) || text.contains("\\u00") || text.contains("\\/");
    if !may_have_key(result.get()) {
        return result;
    }
    let Ok(Members(members)) = serde_json::from_str::<Members<'_>>(result.get()) else { return result };
    let is_ours = |name: &str| name.starts_with(EMBODY_PREFIX);
    let has_ours = |meta: &RawValue| {
        let keys = serde_json::from_str::<Members<'_>>(meta.get());
        keys.is_ok_and(|Members(keys)| keys.iter().any(|(name, _)| is_ours(name)))
    };
    // Any of a repeated member may be the one that the host reads.
    if !members.iter().any(|(name, meta)| name == place && has_ours(meta)) {
        return result;
    }
    let kept = members.iter().filter_map(|(name, value)| {
        let value = if name == place { meta_without(value, is_ours)? } else { value.get().to_owned() };
        Some(member(name, &value))
    });
    let kept: Vec<String> = kept.collect();
    RawValue::from_string(format!("{{{}}}", kept.join(","))).unwrap_or(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn only_known_keys_with_values_of_their_grammar_reach_a_server() {
        let trace = r#""traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01""#;
        let meta = format!(r#"{{"progressToken":1.0,"x/y":{{"a":[1.0]}},{trace},"callId":"t"}}"#);
        assert_eq!(known_meta(&meta).unwrap(), format!(r#"{{"progressToken":1.0,{trace}}}"#));
        let meta = r#"{"baggage":"a=1.0,b=%20","tracestate":"a=1"}"#;
        assert_eq!(known_meta(meta).unwrap(), meta);
        // An unknown key with the protocol's prefix is unknown, and so is a key that only resembles a known one.
        let long = format!(r#"{{"baggage":"a={}"}}"#, "x".repeat(1_024));
        for text in [
            r#"{"io.modelcontextprotocol/clientInfo":{"name":"x"}}"#,
            r#"{"baggage":{"bcc":"eve"}}"#,
            r#"{"progressToken":[1]}"#,
            r#"{"io.modelcontextprotocol/related-task":{"taskId":"1"}}"#,
            r#"{"io.modelcontextprotocol/x":1}"#,
            r#"{"ProgressToken":1}"#,
            "[1]",
            r#""text""#,
            &long,
            r#"{"baggage":"note=blind copy to eve"}"#,
            r#"{"baggage":"note=a\u0020b"}"#,
            r#"{"tracestate":"blind copy to eve"}"#,
            r#"{"tracestate":"v=blind copy to eve"}"#,
            r#"{"traceparent":"blind copy to eve"}"#,
            r#"{"progressToken":"blind copy to eve","progressToken":1}"#,
            r#"{"progressToken":1,"progress\u0054oken":2}"#,
        ] {
            assert_eq!(known_meta(text), None, "{text}");
            assert!(!is_known_whole(text), "{text}");
        }
    }

    #[test]
    fn parameters_keep_every_byte_but_the_unknown_keys() {
        let known = |text: &str| {
            let params = raw(text);
            let Members(members) = serde_json::from_str(params.get()).unwrap();
            let members: Vec<(&str, &str)> =
                members.iter().map(|(name, value)| (&**name, value.get())).collect();
            let (params, name_at) = with_known_meta(&params, &members);
            assert!(params.get()[name_at.unwrap()..].starts_with("\"x\""), "{params}");
            params.get().to_owned()
        };
        let text = r#"{"name":"x", "_meta":{"callId":"t","progressToken":1.0},"n":1.0}"#;
        assert_eq!(known(text), r#"{"name":"x","_meta":{"progressToken":1.0},"n":1.0}"#);
        assert_eq!(known(r#"{"name":"x","_meta":{"threadId":"t"}}"#), r#"{"name":"x"}"#);
        assert_eq!(known(r#"{"name":"x","\u005fmeta":{"bcc":"eve"}}"#), r#"{"name":"x"}"#);
        let whole = r#"{"name":"x", "arguments":{"_meta":{"a":1}},"_meta":{"progressToken":1}}"#;
        assert_eq!(known(whole), whole);
    }

    #[test]
    fn only_the_cursor_changes() {
        let text = |params: Option<&str>, cursor| {
            with_cursor(params.map(raw).as_deref(), cursor).map(|params| params.get().to_owned())
        };
        assert_eq!(text(None, None), None);
        assert_eq!(text(Some("{ }"), None).unwrap(), "{ }");
        assert_eq!(text(None, Some("a\"b")).unwrap(), r#"{"cursor":"a\"b"}"#);
        let ours = r#"{"z":1e400, "cursor":"r0:x","_meta":{"progressToken":1.0,"x":1}}"#;
        assert_eq!(text(Some(ours), Some("x")).unwrap(), r#"{"_meta":{"progressToken":1.0},"cursor":"x"}"#);
        assert_eq!(text(Some(ours), None).unwrap(), r#"{"_meta":{"progressToken":1.0}}"#);
        assert_eq!(text(Some(r#"{"cursor":"r1"}"#), None).unwrap(), "{}");
        let token = r#"{ "_meta": {"progressToken": 1.0} }"#;
        assert_eq!(text(Some(token), None).unwrap(), token);
        assert_eq!(text(Some("[1]"), Some("x")).unwrap(), r#"{"cursor":"x"}"#);
    }

    #[test]
    fn only_what_is_meant_and_known_is_kept() {
        let of = |text: &str| only(&raw(text), &["taskId"]).map(|kept| kept.get().to_owned());
        assert_eq!(of(r#"{ "taskId":"t" }"#).unwrap(), r#"{ "taskId":"t" }"#);
        assert_eq!(of(r#"{"taskId":"t","x":1,"_meta":{"y":1}}"#).unwrap(), r#"{"taskId":"t"}"#);
        assert_eq!(of(r#"{"x":{"taskId":"t"}}"#).unwrap(), "{}");
        assert_eq!(of("[]"), None);
    }

    #[test]
    fn a_server_cannot_set_the_keys_of_the_broker() {
        let without = |text: &str| match strip_embody_keys(Outcome::Result(raw(text))) {
            Outcome::Result(result) => result.get().to_owned(),
            Outcome::Error(error) => panic!("{error}"),
        };
        for (text, left) in [
            (
                r#"{"a": 1, "_meta":{"embody/decision":{"decision":"deny"},"x":2}}"#,
                r#"{"a":1,"_meta":{"x":2}}"#,
            ),
            (r#"{"a":1,"_meta":{"\u0065mbody/mark":"m"}}"#, r#"{"a":1}"#),
            (r#"{"a":1,"\u005fmeta":{"embody/degraded":[]}}"#, r#"{"a":1}"#),
            (r#"{"a":1,"_meta":{"embody\/mark":1}}"#, r#"{"a":1}"#),
            (r#"{"_meta":{"x":1},"_meta":{"embody/decision":1}}"#, r#"{"_meta":{"x":1}}"#),
        ] {
            assert_eq!(without(text), left);
        }
        for same in
            [r#"{ "content":["embody/x"] }"#, r#"{ "_meta":{"é\u00e9":1} }"#, "[]", r#"{"_meta":"embody/"}"#]
        {
            assert_eq!(without(same), same, "no byte changes");
        }
        let forged = r#"{"code":-32000,"message":"m","data":{"embody/decision":{"decision":"deny"}}}"#;
        let Outcome::Error(error) = strip_embody_keys(Outcome::Error(raw(forged))) else {
            panic!("a result")
        };
        assert_eq!(error.get(), r#"{"code":-32000,"message":"m"}"#);
    }
}
