//! The few members of parameters that decide where a request goes, read and replaced in place.

use embody_wire::server::{code, failure};
use embody_wire::{Outcome, splice};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::printable;
use crate::arguments::Members;
use crate::meta::{self, member};

/// Reads these members. A duplicate member is an error, because two parsers could choose different values.
pub(crate) fn read<'a, T: Deserialize<'a>>(method: &str, params: Option<&'a RawValue>) -> Result<T, Outcome> {
    serde_json::from_str(params.map_or("{}", RawValue::get)).map_err(|error| {
        let method = printable(method);
        failure(code::INVALID_PARAMS, format!("the parameters of `{method}` are wrong: {error}"))
    })
}

/// The longest URI or prompt name that a host may send. Each rule is compared with several readings of it.
pub(super) const NAME_BYTES: usize = 16 * 1024;

pub(super) fn check_length(what: &str, name: &str) -> Result<(), Outcome> {
    if name.len() <= NAME_BYTES {
        return Ok(());
    }
    let words = format!("{what} has {} bytes; {NAME_BYTES} are allowed", name.len());
    Err(failure(code::INVALID_PARAMS, words))
}

/// The value with `part`, a slice of it, replaced by this string; no other byte changes.
pub(super) fn replace_text(whole: &RawValue, part: &RawValue, by: &str) -> Option<Box<RawValue>> {
    splice::replace_raw(whole, part, &Value::from(by).to_string())
}

/// The parameters of a list with this cursor only, and with the known members of `_meta`.
pub(super) fn with_cursor(params: Option<&RawValue>, cursor: Option<&str>) -> Option<Box<RawValue>> {
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
    let is_kept = |(name, value): &(String, &RawValue)| match &**name {
        "_meta" => meta::is_known_whole(value),
        name => names.contains(&name),
    };
    if members.iter().all(is_kept) {
        return Some(params.to_owned());
    }
    let kept = members.iter().filter_map(|(name, value)| match &**name {
        "_meta" => meta::known(value).map(|meta| member(name, &meta)),
        known => names.contains(&known).then(|| member(name, value.get())),
    });
    let kept: Vec<String> = kept.collect();
    RawValue::from_string(format!("{{{}}}", kept.join(","))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
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
}
