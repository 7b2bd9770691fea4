//! The form that a host shows, and the decision from its answer. The form is empty: if a person can have answered it,
//! `accept` approves and `decline` denies; anything else decides nothing.

use std::time::Duration;

use embody_store::approvals::Answer;
use embody_wire::Outcome;
use embody_wire::server::HostResponse;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

/// The recorded decider for answers of the host.
pub(super) const BY: &str = "elicitation";

/// An answer that arrives sooner is automatic: hosts without a user answer by themselves.
const READING_TIME: Duration = Duration::from_millis(500);

/// The params of `elicitation/create`.
pub(super) fn params(message: &str) -> Option<Box<RawValue>> {
    let schema = json!({"type": "object", "properties": {}});
    to_raw_value(&json!({"message": message, "requestedSchema": schema})).ok()
}

/// The decision from the host's answer; `None` if it decides nothing. An automatic answer counts only if the rules allow no
/// other channel.
pub(super) fn decision(answered: &HostResponse, is_only_channel: bool) -> Option<Answer> {
    let Outcome::Result(result) = &answered.outcome else { return None };
    // Rejects a duplicate `action`, which two parsers could read differently.
    let Elicited { action } = serde_json::from_str(result.get()).ok()?;
    let is_automatic = answered.after.is_some_and(|after| after < READING_TIME);
    match action.as_str() {
        _ if is_automatic && !is_only_channel => None,
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

    fn answered(result: &str, after: Option<Duration>) -> HostResponse {
        HostResponse { outcome: Outcome::Result(RawValue::from_string(result.to_owned()).unwrap()), after }
    }

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
            assert_eq!(decision(&answered(result, Some(READING_TIME)), false), expected, "{result}");
        }
        let error = RawValue::from_string(r#"{"code":-32601,"message":"accept"}"#.to_owned()).unwrap();
        assert_eq!(decision(&HostResponse { outcome: Outcome::Error(error), after: None }, true), None);
    }

    #[test]
    fn an_answer_faster_than_a_person_reads_decides_only_where_no_other_channel_is_left() {
        let fast = Some(READING_TIME - Duration::from_millis(1));
        for (after, is_only_channel, is_decided) in [
            (fast, false, false),
            (fast, true, true),
            (Some(READING_TIME), false, true),
            // Another process sent the form: its age is unknown, so the answer counts.
            (None, false, true),
        ] {
            for (action, answer) in [("accept", Answer::Approve), ("decline", Answer::Deny)] {
                let answered = answered(&format!(r#"{{"action":"{action}"}}"#), after);
                let expected = is_decided.then_some(answer);
                assert_eq!(decision(&answered, is_only_channel), expected, "{action} {after:?}");
            }
        }
    }

    #[test]
    fn the_form_is_empty() {
        let params = params("a \"b\"\n⏎").unwrap();
        let value: serde_json::Value = serde_json::from_str(params.get()).unwrap();
        let schema = json!({"type": "object", "properties": {}});
        assert_eq!(value, json!({"message": "a \"b\"\n⏎", "requestedSchema": schema}));
    }
}
