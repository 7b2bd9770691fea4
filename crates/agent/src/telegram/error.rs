//! Errors of the Bot API: certainly not executed, rejected, or unknown.

use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApiError {
    /// The token is malformed, or the client cannot be built.
    #[error("{0}")]
    Setup(String),
    /// The request was not sent.
    #[error("Telegram cannot be reached: {0}")]
    Unreachable(String),
    /// The connection or the server failed: the method may have been executed.
    #[error("nobody knows whether Telegram has taken it: {0}")]
    Lost(String),
    /// The server rejected the request.
    #[error("Telegram says {status}: {description}")]
    Refused {
        /// The error code.
        status: u16,
        description: String,
        retry_after: Option<Duration>,
    },
}

impl ApiError {
    /// Whether the same message will always be rejected.
    pub(super) fn is_final(&self) -> bool {
        matches!(self, Self::Refused { status: 400 | 403 | 404, .. })
    }

    /// Whether Telegram could not parse the formatting of a text.
    pub(super) fn is_about_formatting(&self) -> bool {
        self.says(400, "can't parse entities")
    }

    /// Whether the message already has this text.
    pub(super) fn is_same_already(&self) -> bool {
        self.says(400, "message is not modified")
    }

    /// Whether a webhook receives the updates instead.
    pub(super) fn is_about_webhook(&self) -> bool {
        self.says(409, "webhook")
    }

    /// Whether another process polls the updates of this bot.
    pub(super) fn is_about_another_poller(&self) -> bool {
        matches!(self, Self::Refused { status: 409, .. })
    }

    /// Whether the token is invalid.
    pub(super) fn is_about_token(&self) -> bool {
        matches!(self, Self::Refused { status: 401, .. })
    }

    /// The delay that Telegram asks for.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    fn says(&self, wanted: u16, words: &str) -> bool {
        matches!(self, Self::Refused { status, description, .. } if *status == wanted && description.contains(words))
    }
}
