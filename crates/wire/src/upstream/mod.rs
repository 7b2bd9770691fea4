//! The client side of a connection to an upstream server: one [`Link`], shared by many callers, with raw payloads both ways.
//! Ids and progress tokens are rewritten on the wire and restored on the way back; the rest of a payload is not changed.

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

/// A message of the server that belongs to no call.
#[derive(Debug)]
pub enum ServerMessage {
    Notification(Notification),
    /// The response must carry its id.
    Request(Request),
}

#[derive(Debug)]
pub enum CallEvent {
    Notification(Notification),
    Request(Request),
    Done(Outcome),
    /// The call gets no response, and no event follows. Whether it took effect is unknown, unless
    /// [`Error::was_not_executed`] says so.
    Lost(Error),
}

/// A call that was sent. To abandon it, cancel it with [`Link::cancel`]. On a pipe, dropping it also cancels it at the
/// server, if there is room; on a legacy event stream it counts as running until it is answered or cancelled.
#[derive(Debug)]
pub struct PendingCall {
    number: u64,
    events: call_channel::CallReceiver,
    calls: std::sync::Arc<calls::Calls>,
    /// The task that reads the response on its own HTTP request.
    carrier: Option<AbortHandle>,
    /// The queue for a cancellation on drop.
    out: Option<mpsc::WeakSender<OutboundMessage>>,
}

impl PendingCall {
    /// Waits for the next event of the call.
    pub async fn next(&mut self) -> CallEvent {
        self.events.next().await.unwrap_or(CallEvent::Lost(Error::NoAnswer))
    }

    /// A call that is answered locally and was not sent.
    fn answered(outcome: Outcome, calls: &std::sync::Arc<calls::Calls>) -> Self {
        let (slot, events) = call_channel::call_channel();
        slot.finish(CallEvent::Done(outcome));
        Self { number: 0, events, calls: std::sync::Arc::clone(calls), carrier: None, out: None }
    }

    fn carried_by(&mut self, carrier: JoinHandle<()>) {
        self.carrier = Some(carrier.abort_handle());
    }

    /// The id on the wire.
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
            // If the queue is full, the cancellation is not sent.
            let _ = out.upgrade().map(|out| out.try_send(told.into()));
        }
        self.calls.forget(self.number);
    }
}

#[derive(Debug, Clone, Copy)]
pub struct OutgoingCall<'a> {
    pub method: &'a str,
    /// The parameters as the caller gave them.
    pub params: Option<&'a RawValue>,
}

/// Builds `notifications/cancelled` for a call.
fn cancelled(number: u64, reason: &str) -> Notification {
    let params = serde_json::json!({"requestId": number, "reason": reason});
    let params = serde_json::value::to_raw_value(&params).ok();
    Notification { method: "notifications/cancelled".to_owned(), params }
}
