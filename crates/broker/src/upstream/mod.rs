//! The servers behind the broker: one supervised connection to each, for each host session. Owns connecting, listing, health
//! and restarts; refuses a server that is the broker itself. What is said on a connection is somebody else's.
//!
//! - `pace`: how often and how long, in one struct
//! - `greeting`: what a server says about itself, and what it is told about the host
//! - `asking`: the calls that are the supervisor's own
//! - `listing`: the tools of a server, page by page, bounded
//! - `now`: what is known of a server at this moment
//! - `supervise`: connects, tends, and connects again
//! - `hold`: who uses a connection
//! - `rest`: servers that are known by the tools that they listed last, and those that do not run while unused
//! - `roots`: which folders a body is told that its client works in

mod asking;
mod greeting;
mod hold;
mod listing;
mod now;
mod pace;
mod rest;
mod roots;
mod supervise;

use std::sync::{Arc, Weak};
use std::time::Duration;

use embody_wire::upstream::{EraCache, Link, OutgoingCall, Route, TokenSource};
use embody_wire::{Limits, Notification, Outcome, Proxies, Request};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};
use tokio::sync::{Mutex, Notify, OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

pub use self::greeting::{Hello, SentInstructions};
pub use self::hold::Hold;
use self::hold::{Use, Uses};
use self::now::Now;
pub use self::now::{Health, State};
pub use self::pace::Pace;
use self::rest::{Known, start_timeout};
pub use self::rest::{Rest, Start};
pub use self::roots::Roots;
use self::supervise::{Shared, Supervisor};
use crate::arguments::ARGUMENTS_MAX_BYTES;
use crate::instructions::InstructionsMode;
use crate::policy::{Fit, Glob, Kind, Name};

/// Questions that one upstream may have open at a time.
const QUESTIONS_MAX: usize = 8;
/// How long a supervisor may take for its end. A process gets less than that.
const END: Duration = Duration::from_secs(30);

/// A server as the operator describes it.
#[derive(Debug, Clone)]
pub struct Spec {
    /// Its name.
    pub name: String,
    /// What it is.
    pub role: Role,
    /// Where it is.
    pub route: Route,
    /// Where its token comes from.
    pub tokens: Option<TokenSource>,
    /// The proxies before a server on the web.
    pub proxies: Proxies,
    /// The bounds of the connection. A process gets more time for its start than one attempt has.
    pub limits: Limits,
    /// How long one call may take.
    pub call_timeout: Duration,
    /// When it runs.
    pub rest: Rest,
    /// The tools of a server that is part of this program: they cannot change, and it is not asked for them.
    pub tools: Option<Arc<[RawTool]>>,
    /// Which era it is of, once that is known: shared by the sessions, so that only the first probes.
    pub era: EraCache,
}

impl Spec {
    /// Whether it is part of this program.
    pub(crate) fn is_embedded(&self) -> bool {
        self.tools.is_some()
    }

    /// Whether it is a process of its session, and gone with it.
    pub(crate) fn is_process(&self) -> bool {
        matches!(self.route, Route::Child(_) | Route::Streams(_))
    }
}

/// What an upstream is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// The mind.
    Mind,
    /// A body.
    Body(BodySpec),
}

impl Role {
    /// Whether it is the mind.
    #[must_use]
    pub const fn is_mind(&self) -> bool {
        matches!(self, Self::Mind)
    }

    /// Whether this user may use it. The mind answers each user about themselves.
    pub(crate) fn is_for(&self, user: &str, owner: &str) -> bool {
        match self {
            Self::Mind => true,
            Self::Body(body) => body.users.include(user, owner),
        }
    }

    /// Bytes that the arguments of one call may have.
    pub(crate) fn arguments_max_bytes(&self) -> usize {
        let own = match self {
            Self::Mind => None,
            Self::Body(body) => body.arguments_max_bytes,
        };
        own.unwrap_or(ARGUMENTS_MAX_BYTES)
    }

    /// What becomes of the host's roots for this upstream.
    pub(crate) fn roots(&self) -> &Roots {
        match self {
            Self::Mind => &Roots::Forward,
            Self::Body(body) => &body.roots,
        }
    }
}

/// What the operator says about a body.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BodySpec {
    /// The tools that are exposed. Resources, prompts and methods are, unless a pattern here is about their kind.
    pub allow: Vec<Glob>,
    /// What is not, whatever `allow` says.
    pub deny: Vec<Glob>,
    /// Whether it tells the mind of its calls itself.
    pub observes: bool,
    /// Whether its annotations count.
    pub trust_annotations: bool,
    /// Bytes that the arguments of one call may have, if not [`ARGUMENTS_MAX_BYTES`].
    pub arguments_max_bytes: Option<usize>,
    /// Unknown request methods that are forwarded to it.
    pub forward_methods: Vec<String>,
    /// Whether it may ask the host's model.
    pub sampling: bool,
    /// What becomes of the host's roots.
    pub roots: Roots,
    /// What becomes of its instructions.
    pub instructions: InstructionsMode,
    /// Who may use it.
    pub users: BodyUsers,
}

