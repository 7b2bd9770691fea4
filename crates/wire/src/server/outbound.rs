//! The path back to a host: the queue of a pipe, the replay buffer of a POST, or a client in this process.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc;

use super::errors::code;
use super::in_process::ClientEnd;
use super::multi_round::MultiRoundCall;
use super::replay_buffer::ReplayBuffer;
use crate::message::{ErrorObject, Message, Outcome, Response};

/// A message for a host, as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OutboundMessage {
    pub(crate) text: String,
    /// For the response to a request: the code of its error, or 0.
    pub(crate) answer: Option<i64>,
    pub(crate) on_flushed: OnFlushed,
}

impl From<String> for OutboundMessage {
    fn from(text: String) -> Self {
        Self { text, answer: None, on_flushed: OnFlushed::default() }
    }
}

impl From<&Message> for OutboundMessage {
    fn from(message: &Message) -> Self {
        let answer = match message {
            Message::Response(Response { outcome: Outcome::Result(_), .. }) => Some(0),
            // An error without a code still counts as an error.
            Message::Response(Response { outcome: Outcome::Error(error), .. }) => Some(
                serde_json::from_str(error.get())
                    .map_or(code::INTERNAL_ERROR, |error: ErrorObject| error.code),
            ),
            Message::Request(_) | Message::Notification(_) => None,
        };
        Self { answer, ..message.print().into() }
    }
}

/// Callbacks that run once, when the response's last byte is handed to the transport. They do not run if that never
/// happens.
#[derive(Clone, Default)]
pub(crate) struct OnFlushed(Arc<Mutex<Vec<Callback>>>);

type Callback = Box<dyn FnOnce() + Send>;

impl OnFlushed {
    pub(crate) fn add(&self, callback: impl FnOnce() + Send + 'static) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(callback));
    }

    /// Called by the transport. A message that is sent again does not run them again.
    pub(crate) fn run(&self) {
        let all = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        all.into_iter().for_each(|callback| callback());
    }
}

impl fmt::Debug for OnFlushed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnFlushed")
    }
}

impl PartialEq for OnFlushed {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for OnFlushed {}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Disconnected;

#[derive(Clone)]
pub(crate) enum Outbound {
    Pipe(mpsc::Sender<OutboundMessage>),
    Buffer(Arc<ReplayBuffer>),
    /// The current request of a call that takes several. Messages are dropped between two requests.
    MultiRound(Arc<MultiRoundCall>),
    /// A client in this process, with the number of the call that the messages belong to.
    InProcess(Arc<dyn ClientEnd>, Option<u64>),
}

impl Outbound {
    /// Sends a message, waiting for room. Returns the response to a request that the client does not take.
    pub(crate) async fn send(&self, message: Message) -> Result<Option<Response>, Disconnected> {
        self.send_with(message, OnFlushed::default()).await
    }

    /// The same, with callbacks.
    pub(crate) async fn send_with(
        &self,
        message: Message,
        on_flushed: OnFlushed,
    ) -> Result<Option<Response>, Disconnected> {
        let text = |message: &Message| OutboundMessage { on_flushed: on_flushed.clone(), ..message.into() };
        match self {
            Self::Pipe(queue) => queue.send(text(&message)).await.map_err(|_| Disconnected)?,
            Self::Buffer(buffer) => buffer.push(text(&message)).await?,
            Self::MultiRound(call) => {
                if let Some(outbound) = call.outbound() {
                    return Box::pin(outbound.send_with(message, on_flushed)).await;
                }
            }
            Self::InProcess(client, call) => {
                on_flushed.run();
                return Ok(client.receive(message, *call));
            }
        }
        Ok(None)
    }

    /// Sends a message that may be lost when the host is not listening; waits for room in a pipe.
    pub(crate) async fn offer(&self, message: Message) {
        match self {
            Self::Buffer(buffer) => drop(buffer.offer((&message).into())),
            Self::Pipe(_) | Self::MultiRound(_) | Self::InProcess(..) => drop(self.send(message).await),
        }
    }

    /// [`Outbound::offer`] without waiting: `false` if a pipe has no room now.
    pub(crate) fn offer_now(&self, message: Message) -> bool {
        match self {
            Self::Pipe(queue) => {
                !matches!(queue.try_send((&message).into()), Err(mpsc::error::TrySendError::Full(_)))
            }
            Self::Buffer(buffer) => {
                let _ = buffer.offer((&message).into());
                true
            }
            Self::MultiRound(call) => call.outbound().is_none_or(|outbound| outbound.offer_now(message)),
            Self::InProcess(client, call) => {
                client.receive(message, *call);
                true
            }
        }
    }

    /// Sends a message if there is room for it now.
    pub(crate) fn try_send(&self, message: Message) {
        match self {
            Self::Pipe(queue) => drop(queue.try_send((&message).into())),
            Self::Buffer(buffer) => buffer.try_push((&message).into()),
            Self::MultiRound(call) => {
                if let Some(outbound) = call.outbound() {
                    outbound.try_send(message);
                }
            }
            Self::InProcess(client, call) => drop(client.receive(message, *call)),
        }
    }

    /// Whether messages do not travel over HTTP.
    pub(crate) fn is_pipe(&self) -> bool {
        match self {
            Self::Pipe(_) | Self::InProcess(..) => true,
            Self::Buffer(_) => false,
            Self::MultiRound(call) => call.outbound().is_some_and(|outbound| outbound.is_pipe()),
        }
    }

    /// Ends the current stream, if the host can resume it.
    pub(crate) fn release(&self) {
        if let Self::Buffer(buffer) = self {
            buffer.release();
        }
    }
}
