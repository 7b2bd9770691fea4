//! The events of a turn that a web page receives, as names and JSON.

use serde_json::json;

use crate::model::Usage;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// More of the reply.
    Text(String),
    /// A tool call starts.
    Tool {
        /// The id of the call.
        id: String,
        name: String,
    },
    /// A tool call ends.
    ToolDone {
        /// The id of the call.
        id: String,
        name: String,
        /// Whether it failed, or was not made.
        is_error: bool,
        /// The broker's decision, if the call was not made.
        decision: Option<String>,
        /// The approval that it waits for.
        approval: Option<String>,
    },
    /// The model request is retried after a delay.
    Waiting {
        after_ms: u64,
        /// The error that caused the retry.
        reason: String,
    },
}

/// How a turn ended. Every turn has exactly one end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The agent replied, or chose to be silent.
    Done(Done),
    /// There is no reply.
    Failed {
        /// The reason, for the user.
        message: String,
        /// What the user can do about it.
        hint: Option<String>,
    },
    /// The user cancelled the turn.
    Cancelled,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Done {
    /// The whole reply; `None` is silence.
    pub reply: Option<String>,
    /// Whether the model reached its output limit.
    pub is_cut: bool,
    /// `None` if unknown.
    pub usage: Option<Usage>,
    /// The receipt id of its prompt; `None` if unknown.
    pub receipt: Option<String>,
}

/// An event as a server-sent event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SseEvent {
    /// The position to resume after this event.
    pub id: u64,
    pub name: &'static str,
    /// JSON on one line.
    pub data: String,
}

pub(super) type NamedEvent = (&'static str, String);

/// The first event of every stream.
pub(super) fn turn(turn: &str, thread: &str) -> NamedEvent {
    ("turn", json!({"turn": turn, "thread": thread}).to_string())
}

/// More of the reply.
pub(super) fn text(delta: &str) -> NamedEvent {
    ("text", json!({ "delta": delta }).to_string())
}

impl Event {
    /// The event name and data; a text is not encoded yet, so that it can be split anywhere.
    pub(super) fn to_sse(&self) -> NamedEvent {
        match self {
            Self::Text(delta) => text(delta),
            Self::Tool { id, name } => ("tool", json!({"id": id, "name": name}).to_string()),
            Self::ToolDone { id, name, is_error, decision, approval } => (
                "tool_done",
                json!({"id": id, "name": name, "is_error": is_error, "decision": decision, "approval": approval})
                    .to_string(),
            ),
            Self::Waiting { after_ms, reason } => {
                ("waiting", json!({"after_ms": after_ms, "reason": reason}).to_string())
            }
        }
    }
}

impl End {
    #[must_use]
    pub fn to_sse(&self) -> NamedEvent {
        match self {
            Self::Done(Done { reply, is_cut, usage, receipt }) => (
                "done",
                json!({"reply": reply, "is_cut": is_cut, "usage": usage, "receipt": receipt}).to_string(),
            ),
            Self::Failed { message, hint } => {
                ("failed", json!({"message": message, "hint": hint}).to_string())
            }
            Self::Cancelled => ("cancelled", "{}".to_owned()),
        }
    }
}
