//! The calls in flight on one connection: maps messages to calls, and wire ids back to the caller's ids.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::value::RawValue;
use tokio::sync::watch;

use super::call_channel::{CallSender, call_channel};
use super::inbox::{is_change, size};
use super::stateless::{ACKNOWLEDGED, LISTEN};
use super::{CallEvent, Carrier, PendingCall};
use crate::error::Error;
use crate::message::{Id, Notification, Request, Response};
use crate::server::Cancellation;
use crate::splice;

/// The stream on which a message arrived. It limits which calls the message can belong to.
///
/// A server on a pipe or a legacy event stream does not say which call a request or a log message belongs to. A message
/// with a progress token belongs to that call. Otherwise it belongs to the only running call; a server request, to the
/// only running call that does not wait for an answer itself. If there is no such call, the message goes to the
/// connection's stream. The connection's own listen request is not counted. Over streamable HTTP, messages on the
/// stream of a call belong to the call. Change notifications always belong to the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MessageSource {
    Shared,
    Call(u64),
    /// The stream for messages that belong to no call.
    Apart,
}

#[derive(Debug, Default)]
pub(crate) struct Calls {
    state: Mutex<State>,
    /// The reason the connection closed, once it is closed.
    closed: watch::Sender<Option<Arc<Error>>>,
}

#[derive(Debug, Default)]
struct State {
    last: u64,
    running: HashMap<u64, Entry>,
    /// Server requests without a response yet, mapped to the calls they were passed to.
    questions: HashMap<Id, u64>,
}

#[derive(Debug)]
struct Entry {
    /// `None` once the caller has dropped the call. The server still works on it, and its further messages are
    /// discarded.
    events: Option<CallSender>,
    token: Option<Box<RawValue>>,
    /// Whether the call was cancelled at the server. No response follows.
    is_cancelled: bool,
    /// Cancels a call in this process.
    cancel: Option<Cancellation>,
    /// Whether the connection made the call itself, to listen for changes. It has no caller, and no message or request
    /// is attributed to it.
    is_own: bool,
}

pub(super) struct RegisteredCall {
    pub(super) request: Request,
    pub(super) running: PendingCall,
}

impl Calls {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a call. From here on it uses our id and our progress token.
    pub(super) fn enter(
        self: &Arc<Self>,
        method: &str,
        params: Option<&RawValue>,
        most: usize,
    ) -> Result<RegisteredCall, Error> {
        let mut state = self.state();
        if let Some(cause) = self.closed() {
            return Err(Error::Closed(cause));
        }
        if state.running.len() >= most {
            return Err(Error::Busy { most });
        }
        state.last += 1;
        let number = state.last;
        let (params, token) = match params.and_then(|params| splice::exchange_token(params, number)) {
            Some((params, token)) => (Some(params), Some(token)),
            None => (params.map(ToOwned::to_owned), None),
        };
        let (events, receiver) = call_channel();
        let is_own = method == LISTEN;
        let entry = Entry { events: Some(events), token, is_cancelled: false, cancel: None, is_own };
        state.running.insert(number, entry);
        drop(state);
        let request = Request { id: number.into(), method: method.to_owned(), params };
        Ok(RegisteredCall {
            request,
            running: PendingCall {
                number,
                events: receiver,
                calls: Arc::clone(self),
                carrier: Carrier::Connection,
            },
        })
    }

    /// Detaches the caller. The call keeps running at the server until it is answered or cancelled.
    pub(super) fn forget(&self, number: u64) {
        self.state().update(number, |entry| entry.events = None);
    }

    /// Sets how to cancel a call in this process.
    pub(super) fn set_cancellation(&self, number: u64, cancel: Cancellation) {
        self.state().update(number, |entry| entry.cancel = Some(cancel));
    }

