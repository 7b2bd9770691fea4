//! The way back to a host: one shared queue (a pipe), or a lane of its own (a POST).

use std::sync::Arc;

use tokio::sync::mpsc;

use super::lane::{Lane, Letter};

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
}

impl Way {
    /// Sends a message, waiting for room.
    pub(crate) async fn send(&self, letter: impl Into<Letter>) -> Result<(), Gone> {
        let letter = letter.into();
        match self {
            Self::Queue(queue) => queue.send(letter).await.map_err(|_| Gone),
            Self::Lane(lane) => lane.push(letter).await,
        }
    }

    /// Sends a message that may be lost when nobody listens, waiting for room in a pipe.
    pub(crate) async fn offer(&self, text: String) -> Result<(), Gone> {
        match self {
            Self::Queue(queue) => queue.send(text.into()).await.map_err(|_| Gone),
            Self::Lane(lane) => lane.offer(text.into()),
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
        }
    }

    pub(crate) fn release(&self) {
        if let Self::Lane(lane) = self {
            lane.release();
        }
    }
}
