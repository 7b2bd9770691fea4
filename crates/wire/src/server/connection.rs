//! The messages of one host: running calls, their cancellation, and the responses to server requests.
//!
//! Requests run concurrently, each in its own task. Notifications are handled one at a time, in order.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::era::{Era, RequestMeta};
use super::errors::{code, failure};
use super::multi_round::SuspendedCalls;
use super::outbound::OnFlushed;
use super::outbound::Outbound;
use super::replay_buffer::ReplayBuffer;
use super::service::{Call, Host, Service};
use crate::initialize::Version;
use crate::initialize::protocol_version;
use crate::limits::Limits;
use crate::message::{self, Id, Message, Notification, Outcome, Request, Response};

/// A request with the metadata that the transport has read from it.
pub(crate) struct IncomingRequest {
    pub(crate) request: Request,
    pub(crate) param_headers: Option<Vec<(String, String)>>,
}

/// The exchange between one host and the service.
pub(crate) struct Connection<S: Service> {
    pub(super) service: Arc<S>,
    pub(crate) host: Arc<Host<S::Principal>>,
    running: Arc<InFlightCalls>,
    /// Calls that continue with a later request; over HTTP, with a request on another connection.
    pub(super) suspended: Arc<SuspendedCalls<S::Principal>>,
    limits: Limits,
    pub(super) shutdown: CancellationToken,
}

impl<S: Service> Connection<S> {
    pub(crate) fn new(
        service: Arc<S>,
        host: Host<S::Principal>,
        limits: Limits,
        shutdown: CancellationToken,
    ) -> Self {
        let (host, running, suspended) = (Arc::new(host), Arc::default(), Arc::default());
        Self { service, host, running, suspended, limits, shutdown }
    }

    /// The same, with a shared set of suspended calls, which may have started on other connections.
    pub(crate) fn with(self, suspended: &Arc<SuspendedCalls<S::Principal>>) -> Self {
        Self { suspended: Arc::clone(suspended), ..self }
    }

    /// Handles a message from a pipe, where everything is sent back the same way.
    pub(crate) async fn receive(
        &self,
        message: Message,
        outbound: &Outbound,
        done: Option<Arc<PendingResponses>>,
    ) {
        match message {
            Message::Request(request) => {
                // No later message may be handled before `initialize`.
                let is_greeting = request.method == "initialize";
                let task = self.begin(request, outbound.clone(), done);
                if let (true, Some(task)) = (is_greeting, task) {
                    let _ = task.await;
                }
            }
            Message::Notification(notification) => self.on_notification(notification).await,
            // On a pipe no other host can have been asked.
            Message::Response(response) => drop(self.host.server_requests.answer(response)),
        }
    }

    /// Starts a request of either era; its response goes to `outbound`.
    pub(crate) fn begin(
        &self,
        request: Request,
        outbound: Outbound,
        done: Option<Arc<PendingResponses>>,
    ) -> Option<JoinHandle<()>> {
        if RequestMeta::may_be_stateless(&request)
            && let meta = RequestMeta::read(&request)
            && meta.is_stateless(&request.method)
        {
            if let Some(error) = meta.validate() {
                spawn_answer(request.id, error, outbound, done);
                return None;
            }
            return self.begin_stateless(
                IncomingRequest { request, param_headers: None },
                meta,
                outbound,
                done,
            );
        }
        if matches!(self.host.era(), Era::Session(None)) && !matches!(&*request.method, "initialize" | "ping")
        {
            let message = format!("`{}` arrived before `initialize`", printable(&request.method));
            spawn_answer(request.id, failure(code::INVALID_REQUEST, message), outbound, done);
            return None;
        }
        self.run(IncomingRequest { request, param_headers: None }, Arc::clone(&self.host), outbound, done)
    }

