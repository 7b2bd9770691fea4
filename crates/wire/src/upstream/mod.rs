//! The client side of a connection to an upstream server: one [`Link`], shared by many callers, with raw payloads both ways.
//! Ids and progress tokens are rewritten on the wire and restored on the way back; the rest of a payload is not changed.

mod call_channel;
mod calls;
mod child;
mod era_cache;
mod era_probe;
mod http;
mod in_process;
mod inbox;
mod link;
mod listen;
mod pipe;
pub mod reaper;
mod route;
mod sse;
mod stateless;
mod transport;
mod transport_probe;

pub use self::child::{ChildSpec, StderrTail};
pub use self::era_cache::EraCache;
pub use self::in_process::InProcessServer;
pub use self::link::Link;
pub(crate) use self::route::is_web;
pub use self::route::{ConnectOptions, Freshness, Route, TokenSource};
pub use self::stateless::InputRequired;

use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinHandle};

use crate::error::Error;
use crate::message::{Notification, Outcome, Request, Response};
use crate::send_receipt::SendReceipt;
use crate::server::OutboundMessage;
use crate::server::in_process::{CALLER_LEFT, RunningCall};

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

/// A call that was sent. To abandon it, cancel it with [`Link::cancel`]. On a pipe and in this process, dropping it also
/// cancels it at the server (on a pipe, if there is room); on a legacy event stream it counts as running until it is
/// answered or cancelled.
pub struct PendingCall {
    number: u64,
    events: call_channel::CallReceiver,
    calls: std::sync::Arc<calls::Calls>,
    carrier: Carrier,
}

/// What brings the events of a call, if it is not the connection.
enum Carrier {
    Connection,
    /// The task that reads the response on its own HTTP request.
    Http(AbortHandle),
    /// The queue of a pipe, for a cancellation on drop.
    Pipe(mpsc::WeakSender<OutboundMessage>),
    /// The call itself.
    InProcess {
        running: RunningCall,
        max_bytes: usize,
    },
}

impl PendingCall {
    /// Waits for the next event of the call.
    pub async fn next(&mut self) -> CallEvent {
        let event = match &mut self.carrier {
            Carrier::InProcess { running, .. } if running.is_running() => tokio::select! {
                biased;
                event = self.events.next() => event,
                outcome = running.run() => {
                    self.finish(outcome);
                    self.events.next().await
                }
            },
            _ => self.events.next().await,
        };
        event.unwrap_or(CallEvent::Lost(Error::NoAnswer))
    }

    /// Delivers the outcome of a call in this process after its other events. A cancelled call has no response.
    fn finish(&self, outcome: Option<Outcome>) {
        let (Some(outcome), Carrier::InProcess { max_bytes, .. }) = (outcome, &self.carrier) else { return };
        let (Outcome::Result(payload) | Outcome::Error(payload)) = &outcome;
        if payload.get().len() > *max_bytes {
            return self.calls.fail(self.number, Error::Protocol("the answer is longer than allowed"));
        }
        let response = Response { id: Some(self.number.into()), outcome };
        self.calls.answer(response, calls::MessageSource::Call(self.number));
    }

    /// A call that is answered locally and was not sent.
    fn answered(outcome: Outcome, calls: &std::sync::Arc<calls::Calls>) -> Self {
        let (slot, events) = call_channel::call_channel();
        slot.finish(CallEvent::Done(outcome));
        let calls = std::sync::Arc::clone(calls);
        Self { number: 0, events, calls, carrier: Carrier::Connection }
    }

    fn set_task(&mut self, task: &JoinHandle<()>) {
        self.carrier = Carrier::Http(task.abort_handle());
    }

    /// Waits until the call has been sent; `None` if it was given up before.
    async fn once_sent(
        self,
        receipt: SendReceipt,
        given_up: impl Future<Output = ()>,
    ) -> Result<Option<Self>, Error> {
        match receipt.unless(given_up).await {
            None => Ok(None),
            Some(Ok(sent)) => sent.map(|()| Some(self)),
            // The connection was closed meanwhile; unsent messages are not sent.
            Some(Err(_)) => Err(self.calls.closed().map_or(Error::NoAnswer, Error::Closed)),
        }
    }

    /// The id on the wire.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }
}

impl std::fmt::Debug for PendingCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PendingCall").field("number", &self.number).finish_non_exhaustive()
    }
}

impl Drop for PendingCall {
    fn drop(&mut self) {
        match &self.carrier {
            Carrier::Http(carrier) => carrier.abort(),
            Carrier::Pipe(out) if self.calls.cancel(self.number, CALLER_LEFT) => {
                let message = cancelled(self.number, CALLER_LEFT).print();
                // If the queue is full, the cancellation is not sent.
                let _ = out.upgrade().map(|out| out.try_send(message.into()));
            }
            Carrier::InProcess { .. } => _ = self.calls.cancel(self.number, CALLER_LEFT),
            Carrier::Connection | Carrier::Pipe(_) => {}
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
