//! Which model is asked, and how patiently.

use std::fmt;
use std::time::Duration;

use embody_wire::{Proxies, Secret, Url};

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
#[derive(Clone)]
pub struct ModelSettings {
    /// Its wire format.
    pub provider: Provider,
    /// Where it answers: with `/v1` for [`Provider::OpenAi`], without for [`Provider::Anthropic`].
    pub base_url: Url,
    /// Its name.
    pub model: String,
    /// The key; a model on the own machine needs none.
    pub api_key: Option<Secret>,
    /// The variable that the key is looked for in, for the words of an error.
    pub key_variable: String,
    /// Whether it takes tools in its own format. If not, calls are read from its text.
    pub native_tools: bool,
    /// How long an answer may be.
    pub max_output_tokens: u32,
    /// How patiently it is asked.
    pub times: ModelTimes,
    /// The proxies before it.
    pub proxies: Proxies,
}

/// A URL may carry a password or a token: only its place is shown.
impl fmt::Debug for ModelSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelSettings")
            .field("provider", &self.provider)
            .field("base_url", &redacted_url(&self.base_url))
            .field("model", &self.model)
            .field("api_key", &self.api_key)
            .field("key_variable", &self.key_variable)
            .field("native_tools", &self.native_tools)
            .field("max_output_tokens", &self.max_output_tokens)
            .field("times", &self.times)
            .field("proxies", &self.proxies)
            .finish()
    }
}

/// A URL without user, password, query and fragment.
pub(super) fn redacted_url(url: &Url) -> String {
    let mut bare = url.clone();
    bare.set_query(None);
    bare.set_fragment(None);
    // Both fail only for URLs that cannot have a user at all.
    let _ = bare.set_username("");
    let _ = bare.set_password(None);
    bare.into()
}

/// How long to wait for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelTimes {
    /// For a connection.
    pub connect: Duration,
    /// For the first byte of the answer, the connection included.
    pub first_byte: Duration,
    /// For the next byte of it.
    pub idle: Duration,
    /// For the whole answer, retries included.
    pub total: Duration,
    /// From the question on: nothing is tried again that would end after this time.
    pub retrying: Duration,
    /// How often it is asked at most; `None`: as often as fits into `retrying`.
    pub attempts: Option<u32>,
}

impl Default for ModelTimes {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(120),
            idle: Duration::from_secs(120),
            total: Duration::from_secs(600),
            retrying: Duration::from_secs(30),
            attempts: Some(8),
        }
    }
}
