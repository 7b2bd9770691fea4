//! One thing at a time in a thread: turns of one conversation follow each other, whichever channel begins them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::OwnedMutexGuard;

type Lock = tokio::sync::Mutex<()>;

/// The threads in which something goes on.
#[derive(Debug, Default)]
pub(super) struct ThreadLocks(Mutex<HashMap<String, Weak<Lock>>>);

impl ThreadLocks {
    /// Waits until nothing else goes on in this thread.
    pub(super) async fn lock(&self, thread: &str) -> OwnedMutexGuard<()> {
        let lock = {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            known.retain(|_, lock| lock.strong_count() > 0);
            let lock = known.get(thread).and_then(Weak::upgrade).unwrap_or_default();
            known.insert(thread.to_owned(), Arc::downgrade(&lock));
            lock
        };
        lock.lock_owned().await
    }
}
