//! The few members of parameters that decide where a request goes, read and exchanged in place.

use embody_wire::Outcome;
use embody_wire::serve::{code, failure};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::printable;
use crate::arguments::Members;

/// Reads what decides. Of a member that stands there twice two readers could take different ones: it is an error.
pub(crate) fn read<'a, T: Deserialize<'a>>(method: &str, params: Option<&'a RawValue>) -> Result<T, Outcome> {
    serde_json::from_str(params.map_or("{}", RawValue::get)).map_err(|error| {
        let method = printable(method);
        failure(code::INVALID_PARAMS, format!("the parameters of `{method}` are wrong: {error}"))
    })
}

/// The text with `part`, a slice of it, exchanged for this string; no other byte changes.
pub(super) fn exchanged(whole: &RawValue, part: &RawValue, by: &str) -> Option<Box<RawValue>> {
    let (whole, part) = (whole.get(), part.get());
    let start = (part.as_ptr() as usize).checked_sub(whole.as_ptr() as usize)?;
    let (before, after) = (whole.get(..start)?, whole.get(start + part.len()..)?);
    RawValue::from_string(format!("{before}{}{after}", Value::from(by))).ok()
}

/// The parameters of a list with this cursor and no other. The values of all other members stay as they are.
pub(super) fn with_cursor(params: Option<&RawValue>, cursor: Option<&str>) -> Option<Box<RawValue>> {
    let members = params.and_then(|params| serde_json::from_str(params.get()).ok());
    let Members(members) = members.unwrap_or(Members(Vec::new()));
    if cursor.is_none() && !members.iter().any(|(name, _)| name == "cursor") {
        return params.map(ToOwned::to_owned);
    }
    let kept = members.iter().filter(|(name, _)| name != "cursor");
    let kept = kept.map(|(name, value)| format!("{}:{}", Value::from(name.as_str()), value.get()));
    let cursor = cursor.map(|cursor| format!("\"cursor\":{}", Value::from(cursor)));
    let members: Vec<String> = kept.chain(cursor).collect();
    RawValue::from_string(format!("{{{}}}", members.join(","))).ok()
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
        assert_eq!(text(Some(r#"{ "x":1.0 }"#), None).unwrap(), r#"{ "x":1.0 }"#);
        assert_eq!(text(None, Some("a\"b")).unwrap(), r#"{"cursor":"a\"b"}"#);
        let ours = r#"{"z":1e400, "cursor":"r0:x","_meta":{"progressToken":1.0}}"#;
        assert_eq!(
            text(Some(ours), Some("x")).unwrap(),
            r#"{"z":1e400,"_meta":{"progressToken":1.0},"cursor":"x"}"#
        );
        assert_eq!(text(Some(ours), None).unwrap(), r#"{"z":1e400,"_meta":{"progressToken":1.0}}"#);
        assert_eq!(text(Some(r#"{"cursor":"r1"}"#), None).unwrap(), "{}");
    }
}