    /// Marks a call as cancelled. Returns `true` if it is running and was not cancelled before.
    pub(super) fn cancel(&self, number: u64, reason: &str) -> bool {
        let mut is_news = false;
        self.state().update(number, |entry| {
            is_news = !entry.is_cancelled;
            entry.is_cancelled = true;
            if let Some(cancel) = &entry.cancel {
                cancel.cancel(Some(reason.to_owned()));
            }
        });
        is_news
    }

    /// Removes a call that was not sent, or whose response has no receiver.
    pub(super) fn withdraw(&self, number: u64) {
        self.state().running.remove(&number);
    }

    /// Delivers a response to its call, or drops it if no caller waits. A response without an id answers the call of
    /// the stream it came on.
    pub(super) fn answer(&self, response: Response, stream: MessageSource) {
        let number = match (&response.id, stream) {
            (Some(id), _) => number(id),
            (None, MessageSource::Call(number)) => Some(number),
            (None, MessageSource::Shared | MessageSource::Apart) => None,
        };
        let Some(number) = number else { return };
        let entry = self.state().running.remove(&number);
        if let Some(events) = entry.and_then(|entry| entry.events) {
            events.finish(CallEvent::Done(response.outcome));
        }
    }

    /// Delivers a notification to the call it belongs to, or returns it.
    pub(super) fn note(&self, notification: Notification, stream: MessageSource) -> Option<Notification> {
        let mut state = self.state();
        if notification.method == "notifications/progress" {
            let params = notification.params.as_deref()?;
            // Progress with an unknown token, or for a call that has ended, is dropped.
            let entry = splice::progress_token(params).and_then(|token| state.running.get_mut(&token))?;
            let params = splice::restore_token(params, entry.token.as_deref()?);
            entry.offer(Notification { params, ..notification });
            return None;
        }
        if is_change(&notification.method) {
            return Some(notification);
        }
        let entry = match stream {
            MessageSource::Call(number) => state.running.get_mut(&number),
            // Only log messages are likely to be about a call.
            MessageSource::Shared if notification.method == "notifications/message" => {
                let only = state.only();
                only.and_then(|number| state.running.get_mut(&number))
            }
            // The acknowledgement names the request it belongs to.
            MessageSource::Shared if notification.method == ACKNOWLEDGED => {
                let number = notification.params.as_deref().and_then(splice::subscription_id);
                number.and_then(|number| state.running.get_mut(&number)).filter(|entry| entry.is_own)
            }
            MessageSource::Shared | MessageSource::Apart => None,
        };
        let Some(entry) = entry else { return Some(notification) };
        entry.offer(notification);
        None
    }

    /// Delivers a server request to the call it came for or to the only running call, or returns it.
    pub(super) fn ask(&self, request: Request, stream: MessageSource) -> Option<Request> {
        let mut state = self.state();
        let number = match stream {
            MessageSource::Call(number) => Some(number),
            MessageSource::Shared => state.asker(),
            MessageSource::Apart => None,
        };
        let Some(entry) = number.and_then(|number| state.running.get_mut(&number)) else {
            return Some(request);
        };
        let size = size(&request.method, request.params.as_deref());
        let id = request.id.clone();
        match entry.put(CallEvent::Request(request), size) {
            Some(CallEvent::Request(request)) => Some(request),
            _ => {
                state.questions.extend(number.map(|number| (id, number)));
                None
            }
        }
    }

    /// Records that a server request has been answered.
    pub(super) fn answered(&self, id: Option<&Id>) {
        if let Some(id) = id {
            self.state().questions.remove(id);
        }
    }

    /// Whether a call still waits for its response.
    pub(super) fn has(&self, number: u64) -> bool {
        self.state().running.contains_key(&number)
    }

    /// The running call, if exactly one is running.
    pub(super) fn only(&self) -> Option<u64> {
        self.state().only()
    }

