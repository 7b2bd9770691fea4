//! An open session with a server, over any transport.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use reqwest::Url;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::calls::Calls;
use super::child::{ChildSpec, Process};
use super::era_probe::{InitContext, OpenError, negotiate};
use super::http::Http;
use super::in_process::{Connector, InProcess, InProcessServer};
use super::inbox::Inbox;
use super::listen::{ListenBackoff, Listener};
use super::pipe::Pipe;
use super::route::{ConnectOptions, Route, WebTransport};
use super::sse::Sse;
use super::stateless::{InputRequired, Stateless};
use super::transport::Transport;
use super::{OutgoingCall, PendingCall, ServerMessage, cancelled, transport_probe};
use crate::error::Error;
use crate::http_client::HttpClient;
use crate::initialize::Version;
use crate::message::{Message, Notification, Outcome, Response, is_notification};
use crate::secret::Redactor;
use crate::server::MODERN;

/// An open session with a server. Calls may run concurrently. Dropping it kills a process with everything it started,
/// and leaves an HTTP session to expire; [`Link::close`] shuts both down gracefully.
///
/// Messages about a call (progress, logs, server requests) arrive in the call's own ordered stream before its response;
/// all others arrive in the connection's stream. A stateless server is used in the same way: the link keeps what a
/// session would store, and such a server requests input with an `input_required` response (see
/// [`Link::input_required`]).
pub struct Link {
    transport: Arc<Transport>,
    calls: Arc<Calls>,
    process: Option<Process>,
    transport_name: &'static str,
    version: Version,
    initialize_result: Box<RawValue>,
    redactor: Arc<Redactor>,
    stateless: Option<Arc<Stateless>>,
    listener: Option<AbortHandle>,
}

impl Link {
    /// Opens a session: connects and initializes. Messages of the server that belong to no call go to `said`; if that
    /// has no receiver, the connection does not listen for them.
    ///
    /// # Errors
    /// When the server cannot be reached, rejects the connection, times out, or speaks another protocol.
    pub async fn open(
        options: &ConnectOptions,
        messages: mpsc::Sender<ServerMessage>,
    ) -> Result<Self, Error> {
        match &options.route {
            Route::Probe { url } => transport_probe::open(url, options, messages).await,
            Route::Http { url } => Self::open_web(WebTransport::Http, url, options, messages).await,
            Route::Sse { url } => Self::open_web(WebTransport::Sse, url, options, messages).await,
            Route::Child(spec) => within(options, Self::open_process(spec, options, messages)).await,
            Route::InProcess(server) => {
                within(options, Self::open_in_process(server, options, messages)).await
            }
        }
    }

    async fn open_in_process(
        server: &InProcessServer,
        options: &ConnectOptions,
        messages: mpsc::Sender<ServerMessage>,
    ) -> Result<Self, Error> {
        let calls = Arc::new(Calls::default());
        let transport = match &*server.0 {
            Connector::Calls(connect) => {
                let inbox = Inbox::new(Arc::clone(&calls), messages.clone());
                Transport::InProcess(InProcess::open(connect, &options.limits, (Arc::clone(&calls), inbox))?)
            }
            #[cfg(feature = "test-util")]
            Connector::Streams(open) => {
                let ends = (Arc::clone(&calls), messages.clone());
                Transport::Pipe(Box::new(Pipe::open(open(), options.limits.clone(), ends, None)))
            }
        };
        let connection =
            Uninitialized { transport: Arc::new(transport), calls, redactor: Arc::default(), messages };
        Ok(connection.initialize(options, ("embedded", false), None).await?)
    }

    /// Starts the server's process and opens a session with it. If a probe made the process exit, it is started once
    /// more and sent `initialize` first; the caller sees one attempt.
    async fn open_process(
        spec: &ChildSpec,
        options: &ConnectOptions,
        messages: mpsc::Sender<ServerMessage>,
    ) -> Result<Self, Error> {
        let start = async |is_after_probe| {
            let (process, streams) = Process::start(spec, options.limits.courtesy_timeout)?;
            let calls = Arc::new(Calls::default());
            let ends = (Arc::clone(&calls), messages.clone());
            let pipe = Pipe::open(streams, options.limits.clone(), ends, Some(process.exit()));
            let transport = Arc::new(Transport::Pipe(Box::new(pipe)));
            let connection =
                Uninitialized { transport, calls, redactor: Arc::default(), messages: messages.clone() };
            connection.initialize(options, ("stdio", is_after_probe), Some(process)).await
        };
        match start(false).await {
            Ok(link) => Ok(link),
            Err(OpenError { ended_by_probe: true, .. }) => Ok(start(true).await?),
            Err(OpenError { error, .. }) => Err(error),
        }
    }

