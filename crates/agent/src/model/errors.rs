//! Classifies the errors of model providers, and explains them to a person. Parses the providers' error bodies; never
//! shows a key, and truncates and sanitizes foreign text.

use std::fmt;
use std::time::Duration;

use embody_wire::Secret;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::settings::KeySource;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    #[error("invalid model settings: {why}")]
    Settings { why: String },
    #[error("the conversation is too long for the model{}", colon_suffix(message))]
    Overflow { message: String },
    /// The key is missing, wrong or lacks permission.
    #[error("the model at `{endpoint}` does not accept the key (status {status}){}", colon_suffix(message))]
    Unauthorized {
        endpoint: String,
        /// 401 or 403.
        status: u16,
        had_key: bool,
        key_source: KeySource,
        message: String,
    },
    #[error("unknown model `{model}` at `{endpoint}`{}", colon_suffix(message))]
    NotFound { endpoint: String, model: String, message: String },
    #[error("the model at `{endpoint}` is rate limited{}", colon_suffix(message))]
    RateLimited { endpoint: String, retry_after: Option<Duration>, message: String },
    /// The server cannot be reached, or reports an error.
    #[error("the model at `{endpoint}` is not available: {why}")]
    Unavailable {
        /// The URL without user, password and query.
        endpoint: String,
        why: String,
    },
    /// The connection timed out.
    #[error("the model at `{endpoint}` is not available: {why}")]
    Unreached { endpoint: String, why: String },
    #[error("the model at `{endpoint}` took too long: no {what} within {after:?}")]
    Timeout { endpoint: String, what: TimeoutStage, after: Duration },
    #[error("the model's response is invalid: {why}")]
    Broken { why: String },
    #[error("the model rejected the request (status {status}){}", colon_suffix(message))]
    Refused { status: u16, message: String },
}

impl ModelError {
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Settings { .. } => "see `[model]` in embody.toml",
            Self::Overflow { .. } => "start a new thread, or use a model with a longer context",
            Self::Unauthorized { had_key: false, key_source: KeySource::Variable(variable), .. } => {
                return Some(format!(
                    "no key is set: set the environment variable {variable}, or name another with `api_key_env` in `[model]`"
                ));
            }
            Self::Unauthorized { key_source, .. } => {
                return Some(format!("check {key_source}; it must be a key of this provider"));
            }
            Self::NotFound { .. } => {
                "check `model` and `base_url` in `[model]`: for `openai` the URL ends with `/v1`, for `anthropic` it does not; a local model may have to be loaded first"
            }
            Self::RateLimited { retry_after: Some(after), .. } => {
                return Some(format!("try again in {} s", after.as_secs().max(1)));
            }
            Self::RateLimited { .. } => "try again later",
            Self::Unavailable { .. } => {
                "check that the server is running, and `base_url` in `[model]`; else try again later"
            }
            Self::Unreached { .. } => {
                "check that the server is running, and `base_url` in `[model]`; for a slow network raise `connect_timeout_s` there"
            }
            Self::Timeout { what, .. } => {
                return Some(format!("try again; for a slow model raise `{}` in `[model]`", what.key()));
            }
            Self::Broken { .. } => {
                "try again; if the error persists, check `base_url` and `provider` in `[model]`"
            }
            Self::Refused { .. } => return None,
        };
        Some(hint.to_owned())
    }

    pub(super) fn is_transient(&self) -> bool {
        matches!(self, Self::RateLimited { .. } | Self::Unavailable { .. } | Self::Unreached { .. })
    }

    pub(super) fn broken(why: impl Into<String>) -> Self {
        Self::Broken { why: why.into() }
    }
}

/// What did not arrive in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeoutStage {
    FirstByte,
    FurtherByte,
    WholeAnswer,
}

impl TimeoutStage {
    /// The key in `[model]` that sets this timeout.
    fn key(self) -> &'static str {
        match self {
            Self::FirstByte => "first_byte_timeout_s",
            Self::FurtherByte => "idle_timeout_s",
            Self::WholeAnswer => "total_timeout_s",
        }
    }
}

impl fmt::Display for TimeoutStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FirstByte => "first byte",
            Self::FurtherByte => "further byte",
            Self::WholeAnswer => "whole answer",
        })
    }
}

fn colon_suffix(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {message}") }
}

/// The server and key, for error messages.
#[derive(Debug, Clone)]
pub(super) struct ErrorContext {
    pub(super) endpoint: String,
    pub(super) model: String,
    pub(super) key: Option<Secret>,
    pub(super) key_source: KeySource,
}

#[derive(Debug, Default)]
pub(super) struct ErrorResponse {
    pub(super) status: u16,
    pub(super) retry_after: Option<Duration>,
    pub(super) body: String,
}