    /// Closes the connection and fails every call with the cause.
    pub(super) fn close(&self, cause: Error) {
        let mut state = self.state();
        // The first cause wins.
        let cause = self.closed().unwrap_or_else(|| Arc::new(cause));
        self.closed.send_replace(Some(Arc::clone(&cause)));
        for events in state.running.drain().filter_map(|(_, entry)| entry.events) {
            events.finish(CallEvent::Lost(Error::Closed(Arc::clone(&cause))));
        }
    }

    /// Fails one call whose response could not be read.
    pub(super) fn fail(&self, number: u64, error: Error) {
        let entry = self.state().running.remove(&number);
        if let Some(events) = entry.and_then(|entry| entry.events) {
            events.finish(CallEvent::Lost(error));
        }
    }

    /// The number of calls with a waiting caller.
    pub(super) fn waiting(&self) -> usize {
        self.state().running.values().filter(|entry| entry.events.is_some() && !entry.is_own).count()
    }

    /// The reason the connection closed, if it is closed.
    pub(super) fn closed(&self) -> Option<Arc<Error>> {
        self.closed.borrow().clone()
    }

    pub(super) async fn until_closed(&self) -> Arc<Error> {
        let mut closed = self.closed.subscribe();
        match closed.wait_for(Option::is_some).await.map(|cause| cause.clone()) {
            Ok(Some(cause)) => cause,
            // Unreachable in practice: this struct owns the sender.
            _ => Arc::new(Error::NoAnswer),
        }
    }
}

/// Withdraws a call when the task that sends it is dropped or ends early.
pub(super) struct WithdrawOnDrop {
    calls: Arc<Calls>,
    number: u64,
    stays: bool,
}

impl WithdrawOnDrop {
    pub(super) fn new(calls: &Arc<Calls>, number: u64) -> Self {
        Self { calls: Arc::clone(calls), number, stays: false }
    }

    /// Disarms the guard: another task now owns the call.
    pub(super) fn stay(mut self) {
        self.stays = true;
    }
}

impl Drop for WithdrawOnDrop {
    fn drop(&mut self) {
        if !self.stays {
            self.calls.withdraw(self.number);
        }
    }
}

impl State {
    fn update(&mut self, number: u64, change: impl FnOnce(&mut Entry)) {
        let Some(entry) = self.running.get_mut(&number) else { return };
        change(entry);
        if entry.is_cancelled && entry.events.is_none() {
            self.running.remove(&number);
        }
    }

    /// The call that a server request on a shared stream belongs to: the only running call that does not wait for an
    /// answer itself; if all wait, the only running call.
    fn asker(&mut self) -> Option<u64> {
        let running = &self.running;
        self.questions.retain(|_, number| running.contains_key(number));
        let waits = |number: &u64| !self.questions.values().any(|waiting| waiting == number);
        let mut free = self.callers().filter(waits);
        match (free.next(), free.next()) {
            (Some(number), None) => Some(number),
            (Some(_), Some(_)) => None,
            (None, _) => self.only(),
        }
    }

    /// The running call, if exactly one is running.
    fn only(&self) -> Option<u64> {
        let mut callers = self.callers();
        callers.next().filter(|_| callers.next().is_none())
    }

    fn callers(&self) -> impl Iterator<Item = u64> {
        self.running.iter().filter(|(_, entry)| !entry.is_own).map(|(number, _)| *number)
    }
}

impl Entry {
    /// Delivers a notification, or drops it if the queue is full.
    fn offer(&mut self, notification: Notification) {
        let size = size(&notification.method, notification.params.as_deref());
        self.put(CallEvent::Notification(notification), size);
    }

    /// Queues an event, or returns it if the queue is full or closed.
    fn put(&mut self, event: CallEvent, size: usize) -> Option<CallEvent> {
        let Some(events) = &self.events else { return Some(event) };
        events.put(event, size).err()
    }
}

fn number(id: &Id) -> Option<u64> {
    id.as_json().parse().ok()
}

#[cfg(test)]
mod tests;
