//! What is answered to a server at once, without its reader waiting: a few at a time.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

use crate::error::Error;

/// Replies on their way. A server that asks faster than it listens gets no more, and learns of it by its own time limit.
const MOST: usize = 16;

pub(super) struct Replies(Arc<Semaphore>);

impl Default for Replies {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MOST)))
    }
}

impl Replies {
    /// Sends one, if there is room, within this time.
    pub(super) fn send(
        &self,
        limit: Duration,
        reply: impl Future<Output = Result<(), Error>> + Send + 'static,
    ) {
        if let Ok(place) = Arc::clone(&self.0).try_acquire_owned() {
            tokio::spawn(async move {
                let _ = tokio::time::timeout(limit, reply).await;
                drop(place);
            });
        }
    }
}
