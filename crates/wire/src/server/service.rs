//! The [`Service`] trait, and what an implementation receives: the caller, its host, and a way to send messages during
//! a call.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::connection::Cancellation;
use super::era::Era;
use super::errors::AuthError;
use super::outbound::OnFlushed;
use super::outbound::Outbound;
use super::replica::{ReplicatedService, ResumedSession};
use super::server_requests::{PendingServerRequest, ServerRequests};
use super::stateless::MultiRoundService;
use crate::initialize::InitializeParams;
use crate::initialize::Version;
use crate::message::{Message, Notification, Outcome, Request};
use crate::secret::Secret;

/// A server of methods, such as a mind, a body or a broker.
pub trait Service: Send + Sync + 'static {
    /// The authenticated caller.
    type Principal: Clone + PartialEq + Send + Sync + 'static;

    /// Authenticates a request over HTTP.
    fn authenticate(
        &self,
        credentials: Credentials,
    ) -> impl Future<Output = Result<Self::Principal, AuthError>> + Send;

    /// Whether each of these tokens, which [`Service::authenticate`] accepted, is still valid, in the same order.
    /// Called several times a second with all tokens in use.
    fn are_valid(&self, bearers: &[Secret]) -> impl Future<Output = Vec<bool>> + Send {
        std::future::ready(vec![true; bearers.len()])
    }

    /// Answers a request. Calls of one host run concurrently.
    fn call(&self, call: Call<Self::Principal>) -> impl Future<Output = Outcome> + Send;

    /// Handles a notification. Notifications of one host arrive in order.
    fn on_notification(
        &self,
        host: Arc<Host<Self::Principal>>,
        notification: Notification,
    ) -> impl Future<Output = ()> + Send {
        let _ = (host, notification);
        std::future::ready(())
    }

    /// A host with a session has disconnected for good.
    fn on_disconnect(&self, host: Arc<Host<Self::Principal>>) -> impl Future<Output = ()> + Send {
        let _ = host;
        std::future::ready(())
    }

    /// What lets calls ask hosts of the stateless era. Without it [`Call::ask`] fails in that era, and the service must
    /// answer `input_required` itself.
    fn multi_round(&self) -> Option<&dyn MultiRoundService<Self::Principal>> {
        None
    }

    /// The service in other processes, if several serve the same hosts.
    fn replicated(&self) -> Option<&dyn ReplicatedService<Self::Principal>> {
        None
    }
}

#[derive(Debug, Clone, Default)]
pub struct Credentials {
    /// The token of `Authorization: Bearer`.
    pub bearer: Option<Secret>,
}

impl Credentials {
    /// Checks the token of a caller of one of embody's servers. `look_up` returns `None` if it is unknown, revoked or expired;
    /// `scope` is the name of a token's scope, which must be `mcp`.
    pub async fn check<T, E, F>(
        self,
        look_up: impl FnOnce(Secret) -> F,
        scope: impl FnOnce(&T) -> &'static str,
    ) -> Result<T, AuthError>
    where
        F: Future<Output = Result<Option<T>, E>>,
    {
        let Some(bearer) = self.bearer else {
            return Err(AuthError::Unknown(
                "a token is required: `embody token add --user NAME --scope mcp` creates one".to_owned(),
            ));
        };
        let unavailable = |_| AuthError::Unavailable("tokens cannot be looked up now".to_owned());
        let token = look_up(bearer).await.map_err(unavailable)?;
        let unknown = || AuthError::Unknown("the token is unknown, revoked or expired".to_owned());
        let token = token.ok_or_else(unknown)?;
        match scope(&token) {
            "mcp" => Ok(token),
            other => {
                Err(AuthError::Forbidden(format!("this token is for `{other}`; a token for `mcp` is needed")))
            }
        }
    }
}

/// The other side: a session's host, or the sender of one stateless request.
pub struct Host<P> {
    pub principal: P,
    /// The token it authenticated with over HTTP.
    pub(super) bearer: Option<Secret>,
    /// The session's id; `None` in the stateless era.
    pub session: Option<Arc<str>>,
    /// In the stateless era, the connection of the request if it belongs to one host: a pipe, not HTTP.
    pub connection: Option<Arc<str>>,
    era: Mutex<Era>,
    initialize_params: Mutex<Arc<InitializeParams>>,
    pub(super) outbound: Option<Outbound>,
    pub(super) server_requests: Arc<ServerRequests>,
    /// The number of requests read so far; on a pipe, of both eras.
    arrived: Arc<AtomicU64>,
    is_resumed: bool,
}

impl<P> Host<P> {
    pub(super) fn session(principal: P, id: Arc<str>, outbound: Outbound) -> Self {
        Self {
            principal,
            bearer: None,
            session: Some(id),
            connection: None,
            era: Mutex::new(Era::Session(None)),
            initialize_params: Mutex::default(),
            outbound: Some(outbound),
            server_requests: Arc::default(),
            arrived: Arc::default(),
            is_resumed: false,
        }
    }

