//! The servers behind the broker: one supervised connection to each, per host session. Owns connecting, listing, health and
//! restarts; refuses a server that is the broker itself.
//!
//! - `backoff`: intervals and limits of the supervisor
//! - `call_check`: finds calls that are certain to fail, before the owner is asked
//! - `check`: one contact outside any session, for the operator
//! - `connection_lease`: counts the users of a connection
//! - `idle_shutdown`: lazy start and shutdown of unused servers
//! - `initialize`: parameters for a server, and its result
//! - `listing`: the tools of a server, page by page, bounded
//! - `roots`: the roots that a body receives
//! - `state`: the current state of one upstream
//! - `supervisor`: connects, maintains and reconnects

mod backoff;
mod call_check;
mod check;
mod connection_lease;
mod idle_shutdown;
mod initialize;
mod listing;
mod roots;
mod state;
mod supervisor;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use embody_wire::upstream::{EraCache, Link, OutgoingCall, Route, TokenSource};
use embody_wire::{InitializeParams, Limits, Notification, Outcome, Proxies, Request};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};
use tokio::sync::{Mutex, Notify, OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

pub use self::backoff::Backoff;
pub use self::call_check::CallCheck;
pub(crate) use self::call_check::missing_arguments;
pub use self::check::{CheckError, CheckErrorKind, CheckedServer, check};
pub use self::connection_lease::ConnectionLease;
use self::connection_lease::{ConnectionUse, ConnectionUses};
pub use self::idle_shutdown::{IdleShutdown, Start};
use self::idle_shutdown::{LastKnownTools, start_timeout};
pub use self::initialize::SentInstructions;
pub(crate) use self::initialize::params_for_upstream;
pub use self::roots::Roots;
use self::state::UpstreamState;
pub use self::state::{Health, UpstreamStatus};
use self::supervisor::{Shared, Supervisor};
use crate::arguments::ARGUMENTS_MAX_BYTES;
use crate::instructions::InstructionsMode;
use crate::policy::{Fit, Glob, Kind, Name};

/// Requests that one upstream may have open at the same time.
const REQUESTS_MAX: usize = 8;
/// How often a retired upstream looks whether its calls have ended.
const UNUSED_POLL: Duration = Duration::from_millis(50);
/// Limit for the shutdown of a supervisor. A process gets less.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug, Clone)]
pub struct Spec {
    pub name: String,
    pub role: Role,
    pub route: Route,
    pub tokens: Option<TokenSource>,
    /// The proxies for a server on the web.
    pub proxies: Proxies,
    /// The limits of the connection. A process may take longer to start than one attempt.
    pub limits: Limits,
    pub call_timeout: Duration,
    pub idle_shutdown: IdleShutdown,
    /// The tools of a server that is part of this program: they cannot change and are not listed.
    pub tools: Option<Arc<[RawTool]>>,
    /// Finds calls of such a server that are certain to fail.
    pub check: Option<CallCheck>,
    /// The server's era, once known; shared by all sessions, so that only the first one probes.
    pub era: EraCache,
}

impl Spec {
    /// Whether it is part of this program.
    pub(crate) fn is_embedded(&self) -> bool {
        self.tools.is_some()
    }

    /// Whether it is a process that ends with its session.
    pub(crate) fn is_process(&self) -> bool {
        matches!(self.route, Route::Child(_) | Route::InProcess(_))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    Mind,
    Body(BodySpec),
}

impl Role {
    #[must_use]
    pub const fn is_mind(&self) -> bool {
        matches!(self, Self::Mind)
    }

    /// Whether this user may use it. The mind answers each user with their own data.
    pub(crate) fn is_for(&self, user: &str, owner: &str) -> bool {
        match self {
            Self::Mind => true,
            Self::Body(body) => body.users.include(user, owner),
        }
    }

    /// The limit for the arguments of one call.
    pub(crate) fn arguments_max_bytes(&self) -> usize {
        let own = match self {
            Self::Mind => None,
            Self::Body(body) => body.arguments_max_bytes,
        };
        own.unwrap_or(ARGUMENTS_MAX_BYTES)
    }

    pub(crate) fn roots(&self) -> &Roots {
        match self {
            Self::Mind => &Roots::Forward,
            Self::Body(body) => &body.roots,
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BodySpec {
    /// The exposed tools. Resources, prompts and methods are exposed too, unless a pattern here names their kind.
    pub allow: Vec<Glob>,
    /// Never exposed, whatever `allow` contains.
    pub deny: Vec<Glob>,
    /// Whether it sends its own observations to the mind.
    pub observes: bool,
    pub trust_annotations: bool,
    /// The limit for the arguments of one call, if not [`ARGUMENTS_MAX_BYTES`].
    pub arguments_max_bytes: Option<usize>,
    pub forward_methods: Vec<String>,
    /// Whether it may use the host's model.
    pub sampling: bool,
    pub roots: Roots,
    pub instructions: InstructionsMode,
    pub users: BodyUsers,
}

/// Who may use a body. It acts with the accounts that the owner has given it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(extend("type" = ["string", "array"]))]
pub enum BodyUsers {
    #[default]
    Owner,
    All,
    // Only these users.
    #[serde(untagged)]
    #[schemars(title = "names", extend("minItems" = 1))]
    Named(Vec<String>),
}

impl BodyUsers {
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
    /// Whether hosts may see this tool, resource, prompt or method of the body named `body`.
    pub(crate) fn exposes(&self, body: &str, name: &str) -> bool {
        let (kind, name) = (Kind::of(name), Name::new(name));
        let fit = |glob: &Glob| glob.fit(body, &name);
        let mut about = self.allow.iter().filter(|glob| glob.kind() == kind).peekable();
        let is_open = kind.is_some() && about.peek().is_none();
        (is_open || about.any(|glob| fit(glob) == Fit::Whole))
            && !self.deny.iter().any(|glob| fit(glob) > Fit::No)
    }
}

#[derive(Debug, Clone)]
pub struct RawTool {
    pub name: String,
    pub definition: Box<RawValue>,
}

impl RawTool {
    /// A tool of this program.
    ///
    /// # Errors
    /// When its definition cannot be written as JSON.
    pub fn new(name: &str, definition: &impl Serialize) -> serde_json::Result<Self> {
        Ok(Self { name: name.to_owned(), definition: to_raw_value(definition)? })
    }
}

#[derive(Debug)]
pub enum UpstreamEvent {
    /// A notification, except for changed tools: these are listed again and reported as `Changed`.
    Notification { upstream: Arc<str>, notification: Notification },
    Request {
        upstream: Arc<str>,
        request: Request,
        /// The connection to respond on: a later connection may reuse the id.
        link: Weak<Link>,
        /// Held until the request is answered.
        permit: RequestPermit,
    },
    /// Its state or its tools have changed. Several changes may be reported once.
    Changed { upstream: Arc<str> },
}

/// Permits one open request of an upstream; released on drop.
#[derive(Debug)]
pub struct RequestPermit(#[expect(dead_code, reason = "it is held")] OwnedSemaphorePermit);

/// Limits the open requests of one upstream, inside and outside calls. Counted per upstream, so that none can block the
/// others.
#[derive(Debug, Clone)]
struct RequestSlots(Arc<Semaphore>);

impl RequestSlots {
    fn new() -> Self {
        Self(Arc::new(Semaphore::new(REQUESTS_MAX)))
    }

    fn take(&self) -> Option<RequestPermit> {
        Arc::clone(&self.0).try_acquire_owned().ok().map(RequestPermit)
    }

    fn has_open(&self) -> bool {
        self.0.available_permits() < REQUESTS_MAX
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unavailable(String);

/// One supervised connection. Dropping it aborts the connection; [`Upstream::shutdown`] closes it cleanly.
#[derive(Debug)]
pub struct Upstream {
    spec: Arc<Spec>,
    backoff: Backoff,
    state: Arc<watch::Sender<UpstreamState>>,
    /// Signals that a caller needs the connection now.
    wanted: Arc<Notify>,
    request_slots: RequestSlots,
    uses: Arc<ConnectionUses>,
    /// Whether the configuration of its session no longer has it.
    retired: AtomicBool,
    stop: watch::Sender<bool>,
    supervisor: Mutex<JoinHandle<()>>,
}

impl Upstream {
    #[must_use]
    pub fn start(
        spec: Arc<Spec>,
        params: InitializeParams,
        events: mpsc::Sender<UpstreamEvent>,
    ) -> Arc<Self> {
        Self::start_with_backoff(Backoff::default(), spec, params, events)
    }

    #[must_use]
    pub fn start_with_backoff(
        backoff: Backoff,
        spec: Arc<Spec>,
        params: InitializeParams,
        events: mpsc::Sender<UpstreamEvent>,
    ) -> Arc<Self> {
        Self::spawn(backoff, spec, params, events, None)
    }

    /// The same for a server whose tools may be known from an earlier start: `known` resolves to its last listing, or to
    /// `None`. These are its tools until it lists them itself. A lazy server with known tools connects on demand, every other
    /// server at once.
    #[must_use]
    pub fn start_with_known_tools(
        backoff: Backoff,
        spec: Arc<Spec>,
        params: InitializeParams,
        events: mpsc::Sender<UpstreamEvent>,
        known: impl Future<Output = Option<Vec<RawTool>>> + Send + 'static,
    ) -> Arc<Self> {
        Self::spawn(backoff, spec, params, events, Some(Box::pin(known)))
    }

    fn spawn(
        backoff: Backoff,
        spec: Arc<Spec>,
        params: InitializeParams,
        events: mpsc::Sender<UpstreamEvent>,
        known: Option<LastKnownTools>,
    ) -> Arc<Self> {
        let (state, wanted) =
            (Arc::new(watch::Sender::new(UpstreamState::new(spec.tools.clone()))), Arc::default());
        let (stop, stopping) = watch::channel(false);
        let (request_slots, uses) = (RequestSlots::new(), Arc::<ConnectionUses>::default());
        let shared = Shared {
            state: Arc::clone(&state),
            wanted: Arc::clone(&wanted),
            request_slots: request_slots.clone(),
            uses: Arc::clone(&uses),
        };
        let supervisor = Supervisor::new(&spec, params, events, backoff.clone(), shared);
        let supervisor = Mutex::new(tokio::spawn(supervisor.run(known, stopping)));
        let retired = AtomicBool::new(false);
        Arc::new(Self { spec, backoff, state, wanted, request_slots, uses, retired, stop, supervisor })
    }

    #[must_use]
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Returns the open connection, which is not closed for being idle while leased. If it is not open, triggers an attempt
    /// and waits as long as one may take; a server that fails repeatedly is not retried during its cooldown.
    ///
    /// # Errors
    /// When it does not open in time.
    pub async fn lease(&self) -> Result<ConnectionLease, Unavailable> {
        // The common case.
        if let Some(lease) = self.lease_in(&self.state.borrow()) {
            return Ok(lease);
        }
        Box::pin(self.connected()).await
    }

    /// The borrow blocks changes: either the connection is leased, or it is already gone.
    fn lease_in(&self, state: &UpstreamState) -> Option<ConnectionLease> {
        state.open_link().map(|link| ConnectionLease::new(link, state.opened, &self.uses))
    }

    async fn connected(&self) -> Result<ConnectionLease, Unavailable> {
        let mut state = self.state.subscribe();
        let tried = {
            let state = state.borrow_and_update();
            if let Some(lease) = self.lease_in(&state) {
                return Ok(lease);
            }
            if state.is_over || self.is_cooling_down(&state) {
                return Err(state.unavailable());
            }
            state.tried
        };
        let _waits = ConnectionUse::new(&self.uses);
        self.state.send_if_modified(|state| {
            let is_news = state.open_link().is_none() && !state.is_wanted;
            state.is_wanted |= is_news;
            is_news
        });
        if !self.state.borrow().is_trying {
            self.wanted.notify_one();
        }
        let opened =
            state.wait_for(|state| state.is_over || state.tried > tried || state.open_link().is_some());
        let limit = match self.spec.idle_shutdown.can_be_idle() {
            true => start_timeout(&self.spec, self.backoff.start_factor),
            false => self.spec.limits.attempt_timeout,
        };
        match timeout(limit, opened).await {
            Ok(Ok(state)) => self.lease_in(&state).ok_or_else(|| state.unavailable()),
            Ok(Err(_)) | Err(_) => Err(self.state.borrow().unavailable()),
        }
    }

    /// Returns the lease if the server has listed its tools: nothing is called before they are compared with their pins. An
    /// always-on server that has listed its tools once may be called while a new connection lists them again.
    ///
    /// # Errors
    /// When the tools were not listed in time.
    pub fn ensure_listed(&self, lease: ConnectionLease) -> Result<ConnectionLease, Unavailable> {
        let was_listed = !self.spec.idle_shutdown.can_be_idle() && self.listing() > 0;
        if was_listed || self.is_listed() {
            return Ok(lease);
        }
        let reason = self.status().reason;
        Err(Unavailable(reason.unwrap_or_else(|| "its tools are not listed yet".to_owned())))
    }

    /// Prevents the idle shutdown while the server has pending work without a call.
    pub fn set_keep_alive(&self, keep_alive: bool) {
        self.uses.set_keep_alive(keep_alive);
    }

    /// A permit for one more of its requests, unless it has too many open.
    pub(crate) fn acquire_request_permit(&self) -> Option<RequestPermit> {
        self.request_slots.take()
    }

    /// Sends a request on the broker's own behalf on this connection; the error is the reason as text. Other messages are
    /// processed as usual meanwhile.
    pub(crate) async fn request(
        &self,
        link: &Arc<Link>,
        calling: OutgoingCall<'_>,
        limit: Duration,
    ) -> Result<Outcome, String> {
        let messages = self.state.borrow().messages_on(link).ok_or("the connection is closed")?;
        supervisor::request(link, &messages, calling, limit).await
    }

    #[must_use]
    pub fn status(&self) -> UpstreamStatus {
        self.state.borrow().status()
    }

    #[must_use]
    pub fn health(&self) -> Health {
        self.state.borrow().current_health()
    }

    /// The last complete listing; kept while the server is unavailable.
    #[must_use]
    pub fn tools(&self) -> Arc<[RawTool]> {
        Arc::clone(&self.state.borrow().tools)
    }

    #[must_use]
    pub fn listing(&self) -> u32 {
        self.state.borrow().listed
    }

    /// Whether the listing is from the latest connection.
    #[must_use]
    pub fn is_listed(&self) -> bool {
        let state = self.state.borrow();
        state.listed == state.opened
    }

    /// Waits until the tools of the open connection are listed, as long as one attempt may take. After a restart the earlier
    /// listing may be outdated.
    pub async fn wait_listed(&self) {
        let mut state = self.state.subscribe();
        let is_listed = state
            .wait_for(|state| state.is_over || state.listed == state.opened || state.open_link().is_none());
        let _ = timeout(self.spec.limits.attempt_timeout, is_listed).await;
    }

    /// Whether its first start has ended, successfully or not, or is deferred until it is needed.
    pub(crate) fn is_settled(&self) -> bool {
        let state = self.state.borrow();
        state.is_settled || state.is_over
    }

    /// Whether its tools are known from any listing, or its first start has failed.
    pub(crate) fn knows_tools(&self) -> bool {
        self.state.borrow().knows_tools()
    }

    /// Whether its tools are from a listing before this session.
    pub(crate) fn was_listed_before(&self) -> bool {
        self.state.borrow().is_remembered
    }

    /// Whether it has ever listed its tools, in this session or before. False after a failed start.
    #[must_use]
    pub fn has_listed(&self) -> bool {
        let state = self.state.borrow();
        state.is_remembered || state.listed > 0 || state.is_over
    }

    /// Whether it should run but was never connected in this session: its resources and prompts are unknown.
    pub(crate) fn never_connected(&self) -> bool {
        let state = self.state.borrow();
        state.capabilities.is_none() && !state.is_over && state.health != Health::Idle
    }

    /// Returns when [`knows_tools`](Self::knows_tools) holds, or after the server's start timeout.
    pub(crate) async fn wait_tools_known(&self) {
        self.wait_within_start(UpstreamState::knows_tools).await;
    }

    /// Waits for the first start, if it is in progress: until the server is connected and its tools are listed, until that
    /// fails, or for the start timeout.
    pub(crate) async fn wait_started(&self) {
        self.wait_within_start(|state| state.is_settled || state.is_over).await;
    }

    async fn wait_within_start(&self, is_so: impl Fn(&UpstreamState) -> bool) {
        if is_so(&self.state.borrow()) {
            return;
        }
        let limit = start_timeout(&self.spec, self.backoff.start_factor);
        let _ = timeout(limit, self.state.subscribe().wait_for(|state| is_so(state))).await;
    }

    /// The capabilities that it declared; kept while it is unavailable.
    #[must_use]
    pub fn capabilities(&self) -> Option<Arc<Map<String, Value>>> {
        self.state.borrow().capabilities.clone()
    }

    #[must_use]
    pub fn instructions(&self) -> SentInstructions {
        self.state.borrow().instructions.clone()
    }

    /// Returns when it is connected and its tools are listed, or when that has failed for the first time.
    pub async fn wait_settled(&self) {
        // An error means that the supervisor has ended.
        let _ = self.state.subscribe().wait_for(|state| state.is_settled || state.is_over).await;
    }

    /// Whether this is its open connection.
    pub(crate) fn is_on(&self, link: &Weak<Link>) -> bool {
        self.state.borrow().open_link().is_some_and(|open| Weak::ptr_eq(&Arc::downgrade(&open), link))
    }

    pub(crate) fn has_spec(&self, spec: &Arc<Spec>) -> bool {
        Arc::ptr_eq(&self.spec, spec)
    }

    /// Marks it as no longer configured: only calls in progress use it.
    pub(crate) fn retire(&self) {
        self.retired.store(true, Ordering::Release);
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Acquire)
    }

    /// Waits until no call uses it, at most for this time.
    pub(crate) async fn wait_unused(&self, limit: Duration) {
        let is_unused = async {
            while self.uses.are_open() {
                tokio::time::sleep(UNUSED_POLL).await;
            }
        };
        let _ = timeout(limit, is_unused).await;
    }

    /// Closes the connection and ends its process.
    pub async fn shutdown(&self) {
        self.stop.send_replace(true);
        let mut supervisor = self.supervisor.lock().await;
        if !supervisor.is_finished() && timeout(SHUTDOWN_TIMEOUT, &mut *supervisor).await.is_err() {
            supervisor.abort();
        }
        // Set the final state for a supervisor that was aborted.
        self.state.send_modify(|state| {
            (state.link, state.messages) = (None, None);
            (state.is_over, state.is_settled) = (true, true);
        });
    }

    fn is_cooling_down(&self, state: &UpstreamState) -> bool {
        let recently = state.failed_at.is_some_and(|at| at.elapsed() < self.backoff.cooldown);
        state.failures >= self.backoff.failures_max && recently && !state.is_trying
    }
}