    pub(super) fn run(
        &self,
        arrived: IncomingRequest,
        host: Arc<Host<S::Principal>>,
        outbound: Outbound,
        done: Option<Arc<PendingResponses>>,
    ) -> Option<JoinHandle<()>> {
        let IncomingRequest { request, param_headers } = arrived;
        let number = host.arrives();
        let _share = done.as_ref().map(|done| Arc::clone(&done.share));
        let guard = self.register(&request.id, outbound.clone(), done)?;
        let cancel = guard.cancel.clone();
        let on_flushed = guard.on_flushed.clone();
        let shutdown = self.shutdown.clone();
        let call =
            Call { request, host, param_headers, number, outbound, cancel, on_flushed, shutdown, _share };
        let service = Arc::clone(&self.service);
        // Boxed, because spawning moves the future several times before it starts and after it ends.
        Some(tokio::spawn(Box::pin(async move {
            guard.answer(call_service(&*service, call).await).await;
        })))
    }

    /// Registers a request as running.
    pub(super) fn register(
        &self,
        id: &Id,
        outbound: Outbound,
        done: Option<Arc<PendingResponses>>,
    ) -> Option<CallGuard> {
        let (id, running) = (id.clone(), Arc::clone(&self.running));
        match running.register(&id, self.limits.calls_max) {
            Ok(cancel) => {
                let on_flushed = OnFlushed::default();
                Some(CallGuard { id, running, outbound, cancel, done, on_flushed, is_answered: false })
            }
            Err(reason) => {
                spawn_answer(id, failure(code::INVALID_REQUEST, reason), outbound, done);
                None
            }
        }
    }

    /// Handles a notification: a cancellation takes effect here, and the service receives every notification.
    pub(crate) async fn on_notification(&self, notification: Notification) {
        if notification.method == "notifications/cancelled"
            && let Some((id, reason)) = notification.params.as_deref().and_then(cancelled)
        {
            self.running.cancel(&id, reason);
        }
        self.service.on_notification(Arc::clone(&self.host), notification).await;
    }

    /// Cancels all running calls and notifies the service that the host has disconnected.
    pub(crate) async fn close(&self) {
        self.running.cancel_all();
        self.host.server_requests.close();
        self.service.on_disconnect(Arc::clone(&self.host)).await;
    }

    pub(crate) fn cancel_all(&self) {
        self.running.cancel_all();
    }

    /// Waits until no call is running, at most for `limit`.
    pub(crate) async fn wait_idle(&self, limit: Duration) {
        let _ = tokio::time::timeout(limit, self.running.wait_idle()).await;
    }

    /// Ends a connection with its own shutdown signal, whose host cannot come back: calls that only wait stop, and the
    /// others get a grace period, if any.
    pub(crate) async fn shutdown(&self, grace: Option<Duration>) {
        self.shutdown.cancel();
        self.host.server_requests.close();
        self.suspended.close();
        if let Some(grace) = grace {
            self.wait_idle(grace).await;
        }
        self.close().await;
    }
}

/// Calls the service. `initialize` also sets what is known about the session's host.
pub(super) async fn call_service<S: Service>(service: &S, call: Call<S::Principal>) -> Outcome {
    let initialized = (call.request.method == "initialize" && call.host.session.is_some())
        .then(|| (RequestMeta::read(&call.request).into_params(), Arc::clone(&call.host)));
    let outcome = service.call(call).await;
    if let (Some((params, host)), Outcome::Result(result)) = (initialized, &outcome) {
        let version = protocol_version(result).and_then(|version| Version::parse(&version));
        host.initialize(Era::Session(version), params);
    }
    outcome
}

/// A longer cancellation reason is not passed on.
const REASON_BYTES: usize = 4096;

pub(super) const FAILED: &str = "internal error: the server failed on this request";

/// Counts the responses that a replay buffer still waits for, and finishes the buffer after the last.
pub(crate) struct PendingResponses {
    left: std::sync::atomic::AtomicUsize,
    buffer: Option<Arc<ReplayBuffer>>,
    /// The byte budget of the requests, held until the last is answered and no task works on one.
    pub(super) share: Arc<dyn Send + Sync>,
}

impl PendingResponses {
    /// Expects `count` responses. The buffer is finished with the last one.
    pub(crate) fn new(
        count: usize,
        buffer: Option<Arc<ReplayBuffer>>,
        share: impl Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self { left: count.into(), buffer, share: Arc::new(share) })
    }

    fn count_response(&self) {
        if self.left.fetch_sub(1, std::sync::atomic::Ordering::AcqRel) == 1
            && let Some(buffer) = &self.buffer
        {
            buffer.finish();
        }
    }
}

