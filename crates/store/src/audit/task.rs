//! What hosts say to tasks that run, in the words of the record.

use serde::Serialize;

use super::entry::Outcome;
use super::redact::Arguments;
use crate::error::Result;
use crate::store::check_name;

/// What a host said to a task that a call went on as.
#[derive(Clone, Debug, Serialize)]
pub struct TaskMessage {
    /// Known only to the process that made the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    pub body: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The body's id of the task.
    pub task: String,
    pub said: TaskMessageKind,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub args: Option<Arguments>,
    /// Whether the body accepted the message; not the result of the task.
    pub outcome: Outcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// What can be said to a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskMessageKind {
    Cancel,
    Update,
}

impl TaskMessage {
    pub(super) fn check(&self) -> Result<()> {
        self.call_id.as_deref().map_or(Ok(()), |id| check_name("call", id))?;
        self.tool.as_deref().map_or(Ok(()), |tool| check_name("tool", tool))?;
        check_name("body", &self.body)
    }
}
