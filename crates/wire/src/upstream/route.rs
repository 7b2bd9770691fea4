//! How to reach a server, and what the client sends it on connecting.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use reqwest::Url;

use super::ChildSpec;
use super::era_cache::EraCache;
use super::in_process::InProcessServer;
use crate::error::Error;
use crate::initialize::InitializeParams;
use crate::limits::Limits;
use crate::proxies::Proxies;
use crate::secret::{self, Secret};

#[derive(Clone)]
pub enum Route {
    /// A child process, over its standard streams.
    Child(ChildSpec),
    Http {
        url: Url,
    },
    /// Legacy HTTP+SSE with its stream at exactly this URL.
    Sse {
        url: Url,
    },
    /// One of the two, at this URL or below it.
    Probe {
        url: Url,
    },
    InProcess(InProcessServer),
}

/// The two transports of the web.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WebTransport {
    Http,
    /// Legacy HTTP+SSE with its stream at exactly the URL.
    Sse,
}

impl Route {
    /// Either transport of the web, at this URL or below it.
    ///
    /// # Errors
    /// When the text is not an `http` or `https` URL.
    pub fn probe(url: &str) -> Result<Self, Error> {
        let parsed = Url::parse(url).ok().filter(is_web);
        parsed.map(|url| Self::Probe { url }).ok_or_else(|| Error::Url { url: secret::bare_url_text(url) })
    }
}

pub(crate) fn is_web(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https") && url.has_host()
}

/// A URL may contain a secret, so user, password, query and fragment are not shown.
impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Child(child) => write!(f, "process {child:?}"),
            Self::Http { url } => write!(f, "streamable HTTP at `{}`", secret::bare_url(url)),
            Self::Sse { url } => write!(f, "legacy SSE at `{}`", secret::bare_url(url)),
            Self::Probe { url } => write!(f, "HTTP at `{}`", secret::bare_url(url)),
            Self::InProcess(_) => f.write_str("this process"),
        }
    }
}

#[derive(Debug, Clone)]
pub struct ConnectOptions {
    pub route: Route,
    pub params: InitializeParams,
    /// The source of the `Authorization: Bearer` token, which is sent to the server's own origin only.
    pub tokens: Option<TokenSource>,
    /// The proxies for servers on the web.
    pub proxies: Proxies,
    pub limits: Limits,
    pub era: EraCache,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    Any,
    /// A token other than the last one, which was rejected.
    New,
}

type Fetching = Pin<Box<dyn Future<Output = Result<Secret, String>> + Send>>;

/// Supplies tokens. Called before every message, and once more after a rejection.
#[derive(Clone)]
pub struct TokenSource(Arc<dyn Fn(Freshness) -> Fetching + Send + Sync>);

impl TokenSource {
    /// An asynchronous source. Its error is a text that says why there is no token.
    pub fn new<F>(fetch: impl Fn(Freshness) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Secret, String>> + Send + 'static,
    {
        Self(Arc::new(move |fresh| Box::pin(fetch(fresh))))
    }

    #[must_use]
    pub fn fixed(token: Secret) -> Self {
        Self::new(move |_| std::future::ready(Ok(token.clone())))
    }

    pub(crate) async fn fetch(&self, fresh: Freshness) -> Result<Secret, String> {
        (self.0)(fresh).await
    }
}

impl fmt::Debug for TokenSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenSource")
    }
}