/// Cancels one call, with the reason that the host gives.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cancellation {
    pub(super) token: CancellationToken,
    pub(super) reason: Arc<OnceLock<String>>,
}

impl Cancellation {
    pub(crate) fn cancel(&self, reason: Option<String>) {
        if let Some(reason) = reason {
            let _ = self.reason.set(reason);
        }
        self.token.cancel();
    }
}

/// The running calls, and how to cancel each.
#[derive(Default)]
struct InFlightCalls {
    calls: Mutex<HashMap<Id, Cancellation>>,
    changed: Notify,
}

impl InFlightCalls {
    fn calls(&self) -> MutexGuard<'_, HashMap<Id, Cancellation>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn register(&self, id: &Id, most: usize) -> Result<Cancellation, String> {
        let mut calls = self.calls();
        if calls.contains_key(id) {
            return Err(format!("a request with the id {id} is still running"));
        }
        if calls.len() >= most {
            return Err(too_many_calls(most));
        }
        let cancel = Cancellation::default();
        calls.insert(id.clone(), cancel.clone());
        Ok(cancel)
    }

    fn remove(&self, id: &Id) {
        self.calls().remove(id);
        self.changed.notify_waiters();
    }

    fn cancel(&self, id: &Id, reason: Option<String>) {
        if let Some(call) = self.calls().get(id) {
            call.cancel(reason);
        }
    }

    fn cancel_all(&self) {
        self.calls().values().for_each(|call| call.token.cancel());
    }

    async fn wait_idle(&self) {
        loop {
            let changed = self.changed.notified();
            if self.calls().is_empty() {
                return;
            }
            changed.await;
        }
    }
}

pub(super) fn too_many_calls(most: usize) -> String {
    format!("{most} requests are already running; wait for one to end")
}

/// Ensures that a call is answered exactly once, even if the service panics.
pub(super) struct CallGuard {
    id: Id,
    running: Arc<InFlightCalls>,
    outbound: Outbound,
    pub(super) cancel: Cancellation,
    done: Option<Arc<PendingResponses>>,
    pub(super) on_flushed: OnFlushed,
    is_answered: bool,
}

impl CallGuard {
    pub(super) async fn answer(mut self, outcome: Outcome) {
        // A cancelled call gets no response: the host has forgotten it.
        if !self.cancel.token.is_cancelled() {
            let response = Message::Response(Response { id: Some(self.id.clone()), outcome });
            let _ = self.outbound.send_with(response, self.on_flushed.clone()).await;
        }
        self.is_answered = true;
    }
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        self.running.remove(&self.id);
        // Cancels server requests that are still open on behalf of this call.
        self.cancel.token.cancel();
        let done = self.done.take();
        if self.is_answered {
            if let Some(done) = done {
                done.count_response();
            }
            return;
        }
        let failed = failure(code::INTERNAL_ERROR, FAILED);
        spawn_answer(self.id.clone(), failed, self.outbound.clone(), done);
    }
}

fn spawn_answer(id: Id, outcome: Outcome, outbound: Outbound, done: Option<Arc<PendingResponses>>) {
    // Outside a runtime no response can be sent.
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
    runtime.spawn(async move {
        let _ = outbound.send(Message::Response(Response { id: Some(id), outcome })).await;
        if let Some(done) = done {
            done.count_response();
        }
    });
}

/// The id of the cancelled request, and the reason.
fn cancelled(params: &RawValue) -> Option<(Id, Option<String>)> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Cancelled<'a> {
        #[serde(borrow)]
        request_id: &'a RawValue,
        #[serde(borrow, default)]
        reason: Option<&'a RawValue>,
    }
    let Cancelled { request_id, reason } = message::members(params)?;
    let reason = reason.and_then(|reason| serde_json::from_str::<String>(reason.get()).ok());
    let reason = reason.filter(|reason| reason.len() <= REASON_BYTES);
    Some((Id::from_json(request_id.get())?, reason))
}

/// A method name made safe for an error message.
pub(crate) fn printable(method: &str) -> String {
    method.chars().filter(|c| !c.is_control()).take(64).collect()
}