    pub(super) async fn open_web(
        transport: WebTransport,
        url: &Url,
        options: &ConnectOptions,
        messages: mpsc::Sender<ServerMessage>,
    ) -> Result<Self, Error> {
        let open = async {
            let client = HttpClient::new(url, options)?;
            let (calls, redactor) = (Arc::new(Calls::default()), client.redactor());
            let held = Arc::clone(&calls);
            let (transport, name) = match transport {
                WebTransport::Http => {
                    (Transport::Http(Http::new(client, url.clone(), held, messages.clone())), "http")
                }
                WebTransport::Sse => {
                    (Transport::Sse(Sse::open(client, url, held, messages.clone()).await?), "sse")
                }
            };
            let connection = Uninitialized { transport: Arc::new(transport), calls, redactor, messages };
            Ok(connection.initialize(options, (name, false), None).await?)
        };
        within(options, open).await
    }

    pub async fn begin(&self, call: OutgoingCall<'_>) -> Result<PendingCall, Error> {
        // A pending future never cancels.
        self.begin_unless(call, std::future::pending()).await?.ok_or(Error::NoAnswer)
    }

    /// Sends a call unless `cancel` completes before it is sent; then returns `None`. Dropping [`Link::begin`] instead
    /// leaves it unknown whether the call was sent.
    pub async fn begin_unless(
        &self,
        call: OutgoingCall<'_>,
        given_up: impl Future<Output = ()>,
    ) -> Result<Option<PendingCall>, Error> {
        let Some(stateless) = &self.stateless else { return self.transport.begin(call, given_up).await };
        if let Some(outcome) = stateless.answer_locally(call) {
            return Ok(Some(PendingCall::answered(outcome, &self.calls)));
        }
        self.transport.begin_stateless(stateless, call, given_up).await
    }

    /// Sends a call if that needs no waiting, that is, in this process or on a pipe with room. Otherwise returns `None`,
    /// and nothing was sent.
    pub fn begin_now(&self, call: OutgoingCall<'_>) -> Result<Option<PendingCall>, Error> {
        match (&*self.transport, &self.stateless) {
            (Transport::InProcess(server), None) => server.begin(call).map(Some),
            (Transport::Pipe(pipe), None) => pipe.begin_now(call),
            (Transport::Http(_) | Transport::Sse(_), _) | (_, Some(_)) => Ok(None),
        }
    }

    /// Sends a notification.
    ///
    /// # Errors
    /// When it was not sent, also when the method is that of a request.
    pub async fn notify(&self, method: &str, params: Option<&RawValue>) -> Result<(), Error> {
        if !is_notification(method) {
            return Err(Error::Protocol("a request cannot be sent as a notification"));
        }
        let params = params.map(ToOwned::to_owned);
        let notification = Notification { method: method.to_owned(), params };
        self.transport.send(Message::Notification(notification)).await
    }

    /// Cancels a call at the server.
    pub async fn cancel(&self, number: u64, reason: &str) -> Result<(), Error> {
        // First, because the caller stops waiting even if the notification cannot be sent.
        let is_news = self.calls.cancel(number, reason);
        match &*self.transport {
            Transport::InProcess(_) => return Ok(()),
            // Every running call is registered; any other was answered or already cancelled.
            Transport::Pipe(_) if !is_news => return Ok(()),
            Transport::Pipe(_) | Transport::Http(_) | Transport::Sse(_) => {}
        }
        // Over stateless HTTP, closing the stream cancels the call.
        if self.stateless.is_some() && matches!(*self.transport, Transport::Http(_)) {
            return Ok(());
        }
        self.transport.send(Message::Notification(cancelled(number, reason))).await
    }

    #[must_use]
    pub fn is_stateless(&self) -> bool {
        self.stateless.is_some()
    }

    /// The input that a stateless server requests with this response, if any.
    #[must_use]
    pub fn input_required(&self, outcome: &Outcome) -> Option<InputRequired> {
        match outcome {
            Outcome::Result(result) if self.stateless.is_some() => InputRequired::read(result),
            Outcome::Result(_) | Outcome::Error(_) => None,
        }
    }