    /// A host whose session was opened in another process.
    pub(super) fn resumed(principal: P, id: Arc<str>, outbound: Outbound, known: ResumedSession) -> Self {
        let ResumedSession { version, params } = known;
        let host = Self { is_resumed: true, ..Self::session(principal, id, outbound) };
        host.initialize(Era::Session(Some(version)), params);
        host
    }

    /// The token it authenticated with over HTTP.
    #[must_use]
    pub fn bearer(&self) -> Option<&Secret> {
        self.bearer.as_ref()
    }

    /// The same host, with this token.
    pub(super) fn with_bearer(self, bearer: Option<Secret>) -> Self {
        Self { bearer, ..self }
    }

    /// Whether its session was opened in another process.
    #[must_use]
    pub fn is_resumed(&self) -> bool {
        self.is_resumed
    }

    /// A host for a single stateless request; `arrived` counts the requests of the whole server.
    pub(super) fn stateless(principal: P, params: InitializeParams, arrived: Arc<AtomicU64>) -> Self {
        Self {
            principal,
            bearer: None,
            session: None,
            connection: None,
            era: Mutex::new(Era::Stateless),
            initialize_params: Mutex::new(Arc::new(params)),
            outbound: None,
            server_requests: Arc::default(),
            arrived,
            is_resumed: false,
        }
    }

    /// The same host, for a request of the stateless era on its connection.
    pub(super) fn stateless_request(&self, params: InitializeParams) -> Self
    where
        P: Clone,
    {
        let (connection, bearer) = (self.session.clone(), self.bearer.clone());
        let host = Self::stateless(self.principal.clone(), params, Arc::clone(&self.arrived));
        Self { connection, bearer, ..host }
    }

