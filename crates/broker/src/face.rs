//! The broker as a server: methods of a host to the rooms that answer them.

use std::sync::Arc;
use std::time::Duration;

use embody_store::{Scope, TokenScope};
use embody_wire::serve::{
    Call, Claim, Credentials, Era, Host, Refusal, Relay, Resumed, Service, code, failure,
};
use embody_wire::{Message, Notification, Outcome, Request, Secret, Version};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use crate::admitted::Admitted;
use crate::approval::Approvals;
use crate::observe::after::Afterwards;
use crate::observe::outbox::Outbox;
use crate::observe::unawaited::Unawaited;
use crate::replicas::{self, Replicas};
use crate::results::raw;
use crate::session::Session;
use crate::stateless::Seals;
use crate::upstream::Hello;
use crate::{Principal, Sessions, Setup, forward, own};

/// How long the last records may take.
const LAST: Duration = Duration::from_secs(10);
/// How long the end of a session waits for the mind to take what is in the outbox.
const DRAIN: Duration = Duration::from_secs(2);
/// How long the end waits for observations to be put back.
const REST: Duration = Duration::from_secs(1);
/// How long a greeting waits for the store.
const KEEPING: Duration = Duration::from_secs(1);
/// The name by which a broker knows another one, and itself.
pub(crate) const NAME: &str = "embody-broker";

/// One MCP entry in front of bodies and mind.
pub struct Broker {
    pub(crate) setup: Arc<Setup>,
    pub(crate) approvals: Approvals,
    pub(crate) sessions: Arc<Sessions>,
    /// What hosts of the stateless era bring back.
    pub(crate) seals: Seals,
    /// Others that serve the same hosts.
    pub(crate) replicas: Arc<Replicas>,
    /// What is left to do after calls.
    pub(crate) after: Afterwards,
    /// Observations before calls that do not wait for them.
    pub(crate) unawaited: Unawaited,
    outbox: Arc<Outbox>,
    admitted: Admitted,
    work: Vec<JoinHandle<()>>,
}

impl Broker {
    /// A broker; what it does beside calls begins now.
    #[must_use]
    pub fn start(setup: Setup) -> Self {
        let setup = Arc::new(setup);
        let approvals = Approvals::new(setup.store.clone(), setup.times.ask_wait, setup.times.ask);
        let (sessions, news) = (Arc::<Sessions>::default(), Arc::<Notify>::default());
        let outbox = Arc::new(Outbox::new(Arc::clone(&setup), Arc::clone(&sessions)));
        let delivering = Arc::clone(&outbox).deliver(Arc::clone(&news));
        let sweeping = crate::sweep::sweep(Arc::clone(&setup), Arc::clone(&sessions));
        let work = vec![tokio::spawn(delivering), tokio::spawn(sweeping)];
        let after = Afterwards::start(Arc::clone(&setup), news);
        let (replicas, unawaited) = (Replicas::new(setup.store.clone()), Unawaited::start(&setup));
        let (seals, admitted) = (Seals::default(), Admitted::default());
        Self { setup, approvals, sessions, seals, replicas, after, unawaited, outbox, admitted, work }
    }

    /// Ends every session: no process of ours is left. The mind is told what it has not been told yet while its connection
    /// is still open.
    pub async fn end(&self) {
        self.replicas.end();
        self.drain(&self.sessions.scopes()).await;
        let mut ends = tokio::task::JoinSet::new();
        for session in self.sessions.take_all() {
            ends.spawn(async move { session.end().await });
        }
        ends.join_all().await;
        // What a mind that is gone did not take goes back, so that the next process need not wait for its lease.
        self.outbox.rest(Instant::now() + REST).await;
        for task in &self.work {
            task.abort();
        }
        self.after.finish().await;
        let flushed = tokio::time::timeout(LAST, self.setup.store.flush()).await;
        if !matches!(flushed, Ok(Ok(()))) {
            tracing::error!("the last records could not be written");
        }
    }

    /// Tells the mind what waits in the outbox for these users and agents, as far as that takes no longer than [`DRAIN`].
    async fn drain(&self, scopes: &[Scope]) {
        let until = Instant::now() + DRAIN;
        let written = async {
            self.after.finish().await;
            self.setup.store.flush().await
        };
        if matches!(timeout_at(until, written).await, Ok(Ok(()))) {
            self.outbox.drain(scopes, until).await;
        }
    }

