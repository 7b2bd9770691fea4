//! One host session: its connections to the mind and to every body, its catalogue and its bootstrap state.
//!
//! - `bodies`: the bodies, which the configuration may replace
//! - `bootstrap`: the mind's packet, requested once
//! - `contract`: the text that the model must have read, and the result of `runtime_bootstrap`
//! - `delivery`: whether the model can have read it
//! - `instructions`: the instructions of bodies that are in force, framed for the model
//! - `listed_tools`: the catalogue and the part of it that the host was shown
//! - `notifier`: notifications to the host outside calls
//! - `server_health`: which bodies work, for the operator and for a turn
//! - `untrusted_reads`: text that the agent has read and the owner did not write

mod bodies;
pub(crate) mod bootstrap;
pub(crate) mod contract;
pub(crate) mod delivery;
pub(crate) mod instructions;
mod listed_tools;
mod notifier;
mod server_health;
pub(crate) mod untrusted_reads;

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use embody_store::audit::Actor;
use embody_store::sessions::{OpenSession, OpenSessionOutcome};
use embody_store::{Principal, Scope};
use embody_wire::InitializeParams;
use embody_wire::server::{Call, Era, Host};
use embody_wire::upstream::Link;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use self::bodies::Bodies;
use self::bootstrap::BootstrapState;
use self::delivery::{Carrier, Delivery};
use self::listed_tools::{ListedTools, last_seen_tools};
pub(crate) use self::notifier::HostNotifier;
pub use self::server_health::MissingServer;
use self::server_health::RecordedHealth;
use self::untrusted_reads::UntrustedReads;
use crate::BrokerConfig;
use crate::catalogue::Catalogue;
use crate::degraded::Degraded;
use crate::in_process::InProcessAgent;
use crate::meter::Restarts;
use crate::server_requests::{Requester, answer_request};
use crate::stateless::IDLE;
use crate::upstream::{Backoff, Health, Role, Spec, Upstream, UpstreamEvent, params_for_upstream};

const EVENT_QUEUE: usize = 256;
/// While no write is in progress, only every n-th heartbeat is sent.
const IDLE_HEARTBEATS: u64 = 10;
/// How long a host may take to answer a request outside any call.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(120);

pub(crate) struct Session {
    pub(crate) id: String,
    pub(crate) scope: Scope,
    pub(crate) identity: Arc<SessionIdentity>,
    pub(crate) host: Arc<Host<Principal>>,
    pub(crate) mind: Arc<Upstream>,
    pub(crate) bodies: Bodies,
    pub(crate) delivery: Delivery,
    pub(crate) routes: crate::forward::RoutingTable,
    pub(crate) last_cognition: Mutex<Option<Cognition>>,
    pub(crate) writes: AtomicUsize,
    pub(crate) notifier: HostNotifier,
    /// Requests in progress, for a host without a session on the wire, and when the last one ended.
    pub(crate) users: AtomicUsize,
    pub(crate) used_at: Mutex<Instant>,
    pub(crate) untrusted_reads: Arc<UntrustedReads>,
    starter: UpstreamStarter,
    open: OpenSession,
    opened_at: Instant,
    /// When the session was first stored; set once known.
    created_at: tokio::sync::OnceCell<i64>,
    code: OnceLock<String>,
    /// Set if the host is an embody agent in this process.
    agent: OnceLock<Arc<InProcessAgent>>,
    bootstrap_state: BootstrapState,
    catalogue: Mutex<Catalogue>,
    compared_listings: Mutex<HashMap<String, u32>>,
    /// The latest tools that the host found by search.
    found: Mutex<VecDeque<String>>,
    /// The catalogue whose names the host has received: each name stays with its tool.
    announced: Mutex<Option<Catalogue>>,
    /// The list that the host was last shown or notified about.
    listed_tools: Mutex<Option<ListedTools>>,
    observe_failures: Mutex<ObserveFailures>,
    building: tokio::sync::Mutex<()>,
    event_task: Mutex<Option<JoinHandle<()>>>,
    heartbeat_task: Mutex<Option<JoinHandle<()>>>,
}

