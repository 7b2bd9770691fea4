//! The calls that run on one connection: which message belongs to which, and what the caller called it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::value::RawValue;
use tokio::sync::watch;

use super::call_channel::{CallSender, call_channel};
use super::inbox::{is_change, size};
use super::stateless::{ACKNOWLEDGED, LISTEN};
use super::{CallEvent, PendingCall};
use crate::error::Error;
use crate::message::{Id, Notification, Request, Response};
use crate::splice;

/// Where a message came, and so what it can belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MessageSource {
    Shared,
    Call(u64),
    /// The stream of what belongs to no call.
    Apart,
}

#[derive(Debug, Default)]
pub(crate) struct Calls {
    state: Mutex<State>,
    /// Why the connection is over, once it is.
    closed: watch::Sender<Option<Arc<Error>>>,
}

#[derive(Debug, Default)]
struct State {
    last: u64,
    running: HashMap<u64, Entry>,
    /// Questions of the server that wait for an answer, and the calls that they were put to.
    questions: HashMap<Id, u64>,
}

#[derive(Debug)]
struct Entry {
    /// Nobody, once the caller has left: the server still works on the call, and what it says about it is for nobody.
    events: Option<CallSender>,
    token: Option<Box<RawValue>>,
    /// Whether the server was told that nobody waits: then there will be no answer.
    is_cancelled: bool,
    /// Whether the connection itself made it, to hear of changes: nobody waits for its answer, and nothing is said or asked
    /// about it.
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

    /// Enters a call: its id and its progress token are ours from here on.
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
        state.running.insert(number, Entry { events: Some(events), token, is_cancelled: false, is_own });
        drop(state);
        let request = Request { id: number.into(), method: method.to_owned(), params };
        Ok(RegisteredCall {
            request,
            running: PendingCall {
                number,
                events: receiver,
                calls: Arc::clone(self),
                carrier: None,
                out: None,
            },
        })
    }

    /// Nobody waits for this call any more. It runs on at the server until it is answered or cancelled.
    pub(super) fn forget(&self, number: u64) {
        self.state().update(number, |entry| entry.events = None);
    }

    /// The server is told that nobody waits for this call; whether that is news and the call runs.
    pub(super) fn cancel(&self, number: u64) -> bool {
        let mut is_news = false;
        self.state().update(number, |entry| {
            is_news = !entry.is_cancelled;
            entry.is_cancelled = true;
        });
        is_news
    }

    /// Takes a call out: it was not sent, or nobody will hear of its answer.
    pub(super) fn withdraw(&self, number: u64) {
        self.state().running.remove(&number);
    }

    /// Gives an answer to its call; one that nobody waits for is dropped. One without an id is the answer to the call
    /// that it came for.
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

    /// Gives a notification to the call that it belongs to, or back.
    pub(super) fn note(&self, notification: Notification, stream: MessageSource) -> Option<Notification> {
        let mut state = self.state();
        if notification.method == "notifications/progress" {
            let params = notification.params.as_deref()?;
            // Progress that nobody asked for, or of a call that is over, is for nobody.
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
            // Only of this one is it likely that a server says it about a call.
            MessageSource::Shared if notification.method == "notifications/message" => {
                let only = state.only();
                only.and_then(|number| state.running.get_mut(&number))
            }
            // It says itself to which request the server has agreed.
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

    /// Gives a question to the call that it came for or to the only one that runs, or back.
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

    /// A question of the server is answered.
    pub(super) fn answered(&self, id: Option<&Id>) {
        if let Some(id) = id {
            self.state().questions.remove(id);
        }
    }

    /// Whether a call still waits for its answer.
    pub(super) fn has(&self, number: u64) -> bool {
        self.state().running.contains_key(&number)
    }

    /// The call that runs, if there is but one.
    pub(super) fn only(&self) -> Option<u64> {
        self.state().only()
    }

    /// The connection is over: every call learns why.
    pub(super) fn close(&self, cause: Error) {
        let mut state = self.state();
        // The first cause is the cause.
        let cause = self.closed().unwrap_or_else(|| Arc::new(cause));
        self.closed.send_replace(Some(Arc::clone(&cause)));
        for events in state.running.drain().filter_map(|(_, entry)| entry.events) {
            events.finish(CallEvent::Lost(Error::Closed(Arc::clone(&cause))));
        }
    }

    /// Fails one call whose answer could not be read.
    pub(super) fn fail(&self, number: u64, error: Error) {
        let entry = self.state().running.remove(&number);
        if let Some(events) = entry.and_then(|entry| entry.events) {
            events.finish(CallEvent::Lost(error));
        }
    }

    /// How many calls somebody waits for.
    pub(super) fn waiting(&self) -> usize {
        self.state().running.values().filter(|entry| entry.events.is_some() && !entry.is_own).count()
    }

    /// Why the connection is over, if it is.
    pub(super) fn closed(&self) -> Option<Arc<Error>> {
        self.closed.borrow().clone()
    }

    pub(super) async fn until_closed(&self) -> Arc<Error> {
        let mut closed = self.closed.subscribe();
        match closed.wait_for(Option::is_some).await.map(|cause| cause.clone()) {
            Ok(Some(cause)) => cause,
            // The sender is ours, and nothing else ends this wait.
            _ => Arc::new(Error::NoAnswer),
        }
    }
}

/// Takes a call out when whoever carries it ends, be it half-way.
pub(super) struct WithdrawOnDrop {
    calls: Arc<Calls>,
    number: u64,
    stays: bool,
}

impl WithdrawOnDrop {
    pub(super) fn new(calls: &Arc<Calls>, number: u64) -> Self {
        Self { calls: Arc::clone(calls), number, stays: false }
    }

    /// It is carried on by somebody else.
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

    /// The call that a question on the one stream of everything is for, if that can be told: the only one that runs and does
    /// not wait for an answer itself; if all wait, the only one that runs.
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

    /// The call that runs, if there is but one.
    fn only(&self) -> Option<u64> {
        let mut callers = self.callers();
        callers.next().filter(|_| callers.next().is_none())
    }

    fn callers(&self) -> impl Iterator<Item = u64> {
        self.running.iter().filter(|(_, entry)| !entry.is_own).map(|(number, _)| *number)
    }
}

impl Entry {
    /// Drops what the caller has no room for.
    fn offer(&mut self, notification: Notification) {
        let size = size(&notification.method, notification.params.as_deref());
        self.put(CallEvent::Notification(notification), size);
    }

    /// Puts something into the stream, or gives it back.
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
