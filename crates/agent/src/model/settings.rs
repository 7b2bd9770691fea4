//! Which model is asked, and how patiently.

use std::time::Duration;

use embody_wire::{Secret, Url};

/// Whose wire format a model speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provider {
    /// OpenAI's chat completions, which most servers speak.
    OpenAi,
    /// Anthropic's messages.
    Anthropic,
}

impl Provider {
    /// The name that settings use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
        }
    }
}

/// A model, and the way to it.
#[derive(Debug, Clone)]
pub struct ModelSettings {
    /// Its wire format.
    pub provider: Provider,
    /// Where it answers: with `/v1` for [`Provider::OpenAi`], without for [`Provider::Anthropic`].
    pub base_url: Url,
    /// Its name.
    pub model: String,
    /// The key; a model on the own machine needs none.
    pub api_key: Option<Secret>,
    /// Whether it takes tools in its own format. If not, calls are read from its text.
    pub native_tools: bool,
    /// How long an answer may be.
    pub max_output_tokens: u32,
    /// How patiently it is asked.
    pub times: ModelTimes,
}

/// How long to wait for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelTimes {
    /// For a connection.
    pub connect: Duration,
    /// For the first byte of the answer.
    pub first_byte: Duration,
    /// For the next byte of it.
    pub idle: Duration,
    /// For the whole answer, retries included.
    pub total: Duration,
    /// From the question on: after this time nothing is tried again.
    pub retrying: Duration,
}

impl Default for ModelTimes {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(120),
            idle: Duration::from_secs(120),
            total: Duration::from_secs(600),
            retrying: Duration::from_secs(30),
        }
    }
}
