//! What hosts say to tasks that run, in the words of the record.

use serde::Serialize;

use super::entry::Outcome;
use super::redact::Arguments;
use crate::error::Result;
use crate::store::check_name;

/// What a host said to a task that a call went on as.
#[derive(Clone, Debug, Serialize)]
pub struct ToTask {
    /// The id of that call, if it is known: only the process that made it knows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// The body that has the task.
    pub body: String,
    /// The tool that was called, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// What the body calls the task.
    pub task: String,
    /// What was said.
    pub said: TaskWord,
    /// The answers that were given with it.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub args: Option<Arguments>,
    /// Whether the body has taken it; not what became of the task.
    pub outcome: Outcome,
    /// In what words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// What can be said to a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskWord {
    /// That it is to stop.
    Cancel,
    /// The answers to what it asks.
    Update,
}

impl ToTask {
    pub(super) fn check(&self) -> Result<()> {
        self.call_id.as_deref().map_or(Ok(()), |id| check_name("call", id))?;
        self.tool.as_deref().map_or(Ok(()), |tool| check_name("tool", tool))?;
        check_name("body", &self.body)
    }
}
