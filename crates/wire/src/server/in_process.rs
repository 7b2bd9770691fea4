//! A service that a client in this process calls as functions: messages stay values, and no task reads or writes them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use serde_json::value::RawValue;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::connection::{Cancellation, FAILED, call_service, too_many_calls};
use super::errors::{code, failure};
use super::in_flight::{Budget, TOO_MANY_BYTES};
use super::lines::GRACE;
use super::outbound::{OnFlushed, Outbound};
use super::service::{Call, Host, Service};
use super::stateless::BoxFuture;
use crate::limits::Limits;
use crate::message::{Message, Notification, Outcome, Request, Response};

/// The client's end of a connection.
pub(crate) trait ClientEnd: Send + Sync {
    /// Takes a message that belongs to this call, or to none. Returns the response to a request that it does not take.
    fn receive(&self, message: Message, call: Option<u64>) -> Option<Response>;
}

/// The server's end of a connection, of any service.
pub(crate) trait ServerEnd: Send + Sync {
    /// Begins a call; its messages carry this number.
    fn begin(&self, number: u64, method: &str, params: Option<Box<RawValue>>) -> RunningCall;

    fn on_notification(&self, notification: Notification) -> BoxFuture<'_, ()>;

    /// Takes the response to a request of the server.
    fn answer(&self, response: Response);

    /// See [`InProcessConnection::shutdown`].
    fn shutdown(self: Arc<Self>) -> BoxFuture<'static, ()>;
}

/// The connection of one host in this process to a service.
pub struct InProcessConnection<S: Service> {
    service: Arc<S>,
    host: Arc<Host<S::Principal>>,
    client: Arc<dyn ClientEnd>,
    calls_max: usize,
    message_max_bytes: usize,
    /// The parent of the tokens that cancel single calls.
    all_calls: CancellationToken,
    /// Each running call holds a permit.
    slots: Arc<Semaphore>,
    budget: Arc<Budget<()>>,
    shutdown: CancellationToken,
    /// The number of the last [`InProcessConnection::request`].
    last: AtomicU64,
}

impl<S: Service> InProcessConnection<S> {
    /// A host that takes no messages: notifications are dropped, and requests are rejected.
    pub fn open(service: Arc<S>, principal: S::Principal) -> Arc<Self> {
        Arc::new(Self::new(service, principal, Arc::new(NoMessages)))
    }

    /// Calls the service. Dropping the future cancels the call, which still runs to its end. The call runs in a task: a
    /// caller that polls several requests and waits for something else meanwhile must not hold them up.
    pub async fn request(&self, method: &str, params: Option<Box<RawValue>>) -> Outcome {
        if params.as_ref().is_some_and(|params| params.get().len() > self.message_max_bytes) {
            return failure(
                code::INVALID_REQUEST,
                format!("the message has more than {} bytes", self.message_max_bytes),
            );
        }
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let mut running = self.begin(number, method, params);
        let unwanted = CancelOnDrop(Some(running.cancel.clone()));
        let outcome = tokio::spawn(async move { running.run().await }).await;
        unwanted.disarm();
        // Nothing but a drop, or the end of the connection, cancels it.
        outcome.ok().flatten().unwrap_or_else(|| failure(code::INTERNAL_ERROR, FAILED))
    }

    pub fn host(&self) -> &Arc<Host<S::Principal>> {
        &self.host
    }

    /// Ends the connection: calls that only wait stop, and the others get a grace period. Does so once.
    pub async fn shutdown(&self) {
        if self.shutdown.is_cancelled() {
            return;
        }
        self.shutdown.cancel();
        self.host.server_requests.close();
        let all = u32::try_from(self.calls_max).unwrap_or(u32::MAX);
        let _ = timeout(GRACE, self.slots.acquire_many(all)).await;
        self.all_calls.cancel();
        self.service.on_disconnect(Arc::clone(&self.host)).await;
    }

    pub(crate) fn new(service: Arc<S>, principal: S::Principal, client: Arc<dyn ClientEnd>) -> Self {
        let limits = Limits::default();
        let outbound = Outbound::InProcess(Arc::clone(&client), None);
        let host = Arc::new(Host::session(principal, super::new_session_id(), outbound));
        Self {
            service,
            host,
            client,
            calls_max: limits.calls_max,
            message_max_bytes: limits.message_max_bytes,
            all_calls: CancellationToken::new(),
            slots: Arc::new(Semaphore::new(limits.calls_max)),
            budget: Budget::new(&limits),
            shutdown: CancellationToken::new(),
            last: AtomicU64::default(),
        }
    }
}

