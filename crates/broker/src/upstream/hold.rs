//! Who uses a connection: as long as somebody does, its server is not stopped for being idle.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use embody_wire::upstream::Link;
use tokio::sync::Notify;
use tokio::time::Instant;

/// A connection that is in use. Dropping it says that it no longer is.
#[derive(Debug)]
pub struct Hold {
    link: Arc<Link>,
    number: u32,
    _in_use: Use,
}

impl Hold {
    /// Called where the connection cannot be taken away meanwhile.
    pub(super) fn new(link: Arc<Link>, number: u32, uses: &Arc<Uses>) -> Self {
        Self { link, number, _in_use: Use::new(uses) }
    }

    /// Which of its upstream's connections it is: a later one has a higher number.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }
}

impl Deref for Hold {
    type Target = Arc<Link>;

    fn deref(&self) -> &Arc<Link> {
        &self.link
    }
}

/// One use, of a connection that is there or that somebody waits for: before he had it, it could be gone again.
#[derive(Debug)]
pub(super) struct Use(Arc<Uses>);

impl Use {
    pub(super) fn new(uses: &Arc<Uses>) -> Self {
        uses.count.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(uses))
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        self.0.touch();
        if self.0.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.released.notify_one();
        }
    }
}

/// The uses of one upstream's connections.
#[derive(Debug)]
pub(super) struct Uses {
    count: AtomicUsize,
    /// Something on the server waits for somebody, without a call.
    is_kept: AtomicBool,
    last: Mutex<Instant>,
    released: Notify,
}

impl Default for Uses {
    fn default() -> Self {
        Self {
            count: AtomicUsize::new(0),
            is_kept: AtomicBool::new(false),
            last: Mutex::new(Instant::now()),
            released: Notify::new(),
        }
    }
}

impl Uses {
    /// It was just used.
    pub(super) fn touch(&self) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Whether it must not be stopped although nobody calls it.
    pub(super) fn keep(&self, is_kept: bool) {
        if self.is_kept.swap(is_kept, Ordering::AcqRel) && !is_kept {
            self.touch();
            self.released.notify_one();
        }
    }

    /// Since when nobody uses it; `None` while somebody does.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        if self.count.load(Ordering::Acquire) > 0 || self.is_kept.load(Ordering::Acquire) {
            return None;
        }
        Some(*self.last.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns when somebody stops using it.
    pub(super) async fn released(&self) {
        self.released.notified().await;
    }
}