    /// Registers a tool's definition: some of its arguments must also be sent as headers.
    pub fn register_tool(&self, tool: &str, definition: &RawValue) {
        if let Some(stateless) = &self.stateless {
            stateless.register_tool(tool, definition);
        }
    }

    /// Replaces the set of tasks for which a stateless server sends `notifications/tasks`.
    pub fn watch_tasks(&self, tasks: BTreeSet<String>) {
        if let Some(stateless) = &self.stateless {
            stateless.watch_tasks(tasks);
        }
    }

    /// Answers a request of the server.
    pub async fn answer(&self, response: Response) -> Result<(), Error> {
        self.calls.answered(response.id.as_ref());
        self.transport.send(Message::Response(response)).await
    }

    /// The number of calls with a waiting caller, without the connection's own listen request.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.calls.waiting()
    }

    /// The reason the session closed, if it is closed.
    #[must_use]
    pub fn closed(&self) -> Option<Arc<Error>> {
        if let Transport::InProcess(server) = &*self.transport {
            server.check_shut_down();
        }
        self.calls.closed()
    }

    pub async fn until_closed(&self) -> Arc<Error> {
        if let Transport::InProcess(server) = &*self.transport {
            tokio::select! {
                cause = self.calls.until_closed() => return cause,
                () = server.until_shut_down() => {}
            }
        }
        self.calls.until_closed().await
    }

    /// The server's `initialize` result, unparsed; for a stateless server, an equivalent one.
    #[must_use]
    pub fn initialize_result(&self) -> &RawValue {
        &self.initialize_result
    }

    pub(crate) fn version(&self) -> Version {
        self.version
    }

    /// The negotiated protocol revision, of either era.
    #[must_use]
    pub fn protocol_version(&self) -> &'static str {
        if self.is_stateless() { MODERN } else { self.version.as_str() }
    }

    /// `stdio`, `http`, `sse` or `embedded`.
    #[must_use]
    pub fn transport(&self) -> &'static str {
        self.transport_name
    }

    /// The last lines that the server's process wrote to stderr, with secrets masked.
    #[must_use]
    pub fn stderr(&self) -> Vec<String> {
        self.process.as_ref().map(Process::errors).unwrap_or_default()
    }

    /// The id of the server's process, while it runs.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().and_then(Process::pid)
    }

    /// Ends the session. Running calls are lost, and no process remains.
    pub async fn close(&self) {
        self.transport.close(&self.calls).await;
        if let Some(process) = &self.process {
            process.stop().await;
        }
    }

    pub(crate) fn redactor(&self) -> &Redactor {
        &self.redactor
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("transport", &self.transport_name)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

async fn within(
    options: &ConnectOptions,
    open: impl Future<Output = Result<Link, Error>>,
) -> Result<Link, Error> {
    let limit = options.limits.attempt_timeout;
    let opened = tokio::time::timeout(limit, open).await;
    opened.unwrap_or_else(|_| Err(Error::timeout("opening the session", limit)))
}

/// A connection before initialization.
struct Uninitialized {
    transport: Arc<Transport>,
    calls: Arc<Calls>,
    redactor: Arc<Redactor>,
    messages: mpsc::Sender<ServerMessage>,
}

impl Uninitialized {
    async fn initialize(
        self,
        options: &ConnectOptions,
        (transport_name, is_after_probe): (&'static str, bool),
        process: Option<Process>,
    ) -> Result<Link, OpenError> {
        let Self { transport, calls, redactor, messages } = self;
        let context = InitContext { messages: &messages, redactor: &redactor };
        let negotiated = negotiate(&transport, options, (transport_name, is_after_probe), &context).await;
        let (version, initialize_result, stateless) = match negotiated {
            Ok(profile) => profile,
            Err(error) => {
                // The server may already hold a session for us.
                transport.close(&calls).await;
                return Err(error);
            }
        };
        let listener = stateless.as_ref().filter(|_| !messages.is_closed()).map(|stateless| {
            let (transport, stateless, calls) =
                (Arc::clone(&transport), Arc::clone(stateless), Arc::clone(&calls));
            let listener =
                Listener { transport, stateless, calls, messages, pauses: ListenBackoff::default() };
            tokio::spawn(listener.run()).abort_handle()
        });
        Ok(Link {
            transport,
            calls,
            process,
            transport_name,
            version,
            initialize_result,
            redactor,
            stateless,
            listener,
        })
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        if let Some(listener) = &self.listener {
            listener.abort();
        }
    }
}
