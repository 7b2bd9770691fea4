//! Serializes the turns of a thread, whichever channel starts them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::OwnedMutexGuard;

type Lock = tokio::sync::Mutex<()>;

/// The locks of the threads in use.
#[derive(Debug, Default)]
pub(super) struct ThreadLocks(Mutex<HashMap<String, Weak<Lock>>>);

impl ThreadLocks {
    /// Waits until the thread is free.
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
