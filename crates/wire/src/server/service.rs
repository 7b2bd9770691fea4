//! What sits behind a face, and what it is given: who calls, from where, and a way to answer while it works.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::connection::Cancellation;
use super::era::{ClientInfo, Era};
use super::outbound::OnFlushed;
use super::outbound::Outbound;
use super::replica::{Claim, ReplicaEvent, ResumedSession};
use super::server_requests::{PendingServerRequest, ServerRequests};
use crate::message::{Message, Notification, Outcome, Request};
use crate::secret::Secret;
use crate::version::Version;

/// A server of methods: a mind, a body, a broker.
pub trait Service: Send + Sync + 'static {
    /// Who calls, once they are let in.
    type Principal: Clone + PartialEq + Send + Sync + 'static;

    /// Lets somebody in who came over HTTP, or does not.
    fn authenticate(
        &self,
        credentials: Credentials,
    ) -> impl Future<Output = Result<Self::Principal, super::AuthError>> + Send;

    /// Whether each of these tokens, which [`Service::authenticate`] accepted, is still valid, in their order. Asked several times a second
    /// for all tokens with which something is open.
    fn are_valid(&self, bearers: &[Secret]) -> impl Future<Output = Vec<bool>> + Send {
        std::future::ready(vec![true; bearers.len()])
    }

    /// Answers a request. Calls of one host run at the same time.
    fn call(&self, call: Call<Self::Principal>) -> impl Future<Output = Outcome> + Send;

    /// Takes a notification. Those of one host come in their order.
    fn on_notification(
        &self,
        host: Arc<Host<Self::Principal>>,
        notification: Notification,
    ) -> impl Future<Output = ()> + Send {
        let _ = (host, notification);
        std::future::ready(())
    }

    /// Whether calls ask hosts of the stateless era as they ask others. Then a call waits while its host answers, and goes
    /// on with the request that brings the answers; otherwise [`Call::ask`] fails there, and a service answers
    /// `input_required` by itself.
    const ASKS: bool = false;

    /// A call waits for its host under this ticket, which cannot be guessed. `anew` is what its question said that another
    /// process needs to go on with it.
    fn suspend(
        &self,
        principal: &Self::Principal,
        ticket: &str,
        resume_data: Option<&RawValue>,
    ) -> impl Future<Output = Result<(), Outcome>> + Send {
        let _ = (principal, ticket, resume_data);
        std::future::ready(Ok(()))
    }

    /// A host has come back for the call that waits under this ticket, here or wherever it was parked. A ticket is good
    /// once; whoever comes second is refused.
    fn claim(
        &self,
        host: &Host<Self::Principal>,
        request: &Request,
        ticket: &str,
    ) -> impl Future<Output = Result<Claim, Outcome>> + Send {
        let _ = (host, request, ticket);
        std::future::ready(Ok(Claim::Here))
    }

    /// What other processes say that serve the same hosts. Asked for once, by the face that these can reach.
    fn replica_events(&self) -> Option<mpsc::Receiver<ReplicaEvent>> {
        None
    }

    /// Passes on what a host has said in its session and what nobody waits for here: another process may.
    fn forward_to_replicas(
        &self,
        host: &Host<Self::Principal>,
        message: Message,
    ) -> impl Future<Output = ()> + Send {
        let _ = (host, message);
        std::future::ready(())
    }

    /// What is known of a session of this principal that another process has opened.
    fn resume(
        &self,
        principal: &Self::Principal,
        session: &str,
    ) -> impl Future<Output = Option<ResumedSession>> + Send {
        let _ = (principal, session);
        std::future::ready(None)
    }

    /// The host has ended its session, for every process.
    fn on_session_deleted(&self, host: &Host<Self::Principal>) -> impl Future<Output = ()> + Send {
        let _ = host;
        std::future::ready(())
    }

    /// The state that a host of the stateless era is given with a question. It must say the ticket again to
    /// [`Service::unseal`], for nobody else and for no other request than this one.
    fn seal(
        &self,
        host: &Host<Self::Principal>,
        request: &Request,
        ticket: &str,
    ) -> impl Future<Output = Result<String, Outcome>> + Send {
        let _ = (host, request);
        std::future::ready(Ok(ticket.to_owned()))
    }

    /// The ticket in a state that a request brings back.
    fn unseal(
        &self,
        host: &Host<Self::Principal>,
        request: &Request,
        state: &str,
    ) -> impl Future<Output = Result<String, Outcome>> + Send {
        let _ = (host, request);
        std::future::ready(Ok(state.to_owned()))
    }

    /// A host with a session has gone for good.
    fn on_disconnect(&self, host: Arc<Host<Self::Principal>>) -> impl Future<Output = ()> + Send {
        let _ = host;
        std::future::ready(())
    }
}

