//! The way back to a host: one shared queue (a pipe), or a lane of its own (a POST).

use std::sync::Arc;

use tokio::sync::mpsc;

use super::lane::{Lane, Letter};
use super::rounds::Rounds;

/// The host is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gone;

/// Where a message for the host goes.
#[derive(Clone)]
pub(crate) enum Way {
    /// The one queue of a pipe.
    Queue(mpsc::Sender<Letter>),
    /// A lane.
    Lane(Arc<Lane>),
    /// Wherever the host waits for a call that goes on over several requests. While it does not, nothing is heard.
    Rounds(Arc<Rounds>),
}

impl Way {
    /// Sends a message, waiting for room.
    pub(crate) async fn send(&self, letter: impl Into<Letter>) -> Result<(), Gone> {
        let letter = letter.into();
        match self {
            Self::Queue(queue) => queue.send(letter).await.map_err(|_| Gone),
            Self::Lane(lane) => lane.push(letter).await,
            Self::Rounds(rounds) => match rounds.way() {
                Some(way) => Box::pin(way.send(letter)).await,
                None => Ok(()),
            },
        }
    }

    /// Sends a message that may be lost when nobody listens, waiting for room in a pipe.
    pub(crate) async fn offer(&self, text: String) -> Result<(), Gone> {
        match self {
            Self::Queue(queue) => queue.send(text.into()).await.map_err(|_| Gone),
            Self::Lane(lane) => lane.offer(text.into()),
            Self::Rounds(_) => self.send(text).await,
        }
    }

    /// The same without waiting: `false` if a pipe has no room now.
    pub(crate) fn offer_now(&self, text: String) -> bool {
        match self {
            Self::Queue(queue) => {
                !matches!(queue.try_send(text.into()), Err(mpsc::error::TrySendError::Full(_)))
            }
            Self::Lane(lane) => {
                let _ = lane.offer(text.into());
                true
            }
            Self::Rounds(rounds) => rounds.way().is_none_or(|way| way.offer_now(text)),
        }
    }

    /// Sends a message if there is room for it now.
    pub(crate) fn try_send(&self, text: String) {
        match self {
            Self::Queue(queue) => drop(queue.try_send(text.into())),
            Self::Lane(lane) => lane.try_push(text.into()),
            Self::Rounds(rounds) => {
                if let Some(way) = rounds.way() {
                    way.try_send(text);
                }
            }
        }
    }

    /// Whether it ends in a pipe.
    pub(crate) fn is_pipe(&self) -> bool {
        match self {
            Self::Queue(_) => true,
            Self::Lane(_) => false,
            Self::Rounds(rounds) => rounds.way().is_some_and(|way| way.is_pipe()),
        }
    }

    pub(crate) fn release(&self) {
        if let Self::Lane(lane) = self {
            lane.release();
        }
    }
}
