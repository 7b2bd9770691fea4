//! Why a tool of the body could not do what it was asked: the one error type of this crate.

use embody_mcp::ArgumentsError;

/// What the body's functions return.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a tool could not do it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The arguments are not the tool's.
    #[error(transparent)]
    Arguments(#[from] ArgumentsError),
    /// A channel that reaches nobody else.
    #[error("nobody is reached over `{channel}`{}", reached(channels))]
    Channel {
        /// The channel.
        channel: String,
        /// Those that do.
        channels: Vec<String>,
    },
    /// A task that is not there.
    #[error("there is no task `{id}`")]
    NoTask {
        /// Its id.
        id: String,
    },
    /// A task that was changed by somebody else in the meantime.
    #[error("the task `{id}` has version `{version}` by now; nothing was changed")]
    Stale {
        /// Its id.
        id: String,
        /// The version that it has.
        version: i64,
    },
    /// Others read along.
    #[error("others read what is said here, and `{tool}` would show what is the user's alone")]
    Room {
        /// The tool.
        tool: &'static str,
    },
    /// As many schedules as one user may have.
    #[error("there are as many schedules as one user may have")]
    Full,
    /// What the store says.
    #[error(transparent)]
    Store(#[from] embody_store::Error),
}

impl Error {
    /// What can be done about it.
    #[must_use]
    pub fn advice(&self) -> Option<&'static str> {
        match self {
            Self::Channel { .. } => Some("the user alone is reached with notify_user"),
            Self::NoTask { .. } => Some("list_tasks shows those that are there"),
            Self::Stale { .. } => Some("look at it with list_tasks and decide again"),
            Self::Room { .. } => Some("notify_user tells the user alone"),
            Self::Full => Some("ask the user which of them to remove; `embody schedule list` shows them"),
            Self::Store(error) => error.advice(),
            Self::Arguments(_) => None,
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