/// Who may use a body. It acts with the accounts that the owner has given it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum BodyUsers {
    /// The owner of the workspace.
    #[default]
    Owner,
    /// These, and no others.
    Named(Vec<String>),
    /// Every user.
    All,
}

impl BodyUsers {
    /// Whether this user may use it.
    #[must_use]
    pub fn include(&self, user: &str, owner: &str) -> bool {
        match self {
            Self::Owner => user == owner,
            Self::Named(users) => users.iter().any(|named| named == user),
            Self::All => true,
        }
    }
}

impl BodySpec {
    /// Whether the operator lets hosts have this tool, resource, prompt or method of the body, which is called `body`.
    pub(crate) fn exposes(&self, body: &str, name: &str) -> bool {
        let (kind, name) = (Kind::of(name), Name::new(name));
        let fit = |glob: &Glob| glob.fit(body, &name);
        let mut about = self.allow.iter().filter(|glob| glob.kind() == kind).peekable();
        let is_open = kind.is_some() && about.peek().is_none();
        (is_open || about.any(|glob| fit(glob) == Fit::Whole))
            && !self.deny.iter().any(|glob| fit(glob) > Fit::No)
    }
}

/// A tool as its server lists it.
#[derive(Debug, Clone)]
pub struct RawTool {
    /// Its own name.
    pub name: String,
    /// The whole definition, as it came.
    pub definition: Box<RawValue>,
}

impl RawTool {
    /// A tool of our own.
    ///
    /// # Errors
    /// When its definition cannot be written as JSON.
    pub fn new(name: &str, definition: &impl Serialize) -> serde_json::Result<Self> {
        Ok(Self { name: name.to_owned(), definition: to_raw_value(definition)? })
    }
}

/// What is heard of an upstream outside calls.
#[derive(Debug)]
pub enum Heard {
    /// It said something. That its tools have changed is not among it: they are listed again, and then it is `Changed`.
    Said {
        /// Which one.
        upstream: Arc<str>,
        /// What.
        notification: Notification,
    },
    /// It asks something.
    Asked {
        /// Which one.
        upstream: Arc<str>,
        /// What.
        request: Request,
        /// Where the answer belongs: a later connection may use the same id for another question.
        link: Weak<Link>,
        /// Kept until it is answered.
        place: Place,
    },
    /// Its state or its tools are others now. Said once for several changes.
    Changed {
        /// Which one.
        upstream: Arc<str>,
    },
}

