//! An open session with a server, whichever way it is reached.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::calls::Calls;
use super::child::{Child, ChildSpec};
use super::era_probe::{InitContext, OpenError, negotiate};
use super::http::Http;
use super::listen::{ListenBackoff, Listener};
use super::pipe::Pipe;
use super::process::Process;
use super::route::{ConnectOptions, Route};
use super::sse::Sse;
use super::stateless::{InputRequired, Stateless};
use super::transport::Transport;
use super::{OutgoingCall, PendingCall, ServerMessage, cancelled, transport_probe};
use crate::address::Address;
use crate::error::Error;
use crate::http_client::HttpClient;
use crate::message::{Notification, Outcome, Response, is_notification};
use crate::secret::Redactor;
use crate::server::MODERN;
use crate::version::Version;

/// An open session with a server. Calls may run at the same time. Dropping it ends a process at once, with everything
/// that it started, and leaves a session over HTTP to expire; [`Link::close`] is the polite way.
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
    /// Opens a session: connects, says hello, and says that it is ready. What the server says on its own goes to `said`;
    /// if nobody listens there, nothing is done to hear it.
    ///
    /// # Errors
    /// When the server is not reached, refuses, is too slow, or speaks another protocol.
    pub async fn open(options: &ConnectOptions, said: mpsc::Sender<ServerMessage>) -> Result<Self, Error> {
        match &options.route {
            Route::Probe { url } => transport_probe::open(url, options, said).await,
            Route::Http { url } => Self::open_at(&Address::Http(url.clone()), options, said).await,
            Route::Sse { url } => Self::open_at(&Address::LegacySse(url.clone()), options, said).await,
            Route::Child(spec) => within(options, Self::open_process(spec, options, said)).await,
            Route::Streams(connect) => {
                let calls = Arc::new(Calls::default());
                let ends = (Arc::clone(&calls), said.clone());
                let pipe = Pipe::open(connect.open(), options.limits.clone(), ends, None);
                let unready = Unready {
                    transport: Arc::new(Transport::Pipe(Box::new(pipe))),
                    calls,
                    redactor: Arc::default(),
                    said,
                };
                let open = async { Ok(unready.initialize(options, ("embedded", false), None).await?) };
                within(options, open).await
            }
        }
    }

    /// Starts the server's process and opens a session with it. A process that a probe has ended is started once more and
    /// greeted with `initialize`; for the caller both are one attempt.
    async fn open_process(
        spec: &ChildSpec,
        options: &ConnectOptions,
        said: mpsc::Sender<ServerMessage>,
    ) -> Result<Self, Error> {
        let start = async |is_after_probe| {
            let (child, streams) = Child::start(spec)?;
            let process = Process::watch(child, options.limits.courtesy_timeout);
            let calls = Arc::new(Calls::default());
            let ends = (Arc::clone(&calls), said.clone());
            let pipe = Pipe::open(streams, options.limits.clone(), ends, Some(process.over()));
            let transport = Arc::new(Transport::Pipe(Box::new(pipe)));
            let unready = Unready { transport, calls, redactor: Arc::default(), said: said.clone() };
            unready.initialize(options, ("stdio", is_after_probe), Some(process)).await
        };
        match start(false).await {
            Ok(link) => Ok(link),
            Err(OpenError { ended_by_probe: true, .. }) => Ok(start(true).await?),
            Err(OpenError { error, .. }) => Err(error),
        }
    }

    pub(super) async fn open_at(
        address: &Address,
        options: &ConnectOptions,
        said: mpsc::Sender<ServerMessage>,
    ) -> Result<Self, Error> {
        let open = async {
            let url = address.check()?;
            let client = HttpClient::new(url, options)?;
            let (calls, redactor) = (Arc::new(Calls::default()), client.redactor());
            let held = Arc::clone(&calls);
            let (transport, name) = match address {
                Address::Http(_) => {
                    (Transport::Http(Http::new(client, url.clone(), held, said.clone())), "http")
                }
                Address::LegacySse(_) => {
                    (Transport::Sse(Sse::open(client, url, held, said.clone()).await?), "sse")
                }
            };
            let unready = Unready { transport: Arc::new(transport), calls, redactor, said };
            Ok(unready.initialize(options, (name, false), None).await?)
        };
        within(options, open).await
    }

    /// Sends a call.
    ///
    /// # Errors
    /// When it was not sent.
    pub async fn begin(&self, call: OutgoingCall<'_>) -> Result<PendingCall, Error> {
        // Nobody gives it up.
        self.begin_unless(call, std::future::pending()).await?.ok_or(Error::NoAnswer)
    }

    /// Sends a call, unless it is given up before it has gone out: then it is `None`, and was not sent. Whoever only drops
    /// [`Link::begin`] cannot tell.
    ///
    /// # Errors
    /// When it was not sent.
    pub async fn begin_unless(
        &self,
        call: OutgoingCall<'_>,
        given_up: impl Future<Output = ()>,
    ) -> Result<Option<PendingCall>, Error> {
        let Some(stateless) = &self.stateless else { return self.transport.begin(call, given_up).await };
        if let Some(outcome) = stateless.own(call) {
            return Ok(Some(PendingCall::answered(outcome, &self.calls)));
        }
        self.transport.begin_stateless(stateless, call, given_up).await
    }

    /// Sends a call if that takes no time: into a pipe that has room. Otherwise `None`, and nothing was sent.
    ///
    /// # Errors
    /// When it cannot be sent.
    pub fn begin_now(&self, call: OutgoingCall<'_>) -> Result<Option<PendingCall>, Error> {
        match (&*self.transport, &self.stateless) {
            (Transport::Pipe(pipe), None) => pipe.begin_now(call),
            (Transport::Http(_) | Transport::Sse(_), _) | (_, Some(_)) => Ok(None),
        }
    }

    /// Tells the server something.
    ///
    /// # Errors
    /// When it was not told: also when the method is that of a request.
    pub async fn notify(&self, method: &str, params: Option<&RawValue>) -> Result<(), Error> {
        if !is_notification(method) {
            return Err(Error::Protocol("a request cannot be sent as a notification"));
        }
        let params = params.map(ToOwned::to_owned);
        self.transport.send(Notification { method: method.to_owned(), params }.print()).await
    }

    /// Tells the server that nobody waits for a call any more.
    ///
    /// # Errors
    /// When it was not told.
    pub async fn cancel(&self, number: u64, reason: &str) -> Result<(), Error> {
        // First of all: whether it can be told or not, nobody waits.
        let is_news = self.calls.cancel(number);
        // On a pipe every call that runs is entered; one that is not was answered, or the server knows.
        if !is_news && matches!(*self.transport, Transport::Pipe(_)) {
            return Ok(());
        }
        // Over HTTP the end of its stream says so, where there are no sessions.
        if self.stateless.is_some() && matches!(*self.transport, Transport::Http(_)) {
            return Ok(());
        }
        self.transport.send(cancelled(number, reason).print()).await
    }

    #[must_use]
    pub fn is_stateless(&self) -> bool {
        self.stateless.is_some()
    }

    /// What a server without sessions asks by this answer to a call, if it does.
    #[must_use]
    pub fn input_required(&self, outcome: &Outcome) -> Option<InputRequired> {
        match outcome {
            Outcome::Result(result) if self.stateless.is_some() => InputRequired::read(result),
            Outcome::Result(_) | Outcome::Error(_) => None,
        }
    }

    /// Learns how a tool is to be called: some arguments stand in headers too.
    pub fn register_tool(&self, tool: &str, definition: &RawValue) {
        if let Some(stateless) = &self.stateless {
            stateless.register_tool(tool, definition);
        }
    }

    /// These tasks of a server without sessions are of interest, and no others: it tells of them with
    /// `notifications/tasks`.
    pub fn watch_tasks(&self, tasks: BTreeSet<String>) {
        if let Some(stateless) = &self.stateless {
            stateless.watch_tasks(tasks);
        }
    }

    /// Answers a question of the server.
    ///
    /// # Errors
    /// When the answer did not go out.
    pub async fn answer(&self, response: Response) -> Result<(), Error> {
        self.calls.answered(response.id.as_ref());
        self.transport.send(response.print()).await
    }

    /// How many calls somebody waits for; the connection's own listening is none of them.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.calls.waiting()
    }

    /// Why the session is over, if it is.
    #[must_use]
    pub fn closed(&self) -> Option<Arc<Error>> {
        self.calls.closed()
    }

    pub async fn until_closed(&self) -> Arc<Error> {
        self.calls.until_closed().await
    }

    /// The server's answer to `initialize`, as written; of one without sessions, in the same form.
    #[must_use]
    pub fn initialize_result(&self) -> &RawValue {
        &self.initialize_result
    }

    pub(crate) fn version(&self) -> Version {
        self.version
    }

    /// The protocol revision both sides speak, of either era.
    #[must_use]
    pub fn protocol_version(&self) -> &'static str {
        if self.is_stateless() { MODERN } else { self.version.as_str() }
    }

    /// `stdio`, `http`, `sse` or `embedded`.
    #[must_use]
    pub fn transport(&self) -> &'static str {
        self.transport_name
    }

    /// The last lines that the server's process wrote to stderr.
    #[must_use]
    pub fn stderr(&self) -> Vec<String> {
        self.process.as_ref().map(Process::errors).unwrap_or_default()
    }

    /// The id of the server's process, while it runs.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().and_then(Process::pid)
    }

    /// Ends the session; calls that still run are lost. Afterwards no process is left.
    pub async fn close(&self) {
        self.transport.close(&self.calls).await;
        if let Some(process) = &self.process {
            process.end().await;
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

/// A connection on which nothing was said.
struct Unready {
    transport: Arc<Transport>,
    calls: Arc<Calls>,
    redactor: Arc<Redactor>,
    said: mpsc::Sender<ServerMessage>,
}

impl Unready {
    async fn initialize(
        self,
        options: &ConnectOptions,
        (transport_name, is_after_probe): (&'static str, bool),
        process: Option<Process>,
    ) -> Result<Link, OpenError> {
        let Self { transport, calls, redactor, said } = self;
        let hears = InitContext { said: &said, redactor: &redactor };
        let negotiated = negotiate(&transport, options, (transport_name, is_after_probe), &hears).await;
        let (version, initialize_result, stateless) = match negotiated {
            Ok(profile) => profile,
            Err(error) => {
                // The server may already hold a session for us.
                transport.close(&calls).await;
                return Err(error);
            }
        };
        let listener = stateless.as_ref().filter(|_| !said.is_closed()).map(|stateless| {
            let (transport, stateless, calls) =
                (Arc::clone(&transport), Arc::clone(stateless), Arc::clone(&calls));
            let listener = Listener { transport, stateless, calls, said, pauses: ListenBackoff::default() };
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
