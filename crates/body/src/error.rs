//! The error type of this crate.

use embody_mcp::ArgumentsError;

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error(transparent)]
    Arguments(#[from] ArgumentsError),
    #[error("nobody is reached over `{channel}`{}", reached(channels))]
    Channel { channel: String, channels: Vec<String> },
    #[error("there is no task `{id}`")]
    NoTask { id: String },
    #[error("the task `{id}` has version `{version}` by now; nothing was changed")]
    Stale { id: String, version: i64 },
    #[error("others read what is said here, and `{tool}` would show what is the user's alone")]
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
            Self::Channel { .. } => Some("the user alone is reached with notify_user"),
            Self::NoTask { .. } => Some("list_tasks shows those that are there"),
            Self::Stale { .. } => Some("look at it with list_tasks and decide again"),
            Self::SharedConversation { .. } => Some("notify_user tells the user alone"),
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
        [] => ": no channel to other people is set up".to_owned(),
        channels => format!("; there is `{}`", channels.join("`, `")),
    }
}
