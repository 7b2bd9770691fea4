//! The way to a server behind us: one connection, shared by many callers, with raw payloads both ways.
//!
//! Where [`Client`](crate::Client) makes a call and waits, a [`Link`] carries whole conversations: what the server says about a
//! call (progress, logs, questions) comes in the call's own ordered stream, before its answer; what it says on its own
//! comes in the connection's. Ids and progress tokens are ours on the wire and the caller's again on the way back; nothing
//! else of a payload is touched.
//!
//! A server on a pipe, or on a legacy event stream, does not say which call a question or a log message belongs to. The rule: by its progress token if
//! it has one; else, if exactly one call is running, or a question and exactly one is running that does not wait for an answer
//! itself, to that one; else to none, and it comes in the connection's stream. The connection's own request to be told of
//! changes is no such call.
//! Over streamable HTTP what comes on the stream of a call is the call's. What says that something has changed is always
//! the connection's.
//!
//! A server is of either era. One without sessions is used through the same [`Link`]: what a session would remember is kept
//! here. What such a server asks comes as the answer to a call, `input_required`: see [`Link::input_required`].

mod call_channel;
mod calls;
mod child;
mod era_cache;
mod era_probe;
mod greeting;
mod http;
mod inbox;
mod link;
mod listen;
mod pipe;
mod process;
pub mod reaper;
mod replies;
mod route;
mod sse;
mod stateless;
mod transport;
mod transport_probe;

pub use self::child::ChildSpec;
pub use self::era_cache::EraCache;
pub(crate) use self::greeting::into_result;
pub use self::link::Link;
pub use self::route::{ClientInfo, ConnectOptions, Freshness, Route, StreamConnector, TokenSource};
pub use self::stateless::InputRequired;

use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinHandle};

use crate::error::Error;
use crate::message::{Notification, Outcome, Request};
use crate::server::OutboundMessage;

/// What a server says on its own.
#[derive(Debug)]
pub enum ServerMessage {
    Notification(Notification),
    /// A question; it is answered by its id.
    Request(Request),
}

#[derive(Debug)]
pub enum CallEvent {
    Notification(Notification),
    Request(Request),
    Done(Outcome),
    /// There will be no answer. Nothing follows, and nobody knows whether the call took effect, unless
    /// [`Error::was_not_executed`] says so.
    Lost(Error),
}

/// A call that was sent. Whoever wants to leave before its end tells the server why with [`Link::cancel`]. On a pipe the
/// server is told anyway when it is dropped, if there is room; on a legacy event stream the call counts as running until
/// it is answered or cancelled.
#[derive(Debug)]
pub struct PendingCall {
    number: u64,
    events: call_channel::CallReceiver,
    calls: std::sync::Arc<calls::Calls>,
    /// Whoever waits for its answer on a connection of its own.
    carrier: Option<AbortHandle>,
    /// Where the server can be told at once that nobody waits.
    out: Option<mpsc::WeakSender<OutboundMessage>>,
}

impl PendingCall {
    /// The next thing that happens to it.
    pub async fn next(&mut self) -> CallEvent {
        self.events.next().await.unwrap_or(CallEvent::Lost(Error::NoAnswer))
    }

    /// A call whose answer is known already: it was not sent.
    fn answered(outcome: Outcome, calls: &std::sync::Arc<calls::Calls>) -> Self {
        let (slot, events) = call_channel::call_channel();
        slot.finish(CallEvent::Done(outcome));
        Self { number: 0, events, calls: std::sync::Arc::clone(calls), carrier: None, out: None }
    }

    fn carried_by(&mut self, carrier: JoinHandle<()>) {
        self.carrier = Some(carrier.abort_handle());
    }

    /// The id that it has on the wire.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }
}

impl Drop for PendingCall {
    fn drop(&mut self) {
        if let Some(carrier) = &self.carrier {
            carrier.abort();
        }
        if let Some(out) = self.out.as_ref().filter(|_| self.calls.cancel(self.number)) {
            let told = cancelled(self.number, "nobody waits for it").print();
            // A server that does not read is not told.
            let _ = out.upgrade().map(|out| out.try_send(told.into()));
        }
        self.calls.forget(self.number);
    }
}

#[derive(Debug, Clone, Copy)]
pub struct OutgoingCall<'a> {
    pub method: &'a str,
    /// The parameters as they came from the caller.
    pub params: Option<&'a RawValue>,
}

/// Says that nobody waits for a call any more.
fn cancelled(number: u64, reason: &str) -> Notification {
    let params = serde_json::json!({"requestId": number, "reason": reason});
    let params = serde_json::value::to_raw_value(&params).ok();
    Notification { method: "notifications/cancelled".to_owned(), params }
}
