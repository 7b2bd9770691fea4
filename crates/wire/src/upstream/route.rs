//! Where a server is, and what it is told at the door.

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
    /// A process of ours, on its standard streams.
    Child(ChildSpec),
    Http {
        url: Url,
    },
    /// Legacy HTTP+SSE with its stream at exactly this URL.
    Sse {
        url: Url,
    },
    /// One of the two, at this URL or below.
    Probe {
        url: Url,
    },
    Streams(StreamConnector),
}

/// A URL may carry a secret: only its place is shown.
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

/// What a server in this process writes, and what it reads.
pub(super) type Streams = (Box<dyn AsyncRead + Send + Unpin>, Box<dyn AsyncWrite + Send + Unpin>);

/// Opens a pipe to a server in this process.
#[derive(Clone)]
pub struct StreamConnector(Arc<dyn Fn() -> Streams + Send + Sync>);

impl StreamConnector {
    /// Each call opens a pipe of its own; one half of [`tokio::io::duplex`] will do.
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

/// What a server is told about its client.
#[derive(Debug, Clone, Default)]
pub struct ClientInfo {
    /// What the client can do, as written; nothing, if there is none.
    pub capabilities: Option<Box<RawValue>>,
    pub implementation: Implementation,
    /// The least severe log message that it wants from a server without sessions, until it says otherwise; none, if it does
    /// not say.
    pub log_level: Option<String>,
}

#[derive(Debug, Clone)]
pub struct ConnectOptions {
    pub route: Route,
    pub client_info: ClientInfo,
    /// Where the token comes from that goes out as `Authorization: Bearer`, to the server's own origin only.
    pub tokens: Option<TokenSource>,
    /// The proxies before servers on the web.
    pub proxies: Proxies,
    pub limits: Limits,
    /// Which era the server is of, once that is known.
    pub era: EraCache,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    Any,
    /// Another than the last, which was refused.
    New,
}

type Fetching = Pin<Box<dyn Future<Output = Result<Secret, String>> + Send>>;

/// Where tokens come from. Asked before every message, and once more after a refusal.
#[derive(Clone)]
pub struct TokenSource(Arc<dyn Fn(Freshness) -> Fetching + Send + Sync>);

impl TokenSource {
    /// A source that may take its time; in words, why there is no token.
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