    pub(super) fn arrives(&self) -> u64 {
        self.arrived.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// The number of its last request that was read. See [`Call::number`].
    #[must_use]
    pub fn arrived(&self) -> u64 {
        self.arrived.load(Ordering::Acquire)
    }

    #[must_use]
    pub fn era(&self) -> Era {
        *self.era.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[must_use]
    pub fn initialize_params(&self) -> Arc<InitializeParams> {
        Arc::clone(&self.initialize_params.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether it has disconnected or is about to: [`Service::on_disconnect`] was called or soon will be.
    #[must_use]
    pub fn is_disconnected(&self) -> bool {
        self.server_requests.is_closed()
    }

    pub(super) fn initialize(&self, era: Era, params: InitializeParams) {
        *self.era.lock().unwrap_or_else(PoisonError::into_inner) = era;
        *self.initialize_params.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(params);
    }

    /// Sends a request that belongs to no call, on the host's pipe or on its GET stream. A host without an open GET
    /// stream never receives it, so the caller must set a timeout.
    pub async fn ask(&self, method: &str, params: Option<Box<RawValue>>) -> Result<Outcome, AskError> {
        let Some(outbound) = &self.outbound else { return Err(AskError::Stateless) };
        let (request, mut answer) = self.server_requests.open(method, params)?;
        answer.ask(request, outbound).await?;
        answer.wait().await.map(|answered| answered.outcome).ok_or(AskError::Gone)
    }

    /// Sends a notification that belongs to no call. It is lost if the host is not listening: in the stateless era it
    /// never is, except with `subscriptions/listen`, which is a call.
    ///
    /// Waits for room in a pipe that the host does not read: to notify several hosts, use [`Host::try_notify`].
    pub async fn notify(&self, notification: Notification) {
        if let Some(outbound) = &self.outbound {
            outbound.offer(Message::Notification(notification)).await;
        }
    }

    /// The same without waiting: returns `false` if there is no room now, and the notification is not sent.
    #[must_use]
    pub fn try_notify(&self, notification: Notification) -> bool {
        let notification = Message::Notification(notification);
        self.outbound.as_ref().is_none_or(|outbound| outbound.offer_now(notification))
    }
}

pub struct Call<P> {
    pub request: Request,
    pub host: Arc<Host<P>>,
    /// The `Mcp-Param-*` headers of the request, names in lower case and without that prefix, values decoded. `None` on
    /// transports without headers: then there is nothing to compare.
    pub param_headers: Option<Vec<(String, String)>>,
    pub(super) number: u64,
    pub(super) outbound: Outbound,
    pub(super) cancel: Cancellation,
    pub(super) on_flushed: OnFlushed,
    pub(super) shutdown: CancellationToken,
    /// Holds the request's byte budget.
    pub(super) _share: Option<Arc<dyn Send + Sync>>,
}

/// A request to the host on behalf of a call.
#[derive(Debug, Clone)]
pub struct ServerRequest {
    /// The key in the stateless era's `inputRequests`; `None` to generate one.
    pub key: Option<String>,
    pub method: String,
    pub params: Option<Box<RawValue>>,
    /// What another process needs to resume the call if this process is gone when the answer comes; `None` if it cannot
    /// be resumed.
    pub resume_data: Option<Box<RawValue>>,
    /// Whether an answer that came before the question counts only if the call was restarted for exactly this question:
    /// a person must have seen what they answer.
    pub must_be_seen: bool,
}

/// A host's answer to a [`ServerRequest`].
#[derive(Debug, Clone)]
pub struct HostResponse {
    pub outcome: Outcome,
    /// How long after the request was sent it arrived; `None` if another process sent the request.
    pub after: Option<Duration>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// In the stateless era a server does not send requests; it answers `input_required`.
    #[error("requests to a stateless host are sent in an `input_required` result")]
    Stateless,
    /// The host has disconnected, or the call was cancelled.
    #[error("the host has disconnected")]
    Gone,
    /// Too many requests to this host are open.
    #[error("too many requests to the host are open")]
    TooMany,
}

impl<P> Call<P> {
    /// Its position among the requests of its host, in the order in which they were read. Requests run concurrently;
    /// this says which of them the host sent first.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Whether it came through a pipe, not over HTTP.
    #[must_use]
    pub fn is_on_pipe(&self) -> bool {
        self.outbound.is_pipe()
    }

    /// Runs `then` when the response is handed to the transport: as the end of its line is written, or its body passed
    /// to HTTP; always before the host can have read it and acted on it. Does not run if the host has disconnected or
    /// cancelled the call. Must not block.
    pub fn on_flushed(&self, then: impl FnOnce() + Send + 'static) {
        self.on_flushed.add(then);
    }

    /// Sends a notification about this call, which arrives before the response. Waits while the host does not read.
    pub async fn notify(&self, notification: Notification) {
        if !self.cancel.token.is_cancelled() {
            let _ = self.outbound.send(Message::Notification(notification)).await;
        }
    }

    /// Sends a request on behalf of this call, and waits for the answer for as long as the call lives.
    pub async fn ask(&self, method: &str, params: Option<Box<RawValue>>) -> Result<Outcome, AskError> {
        if let Outbound::MultiRound(_) = &self.outbound {
            let question = ServerRequest {
                key: None,
                method: method.to_owned(),
                params,
                resume_data: None,
                must_be_seen: false,
            };
            let answered = self.ask_all(vec![question]).await.pop().unwrap_or(Err(AskError::Gone));
            return answered.map(|answered| answered.outcome);
        }
        let answered = self.wait_for(self.put(method, params).await?).await;
        answered.map(|answered| answered.outcome)
    }

    /// Sends several requests at once; in the stateless era with one response. Returns the answers in the same order.
    pub async fn ask_all(&self, questions: Vec<ServerRequest>) -> Vec<Result<HostResponse, AskError>> {
        if let Outbound::MultiRound(rounds) = &self.outbound {
            return rounds.ask(questions).await;
        }
        let mut asked = Vec::with_capacity(questions.len());
        for ServerRequest { method, params, .. } in questions {
            asked.push(self.put(&method, params).await);
        }
        let mut answers = Vec::with_capacity(asked.len());
        for answer in asked {
            answers.push(match answer {
                Ok(answer) => self.wait_for(answer).await,
                Err(error) => Err(error),
            });
        }
        answers
    }

    async fn put(
        &self,
        method: &str,
        params: Option<Box<RawValue>>,
    ) -> Result<PendingServerRequest, AskError> {
        if self.host.era() == Era::Stateless {
            return Err(AskError::Stateless);
        }
        let (request, mut answer) = self.host.server_requests.open(method, params)?;
        answer.ask(request, &self.outbound).await?;
        Ok(answer)
    }

    async fn wait_for(&self, answer: PendingServerRequest) -> Result<HostResponse, AskError> {
        tokio::select! {
            answer = answer.wait() => answer.ok_or(AskError::Gone),
            () = self.cancel.token.cancelled() => Err(AskError::Gone),
        }
    }

    /// Completes when the host has cancelled the call or closed its end of a pipe, or when the server shuts down. A
    /// later response still reaches the host unless it has cancelled.
    pub async fn until_cancelled_or_shutdown(&self) {
        tokio::select! {
            () = self.cancel.token.cancelled() => {}
            () = self.shutdown.cancelled() => {}
        }
    }

    /// The resume data of this call's server request in another process, if the call is restarted here.
    #[must_use]
    pub fn resume_data(&self) -> Option<&RawValue> {
        match &self.outbound {
            Outbound::MultiRound(rounds) => rounds.resume_data.as_deref(),
            Outbound::Pipe(_) | Outbound::Buffer(_) | Outbound::InProcess(..) => None,
        }
    }

    /// The reason the host gave for cancelling the call.
    #[must_use]
    pub fn cancel_reason(&self) -> Option<&str> {
        self.cancel.reason.get().map(String::as_str)
    }

    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancel.token.is_cancelled()
    }

    /// Ends the stream that carries this call, if the host can resume it. The response waits for that.
    ///
    /// Only hosts since 2025-11-25 receive an event id before the first message; the stateless era has none.
    pub fn release_stream(&self) {
        if matches!(self.host.era(), Era::Session(Some(version)) if version >= Version::V2025_11_25) {
            self.outbound.release();
        }
    }
}
