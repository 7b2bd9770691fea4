//! An open session with a server, whichever way it is reached.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::calls::Calls;
use super::child::{Child, ChildSpec};
use super::found::{Hears, Unopened, found};
use super::http::Http;
use super::listen::{Listener, Pauses};
use super::pipe::Pipe;
use super::process::Process;
use super::route::{Opening, Route};
use super::sse::Sse;
use super::stateless::{InputRequired, Stateless};
use super::way::Way;
use super::{Calling, Running, Said, cancelled, guess};
use crate::address::Address;
use crate::error::Error;
use crate::message::{Notification, Outcome, Response, is_notification};
use crate::secret::Redactor;
use crate::serve::MODERN;
use crate::version::Version;
use crate::web::Web;

/// An open session with a server. Calls may run at the same time. Dropping it ends a process at once, with everything
/// that it started, and leaves a session over HTTP to expire; [`Link::close`] is the polite way.
pub struct Link {
    way: Arc<Way>,
    calls: Arc<Calls>,
    process: Option<Process>,
    transport: &'static str,
    version: Version,
    greeting: Box<RawValue>,
    redactor: Arc<Redactor>,
    /// If the server has no sessions.
    alone: Option<Arc<Stateless>>,
    listener: Option<AbortHandle>,
}

impl Link {
    /// Opens a session: connects, says hello, and says that it is ready. What the server says on its own goes to `said`;
    /// if nobody listens there, nothing is done to hear it.
    ///
    /// # Errors
    /// When the server is not reached, refuses, is too slow, or speaks another protocol.
    pub async fn open(opening: &Opening, said: mpsc::Sender<Said>) -> Result<Self, Error> {
        match &opening.route {
            Route::Guess { url } => guess::open(url, opening, said).await,
            Route::Http { url } => Self::open_at(&Address::Http(url.clone()), opening, said).await,
            Route::Sse { url } => Self::open_at(&Address::LegacySse(url.clone()), opening, said).await,
            Route::Child(spec) => within(opening, Self::open_process(spec, opening, said)).await,
            Route::Streams(connect) => {
                let calls = Arc::new(Calls::default());
                let ends = (Arc::clone(&calls), said.clone());
                let pipe = Pipe::open(connect.open(), opening.limits.clone(), ends, None);
                let unready = Unready {
                    way: Arc::new(Way::Pipe(Box::new(pipe))),
                    calls,
                    redactor: Arc::default(),
                    said,
                };
                let open = async { Ok(unready.greet(opening, ("embedded", false), None).await?) };
                within(opening, open).await
            }
        }
    }

    /// Starts the server's process and opens a session with it. A process that a probe has ended is started once more and
    /// greeted with `initialize`; for the caller both are one attempt.
    async fn open_process(
        spec: &ChildSpec,
        opening: &Opening,
        said: mpsc::Sender<Said>,
    ) -> Result<Self, Error> {
        let start = async |is_after_probe| {
            let (child, streams) = Child::start(spec)?;
            let process = Process::watch(child, opening.limits.courtesy_timeout);
            let calls = Arc::new(Calls::default());
            let ends = (Arc::clone(&calls), said.clone());
            let pipe = Pipe::open(streams, opening.limits.clone(), ends, Some(process.over()));
            let way = Arc::new(Way::Pipe(Box::new(pipe)));
            let unready = Unready { way, calls, redactor: Arc::default(), said: said.clone() };
            unready.greet(opening, ("stdio", is_after_probe), Some(process)).await
        };
        match start(false).await {
            Ok(link) => Ok(link),
            Err(Unopened { ended_by_probe: true, .. }) => Ok(start(true).await?),
            Err(Unopened { error, .. }) => Err(error),
        }
    }

    /// The same at exactly this address.
    pub(super) async fn open_at(
        address: &Address,
        opening: &Opening,
        said: mpsc::Sender<Said>,
    ) -> Result<Self, Error> {
        let open = async {
            let url = address.check()?;
            let web = Web::new(url, opening)?;
            let (calls, redactor) = (Arc::new(Calls::default()), web.redactor());
            let held = Arc::clone(&calls);
            let (way, name) = match address {
                Address::Http(_) => (Way::Http(Http::new(web, url.clone(), held, said.clone())), "http"),
                Address::LegacySse(_) => (Way::Sse(Sse::open(web, url, held, said.clone()).await?), "sse"),
            };
            let unready = Unready { way: Arc::new(way), calls, redactor, said };
            Ok(unready.greet(opening, (name, false), None).await?)
        };
        within(opening, open).await
    }

    /// Sends a call.
    ///
    /// # Errors
    /// When it was not sent.
    pub async fn begin(&self, calling: Calling<'_>) -> Result<Running, Error> {
        // Nobody gives it up.
        self.begin_unless(calling, std::future::pending()).await?.ok_or(Error::NoAnswer)
    }

