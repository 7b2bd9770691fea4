//! The tools of a server before it has listed them: those that it listed last, in any session. A server that is started only
//! when it is needed does not run until then, if its tools are known this way; and any may be stopped when nobody has used it
//! for long enough.
//!
//! Whether it is used is decided where its connection is taken away: whoever wants it has it and keeps it, or starts it
//! anew. Nobody holds a connection that is being ended for this.

use std::pin::Pin;
use std::time::Duration;

use tokio::time::{sleep, sleep_until};

use super::listing;
use super::now::Health;
use super::supervise::Supervisor;
use super::{RawTool, Spec};

/// When it is looked again whether something that is no use has come to its end.
const AGAIN: Duration = Duration::from_secs(1);

/// When a server runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rest {
    /// When it is started.
    pub start: Start,
    /// How long nobody may use it before it is stopped; without one it is not.
    pub idle_stop: Option<Duration>,
}

/// When a server is started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Start {
    /// With the session.
    #[default]
    Eager,
    /// When it is needed, if its tools are known; else with the session.
    Lazy,
}

impl Rest {
    /// Whether a call may be what starts it.
    pub(super) fn is_any(self) -> bool {
        self.start == Start::Lazy || self.idle_stop.is_some()
    }
}

/// The tools of a server as it showed them last, read from where they are kept; `None` if it has never shown any list.
pub(super) type Known = Pin<Box<dyn Future<Output = Option<Vec<RawTool>>> + Send>>;

impl Supervisor {
    /// Takes over the tools that the server listed last, if it has listed them before; a lazy one that has some is then not
    /// started before it is wanted.
    pub(super) async fn remember(&self, known: Option<Known>) {
        let Some(known) = known else { return };
        let Some(tools) = known.await else { return };
        let is_lazy = self.start == Start::Lazy && !tools.is_empty();
        self.now.send_modify(|now| {
            (now.tools, now.is_remembered) = (listing::shared(tools), true);
            if is_lazy {
                now.set(Health::Idle, None);
                (now.is_settled, now.is_trying) = (true, false);
            }
        });
        self.changed.notify_one();
        if is_lazy {
            self.until_wanted().await;
        }
    }

    /// Returns when somebody wants the connection.
    pub(super) async fn until_wanted(&self) {
        let mut now = self.now.subscribe();
        // An error is an upstream that is gone; then this is dropped too.
        let _ = now.wait_for(|now| now.is_wanted).await;
    }

    /// Returns when nobody has used the connection for as long as it may be idle. By then nobody can.
    pub(super) async fn until_idle(&self) {
        let Some(idle) = self.idle_stop else { return std::future::pending().await };
        loop {
            let Some(since) = self.uses.idle_since() else {
                self.uses.released().await;
                continue;
            };
            sleep_until(since + idle).await;
            if self.take_away(idle) {
                tracing::info!(upstream = &*self.upstream, "nobody needs the server: it is stopped");
                self.changed.notify_one();
                return;
            }
            // Used again meanwhile, or there is a question, or a listing is under way.
            if self.uses.idle_since() == Some(since) {
                sleep(AGAIN.min(idle)).await;
            }
        }
    }

    /// Takes the connection away unless it is in use.
    fn take_away(&self, idle: Duration) -> bool {
        self.now.send_if_modified(|now| {
            let is_idle = self.uses.idle_since().is_some_and(|since| since.elapsed() >= idle);
            let is_busy = self.questions.are_open() || now.listed != now.opened;
            if !is_idle || is_busy {
                return false;
            }
            (now.link, now.said) = (None, None);
            now.set(Health::Idle, None);
            now.idle_stops = now.idle_stops.saturating_add(1);
            true
        })
    }
}

/// How long a server may take for its start: a process may have to be fetched first.
pub(super) fn start_timeout(spec: &Spec, factor: u32) -> Duration {
    let is_child = matches!(spec.route, embody_wire::upstream::Route::Child(_));
    let factor = if is_child { factor } else { 1 };
    spec.limits.attempt_timeout.saturating_mul(factor)
}
