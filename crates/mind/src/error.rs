//! Why a tool of the mind could not do what it was asked: the one error type of this crate.

use embody_mcp::ArgumentsError;
use serde_json::{Value, json};

/// What the mind's functions return.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a tool could not do it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The arguments are not the tool's.
    #[error("`{tool}` cannot be called like this: {problem}")]
    Arguments {
        /// The tool.
        tool: &'static str,
        /// What is wrong, with the argument's name.
        problem: String,
    },
    /// The instructions were changed by somebody else in the meantime.
    #[error("the instructions have version `{version}` by now; nothing was changed, read them and try again")]
    Stale {
        /// The version they have.
        version: i64,
        /// Their text.
        instructions: String,
    },
    /// A memory that the owner has to look at first.
    #[error("the memory `{id}` is quarantined: only the owner decides about it")]
    Quarantined {
        /// The memory.
        id: String,
    },
    /// What only the owner's own hand may do.
    #[error("{what}: only the owner can do that")]
    OwnerOnly {
        /// What it was, with the id.
        what: String,
    },
    /// A place in a list that does not exist.
    #[error("there is no page `{cursor}`")]
    NoPage {
        /// The place.
        cursor: String,
    },
    /// Nobody knows how the agent is to speak.
    #[error("the mind's contract is not available: {}", reasons.join("; "))]
    NoContract {
        /// Why.
        reasons: Vec<String>,
    },
    /// A resource that is not there, or not for this caller.
    #[error("there is no resource `{uri}`")]
    NoResource {
        /// Its address.
        uri: String,
    },
    /// What the store says.
    #[error(transparent)]
    Store(#[from] embody_store::Error),
}

impl From<ArgumentsError> for Error {
    fn from(ArgumentsError { tool, problem }: ArgumentsError) -> Self {
        Self::Arguments { tool, problem }
    }
}

impl Error {
    /// What a program needs besides the message: with a stale version, the text and version that are there.
    #[must_use]
    pub fn details(&self) -> Option<Value> {
        match self {
            Self::Stale { version, instructions } => {
                Some(json!({ "current_version": version, "current_instructions": instructions }))
            }
            Self::NoContract { reasons } => Some(json!({ "reasons": reasons })),
            _ => None,
        }
    }

    /// What a person can do about it.
    #[must_use]
    pub fn advice(&self) -> Option<&'static str> {
        match self {
            Self::Stale { .. } => {
                Some("call read_memory with kind `instructions`, then pass its version as expected_version")
            }
            Self::Store(error) => error.advice(),
            _ => None,
        }
    }
}
