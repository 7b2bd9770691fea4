//! Immediate replies to a server that do not block its reader, limited in number.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

use crate::error::Error;

/// Replies in flight. A server that sends requests faster than it reads gets no further replies, and its requests time
/// out.
const MOST: usize = 16;

pub(super) struct Replies(Arc<Semaphore>);

impl Default for Replies {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MOST)))
    }
}

impl Replies {
    /// Sends a reply within the time limit, if there is capacity.
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
