//! What happens in a turn, from the model to the page: its events, its end, and both as server-sent events.

use std::time::Duration;

use embody_broker::MissingServer;
use serde_json::{Value, json};

use crate::turn::TurnResult;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnEvent {
    /// The first event of every stream.
    Started {
        turn: String,
        thread: String,
    },
    /// More of the reply.
    Text(String),
    Tool {
        id: String,
        name: String,
    },
    ToolDone {
        id: String,
        name: String,
        /// Whether it failed, or was not made.
        is_error: bool,
        /// The broker's decision, if the call was not made: `pending`, `deny` …
        decision: Option<String>,
        approval: Option<String>,
    },
    /// The turn waits for the first start of these servers, for a bounded time.
    Starting {
        servers: Vec<String>,
    },
    /// The turn continues without the tools of these servers.
    Missing {
        servers: Vec<MissingServer>,
    },
    /// The model request is retried after a delay.
    Waiting {
        after: Duration,
        /// The number of this retry, from 1 on.
        retry: u32,
        /// How many there can be; `None` if only the time limits them.
        most: Option<u32>,
        /// The error that caused the retry.
        reason: String,
    },
}

/// How a turn ended. Every turn has exactly one end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    Done(TurnResult),
    Failed {
        /// The reason, for the user.
        message: String,
        /// What the user can do about it.
        hint: Option<String>,
    },
    Cancelled,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SseEvent {
    /// The position to resume after this event.
    pub id: u64,
    pub name: &'static str,
    /// JSON on one line.
    pub data: String,
}

impl SseEvent {
    pub(crate) fn text(id: u64, delta: &str) -> Self {
        Self::new(id, "text", &json!({ "delta": delta }))
    }

    fn new(id: u64, name: &'static str, data: &Value) -> Self {
        Self { id, name, data: data.to_string() }
    }
}

impl TurnEvent {
    /// The line that counts the retries; a later one replaces it.
    pub fn retry_line(&self) -> Option<String> {
        let Self::Waiting { retry, most, .. } = self else { return None };
        let most = most.map(|most| format!(" of {most}")).unwrap_or_default();
        Some(format!("The model does not answer; retry {retry}{most}"))
    }

    pub fn to_sse(&self, id: u64) -> SseEvent {
        match self {
            Self::Started { turn, thread } => {
                SseEvent::new(id, "turn", &json!({"turn": turn, "thread": thread}))
            }
            Self::Text(delta) => SseEvent::text(id, delta),
            Self::Tool { id: call, name } => SseEvent::new(id, "tool", &json!({"id": call, "name": name})),
            Self::ToolDone { id: call, name, is_error, decision, approval } => SseEvent::new(
                id,
                "tool_done",
                &json!({"id": call, "name": name, "is_error": is_error, "decision": decision, "approval": approval}),
            ),
            Self::Starting { servers } => SseEvent::new(id, "starting", &json!({ "servers": servers })),
            Self::Missing { servers } => {
                let server = |one: &MissingServer| json!({"name": one.name, "reason": one.reason});
                SseEvent::new(
                    id,
                    "missing",
                    &json!({ "servers": servers.iter().map(server).collect::<Vec<_>>() }),
                )
            }
            Self::Waiting { after, retry, most, reason } => {
                let after_ms = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
                let data = json!({"after_ms": after_ms, "retry": retry, "most": most, "reason": reason});
                SseEvent::new(id, "waiting", &data)
            }
        }
    }
}

impl End {
    pub fn to_sse(&self, id: u64) -> SseEvent {
        match self {
            Self::Done(TurnResult { reply, is_cut, usage, receipt, rounds: _ }) => SseEvent::new(
                id,
                "done",
                &json!({"reply": reply, "is_cut": is_cut, "usage": usage, "receipt": receipt}),
            ),
            Self::Failed { message, hint } => {
                SseEvent::new(id, "failed", &json!({"message": message, "hint": hint}))
            }
            Self::Cancelled => SseEvent::new(id, "cancelled", &json!({})),
        }
    }
}
