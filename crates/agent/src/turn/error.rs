//! Why a turn did not happen, in words for whoever waits for the reply.

use embody_broker::InProcessError;

use crate::model::ModelError;

/// Why there is no reply.
#[derive(Debug, thiserror::Error)]
pub enum TurnError {
    /// No model is configured.
    #[error("no model is configured, so nobody can answer")]
    NoModel,
    /// The model was asked in vain.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The model said nothing and did nothing.
    #[error("the model gave an empty answer")]
    Empty,
    /// The model calls tools without end.
    #[error("the model has called tools in {rounds} rounds and has not come to an end")]
    Endless {
        /// How often it was asked.
        rounds: u32,
    },
    /// The message is too long to be said at once.
    #[error("the message has {bytes} bytes; at most {most} are taken")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The most.
        most: usize,
    },
    /// There is no prompt.
    #[error("the prompt cannot be built: {0}")]
    Compose(String),
    /// The tools cannot be reached.
    #[error("the tools cannot be reached")]
    Tools(#[from] InProcessError),
    /// The conversation cannot be read or kept.
    #[error("the conversation cannot be kept")]
    Store(#[from] embody_store::Error),
}

/// The lines that make a model known.
pub const MODEL_CONFIG_EXAMPLE: &str = "[model]\nbase_url = \"http://127.0.0.1:11434/v1\"\nmodel = \"qwen3\"";

impl TurnError {
    /// What the owner can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoModel => Some(format!(
                "add these lines to embody.toml in the workspace (`embody config check` says where that is):\n{MODEL_CONFIG_EXAMPLE}"
            )),
            Self::Model(error) => error.hint(),
            Self::Empty => Some("ask again; a model that does this often does not suit the job".to_owned()),
            Self::Endless { .. } => Some("say what you need in smaller steps".to_owned()),
            Self::TooLong { .. } => {
                Some("say it in parts, or put it into a file of the workspace".to_owned())
            }
            Self::Compose(_) => Some("`embody doctor` says what is wrong with the workspace".to_owned()),
            Self::Tools(_) | Self::Store(_) => Some("`embody doctor` says what is wrong".to_owned()),
        }
    }
}
