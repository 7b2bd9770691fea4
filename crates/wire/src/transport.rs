//! The closed choice between transports, and the address that makes it.

use std::fmt;

use reqwest::Url;

use crate::client::Terms;
use crate::error::Error;
use crate::http::Http;
use crate::inbound::Inbound;
use crate::legacy_sse::LegacySse;
use crate::link::Link;
use crate::message::{Request, Response};
use crate::secret;
use crate::version::Version;

/// Where a server is, and how it is spoken to.
#[derive(Clone, PartialEq, Eq)]
pub enum Address {
    /// Streamable HTTP at exactly this URL.
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

    /// The transport's name, for people.
    #[must_use]
    pub fn transport(&self) -> &'static str {
        match self {
            Self::Http(_) => "streamable HTTP",
            Self::LegacySse(_) => "legacy SSE",
        }
    }

    /// The URL.
    #[must_use]
    pub fn url(&self) -> &Url {
        match self {
            Self::Http(url) | Self::LegacySse(url) => url,
        }
    }
}

/// A URL may carry a user, a password or a token: only its place is shown.
impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at `{}`", self.transport(), secret::place(self.url()))
    }
}

/// Reads an `http` or `https` URL.
pub(crate) fn parse_url(text: &str) -> Result<Url, Error> {
    Url::parse(text)
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
        .ok_or_else(|| Error::Url { url: secret::place_of_text(text) })
}

/// An open connection; a session once `initialize` is through.
pub(crate) enum Transport {
    Http(Http),
    LegacySse(LegacySse),
}

impl Transport {
    pub(crate) async fn open(address: &Address, link: Link, terms: &Terms) -> Result<Self, Error> {
        let inbound = Inbound::new(terms.notices.clone());
        Ok(match address {
            Address::Http(url) => Self::Http(Http::new(link, url.clone(), inbound)),
            Address::LegacySse(url) => Self::LegacySse(LegacySse::open(link, url, inbound).await?),
        })
    }

    pub(crate) async fn initialize(&mut self, request: &Request) -> Result<Response, Error> {
        match self {
            Self::Http(http) => http.initialize(request).await,
            Self::LegacySse(sse) => sse.exchange(request).await,
        }
    }

    pub(crate) fn agree(&mut self, version: Version) {
        match self {
            Self::Http(http) => http.agree(version),
            // The legacy transport is older than the version header.
            Self::LegacySse(_) => {}
        }
    }

    pub(crate) async fn exchange(&self, request: &Request) -> Result<Response, Error> {
        match self {
            Self::Http(http) => http.exchange(request).await,
            Self::LegacySse(sse) => sse.exchange(request).await,
        }
    }

    pub(crate) async fn send(&self, text: String) -> Result<(), Error> {
        match self {
            Self::Http(http) => http.send(text).await,
            Self::LegacySse(sse) => sse.send(text).await,
        }
    }

    pub(crate) async fn close(self) {
        match self {
            Self::Http(http) => http.close().await,
            Self::LegacySse(sse) => drop(sse),
        }
    }
}
