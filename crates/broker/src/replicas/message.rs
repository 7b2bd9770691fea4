//! Messages between processes. Payloads stay raw text; the serialized form is stored.

use embody_wire::Outcome;
use embody_wire::server::ResumeResult;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum ReplicaMessage {
    /// A response or a notification that a host has sent in its session.
    #[serde(rename = "said")]
    HostMessage {
        session: String,
        text: String,
    },
    #[serde(rename = "set")]
    Setting {
        session: String,
        method: String,
        params: String,
    },
    #[serde(rename = "left")]
    SessionEnded {
        session: String,
    },
    /// A host has returned, with this request, to a call that the recipient holds.
    #[serde(rename = "answers")]
    Resume {
        ticket: String,
        user: String,
        request: String,
    },
    #[serde(rename = "taken")]
    Claimed {
        ticket: String,
    },
    /// The call is still running.
    Working {
        ticket: String,
    },
    /// The call no longer waits.
    #[serde(rename = "gone")]
    Expired {
        ticket: String,
    },
    Result {
        ticket: String,
        text: String,
    },
    Error {
        ticket: String,
        text: String,
    },
    #[serde(rename = "asks")]
    InputRequired {
        ticket: String,
        requests: String,
        next: String,
    },
}

impl ReplicaMessage {
    pub(super) fn from_reply(ticket: String, reply: ResumeResult) -> Self {
        match reply {
            ResumeResult::Done(Outcome::Result(result)) => {
                Self::Result { ticket, text: result.get().to_owned() }
            }
            ResumeResult::Done(Outcome::Error(error)) => Self::Error { ticket, text: error.get().to_owned() },
            ResumeResult::InputRequired { requests, ticket: next } => {
                Self::InputRequired { ticket, requests, next }
            }
        }
    }

    /// Converts a received message; `None` if it is not a reply about a call.
    pub(super) fn into_reply(self) -> Option<ResumeResult> {
        let raw = |text: String| RawValue::from_string(text).ok();
        match self {
            Self::Result { text, .. } => raw(text).map(|result| ResumeResult::Done(Outcome::Result(result))),
            Self::Error { text, .. } => raw(text).map(|error| ResumeResult::Done(Outcome::Error(error))),
            Self::InputRequired { requests, next, .. } => {
                Some(ResumeResult::InputRequired { requests, ticket: next })
            }
            _ => None,
        }
    }

    /// The ticket of the call that it is about.
    pub(super) fn ticket(&self) -> Option<&str> {
        match self {
            Self::Claimed { ticket }
            | Self::Working { ticket }
            | Self::Expired { ticket }
            | Self::Result { ticket, .. }
            | Self::Error { ticket, .. }
            | Self::InputRequired { ticket, .. } => Some(ticket),
            Self::HostMessage { .. }
            | Self::Setting { .. }
            | Self::SessionEnded { .. }
            | Self::Resume { .. } => None,
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
        let message = serde_json::to_string(&ReplicaMessage::from_reply("t".to_owned(), reply)).unwrap();
        let message: ReplicaMessage = serde_json::from_str(&message).unwrap();
        assert_eq!(message.ticket(), Some("t"));
        let Some(ResumeResult::Done(Outcome::Result(result))) = message.into_reply() else { panic!() };
        assert_eq!(result.get(), text);
    }
}
