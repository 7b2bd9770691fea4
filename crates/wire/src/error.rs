//! What can go wrong on the wire: one error, and one coarse kind to decide by.
//!
//! No text in here holds a secret: URLs are shown without user, password and query, a server's words are masked before
//! they are taken in, and causes from the HTTP stack are stripped of their URL.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::message::MessageError;
use crate::proxies::Proxy;
use crate::sse::SseError;

/// Anything that can go wrong between a client and a server.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("`{url}` is not an http or https URL")]
    Url {
        /// The text, without user, password and query.
        url: String,
    },
    #[error("the token has characters that cannot stand in an HTTP header")]
    Token,
    /// The HTTP client could not be set up.
    #[error("cannot set up the HTTP client")]
    Setup(#[source] reqwest::Error),
    /// The server was not reached: name, TCP or TLS.
    #[error("cannot connect")]
    Unreachable(#[source] reqwest::Error),
    /// The server was not reached: the proxy before it is away, or refuses to connect.
    #[error("cannot connect through the proxy `{proxy}`")]
    Proxy { proxy: String, source: reqwest::Error },
    /// The connection broke while it was in use.
    #[error("the connection was lost")]
    Lost(#[source] reqwest::Error),
    #[error("{what} took longer than {} ms", limit.as_millis())]
    Timeout {
        /// What was waited for.
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
        /// The server's words, masked and cut; may be empty.
        detail: String,
    },
    /// A redirect, which is never followed: it would carry the token to a place nobody configured.
    #[error("the server redirects with HTTP status {status} to `{location}`, which is not followed")]
    Redirect {
        status: u16,
        /// Where to, without user, password and query.
        location: String,
    },
    /// The session is gone on the server.
    #[error("the server no longer knows the session")]
    SessionLost,
    /// The answer is of a type MCP does not use.
    #[error("the answer has content type `{content_type}`, which is neither JSON nor an event stream")]
    ContentType { content_type: String },
    /// The legacy stream names an address elsewhere.
    #[error("the server names `{endpoint}` for messages, which is not of its own origin")]
    ForeignEndpoint {
        /// The address, without user, password and query.
        endpoint: String,
    },
    #[error("{0}")]
    Protocol(&'static str),
    /// The stream or body ended before the answer.
    #[error("the stream ended without the answer")]
    NoAnswer,
    #[error("the stream was cut off within an event")]
    Truncated,
    #[error("the server speaks protocol version `{version}`, which is not of the session era")]
    Version { version: String },
    /// More bytes than the bound.
    #[error("{what} is larger than {max_bytes} bytes")]
    TooLarge { what: &'static str, max_bytes: usize },
    /// A text that is not a message.
    #[error("the server sent an unreadable message")]
    Message(#[source] MessageError),
    /// An event stream that cannot be read on.
    #[error("the server sent an unreadable event stream")]
    Sse(#[source] SseError),
    /// The connection all answers come on is over.
    #[error("the connection to the server is over")]
    Closed(#[source] Arc<Error>),
    /// The server answered with a JSON-RPC error.
    #[error("the server answered with error {code}: {message}")]
    Rpc { code: i64, message: String },
    /// A server's process could not be started.
    #[error("cannot start `{program}`")]
    Start { program: String, source: std::io::Error },
    #[error("the server's process ended: {how}{}", Words(words))]
    Ended {
        how: String,
        /// The last thing that it wrote to stderr, cut; may be empty.
        words: String,
    },
    /// No token could be had for a server that wants one.
    #[error("no token for the server: {reason}")]
    NoToken { reason: String },
    #[error("it was closed on purpose")]
    Left,
    #[error("the pipe to the server is broken")]
    Pipe(#[source] std::io::Error),
    #[error("{most} calls are running already")]
    Busy { most: usize },
    /// No transport was found behind a URL.
    #[error("no MCP session at `{url}`{}", List(attempts))]
    Dial {
        /// The URL asked for, without user, password and query.
        url: String,
        /// What was tried, in order.
        attempts: Vec<Attempt>,
    },
}

#[derive(Debug)]
pub struct Attempt {
    pub transport: &'static str,
    /// Where, without user, password and query.
    pub url: String,
    pub error: Error,
}

/// What an error means to a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Nothing was tried: the URL, the token or this machine's set-up cannot be used.
    Invalid,
    /// No connection, or a lost one.
    Unreachable,
    /// The server is there and says no.
    Refused,
    Unauthorized,
    Timeout,
    /// What came is not MCP, or not of the session era.
    Protocol,
    TooLarge,
    Rpc,
}

impl Error {
    /// What the error means. For a failed dial: what its last attempt came to.
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

    /// Whether it is certain that a call that failed with this was not done: it did not reach the server, or the server
    /// refused to take it. Of everything else nobody knows.
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
            // Others may come from somebody in between who gave up waiting.
            Self::Status { status, .. } => matches!(status, 400 | 404 | 405 | 406 | 407 | 413 | 415 | 429),
            _ => false,
        }
    }

    pub(crate) fn timeout(what: impl Into<String>, limit: Duration) -> Self {
        Self::Timeout { what: what.into(), limit }
    }

    /// A failure of the HTTP stack; its URL may carry secrets and goes.
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

    /// The same, with the proxy that was to connect.
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

struct Words<'a>(&'a str);

impl fmt::Display for Words<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, ", saying `{}`", self.0) }
    }
}

/// The attempts stand in the message, each with its root cause: a list of errors has no single source.
struct List<'a>(&'a [Attempt]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, attempt) in self.0.iter().enumerate() {
            let lead = if index == 0 { ": " } else { "; " };
            write!(f, "{lead}{} at `{}`: {}", attempt.transport, attempt.url, attempt.error)?;
            // The layers in between only say that they passed it on.
            let causes =
                std::iter::successors(std::error::Error::source(&attempt.error), |error| error.source());
            if let Some(root) = causes.last() {
                write!(f, ": {root}")?;
            }
        }
        Ok(())
    }
}