    /// Sends a call, unless it is given up before it has gone out: then it is `None`, and was not sent. Whoever only drops
    /// [`Link::begin`] cannot tell.
    ///
    /// # Errors
    /// When it was not sent.
    pub async fn begin_unless(
        &self,
        calling: Calling<'_>,
        given_up: impl Future<Output = ()>,
    ) -> Result<Option<Running>, Error> {
        let Some(alone) = &self.alone else { return self.way.begin(calling, given_up).await };
        if let Some(outcome) = alone.own(calling) {
            return Ok(Some(Running::answered(outcome, &self.calls)));
        }
        self.way.begin_alone(alone, calling, given_up).await
    }

    /// Sends a call if that takes no time: into a pipe that has room. Otherwise `None`, and nothing was sent.
    ///
    /// # Errors
    /// When it cannot be sent.
    pub fn begin_now(&self, calling: Calling<'_>) -> Result<Option<Running>, Error> {
        match (&*self.way, &self.alone) {
            (Way::Pipe(pipe), None) => pipe.begin_now(calling),
            (Way::Http(_) | Way::Sse(_), _) | (_, Some(_)) => Ok(None),
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
        self.way.send(Notification { method: method.to_owned(), params }.print()).await
    }

    /// Tells the server that nobody waits for a call any more.
    ///
    /// # Errors
    /// When it was not told.
    pub async fn cancel(&self, number: u64, reason: &str) -> Result<(), Error> {
        // First of all: whether it can be told or not, nobody waits.
        let is_news = self.calls.cancel(number);
        // On a pipe every call that runs is entered; one that is not was answered, or the server knows.
        if !is_news && matches!(*self.way, Way::Pipe(_)) {
            return Ok(());
        }
        // Over HTTP the end of its stream says so, where there are no sessions.
        if self.alone.is_some() && matches!(*self.way, Way::Http(_)) {
            return Ok(());
        }
        self.way.send(cancelled(number, reason).print()).await
    }

    /// Whether the server has no sessions.
    #[must_use]
    pub fn is_stateless(&self) -> bool {
        self.alone.is_some()
    }

    /// What a server without sessions asks by this answer to a call, if it does.
    #[must_use]
    pub fn input_required(&self, outcome: &Outcome) -> Option<InputRequired> {
        match outcome {
            Outcome::Result(result) if self.alone.is_some() => InputRequired::read(result),
            Outcome::Result(_) | Outcome::Error(_) => None,
        }
    }

    /// Learns how a tool is to be called: some arguments stand in headers too.
    pub fn know(&self, tool: &str, definition: &RawValue) {
        if let Some(alone) = &self.alone {
            alone.know(tool, definition);
        }
    }

    /// These tasks of a server without sessions are of interest, and no others: it tells of them with
    /// `notifications/tasks`.
    pub fn watch_tasks(&self, tasks: BTreeSet<String>) {
        if let Some(alone) = &self.alone {
            alone.watch_tasks(tasks);
        }
    }

    /// Answers a question of the server.
    ///
    /// # Errors
    /// When the answer did not go out.
    pub async fn answer(&self, response: Response) -> Result<(), Error> {
        self.calls.answered(response.id.as_ref());
        self.way.send(response.print()).await
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

    /// Returns when the session is over.
    pub async fn until_closed(&self) -> Arc<Error> {
        self.calls.until_closed().await
    }

    /// The server's answer to `initialize`, as written; of one without sessions, in the same form.
    #[must_use]
    pub fn greeting(&self) -> &RawValue {
        &self.greeting
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
        self.transport
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
        self.way.close(&self.calls).await;
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
            .field("transport", &self.transport)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

async fn within(opening: &Opening, open: impl Future<Output = Result<Link, Error>>) -> Result<Link, Error> {
    let limit = opening.limits.attempt_timeout;
    let opened = tokio::time::timeout(limit, open).await;
    opened.unwrap_or_else(|_| Err(Error::timeout("opening the session", limit)))
}

/// A connection on which nothing was said.
struct Unready {
    way: Arc<Way>,
    calls: Arc<Calls>,
    redactor: Arc<Redactor>,
    said: mpsc::Sender<Said>,
}

impl Unready {
    async fn greet(
        self,
        opening: &Opening,
        (transport, is_after_probe): (&'static str, bool),
        process: Option<Process>,
    ) -> Result<Link, Unopened> {
        let Self { way, calls, redactor, said } = self;
        let hears = Hears { said: &said, redactor: &redactor };
        let found = found(&way, opening, (transport, is_after_probe), &hears).await;
        let (version, greeting, alone) = match found {
            Ok(found) => found,
            Err(error) => {
                // The server may already hold a session for us.
                way.close(&calls).await;
                return Err(error);
            }
        };
        let listener = alone.as_ref().filter(|_| !said.is_closed()).map(|alone| {
            let (way, alone, calls) = (Arc::clone(&way), Arc::clone(alone), Arc::clone(&calls));
            let listener = Listener { way, alone, calls, said, pauses: Pauses::default() };
            tokio::spawn(listener.run()).abort_handle()
        });
        Ok(Link { way, calls, process, transport, version, greeting, redactor, alone, listener })
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        if let Some(listener) = &self.listener {
            listener.abort();
        }
    }
}
