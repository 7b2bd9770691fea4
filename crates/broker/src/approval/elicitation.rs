//! The question to the host, and what its answer means. The form is empty: `accept` approves, a `decline` denies, and
//! anything else decides nothing.

use embody_store::Answer;
use embody_wire::Outcome;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

/// Who decided, when the host did.
pub(super) const BY: &str = "elicitation";

/// The params of `elicitation/create`.
pub(super) fn params(message: &str) -> Option<Box<RawValue>> {
    let schema = json!({"type": "object", "properties": {}});
    to_raw_value(&json!({"message": message, "requestedSchema": schema})).ok()
}

/// What the host's answer decides.
pub(super) fn answer(outcome: &Outcome) -> Option<Answer> {
    let Outcome::Result(result) = outcome else { return None };
    // A repeated `action` is no answer: two readers could read it differently.
    let Elicited { action } = serde_json::from_str(result.get()).ok()?;
    match action.as_str() {
        "accept" => Some(Answer::Approve),
        "decline" => Some(Answer::Deny),
        _ => None,
    }
}

#[derive(Deserialize)]
struct Elicited {
    action: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: N-10
    #[test]
    fn only_accept_approves() {
        for (result, expected) in [
            (r#"{"action":"accept"}"#, Some(Answer::Approve)),
            (r#"{"action":"accept","content":{},"_meta":{"x":1}}"#, Some(Answer::Approve)),
            (r#"{"action":"decline"}"#, Some(Answer::Deny)),
            (r#"{"action":"cancel"}"#, None),
            (r#"{"action":"Accept"}"#, None),
            (r#"{"action":"decline","action":"accept"}"#, None),
            (r#"{"action":true}"#, None),
            (r#"{"content":{"action":"accept"}}"#, None),
            ("{}", None),
            ("null", None),
            (r#""accept""#, None),
        ] {
            let outcome = Outcome::Result(RawValue::from_string(result.to_owned()).unwrap());
            assert_eq!(answer(&outcome), expected, "{result}");
        }
        let error = RawValue::from_string(r#"{"code":-32601,"message":"accept"}"#.to_owned()).unwrap();
        assert_eq!(answer(&Outcome::Error(error)), None);
    }

    #[test]
    fn the_form_is_empty() {
        let params = params("a \"b\"\n⏎").unwrap();
        let value: serde_json::Value = serde_json::from_str(params.get()).unwrap();
        let schema = json!({"type": "object", "properties": {}});
        assert_eq!(value, json!({"message": "a \"b\"\n⏎", "requestedSchema": schema}));
    }
}
