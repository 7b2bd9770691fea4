//! Lazy start and idle shutdown. The last tools that a server listed, in any session, stand for it until it lists them again,
//! so that a lazy server need not run before its first use.
//!
//! Idleness is decided under the same lock that removes the connection: a caller either holds a lease or triggers a new start.

use std::pin::Pin;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::{sleep, sleep_until};

use super::listing;
use super::state::Health;
use super::supervisor::Supervisor;
use super::{RawTool, Spec};

/// How often to check again while something other than a use keeps the connection open.
const RECHECK: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IdleShutdown {
    pub start: Start,
    /// How long it may be unused before it is stopped; `None` disables that.
    pub idle_stop: Option<Duration>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Start {
    #[default]
    Eager,
    // Started on demand if its tools are known, otherwise with the session.
    Lazy,
}

impl IdleShutdown {
    /// Whether a call may start it.
    pub(super) fn can_be_idle(self) -> bool {
        self.start == Start::Lazy || self.idle_stop.is_some()
    }
}

/// Loads the last listing of a server; `None` if it has never listed its tools.
pub(super) type LastKnownTools = Pin<Box<dyn Future<Output = Option<Vec<RawTool>>> + Send>>;

impl Supervisor {
    /// Takes over the server's last listing, if any. A lazy server with known tools then waits until it is wanted.
    pub(super) async fn load_known_tools(&self, known: Option<LastKnownTools>) {
        let Some(known) = known else { return };
        let Some(tools) = known.await else { return };
        let is_lazy = self.start == Start::Lazy && !tools.is_empty();
        self.state.send_modify(|state| {
            (state.tools, state.is_remembered) = (listing::shared(tools), true);
            if is_lazy {
                state.set(Health::Idle, None);
                (state.is_settled, state.is_trying) = (true, false);
            }
        });
        self.changed.notify_one();
        if is_lazy {
            self.wait_until_wanted().await;
        }
    }

    pub(super) async fn wait_until_wanted(&self) {
        let mut state = self.state.subscribe();
        // An error means that the upstream is gone; this future is then dropped too.
        let _ = state.wait_for(|state| state.is_wanted).await;
    }

    /// Returns when the connection was unused for the idle limit. It is removed by then, so it cannot be leased.
    pub(super) async fn wait_until_idle(&self) {
        let Some(idle) = self.idle_stop else { return std::future::pending().await };
        loop {
            let Some(since) = self.uses.idle_since() else {
                self.uses.released().await;
                continue;
            };
            sleep_until(since + idle).await;
            if self.try_disconnect(idle) {
                tracing::info!(upstream = &*self.upstream, "the server is idle and is stopped");
                self.changed.notify_one();
                return;
            }
            // It was used again meanwhile, or a request or a listing is in progress.
            if self.uses.idle_since() == Some(since) {
                sleep(RECHECK.min(idle)).await;
            }
        }
    }

    /// Removes the connection unless it is in use.
    fn try_disconnect(&self, idle: Duration) -> bool {
        self.state.send_if_modified(|state| {
            let is_idle = self.uses.idle_since().is_some_and(|since| since.elapsed() >= idle);
            let is_busy = self.request_slots.has_open() || state.listed != state.opened;
            if !is_idle || is_busy {
                return false;
            }
            (state.link, state.messages) = (None, None);
            state.set(Health::Idle, None);
            state.idle_stops = state.idle_stops.saturating_add(1);
            true
        })
    }
}

/// The start timeout of a server: a process may have to be downloaded first.
pub(super) fn start_timeout(spec: &Spec, factor: u32) -> Duration {
    let is_child = matches!(spec.route, embody_wire::upstream::Route::Child(_));
    let factor = if is_child { factor } else { 1 };
    spec.limits.attempt_timeout.saturating_mul(factor)
}
