//! The broker: construction, shutdown, and the entry point of every request of a host.

use std::sync::Arc;
use std::time::Duration;

use embody_store::{Principal, Scope};
use embody_wire::server::{
    AuthError, Call, Credentials, Era, Host, MultiRoundService, ReplicatedService, Service, code, failure,
};
use embody_wire::{InitializeParams, Notification, Outcome, Secret, Version};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use crate::auth_cache::AuthCache;
use crate::in_process::{InProcessClient, InProcessError};
use crate::outbox::Outbox;
use crate::pipeline::observe::ObservationQueue;
use crate::pipeline::respond::raw;
use crate::post_call::PostCallQueue;
use crate::replicas::Replicas;
use crate::session::instructions::ServerInstructions;
use crate::session::{MissingServer, Session};
use crate::stateless::RequestStateSigner;
use crate::{BrokerConfig, BrokerSettings, Sessions, builtin_tools, forward, pipeline, replicas, stateless};

const FLUSH_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the end of a session waits for the mind to accept the observations in the outbox.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);
/// How long shutdown waits until claimed observations are released.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(1);
const STORE_TIMEOUT: Duration = Duration::from_secs(1);
/// The log level of session servers before `logging/setLevel`.
const SESSION_LOG_LEVEL: &str = "info";
/// Brokers recognize each other by this name in `serverInfo` and `clientInfo`.
pub(crate) const NAME: &str = "embody-broker";

pub struct Broker {
    pub(crate) config: Arc<BrokerConfig>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) signer: RequestStateSigner,
    pub(crate) replicas: Arc<Replicas>,
    pub(crate) post_calls: PostCallQueue,
    pub(crate) observations: ObservationQueue,
    outbox: Arc<Outbox>,
    auth_cache: AuthCache,
    work: Vec<JoinHandle<()>>,
}

impl Broker {
    pub fn metrics(&self, page: &mut crate::meter::Page) {
        crate::meter::write_metrics(self, page);
    }

    /// Starts the background tasks too.
    pub fn start(config: BrokerConfig) -> Self {
        let config = Arc::new(config);
        let (sessions, news) = (Arc::<Sessions>::default(), Arc::<Notify>::default());
        let outbox = Arc::new(Outbox::new(Arc::clone(&config), Arc::clone(&sessions)));
        let delivering = Arc::clone(&outbox).deliver(Arc::clone(&news));
        let recovering = crate::orphan_recovery::run(Arc::clone(&config), Arc::clone(&sessions));
        let work = vec![tokio::spawn(delivering), tokio::spawn(recovering)];
        let post_calls = PostCallQueue::start(Arc::clone(&config), news);
        let (replicas, observations) =
            (Replicas::new(config.store.clone()), ObservationQueue::start(&config));
        let (signer, auth_cache) = (RequestStateSigner::default(), AuthCache::default());
        Self { config, sessions, signer, replicas, post_calls, observations, outbox, auth_cache, work }
    }

    /// Applies other settings, also to open sessions. Calls in progress end under the settings that they began with.
    pub fn apply(&self, settings: BrokerSettings) {
        self.config.settings.replace(settings);
        for session in self.sessions.all() {
            let config = Arc::clone(&self.config);
            tokio::spawn(async move { session.apply_settings(&config).await });
        }
    }

    /// Ends every session and its processes. Drains the outbox first, while the connection to the mind is open.
    pub async fn shutdown(&self) {
        self.replicas.shutdown();
        self.drain(&self.sessions.scopes()).await;
        let mut ends = tokio::task::JoinSet::new();
        for session in self.sessions.take_all() {
            ends.spawn(async move { session.shutdown().await });
        }
        ends.join_all().await;
        // Release claimed observations, so that the next process does not wait for their lease to expire.
        self.outbox.wait_idle(Instant::now() + RELEASE_TIMEOUT).await;
        for task in &self.work {
            task.abort();
        }
        self.post_calls.finish().await;
        let flushed = tokio::time::timeout(FLUSH_TIMEOUT, self.config.store.flush()).await;
        if !matches!(flushed, Ok(Ok(()))) {
            tracing::error!("cannot write the last audit records");
        }
    }

    /// Delivers the outbox of these users and agents to the mind, for at most [`DRAIN_TIMEOUT`].
    async fn drain(&self, scopes: &[Scope]) {
        let until = Instant::now() + DRAIN_TIMEOUT;
        let written = async {
            self.post_calls.finish().await;
            self.config.store.flush().await
        };
        if matches!(timeout_at(until, written).await, Ok(Ok(()))) {
            self.outbox.drain(scopes, until).await;
        }
    }

