//! The error type of this crate.

use embody_mcp::ArgumentsError;

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error(transparent)]
    Arguments(#[from] ArgumentsError),
    #[error("no other person can be reached over channel `{channel}`{}", reached(channels))]
    Channel { channel: String, channels: Vec<String> },
    #[error("unknown task `{id}`")]
    NoTask { id: String },
    #[error("the task `{id}` is now at version `{version}`; nothing was changed")]
    Stale { id: String, version: i64 },
    #[error("other people read this conversation, and `{tool}` would show the user's private data")]
    SharedConversation { tool: &'static str },
    #[error("{0}")]
    Skill(String),
    #[error("the user has the maximum number of schedules")]
    Full,
    #[error(transparent)]
    Store(#[from] embody_store::Error),
}

impl Error {
    #[must_use]
    pub fn advice(&self) -> Option<&'static str> {
        match self {
            Self::Channel { .. } => Some("notify_user reaches the user"),
            Self::NoTask { .. } => Some("list_tasks lists the tasks"),
            Self::Stale { .. } => {
                Some("read it with list_tasks, then repeat the change if it is still right")
            }
            Self::SharedConversation { .. } => Some("notify_user reaches only the user"),
            Self::Full => Some("ask the user which of them to remove; `embody schedule list` shows them"),
            Self::Store(error) => error.advice(),
            Self::Skill(_) | Self::Arguments(_) => None,
        }
    }

    pub(crate) fn arguments(tool: crate::Tool, problem: impl Into<String>) -> Self {
        Self::Arguments(ArgumentsError { tool: tool.name(), problem: problem.into() })
    }
}

fn reached(channels: &[String]) -> String {
    match channels {
        [] => ": no channel to other people is configured".to_owned(),
        channels => format!("; configured: `{}`", channels.join("`, `")),
    }
}
