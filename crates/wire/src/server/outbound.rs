//! The path back to a host: the queue of a pipe, or the replay buffer of a POST.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc;

use super::multi_round::MultiRoundCall;
use super::replay_buffer::ReplayBuffer;

/// A message for a host.
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
    /// The current request of a call that takes several. Messages are dropped while there is none.
    MultiRound(Arc<MultiRoundCall>),
}

impl Outbound {
    /// Sends a message, waiting for room.
    pub(crate) async fn send(&self, message: impl Into<OutboundMessage>) -> Result<(), Disconnected> {
        let message = message.into();
        match self {
            Self::Pipe(queue) => queue.send(message).await.map_err(|_| Disconnected),
            Self::Buffer(buffer) => buffer.push(message).await,
            Self::MultiRound(call) => match call.outbound() {
                Some(outbound) => Box::pin(outbound.send(message)).await,
                None => Ok(()),
            },
        }
    }

    /// Sends a message that may be lost when the host is not listening; waits for room in a pipe.
    pub(crate) async fn offer(&self, text: String) -> Result<(), Disconnected> {
        match self {
            Self::Buffer(buffer) => buffer.offer(text.into()),
            Self::Pipe(_) | Self::MultiRound(_) => self.send(text).await,
        }
    }

    /// [`Outbound::offer`] without waiting: `false` if a pipe has no room now.
    pub(crate) fn offer_now(&self, text: String) -> bool {
        match self {
            Self::Pipe(queue) => {
                !matches!(queue.try_send(text.into()), Err(mpsc::error::TrySendError::Full(_)))
            }
            Self::Buffer(buffer) => {
                let _ = buffer.offer(text.into());
                true
            }
            Self::MultiRound(call) => call.outbound().is_none_or(|outbound| outbound.offer_now(text)),
        }
    }

    /// Sends a message if there is room for it now.
    pub(crate) fn try_send(&self, text: String) {
        match self {
            Self::Pipe(queue) => drop(queue.try_send(text.into())),
            Self::Buffer(buffer) => buffer.try_push(text.into()),
            Self::MultiRound(call) => {
                if let Some(outbound) = call.outbound() {
                    outbound.try_send(text);
                }
            }
        }
    }

    pub(crate) fn is_pipe(&self) -> bool {
        match self {
            Self::Pipe(_) => true,
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