impl ErrorContext {
    pub(super) fn classify(&self, response: &ErrorResponse) -> ModelError {
        let body = ErrorBody::read(&response.body);
        let message = self.quote(&body.message);
        let endpoint = self.endpoint.clone();
        let status = response.status;
        if body.is_overflow(status) {
            return ModelError::Overflow { message };
        }
        match status {
            401 | 403 => {
                // Providers repeat a part of a wrong key.
                let message = if status == 401 { String::new() } else { message };
                let (had_key, key_source) = (self.key.is_some(), self.key_source.clone());
                ModelError::Unauthorized { endpoint, status, had_key, key_source, message }
            }
            404 => ModelError::NotFound { endpoint, model: self.model.clone(), message },
            429 if body.code == "insufficient_quota" => ModelError::Refused { status, message },
            429 => ModelError::RateLimited { endpoint, retry_after: response.retry_after, message },
            408 | 425 | 500..=599 => {
                let why = format!("status {status}{}", colon_suffix(&message));
                ModelError::Unavailable { endpoint, why }
            }
            _ => ModelError::Refused { status, message },
        }
    }

    /// Classifies an error event within a stream. It has no HTTP status, so its type decides.
    pub(super) fn classify_stream_error(&self, data: &str) -> ModelError {
        let body = ErrorBody::read(data);
        let status = match body.kind.as_str() {
            "overloaded_error" => 529,
            "rate_limit_error" | "rate_limit_exceeded" => 429,
            "api_error" | "server_error" | "internal_error" | "timeout_error" => 500,
            "authentication_error" => 401,
            "permission_error" => 403,
            "not_found_error" => 404,
            _ => body.code.parse().ok().filter(|status| (400..600).contains(status)).unwrap_or(400),
        };
        self.classify(&ErrorResponse { status, retry_after: None, body: data.to_owned() })
    }

    pub(super) fn parse_event<T: DeserializeOwned>(&self, data: &str) -> Result<T, ModelError> {
        serde_json::from_str(data).map_err(|error| {
            ModelError::broken(format!("an event cannot be read: {}", self.quote(&error.to_string())))
        })
    }

    /// Prepares foreign text for an error.
    pub(super) fn quote(&self, text: &str) -> String {
        const MAX_CHARS: usize = 300;
        // Masked before it is truncated: truncation could leave the first half of a key.
        let text = self.key.as_ref().map_or_else(|| text.to_owned(), |key| key.redact(text));
        let mut shown: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        shown.retain(|c| !c.is_control());
        embody_text::truncate(&shown, MAX_CHARS)
    }
}

#[derive(Debug, Default)]
struct ErrorBody {
    message: String,
    code: String,
    kind: String,
}

impl ErrorBody {
    fn read(body: &str) -> Self {
        let Ok(value) = serde_json::from_str::<Value>(body) else {
            // An HTML page is not a message.
            let message = if body.trim_start().starts_with('<') { "" } else { body };
            return Self { message: message.to_owned(), ..Self::default() };
        };
        // Google wraps the object in an array.
        let value = value.get(0).unwrap_or(&value);
        let error = value.get("error").filter(|error| !error.is_null()).unwrap_or(value);
        let text = |key: &str| match error.get(key) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Number(number)) => number.to_string(),
            _ => String::new(),
        };
        let message = match error {
            Value::String(message) => message.clone(),
            _ => [text("message"), text("detail")]
                .into_iter()
                .find(|text| !text.is_empty())
                .unwrap_or_default(),
        };
        Self { message, code: text("code"), kind: text("type") }
    }

    fn is_overflow(&self, status: u16) -> bool {
        const CODES: [&str; 3] =
            ["context_length_exceeded", "exceed_context_size_error", "request_too_large"];
        const WORDS: [&str; 16] = [
            "maximum context length",                       // OpenAI, vLLM, OpenRouter, Mistral
            "context length exceeded",                      // Together
            "exceeds the context window",                   // OpenAI, newer models
            "prompt is too long",                           // Anthropic
            "exceed context limit",                         // Anthropic, with `max_tokens`
            "exceeds the available context size",           // llama.cpp
            "exceed the available context size",            // llama.cpp, older
            "context the overflows",                        // LM Studio
            "greater than the context length",              // LM Studio
            "context size has been exceeded",               // LM Studio
            "exceed context window",                        // llama-cpp-python
            "exceeded max context length",                  // Ollama
            "exceeds the maximum number of tokens allowed", // Google
            "reduce the length of the messages",            // OpenAI, Groq
            "request too large for",                        // OpenAI: more at once than a minute may have
            "input is too long",                            // Bedrock
        ];
        // Statuses about authentication or payment never mean the length.
        if matches!(status, 401..=404) {
            return false;
        }
        let message = self.message.to_lowercase();
        status == 413
            || CODES.contains(&self.code.as_str())
            || CODES.contains(&self.kind.as_str())
            || WORDS.iter().any(|words| message.contains(words))
    }
}

#[cfg(test)]
mod tests;