impl<S: Service> ServerEnd for InProcessConnection<S> {
    fn begin(&self, number: u64, method: &str, params: Option<Box<RawValue>>) -> RunningCall {
        let mut share = self.budget.share(&());
        let has_room = share.grow(params.as_ref().map_or(0, |params| params.get().len())).is_ok();
        let slot = Arc::clone(&self.slots).try_acquire_owned().ok();
        let cancel = Cancellation { token: self.all_calls.child_token(), ..Cancellation::default() };
        let (on_flushed, most) = (OnFlushed::default(), self.calls_max);
        let call = Call {
            request: Request { id: number.into(), method: method.to_owned(), params },
            host: Arc::clone(&self.host),
            param_headers: None,
            number: self.host.arrives(),
            outbound: Outbound::InProcess(Arc::clone(&self.client), Some(number)),
            cancel: cancel.clone(),
            on_flushed: on_flushed.clone(),
            shutdown: self.shutdown.clone(),
            _share: Some(Arc::new(share)),
        };
        let (service, token) = (Arc::clone(&self.service), cancel.token.clone());
        let work = async move {
            let outcome = match slot {
                None => failure(code::INVALID_REQUEST, too_many_calls(most)),
                Some(_) if !has_room => failure(code::INVALID_REQUEST, TOO_MANY_BYTES),
                Some(_slot) => call_service(&*service, call).await,
            };
            let is_cancelled = token.is_cancelled();
            // Cancels server requests that are still open on behalf of this call.
            token.cancel();
            if is_cancelled {
                return None;
            }
            on_flushed.run();
            Some(outcome)
        };
        RunningCall { work: Some(Box::pin(work)), cancel }
    }

    fn on_notification(&self, notification: Notification) -> BoxFuture<'_, ()> {
        Box::pin(self.service.on_notification(Arc::clone(&self.host), notification))
    }

    fn answer(&self, response: Response) {
        // A response that comes too late has no receiver.
        let _ = self.host.server_requests.answer(response);
    }

    fn shutdown(self: Arc<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move { Self::shutdown(&self).await })
    }
}

struct NoMessages;

impl ClientEnd for NoMessages {
    fn receive(&self, message: Message, call: Option<u64>) -> Option<Response> {
        let Message::Request(request) = message else { return None };
        let code = if call.is_some() { code::METHOD_NOT_FOUND } else { code::INTERNAL_ERROR };
        Some(Response::failure(request.id, code, "no host can receive this request"))
    }
}

/// The server's work on a call, which runs where it is polled. Dropping it cancels the call; the rest then runs in a
/// task, because a server completes what it has begun.
pub(crate) struct RunningCall {
    work: Option<BoxFuture<'static, Option<Outcome>>>,
    pub(crate) cancel: Cancellation,
}

impl RunningCall {
    pub(crate) fn is_running(&self) -> bool {
        self.work.is_some()
    }

    /// Runs to the end of the call; `None` if it was cancelled. Resumes if it is called again.
    pub(crate) async fn run(&mut self) -> Option<Outcome> {
        let (work, cancel) = (self.work.as_mut()?, &self.cancel);
        let poll = |context: &mut Context<'_>| {
            // A panic of the server must not reach its client.
            catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))).unwrap_or_else(|_| {
                cancel.token.cancel();
                Poll::Ready(Some(failure(code::INTERNAL_ERROR, FAILED)))
            })
        };
        let outcome = std::future::poll_fn(poll).await;
        self.work = None;
        outcome
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        let Some(work) = self.work.take() else { return };
        self.cancel.cancel(Some(CALLER_LEFT.to_owned()));
        // Outside a runtime nothing runs any more.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(work);
        }
    }
}

/// Cancels a call when its caller stops waiting for it.
struct CancelOnDrop(Option<Cancellation>);

impl CancelOnDrop {
    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(cancel) = self.0.take() {
            cancel.cancel(Some(CALLER_LEFT.to_owned()));
        }
    }
}

/// The reason for cancelling a call that its caller has dropped.
pub(crate) const CALLER_LEFT: &str = "the caller no longer waits for it";
