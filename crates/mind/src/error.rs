//! The error type of this crate.

use embody_mcp::ArgumentsError;
use serde_json::{Value, json};

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("invalid arguments of `{tool}`: {problem}")]
    Arguments { tool: &'static str, problem: String },
    #[error("the instructions are now at version `{version}`; nothing was changed; read them and try again")]
    Stale { version: i64, instructions: String },
    #[error("the memory `{id}` is quarantined: only the owner decides about it")]
    Quarantined { id: String },
    #[error("{what}: only the owner can do that")]
    OwnerOnly { what: String },
    #[error("unknown cursor `{cursor}`")]
    NoPage { cursor: String },
    #[error("the mind's contract is not available: {}", reasons.join("; "))]
    NoContract { reasons: Vec<String> },
    #[error("unknown resource `{uri}`")]
    NoResource { uri: String },
    #[error(transparent)]
    Store(#[from] embody_store::Error),
}

impl From<ArgumentsError> for Error {
    fn from(ArgumentsError { tool, problem }: ArgumentsError) -> Self {
        Self::Arguments { tool, problem }
    }
}

impl Error {
    /// Data for programs besides the message: for a stale version, the current text and version.
    pub fn details(&self) -> Option<Value> {
        match self {
            Self::Stale { version, instructions } => {
                Some(json!({ "current_version": version, "current_instructions": instructions }))
            }
            Self::NoContract { reasons } => Some(json!({ "reasons": reasons })),
            _ => None,
        }
    }

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
