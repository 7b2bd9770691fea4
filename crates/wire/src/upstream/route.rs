//! How to reach a server, and what the client sends it on connecting.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use reqwest::Url;
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncWrite};

use super::ChildSpec;
use super::era_cache::EraCache;
use crate::client::Implementation;
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
    Streams(StreamConnector),
}

/// A URL may contain a secret, so user, password, query and fragment are not shown.
impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Child(child) => write!(f, "process {child:?}"),
            Self::Http { url } => write!(f, "streamable HTTP at `{}`", secret::place(url)),
            Self::Sse { url } => write!(f, "legacy SSE at `{}`", secret::place(url)),
            Self::Probe { url } => write!(f, "HTTP at `{}`", secret::place(url)),
            Self::Streams(_) => f.write_str("this process"),
        }
    }
}

/// The read half and the write half of a server in this process.
pub(super) type Streams = (Box<dyn AsyncRead + Send + Unpin>, Box<dyn AsyncWrite + Send + Unpin>);

/// Opens a pipe to a server in this process.
#[derive(Clone)]
pub struct StreamConnector(Arc<dyn Fn() -> Streams + Send + Sync>);

impl StreamConnector {
    /// Each call opens a separate pipe, such as one half of [`tokio::io::duplex`].
    pub fn new<R, W>(open: impl Fn() -> (R, W) + Send + Sync + 'static) -> Self
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        Self(Arc::new(move || {
            let (input, output) = open();
            (Box::new(input), Box::new(output))
        }))
    }

    pub(super) fn open(&self) -> Streams {
        (self.0)()
    }
}

impl fmt::Debug for StreamConnector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connect")
    }
}

/// What the client tells a server about itself.
#[derive(Debug, Clone, Default)]
pub struct ClientInfo {
    /// The client capabilities as raw JSON; `None` for no capabilities.
    pub capabilities: Option<Box<RawValue>>,
    pub implementation: Implementation,
    /// The minimum log level requested from a stateless server until `logging/setLevel` changes it; `None` to request
    /// none.
    pub log_level: Option<String>,
}

#[derive(Debug, Clone)]
pub struct ConnectOptions {
    pub route: Route,
    pub client_info: ClientInfo,
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