    async fn initialize(&self, call: &Call<Principal>) -> Outcome {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Params<'a> {
            protocol_version: String,
            #[serde(borrow, default)]
            capabilities: Option<&'a RawValue>,
            #[serde(borrow, default)]
            client_info: Option<&'a RawValue>,
        }
        let params = call.request.params.as_deref().map_or("{}", RawValue::get);
        let params: Params<'_> = match serde_json::from_str(params) {
            Ok(params) => params,
            Err(error) => {
                return failure(code::INVALID_PARAMS, format!("invalid parameters of `initialize`: {error}"));
            }
        };
        let Some(id) = call.host.session.as_deref() else {
            return failure(code::INVALID_REQUEST, "`initialize` needs a session");
        };
        if self.sessions.get(id).is_some() {
            return failure(code::INVALID_REQUEST, "this session is already initialized");
        }
        let version = Version::parse(&params.protocol_version).unwrap_or(Version::LATEST);
        let params = InitializeParams {
            capabilities: params.capabilities.map(ToOwned::to_owned),
            client_info: params.client_info.map(ToOwned::to_owned),
            log_level: Some(SESSION_LOG_LEVEL.to_owned()),
        };
        if is_broker(&params) {
            return failure(code::INVALID_REQUEST, BROKER_BEHIND_BROKER);
        }
        let stored = replicas::stored_host(&call.host.principal, &params, version);
        let open = || Session::open(&self.config, Arc::clone(&call.host), id.to_owned(), (&params, stored));
        match self.sessions.get_or_open(id, &call.host, open) {
            Ok(session) => {
                // The next request may reach another process, which must find the session in the store.
                if self.replicas.is_shared() {
                    let _ = tokio::time::timeout(STORE_TIMEOUT, session.ensure_stored(&self.config)).await;
                }
                // The host may have disconnected before the session was registered to end with it.
                if call.host.is_disconnected()
                    && let Some(session) = self.sessions.leave(id)
                {
                    session.shutdown().await;
                }
            }
            Err(error) => return failure(code::INTERNAL_ERROR, error.to_string()),
        }
        Outcome::Result(raw(&json!({
            "protocolVersion": version.as_str(),
            "capabilities": capabilities(version),
            "serverInfo": about(),
            "instructions": builtin_tools::INSTRUCTIONS,
        })))
    }

    /// Returns the host's session. Opens a session here that another process opened before.
    pub(crate) fn session_for(&self, host: &Arc<Host<Principal>>) -> Option<Arc<Session>> {
        let id = host.session.as_deref()?;
        let known = self.sessions.get(id);
        if known.as_ref().is_some_and(|session| Arc::ptr_eq(&session.host, host)) {
            return known;
        }
        if !host.is_resumed() || host.is_disconnected() {
            return None;
        }
        let log_level = Some(SESSION_LOG_LEVEL.to_owned());
        let params = InitializeParams { log_level, ..(*host.initialize_params()).clone() };
        let open = || Session::open(&self.config, Arc::clone(host), id.to_owned(), (&params, None));
        self.sessions.get_or_open(id, host, open).ok()
    }

    async fn answer_host(&self, call: Call<Principal>) -> Outcome {
        if call.host.era() == Era::Stateless {
            return Box::pin(stateless::answer(self, call)).await;
        }
        match &*call.request.method {
            "initialize" => return Box::pin(self.initialize(&call)).await,
            "ping" => return Outcome::Result(raw(&json!({}))),
            _ => {}
        }
        let Some(session) = self.session_for(&call.host) else {
            return failure(
                code::INVALID_REQUEST,
                "this session has ended; send `initialize` to start another",
            );
        };
        if call.host.is_resumed() {
            // Load what other processes have delivered, and the code that all of them share.
            session.ensure_stored(&self.config).await;
        }
        let call = Arc::new(call);
        match &*call.request.method {
            "tools/list" => Box::pin(self.list_tools(&session, &call)).await,
            "tools/call" => pipeline::handle(self, &session, &call).await,
            method => {
                let outcome = Box::pin(forward::answer(self, &session, &call)).await;
                if let Outcome::Result(_) = &outcome {
                    let params = call.request.params.as_deref();
                    Box::pin(self.replicas.mirror_setting(&session.id, method, params)).await;
                }
                outcome
            }
        }
    }

    /// Opens a session for an embody agent.
    pub async fn open_in_process(
        self: &Arc<Self>,
        principal: Principal,
    ) -> Result<InProcessClient, InProcessError> {
        InProcessClient::open(self, principal).await
    }

    /// Returns the instructions of the session's bodies for the agent's prompt. A prompt without the rules in them does not
    /// deliver the contract.
    pub async fn server_instructions(&self, client: &InProcessClient) -> ServerInstructions {
        let Some(session) = self.session_for(client.host()) else { return ServerInstructions::default() };
        session.server_instructions(&self.config).await.unwrap_or_else(|reason| {
            tracing::warn!(
                session = session.id,
                reason,
                "the prompt is built without the instructions of the bodies"
            );
            ServerInstructions::default()
        })
    }

    /// The bodies that a turn would miss because their first start is in progress.
    pub fn starting_servers(&self, client: &InProcessClient) -> Vec<String> {
        self.session_for(client.host()).map(|session| session.starting_servers()).unwrap_or_default()
    }

    /// Waits for these bodies, at most until the session is `limit` old.
    pub async fn wait_for_servers(&self, client: &InProcessClient, limit: Duration) {
        if let Some(session) = self.session_for(client.host()) {
            session.wait_for_servers(limit).await;
        }
    }

    /// The bodies whose tools the session does not have, or cannot call.
    pub fn missing_servers(&self, client: &InProcessClient) -> Vec<MissingServer> {
        self.session_for(client.host()).map(|session| session.missing_servers()).unwrap_or_default()
    }

    pub(crate) async fn list_tools(&self, session: &Arc<Session>, call: &Call<Principal>) -> Outcome {
        // Definitions stay raw text: a `Value` would reorder their members.
        let text = format!("{{\"tools\":[{}]}}", session.list(&self.config, call).await);
        Outcome::Result(RawValue::from_string(text).unwrap_or_else(|_| raw(&Value::Null)))
    }
}