/// Starts the upstreams of a session.
struct UpstreamStarter {
    params: InitializeParams,
    is_stateless: bool,
    events: mpsc::Sender<UpstreamEvent>,
}

impl UpstreamStarter {
    fn start(&self, config: &BrokerConfig, spec: Arc<Spec>) -> Arc<Upstream> {
        let params = params_for_upstream(&self.params, &spec.role, self.is_stateless);
        let events = self.events.clone();
        if spec.is_embedded() {
            return Upstream::start(spec, params, events);
        }
        let known = last_seen_tools(config.store.clone(), spec.name.clone());
        Upstream::start_with_known_tools(Backoff::default(), spec, params, events, known)
    }
}

/// The user and actor of a session, for records about it; may outlive the session.
pub(crate) struct SessionIdentity {
    pub(crate) scope: Scope,
    pub(crate) actor: Actor,
}

pub(crate) const CONNECTING: &str = "it is still connecting";

/// The two points at which the mind observes a call.
const OBSERVE_BEFORE: &str = "observe before";
pub(crate) const OBSERVE_AFTER: &str = "observe after";

#[derive(Debug, Default)]
struct ObserveFailures {
    before: Option<String>,
    after: Option<String>,
    /// When the last answered observation before a call began.
    answered: Option<Instant>,
}

