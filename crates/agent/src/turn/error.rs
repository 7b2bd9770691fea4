//! Errors of a turn, phrased for the person who waits for the reply.

use embody_broker::InProcessError;

use crate::model::ModelError;

#[derive(Debug, thiserror::Error)]
pub enum TurnError {
    #[error("no model is configured, so nobody can answer")]
    NoModel,
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The model returned neither text nor calls.
    #[error("the model gave an empty answer")]
    Empty,
    /// The model does not stop calling tools.
    #[error("the model has called tools in {rounds} rounds and has not come to an end")]
    Endless {
        /// How often the model was called.
        rounds: u32,
    },
    /// The user's message is too long.
    #[error("the message has {bytes} bytes; at most {most} are taken")]
    TooLong {
        bytes: usize,
        /// The limit in bytes.
        most: usize,
    },
    /// The prompt could not be built.
    #[error("the prompt cannot be built: {0}")]
    Compose(String),
    /// The tools are unavailable.
    #[error("the tools cannot be reached")]
    Tools(#[from] InProcessError),
    /// The conversation cannot be read or stored.
    #[error("the conversation cannot be kept")]
    Store(#[from] embody_store::Error),
}

/// The settings that configure a model.
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
