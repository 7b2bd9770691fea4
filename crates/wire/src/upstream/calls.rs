//! The calls that run on one connection: which message belongs to which, and what the caller called it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::value::RawValue;
use tokio::sync::watch;

use super::inbox::{is_change, size};
use super::mailbox::{Slot, mailbox};
use super::{CallEvent, Running, splice};
use crate::error::Error;
use crate::message::{Id, Notification, Request, Response};

/// Where a message came, and so what it can belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stream {
    /// The one stream of everything.
    Shared,
    /// The stream of this call.
    Call(u64),
    /// The stream of what belongs to no call.
    Apart,
}

/// The calls of one connection.
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
}

#[derive(Debug)]
struct Entry {
    /// Nobody, once the caller has left: the server still works on the call, and what it says about it is for nobody.
    events: Option<Slot>,
    /// The caller's own token.
    token: Option<Box<RawValue>>,
    /// Whether the server was told that nobody waits: then there will be no answer.
    is_cancelled: bool,
}

/// A call as it goes out.
pub(super) struct Entered {
    pub(super) request: Request,
    pub(super) running: Running,
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
    ) -> Result<Entered, Error> {
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
        let (events, receiver) = mailbox();
        state.running.insert(number, Entry { events: Some(events), token, is_cancelled: false });
        drop(state);
        let request = Request { id: number.into(), method: method.to_owned(), params };
        Ok(Entered {
            request,
            running: Running { number, events: receiver, calls: Arc::clone(self), carrier: None, out: None },
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
    pub(super) fn answer(&self, response: Response, stream: Stream) {
        let number = match (&response.id, stream) {
            (Some(id), _) => number(id),
            (None, Stream::Call(number)) => Some(number),
            (None, Stream::Shared | Stream::Apart) => None,
        };
        let Some(number) = number else { return };
        let entry = self.state().running.remove(&number);
        if let Some(events) = entry.and_then(|entry| entry.events) {
            events.finish(CallEvent::Done(response.outcome));
        }
    }

    /// Gives a notification to the call that it belongs to, or back.
    pub(super) fn note(&self, notification: Notification, stream: Stream) -> Option<Notification> {
        let mut state = self.state();
        if notification.method == "notifications/progress" {
            let params = notification.params.as_deref()?;
            // Progress that nobody asked for, or of a call that is over, is for nobody.
            let entry = splice::token(params).and_then(|token| state.running.get_mut(&token))?;
            let params = splice::give_back(params, entry.token.as_deref()?);
            entry.offer(Notification { params, ..notification });
            return None;
        }
        if is_change(&notification.method) {
            return Some(notification);
        }
        let entry = match stream {
            Stream::Call(number) => state.running.get_mut(&number),
            // Only of this one is it likely that a server says it about a call.
            Stream::Shared if notification.method == "notifications/message" => state.only(),
            Stream::Shared | Stream::Apart => None,
        };
        let Some(entry) = entry else { return Some(notification) };
        entry.offer(notification);
        None
    }

    /// Gives a question to the call that it came for or to the only one that runs, or back.
    pub(super) fn ask(&self, request: Request, stream: Stream) -> Option<Request> {
        let mut state = self.state();
        let entry = match stream {
            Stream::Call(number) => state.running.get_mut(&number),
            Stream::Shared => state.only(),
            Stream::Apart => None,
        };
        let Some(entry) = entry else { return Some(request) };
        let size = size(&request.method, request.params.as_deref());
        match entry.put(CallEvent::Request(request), size) {
            Some(CallEvent::Request(request)) => Some(request),
            _ => None,
        }
    }

    /// Whether a call still waits for its answer.
    pub(super) fn has(&self, number: u64) -> bool {
        self.state().running.contains_key(&number)
    }

    /// The call that runs, if there is but one.
    pub(super) fn only(&self) -> Option<u64> {
        let state = self.state();
        let mut numbers = state.running.keys();
        numbers.next().copied().filter(|_| numbers.next().is_none())
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
        self.state().running.values().filter(|entry| entry.events.is_some()).count()
    }

    /// Why the connection is over, if it is.
    pub(super) fn closed(&self) -> Option<Arc<Error>> {
        self.closed.borrow().clone()
    }

    /// Returns when the connection is over.
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
pub(super) struct Leave {
    calls: Arc<Calls>,
    number: u64,
    stays: bool,
}

impl Leave {
    pub(super) fn new(calls: &Arc<Calls>, number: u64) -> Self {
        Self { calls: Arc::clone(calls), number, stays: false }
    }

    /// It is carried on by somebody else.
    pub(super) fn stay(mut self) {
        self.stays = true;
    }
}

impl Drop for Leave {
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

    fn only(&mut self) -> Option<&mut Entry> {
        let mut entries = self.running.values_mut();
        let first = entries.next()?;
        entries.next().is_none().then_some(first)
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
mod tests {
    use super::*;
    use crate::message::Outcome;
    use crate::upstream::mailbox::UNREAD;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    fn note(method: &str, params: &str) -> Notification {
        Notification { method: method.to_owned(), params: Some(raw(params)) }
    }

    #[tokio::test]
    async fn progress_comes_back_under_the_callers_token_and_before_the_answer() {
        let calls = Arc::new(Calls::default());
        let params = raw(r#"{"_meta":{"progressToken":"mine"}}"#);
        let mut entered = calls.enter("tools/call", Some(&params), 9).unwrap();
        assert_eq!(entered.request.params.unwrap().get(), r#"{"_meta":{"progressToken":1}}"#);
        assert!(
            calls
                .note(note("notifications/progress", r#"{"progressToken":1,"progress":5}"#), Stream::Shared)
                .is_none()
        );
        assert!(
            calls
                .note(note("notifications/progress", r#"{"progressToken":2,"progress":5}"#), Stream::Shared)
                .is_none()
        );
        calls.answer(Response::success(1.into(), raw("{}")), Stream::Shared);
        let CallEvent::Notification(progress) = entered.running.next().await else { panic!() };
        assert_eq!(progress.params.unwrap().get(), r#"{"progressToken":"mine","progress":5}"#);
        assert!(matches!(entered.running.next().await, CallEvent::Done(Outcome::Result(_))));
        assert!(matches!(entered.running.next().await, CallEvent::Lost(Error::NoAnswer)));
    }

    #[test]
    fn a_question_belongs_to_the_only_call_or_to_none() {
        let calls = Arc::new(Calls::default());
        let ask = || Request { id: 1.into(), method: "roots/list".into(), params: None };
        assert!(calls.ask(ask(), Stream::Shared).is_some());
        let first = calls.enter("a", None, 9).unwrap();
        assert!(calls.ask(ask(), Stream::Apart).is_some(), "what comes there is no call's");
        assert!(calls.ask(ask(), Stream::Shared).is_none());
        let second = calls.enter("b", None, 9).unwrap();
        assert!(calls.ask(ask(), Stream::Shared).is_some());
        // The first caller has left, but its call still runs: the question may be about that one.
        drop(first);
        assert!(calls.ask(ask(), Stream::Shared).is_some());
        calls.answer(Response::success(1.into(), raw("{}")), Stream::Shared);
        assert!(calls.ask(ask(), Stream::Shared).is_none());
        drop(second);
        assert!(
            calls.ask(ask(), Stream::Shared).is_some(),
            "a question about a call that nobody waits for is for nobody"
        );
        calls.answer(Response::success(2.into(), raw("{}")), Stream::Shared);
        assert!(calls.note(note("notifications/message", "{}"), Stream::Shared).is_some());
    }

    #[tokio::test]
    async fn a_caller_that_does_not_read_still_gets_its_answer() {
        let calls = Arc::new(Calls::default());
        let params = raw(r#"{"_meta":{"progressToken":1}}"#);
        let mut entered = calls.enter("a", Some(&params), 9).unwrap();
        for number in 0..5000 {
            let params = format!(r#"{{"progressToken":1,"progress":{number}}}"#);
            calls.note(note("notifications/progress", &params), Stream::Shared);
        }
        let question = Request { id: 1.into(), method: "roots/list".into(), params: None };
        assert!(calls.ask(question, Stream::Shared).is_some(), "there is no place for it");
        calls.answer(Response::success(1.into(), raw("{}")), Stream::Shared);
        let mut heard = 0;
        while let CallEvent::Notification(_) = entered.running.next().await {
            heard += 1;
        }
        assert_eq!(heard, UNREAD);
    }

    #[tokio::test]
    async fn what_a_caller_does_not_read_is_bounded_in_bytes() {
        let calls = Arc::new(Calls::default());
        let mut entered = calls.enter("a", None, 9).unwrap();
        let large = raw(&format!("\"{}\"", "x".repeat(1024 * 1024)));
        let log = || Notification { method: "notifications/message".into(), params: Some(large.clone()) };
        for _ in 0..50 {
            assert!(calls.note(log(), Stream::Shared).is_none());
        }
        let question = || Request { id: 1.into(), method: "x".into(), params: Some(large.clone()) };
        assert!(calls.ask(question(), Stream::Shared).is_some(), "there is no room for it");
        for _ in 0..3 {
            assert!(matches!(entered.running.next().await, CallEvent::Notification(_)));
        }
        assert!(calls.ask(question(), Stream::Shared).is_none(), "what was read has made room");
        for _ in 0..50 {
            calls.note(log(), Stream::Shared);
        }
        calls.answer(Response::success(1.into(), large.clone()), Stream::Shared);
        assert!(matches!(entered.running.next().await, CallEvent::Request(_)));
        for _ in 0..2 {
            assert!(matches!(entered.running.next().await, CallEvent::Notification(_)));
        }
        assert!(matches!(entered.running.next().await, CallEvent::Done(_)), "the answer finds room");
    }

    #[test]
    fn calls_are_counted_and_a_closed_connection_takes_none() {
        let calls = Arc::new(Calls::default());
        let running = calls.enter("a", None, 1).unwrap();
        assert!(matches!(calls.enter("b", None, 1), Err(Error::Busy { most: 1 })));
        drop(running);
        assert!(
            matches!(calls.enter("b", None, 1), Err(Error::Busy { most: 1 })),
            "the server still works on it"
        );
        calls.cancel(1);
        let running = calls.enter("b", None, 1).unwrap();
        calls.cancel(2);
        assert!(calls.has(2), "its caller may still hear of it");
        drop(running);
        assert!(!calls.has(2), "there will be no answer");
        calls.close(Error::NoAnswer);
        assert!(matches!(calls.enter("c", None, 1), Err(Error::Closed(_))));
    }
}