impl ObserveFailures {
    fn reason(&self) -> Option<&String> {
        self.before.as_ref().or(self.after.as_ref())
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Cognition {
    pub(crate) stage: &'static str,
    pub(crate) tool: String,
    pub(crate) at: i64,
    pub(crate) failure: Option<String>,
}

impl Session {
    /// Called once for an embody agent in this process.
    pub(crate) fn set_agent(&self, agent: &Arc<InProcessAgent>) {
        let _ = self.agent.set(Arc::clone(agent));
    }

    /// The last prompt of an embody agent's model.
    pub(crate) fn prompt(&self) -> Option<Arc<str>> {
        self.agent.get().and_then(|agent| agent.prompt())
    }

    /// The mark by which an embody agent recognizes the broker's results.
    pub(crate) fn mark(&self) -> Option<&str> {
        self.agent.get().map(|agent| agent.mark())
    }

    /// Opens a session: connects everything in the background and returns at once. `stored_host` is the state that
    /// another process needs to continue the session.
    pub(crate) fn open(
        config: &Arc<BrokerConfig>,
        host: Arc<Host<Principal>>,
        id: String,
        (params, stored_host): (&InitializeParams, Option<String>),
    ) -> Result<Arc<Self>, embody_store::Error> {
        let Principal { scope, channel, .. } = host.principal.clone();
        let actor = Actor {
            user: scope.user().to_owned(),
            agent: Some(scope.agent().to_owned()),
            session: Some(id.clone()),
            channel: Some(channel.clone()),
        };
        let identity = Arc::new(SessionIdentity { scope: scope.clone(), actor });
        let (event_sender, events) = mpsc::channel(EVENT_QUEUE);
        let is_stateless = host.era() == Era::Stateless;
        let starter = UpstreamStarter { params: params.clone(), is_stateless, events: event_sender };
        let start = |spec| starter.start(config, spec);
        let mind = start(config.mind.of(&host.principal));
        let bodies = Bodies::new(config.body_specs(&host.principal).into_iter().map(start).collect());
        config.meter.count_session(host.era());
        let open = OpenSession {
            scope: scope.clone(),
            id: id.clone(),
            channel,
            host: params.client_info.as_ref().map(|client| client.get().chars().take(4096).collect()),
            hello: stored_host,
            idle: (host.era() == Era::Stateless).then_some(IDLE),
        };
        let untrusted_reads = UntrustedReads::new(config, &scope, &id);
        let notifier = HostNotifier::new(&host, &untrusted_reads);
        let session = Arc::new(Self {
            id,
            scope,
            identity,
            host,
            mind,
            bodies,
            delivery: Delivery::default(),
            routes: crate::forward::RoutingTable::default(),
            last_cognition: Mutex::default(),
            writes: AtomicUsize::new(0),
            notifier,
            users: AtomicUsize::new(0),
            used_at: Mutex::new(Instant::now()),
            untrusted_reads,
            starter,
            open,
            opened_at: Instant::now(),
            created_at: tokio::sync::OnceCell::new(),
            code: OnceLock::new(),
            agent: OnceLock::new(),
            bootstrap_state: BootstrapState::default(),
            catalogue: Mutex::default(),
            compared_listings: Mutex::default(),
            found: Mutex::default(),
            announced: Mutex::default(),
            listed_tools: Mutex::default(),
            observe_failures: Mutex::default(),
            building: tokio::sync::Mutex::default(),
            event_task: Mutex::default(),
            heartbeat_task: Mutex::default(),
        });
        let event_task = tokio::spawn(handle_events(Arc::downgrade(&session), Arc::clone(config), events));
        let heartbeat_task = tokio::spawn(heartbeat(Arc::downgrade(&session), Arc::clone(config)));
        *lock(&session.event_task) = Some(event_task);
        *lock(&session.heartbeat_task) = Some(heartbeat_task);
        Ok(session)
    }

    /// Whether its host has no session on the wire.
    pub(crate) fn is_stateless(&self) -> bool {
        self.host.era() == Era::Stateless
    }

    /// The code that the broker's results begin with in this session. All processes that serve the session compute the
    /// same code, and no body can know it: it depends on the time at which the session was first stored.
    pub(crate) fn code(&self) -> &str {
        self.code.get_or_init(|| {
            let mut hasher = blake3::Hasher::new();
            hasher.update(self.id.as_bytes());
            match self.created_at.get() {
                Some(created_at) => hasher.update(&created_at.to_le_bytes()),
                None => hasher.update(uuid::Uuid::new_v4().as_bytes()),
            };
            hasher.finalize().to_hex().as_str().chars().take(6).collect()
        })
    }

    /// Ensures that the session is in the store. For a host without a session on the wire, takes over what another
    /// process has delivered.
    pub(crate) async fn ensure_stored(&self, config: &BrokerConfig) {
        let keeping = self.created_at.get_or_try_init(|| async {
            let opened = config.store.sessions().open(self.open.clone()).await?;
            Ok::<i64, embody_store::Error>(match opened {
                OpenSessionOutcome::Resumed(known) => {
                    if self.is_stateless() || self.host.is_resumed() {
                        self.delivery.merge_stored(known.conversation, &known.contract);
                    }
                    known.created_at
                }
                OpenSessionOutcome::New(new) => new.created_at,
                OpenSessionOutcome::OfAnotherAgent => 0,
            })
        });
        if let Err(error) = keeping.await {
            tracing::warn!(session = self.id, reason = %error, "the session cannot be stored");
        }
    }

    /// Checks whether another process has delivered the contract or started a new conversation. Called when a write
    /// arrives: the model had not read what is delivered later.
    pub(crate) async fn refresh_delivery(&self, config: &BrokerConfig) {
        // Only HTTP sessions without a session on the wire have more than one conversation.
        let is_settled = self.delivery.is_read() && !(self.is_stateless() && self.host.connection.is_none());
        if !self.has_others(config) || is_settled {
            return;
        }
        if let Ok(Some(known)) = config.store.sessions().get(self.scope.user(), &self.id).await {
            self.delivery.merge_stored(known.conversation, &known.contract);
        }
    }

    fn has_others(&self, config: &BrokerConfig) -> bool {
        self.is_stateless()
            || self.host.is_resumed()
            || matches!(config.store.url(), embody_store::DatabaseUrl::Postgres { .. })
    }

    pub(crate) fn upstream(&self, name: &str) -> Option<&Arc<Upstream>> {
        self.upstreams().find(|upstream| upstream.spec().name == name)
    }

    pub(crate) fn upstreams(&self) -> impl Iterator<Item = &Arc<Upstream>> {
        std::iter::once(&self.mind).chain(self.bodies.iter())
    }

    /// The upstream of this name that has this connection; it may have been replaced.
    fn upstream_on(&self, name: &str, link: &Weak<Link>) -> Option<Arc<Upstream>> {
        let all = std::iter::once(&self.mind).chain(self.bodies.all());
        let mut named = all.filter(|upstream| upstream.spec().name == name);
        named.find(|upstream| upstream.is_on(link)).cloned()
    }

    /// Whether a forwarded result has nothing to report. Checked with every call.
    pub(crate) fn is_fine(&self) -> bool {
        self.upstreams().all(|upstream| upstream.health().is_fine())
            && self.bootstrap_data().is_some_and(|booted| booted.reasons.is_empty())
            && lock(&self.observe_failures).reason().is_none()
    }

    pub(crate) fn degraded(&self) -> Vec<Degraded> {
        let mut degraded = Vec::new();
        let mind = self.mind.status();
        if mind.health != Health::Connected {
            let reason = mind.reason.unwrap_or_else(|| CONNECTING.to_owned());
            degraded.push(Degraded::MindUnavailable { reason });
        }
        for body in self.bodies.iter() {
            let state = body.status();
            if !state.health.is_fine() {
                let reason = state.reason.unwrap_or_else(|| CONNECTING.to_owned());
                degraded.push(Degraded::BodyUnavailable { body: body.spec().name.clone(), reason });
            }
        }
        match self.bootstrap_data() {
            Some(booted) => {
                degraded.extend(
                    booted.reasons.iter().map(|reason| Degraded::BootstrapMissing { reason: reason.clone() }),
                );
            }
            None => {
                if let Some(reason) = self.bootstrap_error() {
                    degraded.push(Degraded::BootstrapMissing { reason });
                }
            }
        }
        if let Some(reason) = lock(&self.observe_failures).reason() {
            degraded.push(Degraded::ObserveUnavailable { reason: reason.clone() });
        }
        if !self.was_delivered() {
            degraded.push(Degraded::HostPromptMissing);
        }
        degraded
    }

    /// The response to this call carries the whole contract: calls that arrive after it is written may count as made
    /// after reading.
    pub(crate) async fn deliver_contract(
        self: &Arc<Self>,
        config: &Arc<BrokerConfig>,
        call: &Call<Principal>,
        hash: &str,
        carrier: Carrier,
    ) {
        let (session, config, hash) = (Arc::clone(self), Arc::clone(config), hash.to_owned());
        let (host, conversation) = (Arc::clone(&call.host), session.delivery.conversation());
        let delay = config.settings().times.contract_delay;
        let bounced = match carrier {
            Carrier::Bounce(digest) => Some(digest.to_hex()),
            Carrier::Bootstrap => None,
        };
        // A repeated call may reach another process before this one knows that its response was written.
        let bounced = bounced.as_ref().map(|digest| digest.as_str());
        let user = self.scope.user();
        let kept =
            config.store.sessions().set_contract_written(user, &self.id, conversation, &hash, bounced).await;
        if let Err(error) = kept {
            tracing::warn!(session = self.id, reason = %error, "cannot store that the contract is delivered");
        }
        call.on_flushed(move || {
            session.delivery.written(conversation, &hash, host.arrived(), carrier, delay);
            if carrier == Carrier::Bootstrap
                && let Ok(runtime) = tokio::runtime::Handle::try_current()
            {
                runtime.spawn(async move {
                    tokio::time::sleep(delay).await;
                    session.share_contract_read(&config, conversation, &hash);
                });
            }
        });
    }

    /// Tells other processes that serve the session that its model has read this contract.
    pub(crate) fn share_contract_read(
        self: &Arc<Self>,
        config: &Arc<BrokerConfig>,
        conversation: i64,
        hash: &str,
    ) {
        if !self.has_others(config) {
            return;
        }
        let (session, config, hash) = (Arc::clone(self), Arc::clone(config), hash.to_owned());
        tokio::spawn(async move {
            let user = session.scope.user();
            let kept =
                config.store.sessions().set_contract_read(user, &session.id, conversation, &hash).await;
            if let Err(error) = kept {
                tracing::warn!(session = session.id, reason = %error, "cannot store that the contract was read");
            }
        });
    }

    /// Notes an observation before a call, and its failure if any. Ignores a failure that began before the last
    /// answered observation.
    pub(crate) fn note_observe_before(&self, tool: &str, at: i64, began: Instant, failure: Option<String>) {
        {
            let mut observe_failures = lock(&self.observe_failures);
            match &failure {
                None => observe_failures.answered = observe_failures.answered.max(Some(began)),
                Some(_) if observe_failures.answered.is_some_and(|answered| answered > began) => return,
                Some(_) => {}
            }
            observe_failures.before.clone_from(&failure);
        }
        *lock(&self.last_cognition) =
            Some(Cognition { stage: OBSERVE_BEFORE, tool: tool.to_owned(), at, failure });
    }

    pub(crate) fn note_cognition(&self, stage: &'static str, tool: &str, at: i64, failure: Option<String>) {
        if stage == OBSERVE_AFTER {
            lock(&self.observe_failures).after.clone_from(&failure);
        }
        *lock(&self.last_cognition) = Some(Cognition { stage, tool: tool.to_owned(), at, failure });
    }

    pub(crate) async fn shutdown(&self) {
        for task in [&self.event_task, &self.heartbeat_task] {
            if let Some(task) = lock(task).take() {
                task.abort();
            }
        }
        self.bodies.close();
        let mut ends = tokio::task::JoinSet::new();
        for upstream in std::iter::once(&self.mind).chain(self.bodies.all()) {
            let upstream = Arc::clone(upstream);
            ends.spawn(async move { upstream.shutdown().await });
        }
        ends.join_all().await;
    }
}

/// Stores the session, and periodically its heartbeat and its degraded states.
async fn heartbeat(session: Weak<Session>, config: Arc<BrokerConfig>) {
    let Some(known) = session.upgrade() else { return };
    let (user, id) = (known.scope.user().to_owned(), known.id.clone());
    known.ensure_stored(&config).await;
    drop(known);
    let mut known: Vec<String> = Vec::new();
    for beat in 1u64.. {
        tokio::time::sleep(config.settings().times.heartbeat).await;
        let Some(session) = session.upgrade() else { return };
        if session.writes.load(Ordering::Acquire) > 0 || beat % IDLE_HEARTBEATS == 0 {
            let _ = config.store.sessions().touch(&user, &id).await;
        }
        let reasons: Vec<String> = session.degraded().iter().map(ToString::to_string).collect();
        if reasons != known && config.store.sessions().set_reasons(&user, &id, &reasons).await.is_ok() {
            known = reasons;
        }
    }
}

async fn handle_events(
    session: Weak<Session>,
    config: Arc<BrokerConfig>,
    mut events: mpsc::Receiver<UpstreamEvent>,
) {
    let mut pins = config.store.changes(embody_store::Topic::Pins);
    let mut requests = tokio::task::JoinSet::new();
    let (mut restarts, mut recorded_health) = (Restarts::default(), RecordedHealth::default());
    loop {
        let event = tokio::select! {
            event = events.recv() => event,
            Some(_) = requests.join_next() => continue,
            // The operator has accepted a definition, perhaps in another process.
            changed = pins.changed() => {
                if changed.is_err() {
                    tokio::time::sleep(config.settings().times.heartbeat).await;
                }
                Some(UpstreamEvent::Changed { upstream: Arc::from("") })
            }
        };
        let (Some(event), Some(session)) = (event, session.upgrade()) else { return };
        match event {
            UpstreamEvent::Changed { upstream } => {
                restarts.count(&config.meter, &session, &upstream);
                crate::forward::on_upstream_changed(&session, &upstream);
                session.refresh_catalogue(&config).await;
                session.pin_instructions(&config, &upstream).await;
                recorded_health.record(&config, &session, &upstream).await;
            }
            UpstreamEvent::Notification { upstream, notification } => {
                crate::forward::on_upstream_notification(&session, &upstream, notification).await;
            }
            UpstreamEvent::Request { upstream, request, link, permit } => {
                let Some(upstream) = session.upstream_on(&upstream, &link) else { continue };
                let requester = Requester { session, upstream, call: None };
                requests.spawn(answer_request(requester, link, request, permit, REQUEST_TIMEOUT));
            }
        }
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether an upstream is a body that sends its own observations.
pub(crate) fn observes_itself(upstream: &Upstream) -> bool {
    matches!(&upstream.spec().role, Role::Body(body) if body.observes)
}
