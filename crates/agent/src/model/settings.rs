//! The settings of a model: address, key, timeouts.

use std::fmt;
use std::time::Duration;

use embody_wire::{Proxies, Secret, Url};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The wire format of a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Provider {
    // OpenAI's chat completions, which most servers support.
    #[default]
    OpenAi,
    // Anthropic's Messages API.
    Anthropic,
}

impl Provider {
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
        }
    }
}

#[derive(Clone)]
pub struct ModelSettings {
    pub provider: Provider,
    /// With `/v1` for [`Provider::OpenAi`], without for [`Provider::Anthropic`].
    pub base_url: Url,
    pub model: String,
    /// `None` for a local model that needs no key.
    pub api_key: Option<Secret>,
    pub key_source: KeySource,
    /// Whether it supports tools in its wire format. If not, calls are parsed from its text.
    pub native_tools: bool,
    pub max_output_tokens: u32,
    pub times: ModelTimes,
    pub proxies: Proxies,
    pub failures: FailureLog,
}

/// Where the key is, or should be, for error messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// An environment variable.
    Variable(String),
    /// A file, by its path.
    File(String),
    /// A person entered it just now.
    Entered,
}

impl fmt::Display for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => write!(f, "the key in the environment variable {name}"),
            Self::File(path) => write!(f, "the key in the file `{path}`"),
            Self::Entered => f.write_str("the key that was entered"),
        }
    }
}

/// How failed requests are logged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FailureLog {
    /// As details: the caller shows every failure to a person.
    #[default]
    Debug,
    /// As warnings: the caller may run without a person who reads its output.
    Warn,
}

/// A URL may contain a password or a token, which are not shown.
impl fmt::Debug for ModelSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelSettings")
            .field("provider", &self.provider)
            .field("base_url", &redacted_url(&self.base_url))
            .field("model", &self.model)
            .field("api_key", &self.api_key)
            .field("key_source", &self.key_source)
            .field("native_tools", &self.native_tools)
            .field("max_output_tokens", &self.max_output_tokens)
            .field("times", &self.times)
            .field("proxies", &self.proxies)
            .field("failures", &self.failures)
            .finish()
    }
}

/// A URL without user, password, query and fragment.
pub(super) fn redacted_url(url: &Url) -> String {
    let mut bare = url.clone();
    bare.set_query(None);
    bare.set_fragment(None);
    // Both fail only for URLs that cannot have a user.
    let _ = bare.set_username("");
    let _ = bare.set_password(None);
    bare.into()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelTimes {
    pub connect: Duration,
    /// To the first byte of the response, including connecting.
    pub first_byte: Duration,
    /// Between two reads of the response.
    pub idle: Duration,
    /// For the whole response, including retries.
    pub total: Duration,
    /// From the first attempt on: no retry starts that would end after this time.
    pub retrying: Duration,
    /// The maximum number of attempts; `None` for as many as fit into `retrying`.
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