    /// Answers `initialize`, and lets everything behind us start.
    async fn greet(&self, call: &Call<Principal>) -> Outcome {
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
                return failure(
                    code::INVALID_PARAMS,
                    format!("the parameters of `initialize` are wrong: {error}"),
                );
            }
        };
        let Some(id) = call.host.session.as_deref() else {
            return failure(code::INVALID_REQUEST, "`initialize` belongs to a session");
        };
        if self.sessions.get(id).is_some() {
            return failure(code::INVALID_REQUEST, "this session is initialized already");
        }
        let hello = Hello {
            capabilities: params.capabilities.map(ToOwned::to_owned),
            client: params.client_info.map(ToOwned::to_owned),
            // Servers with sessions say as much before anybody has asked them.
            log_level: Some("info".to_owned()),
        };
        if is_broker(&hello) {
            return failure(code::INVALID_REQUEST, NEVER_ENDING);
        }
        let version = Version::parse(&params.protocol_version).unwrap_or(Version::LATEST);
        let kept = replicas::kept(&call.host.principal, &hello, version);
        match Session::open(&self.setup, Arc::clone(&call.host), id.to_owned(), (&hello, kept)) {
            Ok(session) => {
                drop(self.sessions.enter(Arc::clone(&session)));
                // The next request may reach another process, which must find it.
                if self.replicas.is_shared() {
                    let _ = tokio::time::timeout(KEEPING, session.kept(&self.setup)).await;
                }
                // It may have left meanwhile, and nobody else would notice.
                if call.host.is_gone()
                    && let Some(session) = self.sessions.leave(id)
                {
                    session.end().await;
                }
            }
            Err(error) => return failure(code::INTERNAL_ERROR, error.to_string()),
        }
        Outcome::Result(raw(&json!({
            "protocolVersion": version.as_str(),
            "capabilities": capabilities(version),
            "serverInfo": about(),
            "instructions": own::INSTRUCTIONS,
        })))
    }

    /// The host's session; one that another process has opened is opened here too.
    fn session_for(&self, host: &Arc<Host<Principal>>) -> Option<Arc<Session>> {
        let id = host.session.as_deref()?;
        let known = self.sessions.get(id);
        if known.as_ref().is_some_and(|session| Arc::ptr_eq(&session.host, host)) {
            return known;
        }
        if !host.is_resumed() || host.is_gone() {
            return None;
        }
        let said = host.hello();
        let (capabilities, client) = (said.capabilities.clone(), said.client.clone());
        let hello = Hello { capabilities, client, log_level: Some("info".to_owned()) };
        let open = || Session::open(&self.setup, Arc::clone(host), id.to_owned(), (&hello, None));
        self.sessions.get_or_open(id, host, open).ok()
    }

    /// Answers a request of whichever era.
    async fn answer_host(&self, call: Call<Principal>) -> Outcome {
        if call.host.era() == Era::Stateless {
            return Box::pin(self.answer_alone(call)).await;
        }
        match &*call.request.method {
            "initialize" => return Box::pin(self.greet(&call)).await,
            "ping" => return Outcome::Result(raw(&json!({}))),
            _ => {}
        }
        let Some(session) = self.session_for(&call.host) else {
            return failure(code::INVALID_REQUEST, "this session is over; begin with `initialize`");
        };
        if call.host.is_resumed() {
            // What other processes have said in it counts here too, and under the same code.
            session.kept(&self.setup).await;
        }
        let call = Arc::new(call);
        match &*call.request.method {
            "tools/list" => Box::pin(self.list_tools(&session, &call)).await,
            "tools/call" => self.call_tool(&session, &call).await,
            method => {
                let outcome = Box::pin(forward::answer(self, &session, &call)).await;
                if let Outcome::Result(_) = &outcome {
                    let params = call.request.params.as_deref();
                    Box::pin(self.replicas.mirror(&session.id, method, params)).await;
                }
                outcome
            }
        }
    }

    pub(crate) async fn list_tools(&self, session: &Arc<Session>, call: &Call<Principal>) -> Outcome {
        // Definitions as they came: a value would put their members into another order.
        let text = format!("{{\"tools\":[{}]}}", session.list(&self.setup, call).await);
        Outcome::Result(RawValue::from_string(text).unwrap_or_else(|_| raw(&Value::Null)))
    }
}

/// Who the broker is, as the protocol writes it.
pub(crate) fn about() -> Value {
    json!({"name": NAME, "title": "embody", "version": env!("CARGO_PKG_VERSION")})
}

