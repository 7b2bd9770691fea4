//! Whether a call is cancelled, or over: asked often, waited for by every call, and hardly ever so while it runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Shared by a call and by whoever may cancel it. It is never taken back.
#[derive(Clone, Default)]
pub(crate) struct Cancel(Arc<State>);

#[derive(Default)]
struct State {
    is_cancelled: AtomicBool,
    news: Notify,
}

impl Cancel {
    /// Cancels the call.
    pub(crate) fn now(&self) {
        self.0.is_cancelled.store(true, Ordering::Release);
        self.0.news.notify_waiters();
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.0.is_cancelled.load(Ordering::Acquire)
    }

    /// Returns when the call is cancelled.
    pub(crate) async fn wait(&self) {
        // Made before the look: it hears of everything that happens from here on.
        let news = self.0.news.notified();
        if !self.is_cancelled() {
            news.await;
        }
    }
}
