//! The URL of a server on the web, and its transport.

use std::fmt;

use reqwest::Url;

use crate::error::Error;
use crate::secret;

#[derive(Clone, PartialEq, Eq)]
pub enum Address {
    Http(Url),
    /// Legacy HTTP+SSE with its stream at exactly this URL.
    LegacySse(Url),
}

impl Address {
    /// Streamable HTTP at `url`.
    ///
    /// # Errors
    /// When `url` is not an `http` or `https` URL.
    pub fn http(url: &str) -> Result<Self, Error> {
        parse_url(url).map(Self::Http)
    }

    /// Legacy HTTP+SSE with its stream at `url`.
    ///
    /// # Errors
    /// When `url` is not an `http` or `https` URL.
    pub fn legacy_sse(url: &str) -> Result<Self, Error> {
        parse_url(url).map(Self::LegacySse)
    }

    #[must_use]
    pub fn transport(&self) -> &'static str {
        match self {
            Self::Http(_) => "streamable HTTP",
            Self::LegacySse(_) => "legacy SSE",
        }
    }

    #[must_use]
    pub fn url(&self) -> &Url {
        match self {
            Self::Http(url) | Self::LegacySse(url) => url,
        }
    }

    /// The URL, if its scheme is `http` or `https`.
    pub(crate) fn check(&self) -> Result<&Url, Error> {
        let url = self.url();
        if is_web(url) { Ok(url) } else { Err(Error::Url { url: secret::place(url) }) }
    }
}

/// Parses an `http` or `https` URL.
pub(crate) fn parse_url(text: &str) -> Result<Url, Error> {
    Url::parse(text).ok().filter(is_web).ok_or_else(|| Error::Url { url: secret::place_of_text(text) })
}

fn is_web(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https") && url.has_host()
}

/// A URL may contain a user, a password or a token, which are not shown.
impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at `{}`", self.transport(), secret::place(self.url()))
    }
}
