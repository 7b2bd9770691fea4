//! A session with one server, for callers that make a call and wait: requests, notifications, close.
//!
//! Enforces the timeouts. Rejects every server request, because this client declares no capabilities.

use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::mpsc;

use crate::error::Error;
use crate::initialize::InitializeParams;
use crate::initialize::Version;
use crate::limits::Limits;
use crate::message::{Outcome, Response};
use crate::proxies::Proxies;
use crate::secret::Secret;
use crate::server::code;
use crate::upstream::{CallEvent, ConnectOptions, EraCache, Link, OutgoingCall, Route, TokenSource};

/// What a client uses for every connection.
#[derive(Debug, Clone, Default)]
pub struct ClientOptions {
    /// Sent as `Authorization: Bearer`, to the server's own origin only.
    pub bearer: Option<Secret>,
    pub proxies: Proxies,
    pub limits: Limits,
}

/// An open session. Calls may run concurrently. Dropped without [`Client::close`], an HTTP session is left to expire on
/// the server.
#[derive(Debug)]
pub struct Client {
    link: Link,
    limits: Limits,
}

/// Opens a session with the server behind `url`, over whichever transport it supports.
///
/// # Errors
/// [`Error::Dial`] with every attempt and its reason; [`Error::Url`], [`Error::Token`] or [`Error::Setup`] when none
/// could be made.
pub async fn dial(url: &str, options: &ClientOptions) -> Result<Client, Error> {
    Client::open(Route::probe(url)?, options).await
}

impl Client {
    /// Opens a session.
    ///
    /// # Errors
    /// When the server cannot be reached, rejects the connection, times out, or speaks another protocol.
    pub async fn open(route: Route, options: &ClientOptions) -> Result<Self, Error> {
        let params = InitializeParams::named("embody");
        let tokens = options.bearer.clone().map(TokenSource::fixed);
        let (proxies, limits, era) = (options.proxies.clone(), options.limits.clone(), EraCache::sessions());
        let options = ConnectOptions { route, params, tokens, proxies, limits, era };
        // Messages that belong to no call are discarded.
        let (messages, _) = mpsc::channel(1);
        Ok(Self { link: Link::open(&options, messages).await?, limits: options.limits })
    }

    /// Calls a method and returns its result as raw JSON.
    ///
    /// # Errors
    /// [`Error::Rpc`] when the server answers with an error; others when there is no response.
    pub async fn request(&self, method: &str, params: &RawValue) -> Result<Box<RawValue>, Error> {
        self.call(method, Some(params)).await?.into_result(self.link.redactor())
    }

    /// Calls a method and returns its outcome as raw JSON, a result or a JSON-RPC error.
    pub async fn call(&self, method: &str, params: Option<&RawValue>) -> Result<Outcome, Error> {
        let what = || format!("the answer to `{method}`");
        within(self.limits.request_timeout, what, self.answer(OutgoingCall { method, params })).await
    }

    async fn answer(&self, call: OutgoingCall<'_>) -> Result<Outcome, Error> {
        let mut running = self.link.begin(call).await?;
        loop {
            match running.next().await {
                CallEvent::Done(outcome) => return Ok(outcome),
                CallEvent::Lost(error) => return Err(error),
                CallEvent::Notification(_) => {}
                CallEvent::Request(request) => {
                    let refusal = Response::failure(request.id, code::METHOD_NOT_FOUND, "method not found");
                    let limit = self.limits.courtesy_timeout;
                    // If the reply is lost, the server's own request times out; our call continues.
                    let _ = tokio::time::timeout(limit, self.link.answer(refusal)).await;
                }
            }
        }
    }

    /// Sends a notification and waits until the server has accepted it.
    ///
    /// # Errors
    /// When the server did not accept it.
    pub async fn notify(&self, method: &str, params: Option<&RawValue>) -> Result<(), Error> {
        let what = || format!("the acceptance of `{method}`");
        within(self.limits.request_timeout, what, self.link.notify(method, params)).await
    }

    /// Ends the session. A server that does not respond in a short time is left to expire it.
    pub async fn close(self) {
        self.link.close().await;
    }

    #[must_use]
    pub fn version(&self) -> Version {
        self.link.version()
    }

    /// The server's `initialize` result as raw JSON.
    #[must_use]
    pub fn initialize_result(&self) -> &RawValue {
        self.link.initialize_result()
    }

    /// `http` or `sse`.
    #[must_use]
    pub fn transport(&self) -> &'static str {
        self.link.transport()
    }
}

async fn within<T>(
    limit: Duration,
    what: impl FnOnce() -> String,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    tokio::time::timeout(limit, work).await.unwrap_or_else(|_| Err(Error::timeout(what(), limit)))
}
