//! What a page hears of a turn, as names and JSON.

use serde_json::json;

use crate::model::Usage;

/// Something that happened in a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// More of the reply.
    Text(String),
    /// A tool is called.
    Tool {
        /// The call.
        id: String,
        /// The tool.
        name: String,
    },
    /// The call is over.
    ToolDone {
        /// The call.
        id: String,
        /// The tool.
        name: String,
        /// Whether it failed, or was not made.
        is_error: bool,
        /// What the broker decided, if it was not made.
        decision: Option<String>,
        /// The approval that it waits for.
        approval: Option<String>,
    },
    /// The model is asked again after a while.
    Waiting {
        /// How long, in milliseconds.
        after_ms: u64,
        /// Why.
        reason: String,
    },
}

/// How a turn ended. Every turn ends in exactly one of these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// It was answered, or the agent chose to be silent.
    Done(Done),
    /// There is no reply.
    Failed {
        /// Why, in words for the user.
        message: String,
        /// What can be done about it.
        hint: Option<String>,
    },
    /// Somebody broke it off.
    Cancelled,
}

/// What a turn came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Done {
    /// The whole reply; none is silence.
    pub reply: Option<String>,
    /// Whether the model met the limit of its length.
    pub is_cut: bool,
    /// What it cost, if that is known.
    pub usage: Option<Usage>,
    /// The receipt of its prompt, if that is known.
    pub receipt: Option<String>,
}

/// An event as a page reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SseEvent {
    /// Where to go on after it.
    pub id: u64,
    /// Its name.
    pub name: &'static str,
    /// What it says, as JSON on one line.
    pub data: String,
}

/// A name and JSON.
pub(super) type NamedEvent = (&'static str, String);

/// Every stream begins with it.
pub(super) fn turn(turn: &str, thread: &str) -> NamedEvent {
    ("turn", json!({"turn": turn, "thread": thread}).to_string())
}

/// More of the reply.
pub(super) fn text(delta: &str) -> NamedEvent {
    ("text", json!({ "delta": delta }).to_string())
}

impl Event {
    /// Its name and what it says; a text is kept as it is, so that it can be cut anywhere.
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
    /// Its name and what it says.
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