/// Why a broker does not serve another one, or itself.
pub(crate) const NEVER_ENDING: &str = "a broker cannot be behind a broker: that would never end";

/// Whether a host is a broker.
pub(crate) fn is_broker(hello: &Hello) -> bool {
    let client = hello.client.as_deref().and_then(|client| serde_json::from_str::<Value>(client.get()).ok());
    client.is_some_and(|client| client.get("name").and_then(Value::as_str) == Some(NAME))
}

/// Everything that a body may offer: who is there is not known yet, and the answer does not wait for it.
pub(crate) fn capabilities(version: Version) -> Value {
    let mut capabilities = json!({
        "tools": {"listChanged": true},
        "resources": {"subscribe": true, "listChanged": true},
        "prompts": {"listChanged": true},
        "completions": {},
        "logging": {},
    });
    // The first revision that knows tasks. Which tools may be called as one, their definitions say.
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

    const ASKS: bool = true;

    async fn park(
        &self,
        principal: &Principal,
        ticket: &str,
        anew: Option<&RawValue>,
    ) -> Result<(), Outcome> {
        self.replicas.park(&principal.user, ticket, anew).await
    }

    async fn claim(&self, host: &Host<Principal>, request: &Request, ticket: &str) -> Result<Claim, Outcome> {
        self.replicas.claim(host, request, ticket).await
    }

    fn relays(&self) -> Option<mpsc::Receiver<Relay>> {
        self.replicas.relays(&self.sessions, &self.setup)
    }

    async fn pass_on(&self, host: &Host<Principal>, message: Message) {
        self.replicas.pass_on(host, message).await;
    }

    async fn resume(&self, principal: &Principal, session: &str) -> Option<Resumed> {
        self.replicas.resume(principal, session).await
    }

    async fn left(&self, host: &Host<Principal>) {
        self.replicas.left(host).await;
    }

    async fn seal(&self, host: &Host<Principal>, request: &Request, ticket: &str) -> Result<String, Outcome> {
        self.sealed(host, request, ticket).await
    }

    async fn unseal(
        &self,
        host: &Host<Principal>,
        request: &Request,
        state: &str,
    ) -> Result<String, Outcome> {
        self.unsealed(host, request, state).await
    }

    async fn admit(&self, credentials: Credentials) -> Result<Principal, Refusal> {
        let Some(token) = credentials.bearer else {
            return Err(Refusal::Unknown(
                "a token is needed: `embody token add --user NAME --scope mcp` makes one".to_owned(),
            ));
        };
        let known = self.admitted.principal(&self.setup.store, token.expose()).await.map_err(|error| {
            tracing::error!(reason = %error, "a token could not be looked up");
            Refusal::Unavailable("tokens cannot be looked up now".to_owned())
        })?;
        let known =
            known.ok_or_else(|| Refusal::Unknown("nobody has this token, or it is over".to_owned()))?;
        if known.scope != TokenScope::Mcp {
            let name = known.scope.name();
            return Err(Refusal::Forbidden(format!(
                "this token is for `{name}`; a token for `mcp` is needed"
            )));
        }
        let may_approve = known.may_approve && known.user == self.setup.owner;
        let principal = Principal::new(known.user, self.setup.agent.clone(), "mcp");
        Ok(principal.approving(may_approve).with_token(known.token))
    }

    async fn are_valid(&self, bearers: &[Secret]) -> Vec<bool> {
        let secrets: Vec<&str> = bearers.iter().map(Secret::expose).collect();
        self.setup.store.are_valid_tokens(&secrets).await
    }

    async fn call(&self, call: Call<Principal>) -> Outcome {
        self.setup.meter.asked_for(&call.request.method);
        match self.setup.meter.trace(&call, &self.setup.clock) {
            None => self.answer_host(call).await,
            Some(serving) => Box::pin(serving.around(self.answer_host(call))).await,
        }
    }

    async fn notice(&self, host: Arc<Host<Principal>>, notification: Notification) {
        if let Some(session) = self.session_for(&host) {
            forward::notice(&session, &notification);
        }
    }

    async fn gone(&self, host: Arc<Host<Principal>>) {
        let Some(id) = host.session.as_deref() else { return };
        if let Some(scope) = self.sessions.last_of_its_scope(id, &host) {
            self.drain(&[scope]).await;
        }
        if let Some(session) = self.sessions.leave_as(id, &host) {
            session.end().await;
        }
    }
}