pub(crate) fn about() -> Value {
    json!({"name": NAME, "title": "embody", "version": env!("CARGO_PKG_VERSION")})
}

pub(crate) const BROKER_BEHIND_BROKER: &str =
    "an embody broker cannot be a body of an embody broker: calls would loop";

pub(crate) fn is_broker(params: &InitializeParams) -> bool {
    let client = params.client_info.as_deref();
    let client = client.and_then(|client| serde_json::from_str::<Value>(client.get()).ok());
    client.is_some_and(|client| client.get("name").and_then(Value::as_str) == Some(NAME))
}

/// Declares everything that a body may offer, because `initialize` does not wait for bodies.
pub(crate) fn capabilities(version: Version) -> Value {
    let mut capabilities = json!({
        "tools": {"listChanged": true},
        "resources": {"subscribe": true, "listChanged": true},
        "prompts": {"listChanged": true},
        "completions": {},
        "logging": {},
    });
    // The first revision with tasks. Tool definitions declare which tools support them.
    if let (Version::V2025_11_25, Some(members)) = (version, capabilities.as_object_mut()) {
        let tasks = json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}});
        members.insert("tasks".to_owned(), tasks);
    }
    capabilities
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.work.iter().for_each(JoinHandle::abort);
    }
}

impl Service for Broker {
    type Principal = Principal;

    async fn authenticate(&self, credentials: Credentials) -> Result<Principal, AuthError> {
        let look_up = async |token: Secret| {
            let known = self.auth_cache.principal(&self.config.store, token.expose()).await;
            known.inspect_err(|error| tracing::error!(reason = %error, "cannot look up a token"))
        };
        let known = credentials.check(look_up, |known| known.scope.name()).await?;
        let may_approve = known.may_approve && known.user == self.config.owner;
        let principal = Principal::host(&known.user, &self.config.agent)
            .map_err(|error| AuthError::Unavailable(error.to_string()))?;
        Ok(Principal { may_approve, token: Some(known.token), ..principal })
    }

    async fn are_valid(&self, bearers: &[Secret]) -> Vec<bool> {
        let secrets: Vec<&str> = bearers.iter().map(Secret::expose).collect();
        self.config.store.tokens().are_valid(&secrets).await
    }

    async fn call(&self, call: Call<Principal>) -> Outcome {
        self.config.meter.count_request(&call.request.method);
        match self.config.meter.trace(&call, &self.config.clock) {
            None => self.answer_host(call).await,
            Some(serving) => Box::pin(serving.run(self.answer_host(call))).await,
        }
    }

    async fn on_notification(&self, host: Arc<Host<Principal>>, notification: Notification) {
        if let Some(session) = self.session_for(&host) {
            forward::on_host_notification(&session, &notification);
        }
    }

    async fn on_disconnect(&self, host: Arc<Host<Principal>>) {
        let Some(id) = host.session.as_deref() else { return };
        if let Some(scope) = self.sessions.last_of_its_scope(id, &host) {
            self.drain(&[scope]).await;
        }
        if let Some(session) = self.sessions.leave_as(id, &host) {
            session.shutdown().await;
        }
    }

    fn multi_round(&self) -> Option<&dyn MultiRoundService<Principal>> {
        Some(self)
    }

    fn replicated(&self) -> Option<&dyn ReplicatedService<Principal>> {
        Some(self)
    }
}
