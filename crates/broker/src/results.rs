//! Results that the broker makes itself. They are ordinary tool results, so that every host shows them to its model; what
//! a program needs of them stands under `structuredContent.embody`.

use embody_wire::Outcome;
use embody_wire::serve::failure_with;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

/// The key in `_meta` under which one of our own agents finds its mark.
pub(crate) const MARK_KEY: &str = "embody/mark";

/// The code of an error that stands for a refusal.
const REFUSED: i64 = -32000;

/// What was decided instead of the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Word {
    /// It does not happen.
    Deny,
    /// Somebody has to decide first.
    Pending,
    /// The contract has to be read first.
    Bounce,
    /// The mind or a changed definition holds it back.
    Held,
    /// It took too long.
    Timeout,
    /// It cannot happen as things are.
    Blocked,
}

/// A result in place of the call's own.
#[derive(Debug, Serialize)]
pub(crate) struct Refused {
    pub(crate) decision: Word,
    pub(crate) reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) approval_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) required_next_action: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) contract: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) flags: Vec<String>,
    pub(crate) degraded: Vec<String>,
    /// It was sent, and nobody knows what came of it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) outcome_unknown: bool,
    /// The hash of the contract that it carries.
    #[serde(skip)]
    pub(crate) contract_hash: Option<String>,
    /// By which one of our own agents knows that it is the broker's.
    #[serde(skip)]
    pub(crate) mark: Option<String>,
}

impl Refused {
    pub(crate) fn new(decision: Word, reason: impl Into<String>) -> Self {
        Self {
            decision,
            reason: reason.into(),
            approval_id: None,
            required_next_action: None,
            contract: None,
            flags: Vec::new(),
            degraded: Vec::new(),
            outcome_unknown: false,
            contract_hash: None,
            mark: None,
        }
    }

    /// Of a call that was sent and not answered.
    pub(crate) fn unknown(decision: Word, reason: impl Into<String>) -> Self {
        let next = "find out with a read before you try again";
        Self { outcome_unknown: true, ..Self::new(decision, reason).next(next) }
    }

    pub(crate) fn next(mut self, action: impl Into<String>) -> Self {
        self.required_next_action = Some(action.into());
        self
    }

    pub(crate) fn approval(mut self, id: impl Into<String>) -> Self {
        self.approval_id = Some(id.into());
        self
    }

    pub(crate) fn flags(mut self, flags: Vec<String>) -> Self {
        self.flags = flags;
        self
    }

    /// The words for a model that sees the text only. The contract comes first: what is long is cut at its end.
    fn text(&self) -> String {
        let mut text =
            self.contract.as_ref().map(|contract| format!("{contract}\n\n---\n\n")).unwrap_or_default();
        text += &match self.outcome_unknown {
            true => format!("This call was sent, and nobody knows whether it took effect: {}.", self.reason),
            false => format!("This call was not made: {}.", self.reason),
        };
        for flag in &self.flags {
            text += &format!("\n- {flag}");
        }
        if let Some(id) = &self.approval_id {
            text += &format!("\nApproval: {id}");
        }
        if let Some(action) = &self.required_next_action {
            text += &format!("\nNext: {action}");
        }
        for reason in &self.degraded {
            text += &format!("\nDegraded: {reason}");
        }
        text
    }

    pub(crate) fn outcome(&self) -> Outcome {
        let mut result = members(&self.text(), &json!({ "embody": self }), true);
        if let (Some(mark), Some(members)) = (&self.mark, result.as_object_mut()) {
            members.insert("_meta".to_owned(), json!({ MARK_KEY: mark }));
        }
        Outcome::Result(raw(&result))
    }

    /// The same for a host that waits for a task: anything that is neither a task nor an error it could not read.
    pub(crate) fn error(&self) -> Outcome {
        failure_with(REFUSED, self.text(), Some(json!({ "embody": self })))
    }
}

/// A tool result with a text and the same as data.
pub(crate) fn tool_result(text: &str, structured: &Value, is_error: bool) -> Outcome {
    Outcome::Result(raw(&members(text, structured, is_error)))
}

fn members(text: &str, structured: &Value, is_error: bool) -> Value {
    json!({
        "content": [{"type": "text", "text": text}],
        "structuredContent": structured,
        "isError": is_error,
    })
}

/// A value as raw text. A [`Value`] can always be written.
pub(crate) fn raw(value: &impl Serialize) -> Box<RawValue> {
    to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_the_same_in_words_and_as_data() {
        let refused = Refused {
            contract: Some("be kind".to_owned()),
            degraded: vec!["mind_unavailable: it is away".to_owned()],
            ..Refused::new(Word::Bounce, "the contract comes first")
                .next("call again")
                .flags(vec!["odd".to_owned()])
        };
        let Outcome::Result(result) = refused.outcome() else { panic!("an error") };
        let result: Value = serde_json::from_str(result.get()).unwrap();
        assert_eq!(result["isError"], true);
        let told = &result["structuredContent"]["embody"];
        assert_eq!(told["decision"], "bounce");
        assert_eq!(told["contract"], "be kind");
        assert!(told.get("approval_id").is_none());
        let text = result["content"][0]["text"].as_str().unwrap();
        for part in ["be kind", "the contract comes first", "call again", "odd", "mind_unavailable"] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        assert!(text.starts_with("be kind"));
    }
}
