//! A session with one server: handshake, requests, notifications, close.
//!
//! Owns request ids and time limits. Refuses servers whose protocol version is not of the session era.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::mpsc;

use crate::error::Error;
use crate::limits::Limits;
use crate::link::Link;
use crate::message::{ErrorObject, Notification, Outcome, Request, Response};
use crate::secret::{Redactor, Secret};
use crate::transport::{Address, Transport};
use crate::version::Version;

/// Where to connect, and on which terms.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// The server.
    pub address: Address,
    /// The terms.
    pub terms: Terms,
}

/// What a client brings along wherever it connects.
#[derive(Debug, Clone, Default)]
pub struct Terms {
    /// Who the client says it is.
    pub identity: Identity,
    /// Sent as `Authorization: Bearer`, to the server's own origin only.
    pub bearer: Option<Secret>,
    /// The bounds.
    pub limits: Limits,
    /// Where the server's notifications go, in order and before the answer they precede; without it they are ignored.
    /// The queue is never skipped: one that is full and not read holds calls up to their time limits.
    pub notices: Option<mpsc::Sender<Notification>>,
}

/// Who a client says it is.
#[derive(Debug, Clone, Serialize)]
pub struct Identity {
    /// The program's name.
    pub name: String,
    /// The program's version.
    pub version: String,
}

impl Default for Identity {
    fn default() -> Self {
        Self { name: "embody".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() }
    }
}

/// An open session. Calls may run at the same time. Dropped without [`Client::close`], an HTTP session is left to
/// expire on the server.
pub struct Client {
    transport: Transport,
    transport_name: &'static str,
    next_id: AtomicU64,
    limits: Limits,
    redactor: Redactor,
    version: Version,
    greeting: Box<RawValue>,
}

impl Client {
    /// Opens a session at exactly this address.
    ///
    /// # Errors
    /// When the server is not reached, refuses, is too slow, or speaks another protocol.
    pub async fn connect(endpoint: Endpoint) -> Result<Self, Error> {
        let link = Link::new(endpoint.address.url(), &endpoint.terms)?;
        Self::open(&endpoint.address, link, &endpoint.terms).await
    }

    pub(crate) async fn open(address: &Address, link: Link, terms: &Terms) -> Result<Self, Error> {
        let limit = terms.limits.attempt_timeout;
        within(limit, || "opening the session".to_owned(), handshake(address, link, terms)).await
    }

    /// Calls a method and returns its result as written.
    ///
    /// # Errors
    /// [`Error::Rpc`] when the server answers with an error; others when no answer was had.
    pub async fn request(&self, method: &str, params: &RawValue) -> Result<Box<RawValue>, Error> {
        into_result(self.call(method, Some(params)).await?, &self.redactor)
    }

    /// Calls a method and returns what came of it as written, be it a result or a JSON-RPC error.
    ///
    /// # Errors
    /// When no answer was had.
    pub async fn call(&self, method: &str, params: Option<&RawValue>) -> Result<Outcome, Error> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed).into();
        let request = Request { id, method: method.to_owned(), params: params.map(ToOwned::to_owned) };
        let what = || format!("the answer to `{method}`");
        let response = within(self.limits.request_timeout, what, self.transport.exchange(&request)).await?;
        Ok(response.outcome)
    }

    /// Sends a notification and waits until the server has taken it.
    ///
    /// # Errors
    /// When the server did not take it.
    pub async fn notify(&self, method: &str, params: Option<&RawValue>) -> Result<(), Error> {
        let notification = Notification { method: method.to_owned(), params: params.map(ToOwned::to_owned) };
        let what = || format!("the acceptance of `{method}`");
        within(self.limits.request_timeout, what, self.transport.send(notification.print())).await
    }

    /// Ends the session, as far as the server lets itself be told in a short time.
    pub async fn close(self) {
        self.transport.close().await;
    }

    /// The protocol version both sides speak.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// The server's answer to `initialize`, as written.
    #[must_use]
    pub fn greeting(&self) -> &RawValue {
        &self.greeting
    }

    /// The transport's name, for people.
    #[must_use]
    pub fn transport(&self) -> &'static str {
        self.transport_name
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("transport", &self.transport_name)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

async fn handshake(address: &Address, link: Link, terms: &Terms) -> Result<Client, Error> {
    let redactor = link.redactor().clone();
    let mut transport = Transport::open(address, link, terms).await?;
    match greet(&mut transport, terms, &redactor).await {
        Ok((version, greeting)) => Ok(Client {
            transport,
            transport_name: address.transport(),
            next_id: AtomicU64::new(2),
            limits: terms.limits.clone(),
            redactor,
            version,
            greeting,
        }),
        Err(error) => {
            // The server may already hold a session for us.
            transport.close().await;
            Err(error)
        }
    }
}

async fn greet(
    transport: &mut Transport,
    terms: &Terms,
    redactor: &Redactor,
) -> Result<(Version, Box<RawValue>), Error> {
    let hello = Hello {
        protocol_version: Version::LATEST.as_str(),
        capabilities: Capabilities {},
        client_info: &terms.identity,
    };
    let params =
        to_raw_value(&hello).map_err(|_| Error::Protocol("the client's identity cannot be written"))?;
    let request = Request { id: 1.into(), method: "initialize".to_owned(), params: Some(params) };
    let Response { outcome, .. } = transport.initialize(&request).await?;
    let greeting = into_result(outcome, redactor)?;
    let Agreed { protocol_version } = serde_json::from_str(greeting.get())
        .map_err(|_| Error::Protocol("the answer to `initialize` names no protocol version"))?;
    let version = Version::parse(&protocol_version)
        .ok_or_else(|| Error::Version { version: redactor.quote(&protocol_version) })?;
    transport.agree(version);
    let ready = Notification { method: "notifications/initialized".to_owned(), params: None };
    transport.send(ready.print()).await?;
    Ok((version, greeting))
}

fn into_result(outcome: Outcome, redactor: &Redactor) -> Result<Box<RawValue>, Error> {
    let object = match outcome {
        Outcome::Result(result) => return Ok(result),
        Outcome::Error(object) => object,
    };
    match serde_json::from_str::<ErrorObject>(object.get()) {
        Ok(ErrorObject { code, message }) => Err(Error::Rpc { code, message: redactor.quote(&message) }),
        Err(_) => Err(Error::Protocol("the server answered with an error that has no code")),
    }
}

async fn within<T>(
    limit: Duration,
    what: impl FnOnce() -> String,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    tokio::time::timeout(limit, work).await.unwrap_or_else(|_| Err(Error::timeout(what(), limit)))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Hello<'a> {
    protocol_version: &'a str,
    capabilities: Capabilities,
    client_info: &'a Identity,
}

#[derive(Serialize)]
struct Capabilities {}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Agreed {
    protocol_version: String,
}