/// The place of one open question of an upstream; dropping it makes room for another.
#[derive(Debug)]
pub struct Place(#[expect(dead_code, reason = "it is held")] OwnedSemaphorePermit);

/// The questions that one upstream has open, inside calls and outside. They are counted for each, so that none takes the
/// host from the others.
#[derive(Debug, Clone)]
struct Questions(Arc<Semaphore>);

impl Questions {
    fn new() -> Self {
        Self(Arc::new(Semaphore::new(QUESTIONS_MAX)))
    }

    fn take(&self) -> Option<Place> {
        Arc::clone(&self.0).try_acquire_owned().ok().map(Place)
    }

    fn are_open(&self) -> bool {
        self.0.available_permits() < QUESTIONS_MAX
    }
}

/// Why a server cannot be reached now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Away(String);

/// One supervised connection. Dropping it ends the connection; [`Upstream::end`] does so politely.
#[derive(Debug)]
pub struct Upstream {
    spec: Arc<Spec>,
    pace: Pace,
    now: Arc<watch::Sender<Now>>,
    /// Somebody wants the connection at once.
    wanted: Arc<Notify>,
    questions: Questions,
    uses: Arc<Uses>,
    stop: watch::Sender<bool>,
    supervisor: Mutex<JoinHandle<()>>,
}

impl Upstream {
    /// Connects in the background, again and again.
    #[must_use]
    pub fn start(spec: Arc<Spec>, hello: Hello, heard: mpsc::Sender<Heard>) -> Arc<Self> {
        Self::start_at(Pace::default(), spec, hello, heard)
    }

    /// The same at another pace.
    #[must_use]
    pub fn start_at(pace: Pace, spec: Arc<Spec>, hello: Hello, heard: mpsc::Sender<Heard>) -> Arc<Self> {
        Self::supervised(pace, spec, hello, heard, None)
    }

    /// The same for a server whose tools may be known from an earlier start: `known` resolves to the tools that it listed
    /// last, or to `None` if it never has. They count as its tools until it has listed them itself. A lazy server with known tools is connected when it is
    /// needed, every other one at once.
    #[must_use]
    pub fn start_known(
        pace: Pace,
        spec: Arc<Spec>,
        hello: Hello,
        heard: mpsc::Sender<Heard>,
        known: impl Future<Output = Option<Vec<RawTool>>> + Send + 'static,
    ) -> Arc<Self> {
        Self::supervised(pace, spec, hello, heard, Some(Box::pin(known)))
    }

    fn supervised(
        pace: Pace,
        spec: Arc<Spec>,
        hello: Hello,
        heard: mpsc::Sender<Heard>,
        known: Option<Known>,
    ) -> Arc<Self> {
        let (now, wanted) = (Arc::new(watch::Sender::new(Now::new(spec.tools.clone()))), Arc::default());
        let (stop, stopping) = watch::channel(false);
        let (questions, uses) = (Questions::new(), Arc::<Uses>::default());
        let shared = Shared {
            now: Arc::clone(&now),
            wanted: Arc::clone(&wanted),
            questions: questions.clone(),
            uses: Arc::clone(&uses),
        };
        let supervisor = Supervisor::new(&spec, hello, heard, pace.clone(), shared);
        let supervisor = Mutex::new(tokio::spawn(supervisor.run(known, stopping)));
        Arc::new(Self { spec, pace, now, wanted, questions, uses, stop, supervisor })
    }

    /// The server as the operator describes it.
    #[must_use]
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The open connection, which is not ended for being idle while it is held. While there is none, an attempt is made at
    /// once, and waited for as long as one may take; but a server that fails again and again is left alone between attempts
    /// that come too fast.
    ///
    /// # Errors
    /// When there is none in time.
    pub async fn link(&self) -> Result<Hold, Away> {
        // The usual case, for every call.
        if let Some(hold) = self.hold(&self.now.borrow()) {
            return Ok(hold);
        }
        Box::pin(self.connected()).await
    }

    /// What is borrowed cannot be changed meanwhile: either the connection is held, or it is not there.
    fn hold(&self, now: &Now) -> Option<Hold> {
        now.open_link().map(|link| Hold::new(link, now.opened, &self.uses))
    }

    async fn connected(&self) -> Result<Hold, Away> {
        let mut now = self.now.subscribe();
        let tried = {
            let now = now.borrow_and_update();
            if let Some(hold) = self.hold(&now) {
                return Ok(hold);
            }
            if now.is_over || self.is_left_alone(&now) {
                return Err(now.away());
            }
            now.tried
        };
        let _waits = Use::new(&self.uses);
        self.now.send_if_modified(|now| {
            let is_news = now.open_link().is_none() && !now.is_wanted;
            now.is_wanted |= is_news;
            is_news
        });
        if !self.now.borrow().is_trying {
            self.wanted.notify_one();
        }
        let opened = now.wait_for(|now| now.is_over || now.tried > tried || now.open_link().is_some());
        let limit = match self.spec.rest.is_any() {
            true => start_timeout(&self.spec, self.pace.start_factor),
            false => self.spec.limits.attempt_timeout,
        };
        match timeout(limit, opened).await {
            Ok(Ok(now)) => self.hold(&now).ok_or_else(|| now.away()),
            Ok(Err(_)) | Err(_) => Err(self.now.borrow().away()),
        }
    }

    /// The same connection, if the server has listed its tools: nothing is called before they were compared with their pins.
    /// A server that always runs and has listed its tools once may be called while a new connection lists them again.
    ///
    /// # Errors
    /// When they were not listed in time.
    pub fn compared(&self, hold: Hold) -> Result<Hold, Away> {
        let was_listed = !self.spec.rest.is_any() && self.listing() > 0;
        if was_listed || self.is_listed() {
            return Ok(hold);
        }
        let reason = self.state().reason;
        Err(Away(reason.unwrap_or_else(|| "its tools are not listed yet".to_owned())))
    }

    /// Something on the server waits for somebody although no call runs: it is not stopped meanwhile.
    pub fn keep(&self, is_kept: bool) {
        self.uses.keep(is_kept);
    }

    /// A place for one more of its questions, if it has not too many open.
    #[must_use]
    pub fn question(&self) -> Option<Place> {
        self.questions.take()
    }

    /// Asks it something on the broker's own behalf, on this connection; in words, why there is no answer. What it says
    /// meanwhile is heard as if nobody had asked.
    pub(crate) async fn ask(
        &self,
        link: &Arc<Link>,
        calling: OutgoingCall<'_>,
        limit: Duration,
    ) -> Result<Outcome, String> {
        let said = self.now.borrow().said_on(link).ok_or("the connection is over")?;
        asking::ask(link, &said, calling, limit).await
    }

    /// How it is.
    #[must_use]
    pub fn state(&self) -> State {
        self.now.borrow().state()
    }

    /// Whether it can be used.
    #[must_use]
    pub fn health(&self) -> Health {
        self.now.borrow().health_now()
    }

    /// The last complete listing; kept while it is away.
    #[must_use]
    pub fn tools(&self) -> Arc<[RawTool]> {
        Arc::clone(&self.now.borrow().tools)
    }

    /// The number of the connection that the listing is from.
    #[must_use]
    pub fn listing(&self) -> u32 {
        self.now.borrow().listed
    }

    /// Whether the listing is from the connection that it had last.
    #[must_use]
    pub fn is_listed(&self) -> bool {
        let now = self.now.borrow();
        now.listed == now.opened
    }

    /// Waits until the tools of the open connection are listed, for as long as one attempt may take. After a restart what
    /// was listed before may be something else.
    pub async fn listed(&self) {
        let mut now = self.now.subscribe();
        let is_listed =
            now.wait_for(|now| now.is_over || now.listed == now.opened || now.open_link().is_none());
        let _ = timeout(self.spec.limits.attempt_timeout, is_listed).await;
    }

    /// Whether its first start is over, however it ended, or put off until it is needed.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        let now = self.now.borrow();
        now.is_settled || now.is_over
    }

    /// Whether its tools are known: it has listed them, now or before an earlier end, or its first start has failed.
    #[must_use]
    pub fn knows_tools(&self) -> bool {
        self.now.borrow().knows_tools()
    }

    /// Whether it listed its tools before this session.
    #[must_use]
    pub fn was_listed_before(&self) -> bool {
        self.now.borrow().is_remembered
    }

    /// Whether it has ever listed its tools, in this session or before. A start that failed lists nothing; one that is not tried
    /// again never will.
    #[must_use]
    pub fn has_listed(&self) -> bool {
        let now = self.now.borrow();
        now.is_remembered || now.listed > 0 || now.is_over
    }

    /// Whether it was never connected in this session although it should run: nothing is known of what it has besides tools.
    #[must_use]
    pub fn never_connected(&self) -> bool {
        let now = self.now.borrow();
        now.capabilities.is_none() && !now.is_over && now.health != Health::Idle
    }

    /// Returns when [`knows_tools`](Self::knows_tools) holds, or when the server had as much time as its start may take.
    pub async fn tools_known(&self) {
        self.within_start(Now::knows_tools).await;
    }

    /// Waits for the first start, if it is still under way: until the server is connected and its tools are listed, until
    /// that has failed, or until it had as much time as its start may take.
    pub async fn started(&self) {
        self.within_start(|now| now.is_settled || now.is_over).await;
    }

    async fn within_start(&self, is_so: impl Fn(&Now) -> bool) {
        if is_so(&self.now.borrow()) {
            return;
        }
        let limit = start_timeout(&self.spec, self.pace.start_factor);
        let _ = timeout(limit, self.now.subscribe().wait_for(|now| is_so(now))).await;
    }

    /// What it said that it can do; kept while it is away.
    #[must_use]
    pub fn capabilities(&self) -> Option<Arc<Map<String, Value>>> {
        self.now.borrow().capabilities.clone()
    }

    /// The instructions that it sent when it was last connected.
    #[must_use]
    pub fn instructions(&self) -> SentInstructions {
        self.now.borrow().instructions.clone()
    }

    /// Returns when it is connected and its tools are listed, or when that has failed for the first time.
    pub async fn settled(&self) {
        // An error is a supervisor that is gone: nothing more will come.
        let _ = self.now.subscribe().wait_for(|now| now.is_settled || now.is_over).await;
    }

    /// Ends it: afterwards no process and no connection is left.
    pub async fn end(&self) {
        self.stop.send_replace(true);
        let mut supervisor = self.supervisor.lock().await;
        if !supervisor.is_finished() && timeout(END, &mut *supervisor).await.is_err() {
            supervisor.abort();
        }
        // One that did not come to its own end has left this to us.
        self.now.send_modify(|now| {
            (now.link, now.said) = (None, None);
            (now.is_over, now.is_settled) = (true, true);
        });
    }

    fn is_left_alone(&self, now: &Now) -> bool {
        let recently = now.failed_at.is_some_and(|at| at.elapsed() < self.pace.rest);
        now.failures >= self.pace.failures_max && recently && !now.is_trying
    }
}
