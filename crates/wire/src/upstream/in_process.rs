//! A server in this process, called as functions. A call runs in the task that reads its events.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

#[cfg(feature = "test-util")]
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use super::calls::{Calls, MessageSource};
use super::inbox::Inbox;
use super::{Carrier, OutgoingCall, PendingCall};
use crate::error::Error;
use crate::limits::Limits;
use crate::message::{Message, Response};
use crate::server::Service;
use crate::server::in_process::{ClientEnd, InProcessConnection, ServerEnd};

/// A server in this process, as a client reaches it.
#[derive(Clone)]
pub struct InProcessServer(pub(super) Arc<Connector>);

pub(super) enum Connector {
    Calls(Connect),
    #[cfg(feature = "test-util")]
    Streams(Box<dyn Fn() -> Streams + Send + Sync>),
}

/// Opens a connection: the server's end, and what ends it. `None` if the server refuses.
type Connect =
    Box<dyn Fn(Arc<dyn ClientEnd>) -> Option<(Arc<dyn ServerEnd>, CancellationToken)> + Send + Sync>;

/// The read half and the write half of a pipe.
#[cfg(feature = "test-util")]
type Streams = (Box<dyn AsyncRead + Send + Unpin>, Box<dyn AsyncWrite + Send + Unpin>);

impl InProcessServer {
    /// Calls `authenticate` for every connection: it returns the caller and what ends the connection. A token that is already
    /// cancelled refuses the connection.
    pub fn new<S: Service>(
        service: Arc<S>,
        authenticate: impl Fn() -> (S::Principal, CancellationToken) + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(Connector::Calls(Box::new(move |client| {
            let (principal, shutdown) = authenticate();
            if shutdown.is_cancelled() {
                return None;
            }
            Some((Arc::new(InProcessConnection::new(Arc::clone(&service), principal, client)), shutdown))
        }))))
    }

    /// A server on pipes, such as one half of [`tokio::io::duplex`]: each call of `open` opens another.
    #[cfg(feature = "test-util")]
    pub fn on_streams<R, W>(open: impl Fn() -> (R, W) + Send + Sync + 'static) -> Self
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        Self(Arc::new(Connector::Streams(Box::new(move || {
            let (input, output) = open();
            (Box::new(input), Box::new(output))
        }))))
    }
}

impl fmt::Debug for InProcessServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InProcessServer")
    }
}

/// A connection to a server in this process. Dropping it ends the connection.
pub(super) struct InProcess {
    calls: Arc<Calls>,
    /// `None` once the connection has ended.
    server: Mutex<Option<Arc<dyn ServerEnd>>>,
    shutdown: CancellationToken,
    calls_max: usize,
    message_max_bytes: usize,
}

impl InProcess {
    pub(super) fn open(
        connect: &Connect,
        limits: &Limits,
        (calls, inbox): (Arc<Calls>, Inbox),
    ) -> Result<Self, Error> {
        let opened = connect(Arc::new(inbox));
        let (server, shutdown) = opened.ok_or_else(|| Error::Closed(Arc::new(Error::NoAnswer)))?;
        let Limits { calls_max, message_max_bytes, .. } = *limits;
        Ok(Self { calls, server: Mutex::new(Some(server)), shutdown, calls_max, message_max_bytes })
    }

    /// Begins a call. Never waits.
    pub(super) fn begin(&self, call: OutgoingCall<'_>) -> Result<PendingCall, Error> {
        let (server, max_bytes) = (self.server()?, self.message_max_bytes);
        if call.params.is_some_and(|params| params.get().len() > max_bytes) {
            return Err(Error::TooLarge { what: "the message to send", max_bytes });
        }
        let mut entered = self.calls.enter(call.method, call.params, self.calls_max)?;
        let number = entered.running.number();
        let running = server.begin(number, call.method, entered.request.params);
        self.calls.set_cancellation(number, running.cancel.clone());
        entered.running.carrier = Carrier::InProcess { running, max_bytes };
        Ok(entered.running)
    }

    pub(super) async fn send(&self, message: Message) -> Result<(), Error> {
        let server = self.server()?;
        match message {
            Message::Notification(notification) => server.on_notification(notification).await,
            Message::Response(response) => server.answer(response),
            // A request is sent as a call.
            Message::Request(_) => {}
        }
        Ok(())
    }

    /// Waits until the server ends the connection.
    pub(super) async fn until_shut_down(&self) {
        self.shutdown.cancelled().await;
        self.close(Error::NoAnswer);
    }

    /// Whether the server has ended the connection.
    pub(super) fn check_shut_down(&self) {
        if self.shutdown.is_cancelled() {
            self.close(Error::NoAnswer);
        }
    }

    pub(super) fn close(&self, cause: Error) {
        self.calls.close(cause);
        let server = self.server.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Outside a runtime nothing runs any more.
        if let (Some(server), Ok(runtime)) = (server, Handle::try_current()) {
            runtime.spawn(server.shutdown());
        }
    }

    fn server(&self) -> Result<Arc<dyn ServerEnd>, Error> {
        self.check_shut_down();
        let server = self.server.lock().unwrap_or_else(PoisonError::into_inner).clone();
        server.ok_or_else(|| self.calls.closed().map_or(Error::NoAnswer, Error::Closed))
    }
}

impl Drop for InProcess {
    fn drop(&mut self) {
        self.close(Error::Left);
    }
}

impl ClientEnd for Inbox {
    fn receive(&self, message: Message, call: Option<u64>) -> Option<Response> {
        self.take(message, call.map_or(MessageSource::Apart, MessageSource::Call))
    }
}
