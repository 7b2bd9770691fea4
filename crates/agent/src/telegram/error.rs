//! What it means when a method of the Bot API fails: surely not done, surely refused, or nobody knows.

use std::time::Duration;

/// Why a method did not do what it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApiError {
    /// The token cannot be one, or the client cannot be made.
    #[error("{0}")]
    Setup(String),
    /// Nothing was sent.
    #[error("Telegram cannot be reached: {0}")]
    Unreachable(String),
    /// The line broke, or the server did: it may have done it or not.
    #[error("nobody knows whether Telegram has taken it: {0}")]
    Lost(String),
    /// It said no.
    #[error("Telegram says {status}: {description}")]
    Refused {
        /// The number of its error.
        status: u16,
        /// Its words.
        description: String,
        /// When it may be asked again.
        retry_after: Option<Duration>,
    },
}

impl ApiError {
    /// Whether it will say the same to the same message.
    pub(super) fn is_final(&self) -> bool {
        matches!(self, Self::Refused { status: 400 | 403 | 404, .. })
    }

    /// Whether it could not read the formatting of a text.
    pub(super) fn is_about_formatting(&self) -> bool {
        self.says(400, "can't parse entities")
    }

    /// Whether the text of a message is that already.
    pub(super) fn is_same_already(&self) -> bool {
        self.says(400, "message is not modified")
    }

    /// Whether updates go to a web address instead.
    pub(super) fn is_about_webhook(&self) -> bool {
        self.says(409, "webhook")
    }

    /// Whether somebody else reads the updates of this bot.
    pub(super) fn is_about_another_poller(&self) -> bool {
        matches!(self, Self::Refused { status: 409, .. })
    }

    /// Whether the token is none.
    pub(super) fn is_about_token(&self) -> bool {
        matches!(self, Self::Refused { status: 401, .. })
    }

    /// How long Telegram wants to be left alone.
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