#[derive(Debug, Clone, Default)]
pub struct Credentials {
    /// The token of `Authorization: Bearer`.
    pub bearer: Option<Secret>,
}

/// The other side: a session's host, or whoever sent one request of the stateless era.
pub struct Host<P> {
    pub principal: P,
    /// The token that let it in over HTTP.
    pub(super) bearer: Option<Secret>,
    /// The session's id; none in the stateless era.
    pub session: Option<Arc<str>>,
    /// In the stateless era, the connection that the request came through, where that is all one host's: a pipe, and not HTTP.
    pub connection: Option<Arc<str>>,
    era: Mutex<Era>,
    client_info: Mutex<Arc<ClientInfo>>,
    pub(super) outbound: Option<Outbound>,
    pub(super) server_requests: Arc<ServerRequests>,
    /// Requests that were read so far; on one pipe, those of both eras.
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
            client_info: Mutex::default(),
            outbound: Some(outbound),
            server_requests: Arc::default(),
            arrived: Arc::default(),
            is_resumed: false,
        }
    }

    /// One whose session was opened in another process.
    pub(super) fn resumed(principal: P, id: Arc<str>, outbound: Outbound, known: ResumedSession) -> Self {
        let ResumedSession { version, client_info } = known;
        let host = Self { is_resumed: true, ..Self::session(principal, id, outbound) };
        host.initialize(Era::Session(Some(version)), client_info);
        host
    }

    /// The token that let it in over HTTP.
    #[must_use]
    pub fn bearer(&self) -> Option<&Secret> {
        self.bearer.as_ref()
    }

    /// The same, let in by this token.
    pub(super) fn with_bearer(self, bearer: Option<Secret>) -> Self {
        Self { bearer, ..self }
    }

    /// Whether its session was opened in another process.
    #[must_use]
    pub fn is_resumed(&self) -> bool {
        self.is_resumed
    }

    /// One that speaks for a single request; `arrived` counts those of everybody at this face.
    pub(super) fn stateless(principal: P, client_info: ClientInfo, arrived: Arc<AtomicU64>) -> Self {
        Self {
            principal,
            bearer: None,
            session: None,
            connection: None,
            era: Mutex::new(Era::Stateless),
            client_info: Mutex::new(Arc::new(client_info)),
            outbound: None,
            server_requests: Arc::default(),
            arrived,
            is_resumed: false,
        }
    }

    /// The same host where it speaks for a request of the stateless era.
    pub(super) fn stateless_request(&self, client_info: ClientInfo) -> Self
    where
        P: Clone,
    {
        let (connection, bearer) = (self.session.clone(), self.bearer.clone());
        let host = Self::stateless(self.principal.clone(), client_info, Arc::clone(&self.arrived));
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
    pub fn client_info(&self) -> Arc<ClientInfo> {
        Arc::clone(&self.client_info.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether it has left, or is about to: [`Service::on_disconnect`] was called or soon will be.
    #[must_use]
    pub fn is_disconnected(&self) -> bool {
        self.server_requests.is_closed()
    }

    pub(super) fn initialize(&self, era: Era, client_info: ClientInfo) {
        *self.era.lock().unwrap_or_else(PoisonError::into_inner) = era;
        *self.client_info.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(client_info);
    }

    /// Asks the host something that belongs to no call: on its pipe, or on the stream that it keeps open for such things.
    /// A host that keeps none open never hears of it: whoever asks limits the time.
    ///
    /// # Errors
    /// When it cannot be asked, or goes away.
    pub async fn ask(&self, method: &str, params: Option<Box<RawValue>>) -> Result<Outcome, AskError> {
        let Some(outbound) = &self.outbound else { return Err(AskError::Stateless) };
        let (request, mut answer) = self.server_requests.open(method, params)?;
        answer.ask(&request, outbound).await?;
        answer.wait().await.map(|answered| answered.outcome).ok_or(AskError::Gone)
    }

    /// Tells the host something that belongs to no call. It is lost if the host is not listening: in the stateless era
    /// it never is, but for `subscriptions/listen`, which is a call.
    ///
    /// Waits for room in a pipe that the host does not read: whoever tells several hosts uses [`Host::try_notify`].
    pub async fn notify(&self, notification: Notification) {
        if let Some(outbound) = &self.outbound {
            let _ = outbound.offer(notification.print()).await;
        }
    }

    /// The same without waiting: `false` if there is no room now, and the host was not told.
    #[must_use]
    pub fn try_notify(&self, notification: &Notification) -> bool {
        self.outbound.as_ref().is_none_or(|outbound| outbound.offer_now(notification.print()))
    }
}

pub struct Call<P> {
    pub request: Request,
    pub host: Arc<Host<P>>,
    /// The `Mcp-Param-*` headers that came with it, names in lower case and without that prefix, values decoded.
    /// `None` where there are no headers: then there is nothing to compare.
    pub param_headers: Option<Vec<(String, String)>>,
    pub(super) number: u64,
    pub(super) outbound: Outbound,
    pub(super) cancel: Cancellation,
    pub(super) on_flushed: OnFlushed,
    pub(super) shutdown: CancellationToken,
    /// The bytes that the request takes up, for as long as this is there.
    pub(super) _share: Option<Arc<dyn Send + Sync>>,
}

/// Something that a host is asked on behalf of a call.
#[derive(Debug, Clone)]
pub struct ServerRequest {
    /// What the stateless era calls it; any name if there is none.
    pub key: Option<String>,
    pub method: String,
    pub params: Option<Box<RawValue>>,
    /// What another process needs to go on with the call when the answer comes and this process is gone; none: nobody can.
    pub resume_data: Option<Box<RawValue>>,
    /// Whether an answer that came before the question counts only if the call was begun anew for this very question: a
    /// person has seen what they answer.
    pub must_be_seen: bool,
}

/// What a host answered to a [`ServerRequest`].
#[derive(Debug, Clone)]
pub struct HostResponse {
    pub outcome: Outcome,
    /// How long after the question was sent it arrived; `None` if another process sent the question.
    pub after: Option<Duration>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// In the stateless era a server does not ask; it answers `input_required`.
    #[error("a host of the stateless era is asked by an `input_required` result")]
    Stateless,
    /// It is gone, or the call was cancelled.
    #[error("the host is gone")]
    Gone,
    /// More is being asked than one host may be.
    #[error("too many questions are open")]
    TooMany,
}

impl<P> Call<P> {
    /// Its place among the requests of its host, in the order in which they were read. Requests run side by side; this
    /// tells which of them the host sent first.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Whether it came through a pipe, and not over HTTP.
    #[must_use]
    pub fn is_on_pipe(&self) -> bool {
        self.outbound.is_pipe()
    }

    /// Does something when the answer is handed to the transport: as the end of its line is written, or its body given to
    /// HTTP; in any case before a host can have read it and gone on. Not if it never is, because the host is gone or has
    /// cancelled the call. Must not block.
    pub fn on_flushed(&self, then: impl FnOnce() + Send + 'static) {
        self.on_flushed.add(then);
    }

    /// Tells the host something about this call: it arrives before the answer. Waits while the host does not read.
    pub async fn notify(&self, notification: Notification) {
        if !self.cancel.token.is_cancelled() {
            let _ = self.outbound.send(notification.print()).await;
        }
    }

    /// Asks the host something on behalf of this call, and waits for the answer for as long as the call lives.
    ///
    /// # Errors
    /// When it cannot be asked, or goes away.
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

    /// Asks the host several things at once: in the stateless era with one answer. What it says to each, in their order.
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
        answer.ask(&request, &self.outbound).await?;
        Ok(answer)
    }

    async fn wait_for(&self, answer: PendingServerRequest) -> Result<HostResponse, AskError> {
        tokio::select! {
            answer = answer.wait() => answer.ok_or(AskError::Gone),
            () = self.cancel.token.cancelled() => Err(AskError::Gone),
        }
    }

    /// Returns when the host has cancelled the call, when it has closed its end of a pipe, or when the server is ending.
    /// What is then answered reaches the host unless it has cancelled.
    pub async fn until_cancelled(&self) {
        tokio::select! {
            () = self.cancel.token.cancelled() => {}
            () = self.shutdown.cancelled() => {}
        }
    }

    /// What a question of this call said in another process, if it is begun anew here.
    #[must_use]
    pub fn resume_data(&self) -> Option<&RawValue> {
        match &self.outbound {
            Outbound::MultiRound(rounds) => rounds.resume_data.as_deref(),
            Outbound::Pipe(_) | Outbound::Buffer(_) => None,
        }
    }

    /// Why the host has cancelled the call, in its own words.
    #[must_use]
    pub fn cancel_reason(&self) -> Option<&str> {
        self.cancel.reason.get().map(String::as_str)
    }

    /// Whether the host has cancelled the call.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancel.token.is_cancelled()
    }

    /// Ends the stream that carries this call, if it has one that the host can take up again. The answer waits for it.
    ///
    /// Only hosts since 2025-11-25 are told of a place to take it up from before anything is said; the stateless era
    /// knows no such place.
    pub fn release_stream(&self) {
        if matches!(self.host.era(), Era::Session(Some(version)) if version >= Version::V2025_11_25) {
            self.outbound.release();
        }
    }
}
