//! Whether a call is cancelled, or over: asked often, waited for by every call, and hardly ever so while it runs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::sync::Notify;

/// Shared by a call and by whoever may cancel it. It is never taken back.
#[derive(Clone, Default)]
pub(crate) struct Cancel(Arc<State>);

#[derive(Default)]
struct State {
    is_cancelled: AtomicBool,
    reason: OnceLock<String>,
    news: Notify,
}

impl Cancel {
    /// Cancels the call.
    pub(crate) fn now(&self) {
        self.0.is_cancelled.store(true, Ordering::Release);
        self.0.news.notify_waiters();
    }

    /// The same, with the reason of the side that cancels it.
    pub(crate) fn because(&self, reason: Option<String>) {
        if let Some(reason) = reason {
            let _ = self.0.reason.set(reason);
        }
        self.now();
    }

    /// Why it is cancelled, if that was said.
    pub(crate) fn reason(&self) -> Option<&str> {
        self.0.reason.get().map(String::as_str)
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
