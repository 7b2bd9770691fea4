//! What one process says to another about a host. Payloads stay the text that they came as.

use embody_wire::Outcome;
use embody_wire::server::ResumeResult;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// What a letter says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Word {
    /// A host has said this in its session: an answer or a notification.
    Said { session: String, text: String },
    /// A host has set this for its session.
    Set { session: String, method: String, params: String },
    /// A host has ended its session.
    Left { session: String },
    /// A host has come back for a call that the recipient holds, with this request.
    Answers { ticket: String, user: String, request: String },
    /// The call is taken by its holder.
    Taken { ticket: String },
    /// It is still being worked on.
    Working { ticket: String },
    /// It does not wait any more.
    Gone { ticket: String },
    /// It is over, with a result.
    Result { ticket: String, text: String },
    /// It is over, with an error.
    Error { ticket: String, text: String },
    /// It asks again.
    Asks { ticket: String, requests: String, next: String },
}

impl Word {
    /// What came of a call that its holder went on with.
    pub(super) fn of(ticket: String, reply: ResumeResult) -> Self {
        match reply {
            ResumeResult::Done(Outcome::Result(result)) => {
                Self::Result { ticket, text: result.get().to_owned() }
            }
            ResumeResult::Done(Outcome::Error(error)) => Self::Error { ticket, text: error.get().to_owned() },
            ResumeResult::InputRequired { requests, ticket: next } => Self::Asks { ticket, requests, next },
        }
    }

    /// The same where it arrives; `None` if it says nothing of that.
    pub(super) fn into_reply(self) -> Option<ResumeResult> {
        let raw = |text: String| RawValue::from_string(text).ok();
        match self {
            Self::Result { text, .. } => raw(text).map(|result| ResumeResult::Done(Outcome::Result(result))),
            Self::Error { text, .. } => raw(text).map(|error| ResumeResult::Done(Outcome::Error(error))),
            Self::Asks { requests, next, .. } => Some(ResumeResult::InputRequired { requests, ticket: next }),
            _ => None,
        }
    }

    /// The call that it is about, for whoever waits for it.
    pub(super) fn about(&self) -> Option<&str> {
        match self {
            Self::Taken { ticket }
            | Self::Working { ticket }
            | Self::Gone { ticket }
            | Self::Result { ticket, .. }
            | Self::Error { ticket, .. }
            | Self::Asks { ticket, .. } => Some(ticket),
            Self::Said { .. } | Self::Set { .. } | Self::Left { .. } | Self::Answers { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_arrives_as_it_was_written() {
        let text = r#"{ "content":[{"x":1.0,"y":12345678901234567890}] }"#;
        let reply = ResumeResult::Done(Outcome::Result(RawValue::from_string(text.to_owned()).unwrap()));
        let letter = serde_json::to_string(&Word::of("t".to_owned(), reply)).unwrap();
        let word: Word = serde_json::from_str(&letter).unwrap();
        assert_eq!(word.about(), Some("t"));
        let Some(ResumeResult::Done(Outcome::Result(result))) = word.into_reply() else { panic!() };
        assert_eq!(result.get(), text);
    }
}
