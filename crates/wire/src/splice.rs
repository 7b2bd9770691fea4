//! Replaces one value in a JSON text and leaves every other byte unchanged. The only module that uses pointer
//! arithmetic.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::message::{may_contain, members};

/// The offset of `part` in `whole`; `None` if it is not a slice of it.
#[must_use]
pub fn offset(whole: &str, part: &str) -> Option<usize> {
    let start = (part.as_ptr() as usize).checked_sub(whole.as_ptr() as usize)?;
    (start.checked_add(part.len())? <= whole.len()).then_some(start)
}

/// Replaces `part`, a slice of the text.
#[must_use]
pub fn replace(whole: &str, part: &str, by: &str) -> Option<String> {
    let start = offset(whole, part)?;
    Some(format!("{}{by}{}", whole.get(..start)?, whole.get(start + part.len()..)?))
}

#[derive(Deserialize)]
struct WithMeta<'a> {
    #[serde(rename = "_meta", borrow, default)]
    meta: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct WithToken<'a> {
    #[serde(rename = "progressToken", borrow, default)]
    token: Option<&'a RawValue>,
}

/// Replaces the caller's progress token with ours, and returns both; `None` if the parameters have none.
pub(crate) fn exchange_token(params: &RawValue, token: u64) -> Option<(Box<RawValue>, Box<RawValue>)> {
    if !may_contain(params, "progressToken") {
        return None;
    }
    let outer: WithMeta<'_> = members(params)?;
    let inner: WithToken<'_> = members(outer.meta?)?;
    let theirs = inner.token.filter(|token| is_token(token))?;
    Some((replace_raw(params, theirs, &token.to_string())?, theirs.to_owned()))
}

/// The token of a progress notification, if it is one of ours.
pub(crate) fn progress_token(params: &RawValue) -> Option<u64> {
    let params: WithToken<'_> = members(params)?;
    serde_json::from_str(params.token?.get()).ok()
}

/// Restores the caller's token in the parameters of a progress notification.
pub(crate) fn restore_token(params: &RawValue, theirs: &RawValue) -> Option<Box<RawValue>> {
    let inner: WithToken<'_> = members(params)?;
    replace_raw(params, inner.token?, theirs.get())
}

/// The id of our listen request that a notification belongs to, if it names one.
pub(crate) fn subscription_id(params: &RawValue) -> Option<u64> {
    #[derive(Deserialize)]
    struct WithSubscription {
        #[serde(rename = "io.modelcontextprotocol/subscriptionId")]
        id: u64,
    }
    let outer: WithMeta<'_> = members(params)?;
    members(outer.meta?).map(|WithSubscription { id }| id)
}

/// [`replace`] for JSON values. `None` also if the result is not JSON.
#[must_use]
pub fn replace_raw(whole: &RawValue, part: &RawValue, by: &str) -> Option<Box<RawValue>> {
    RawValue::from_string(replace(whole.get(), part.get(), by)?).ok()
}

fn is_token(raw: &RawValue) -> bool {
    raw.get().starts_with(|first: char| first == '"' || first == '-' || first.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn only_the_token_changes() {
        let text = r#"{ "z":1.0, "_meta" : {"a": 12345678901234567890123, "progressToken": "x\u0041" , "b":null}, "_meta2":{"progressToken":1}}"#;
        let (ours, theirs) = exchange_token(&raw(text), 7).unwrap();
        assert_eq!(ours.get(), text.replace(r#""x\u0041""#, "7"));
        assert_eq!(theirs.get(), r#""x\u0041""#);
        let progress = raw(r#"{"progress":1, "progressToken":7,"x":{"progressToken":9}}"#);
        assert_eq!(progress_token(&progress), Some(7));
        let back = restore_token(&progress, &theirs).unwrap();
        assert_eq!(back.get(), r#"{"progress":1, "progressToken":"x\u0041","x":{"progressToken":9}}"#);
    }

    #[test]
    fn what_is_told_on_a_request_says_on_which() {
        let id_of = |id: &str| {
            subscription_id(&raw(&format!(
                r#"{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}}"#
            )))
        };
        assert_eq!((id_of("7"), id_of("\"7\""), id_of("-7"), id_of("null")), (Some(7), None, None, None));
        assert_eq!(subscription_id(&raw("{}")), None);
    }

    #[test]
    fn what_has_no_token_is_left_alone() {
        for text in [
            "{}",
            "[]",
            "7",
            r#"{"_meta":{}}"#,
            r#"{"_meta":[]}"#,
            r#"{"_meta":{"progressToken":{}}}"#,
            r#"{"progressToken":1}"#,
            r#"[{"progressToken":1}]"#,
            r#"{"_meta":["progressToken"]}"#,
        ] {
            assert!(exchange_token(&raw(text), 7).is_none(), "{text}");
        }
        for text in ["{}", "[7]", r#"{"progressToken":"7"}"#, r#"{"progressToken":-1}"#] {
            assert_eq!(progress_token(&raw(text)), None, "{text}");
        }
    }
}
