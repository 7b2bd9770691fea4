//! Counts the users of a connection: a server in use is not stopped for being idle.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use embody_wire::upstream::Link;
use tokio::sync::Notify;
use tokio::time::Instant;

/// A connection in use; released on drop.
#[derive(Debug)]
pub struct ConnectionLease {
    link: Arc<Link>,
    number: u32,
    _in_use: ConnectionUse,
}

impl ConnectionLease {
    /// The caller must ensure that the connection cannot be removed meanwhile.
    pub(super) fn new(link: Arc<Link>, number: u32, uses: &Arc<ConnectionUses>) -> Self {
        Self { link, number, _in_use: ConnectionUse::new(uses) }
    }

    /// The number of the connection; later connections of the upstream have higher numbers.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }
}

impl Deref for ConnectionLease {
    type Target = Arc<Link>;

    fn deref(&self) -> &Arc<Link> {
        &self.link
    }
}

/// One use of a connection, open or awaited: counting only open ones could stop it again before the caller has it.
#[derive(Debug)]
pub(super) struct ConnectionUse(Arc<ConnectionUses>);

impl ConnectionUse {
    pub(super) fn new(uses: &Arc<ConnectionUses>) -> Self {
        uses.count.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(uses))
    }
}

impl Drop for ConnectionUse {
    fn drop(&mut self) {
        self.0.touch();
        if self.0.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.released.notify_one();
        }
    }
}

#[derive(Debug)]
pub(super) struct ConnectionUses {
    count: AtomicUsize,
    /// The server has pending work without a call.
    keep_alive: AtomicBool,
    last: Mutex<Instant>,
    released: Notify,
}

impl Default for ConnectionUses {
    fn default() -> Self {
        Self {
            count: AtomicUsize::new(0),
            keep_alive: AtomicBool::new(false),
            last: Mutex::new(Instant::now()),
            released: Notify::new(),
        }
    }
}

impl ConnectionUses {
    pub(super) fn touch(&self) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Prevents the idle shutdown although no call runs.
    pub(super) fn set_keep_alive(&self, keep_alive: bool) {
        if self.keep_alive.swap(keep_alive, Ordering::AcqRel) && !keep_alive {
            self.touch();
            self.released.notify_one();
        }
    }

    /// Whether a call uses the connection or waits for it.
    pub(super) fn are_open(&self) -> bool {
        self.count.load(Ordering::Acquire) > 0
    }

    /// When the last use ended; `None` while it is in use.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        if self.count.load(Ordering::Acquire) > 0 || self.keep_alive.load(Ordering::Acquire) {
            return None;
        }
        Some(*self.last.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) async fn released(&self) {
        self.released.notified().await;
    }
}
