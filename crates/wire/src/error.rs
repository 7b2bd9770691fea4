//! The error type of this crate, and a coarse kind for decisions. No error text contains a secret: URLs are shown without
//! user, password and query, server messages are masked before they are stored, and causes from the HTTP stack are stripped
//! of their URL.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::message::MessageError;
use crate::proxies::Proxy;
use crate::sse::SseError;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("`{url}` is not an http or https URL")]
    Url {
        /// Without user, password and query.
        url: String,
    },
    #[error("the token contains characters that are not allowed in an HTTP header")]
    Token,
    #[error("cannot set up the HTTP client")]
    Setup(#[source] reqwest::Error),
    /// DNS, TCP or TLS failed.
    #[error("cannot connect")]
    Unreachable(#[source] reqwest::Error),
    /// The proxy is unreachable, or refuses to connect.
    #[error("cannot connect through the proxy `{proxy}`")]
    Proxy { proxy: String, source: reqwest::Error },
    /// The connection broke while it was in use.
    #[error("the connection was lost")]
    Lost(#[source] reqwest::Error),
    #[error("{what} took longer than {} ms", limit.as_millis())]
    Timeout {
        /// The operation that timed out.
        what: String,
        limit: Duration,
    },
    #[error("the server refused the credentials with HTTP status {status}")]
    Unauthorized {
        /// 401 or 403.
        status: u16,
    },
    #[error("the server refused with HTTP status {status}{}", Detail(detail))]
    Status {
        status: u16,
        /// The server's message, masked and truncated; may be empty.
        detail: String,
    },
    /// Redirects are never followed: they could carry the token to a host that is not configured.
    #[error("the server redirects with HTTP status {status} to `{location}`, which is not followed")]
    Redirect {
        status: u16,
        /// The target, without user, password and query.
        location: String,
    },
    /// The server no longer knows the session.
    #[error("the server no longer knows the session")]
    SessionLost,
    /// The response has a content type that MCP does not use.
    #[error("the response has content type `{content_type}`, which is neither JSON nor an event stream")]
    ContentType { content_type: String },
    /// The legacy stream names a POST URL of another origin.
    #[error("the server names the message endpoint `{endpoint}`, which has another origin")]
    ForeignEndpoint {
        /// Without user, password and query.
        endpoint: String,
    },
    #[error("{0}")]
    Protocol(&'static str),
    /// The stream or body ended before the response.
    #[error("the stream ended without a response")]
    NoAnswer,
    #[error("the stream was cut off within an event")]
    Truncated,
    #[error("the server chose protocol version `{version}`, which does not use sessions")]
    Version { version: String },
    #[error("{what} is larger than {max_bytes} bytes")]
    TooLarge { what: &'static str, max_bytes: usize },
    #[error("the server sent an unreadable message")]
    Message(#[source] MessageError),
    /// The event stream is malformed.
    #[error("the server sent an unreadable event stream")]
    Sse(#[source] SseError),
    /// The connection that delivers all responses is closed.
    #[error("the connection to the server is closed")]
    Closed(#[source] Arc<Error>),
    /// The server answered with a JSON-RPC error.
    #[error("the server answered with error {code}: {message}")]
    Rpc { code: i64, message: String },
    #[error("cannot start `{program}`")]
    Start { program: String, source: std::io::Error },
    #[error("the server's process ended: {how}{}", LastLine(last_line))]
    Ended {
        how: String,
        /// The last line that it wrote to stderr, truncated; may be empty.
        last_line: String,
    },
    /// The server needs a token, and the source supplied none.
    #[error("no token for the server: {reason}")]
    NoToken { reason: String },
    #[error("the connection was closed by embody")]
    Left,
    #[error("the pipe to the server is broken")]
    Pipe(#[source] std::io::Error),
    #[error("{most} calls are already running")]
    Busy { most: usize },
    /// No transport was found behind a URL.
    #[error("no MCP session at `{url}`{}", List(attempts))]
    Dial {
        /// Without user, password and query.
        url: String,
        /// In the order in which they were made.
        attempts: Vec<Attempt>,
    },
}

#[derive(Debug)]
pub struct Attempt {
    pub transport: &'static str,
    /// Without user, password and query.
    pub url: String,
    pub error: Error,
}

/// What an error means to a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Nothing was tried: the URL, the token or the local setup is unusable.
    Invalid,
    /// No connection, or a lost one.
    Unreachable,
    /// The server is reachable and rejects the request.
    Refused,
    Unauthorized,
    Timeout,
    /// The response is not MCP, or not of the session era.
    Protocol,
    TooLarge,
    Rpc,
}

impl Error {
    /// What the error means. For a failed dial, the kind of its last attempt.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::Url { .. } | Self::Token | Self::Setup(_) => Kind::Invalid,
            Self::Unreachable(_)
            | Self::Proxy { .. }
            | Self::Lost(_)
            | Self::Start { .. }
            | Self::Pipe(_)
            | Self::Ended { .. }
            | Self::Left => Kind::Unreachable,
            Self::Timeout { .. } => Kind::Timeout,
            Self::Unauthorized { .. } | Self::NoToken { .. } => Kind::Unauthorized,
            Self::Status { .. } | Self::Redirect { .. } | Self::SessionLost | Self::Busy { .. } => {
                Kind::Refused
            }
            Self::TooLarge { .. }
            | Self::Sse(SseError::TooLong { .. })
            | Self::Message(
                MessageError::TooLong { .. }
                | MessageError::TooDeep { .. }
                | MessageError::BatchTooLong { .. },
            ) => Kind::TooLarge,
            Self::Rpc { .. } => Kind::Rpc,
            Self::Closed(cause) => cause.kind(),
            Self::Dial { attempts, .. } => attempts.last().map_or(Kind::Timeout, |last| last.error.kind()),
            Self::ContentType { .. }
            | Self::ForeignEndpoint { .. }
            | Self::Protocol(_)
            | Self::NoAnswer
            | Self::Truncated
            | Self::Version { .. }
            | Self::Message(_)
            | Self::Sse(_) => Kind::Protocol,
        }
    }

    /// Whether a call that failed with this error was certainly not executed: it did not reach the server, or the
    /// server rejected it. For all other errors the outcome is unknown.
    #[must_use]
    pub fn was_not_executed(&self) -> bool {
        match self {
            Self::Url { .. }
            | Self::Token
            | Self::NoToken { .. }
            | Self::Setup(_)
            | Self::Unreachable(_)
            | Self::Proxy { .. }
            | Self::Unauthorized { .. }
            | Self::Redirect { .. }
            | Self::SessionLost
            | Self::Start { .. }
            | Self::Busy { .. } => true,
            // Other statuses may come from an intermediary that timed out.
            Self::Status { status, .. } => matches!(status, 400 | 404 | 405 | 406 | 407 | 413 | 415 | 429),
            _ => false,
        }
    }

    pub(crate) fn timeout(what: impl Into<String>, limit: Duration) -> Self {
        Self::Timeout { what: what.into(), limit }
    }

    /// Converts an error of the HTTP stack and removes its URL, which may contain secrets.
    pub(crate) fn from_http(error: reqwest::Error) -> Self {
        let error = error.without_url();
        if error.is_builder() {
            Self::Setup(error)
        } else if error.is_connect() {
            Self::Unreachable(error)
        } else {
            Self::Lost(error)
        }
    }

    /// The same error, with the proxy that was used.
    pub(crate) fn through(self, proxy: Option<&Proxy>) -> Self {
        match (self, proxy) {
            (Self::Unreachable(source), Some(proxy)) => Self::Proxy { proxy: proxy.to_string(), source },
            (error, _) => error,
        }
    }
}

struct Detail<'a>(&'a str);

impl fmt::Display for Detail<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, ": {}", self.0) }
    }
}

struct LastLine<'a>(&'a str);

impl fmt::Display for LastLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, ", saying `{}`", self.0) }
    }
}

/// Lists the attempts in the message, each with its root cause: several errors have no single source.
struct List<'a>(&'a [Attempt]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, attempt) in self.0.iter().enumerate() {
            let lead = if index == 0 { ": " } else { "; " };
            write!(f, "{lead}{} at `{}`: {}", attempt.transport, attempt.url, attempt.error)?;
            // The causes in between add no information.
            let causes =
                std::iter::successors(std::error::Error::source(&attempt.error), |error| error.source());
            if let Some(root) = causes.last() {
                write!(f, ": {root}")?;
            }
        }
        Ok(())
    }
}
