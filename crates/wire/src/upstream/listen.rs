//! The one request that stays open to a server without sessions: on it the server tells of changes, for as long as the
//! connection lasts. A server that ends it is asked again after a while; one that refuses it, ever more seldom.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep};

use super::calls::Calls;
use super::stateless::{self, LISTEN, Stateless, Watched};
use super::way::Way;
use super::{CallEvent, Calling, Running, Said};
use crate::message::{ErrorObject, Outcome};
use crate::serve::code;

/// How long a server is left alone before it is asked again.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pauses {
    /// After it has ended the request, or refused it once. One that ends it sooner has refused it.
    first: Duration,
    /// How many times longer after each refusal.
    growth: u32,
    /// However often it refuses.
    most: Duration,
}

impl Default for Pauses {
    fn default() -> Self {
        Self { first: Duration::from_secs(5), growth: 2, most: Duration::from_secs(300) }
    }
}

impl Pauses {
    fn after(self, refusals: u32) -> Duration {
        let longer = self.growth.checked_pow(refusals.saturating_sub(1));
        longer.and_then(|times| self.first.checked_mul(times)).unwrap_or(self.most).min(self.most)
    }
}

/// Whoever listens to a server.
pub(super) struct Listener {
    pub(super) way: Arc<Way>,
    pub(super) alone: Arc<Stateless>,
    pub(super) calls: Arc<Calls>,
    pub(super) said: mpsc::Sender<Said>,
    pub(super) pauses: Pauses,
}

/// Why the server is not listened to any longer.
enum Over {
    /// Something else is of interest.
    Changed,
    /// The server has ended it.
    Ended,
    /// The server will not have it.
    Refused,
    /// The server does not know what it is, and will not learn it while the connection lasts.
    NoMethod,
}

impl Listener {
    /// Listens until the connection is over, nobody wants to hear, or the server has no such request.
    pub(super) async fn run(self) {
        tokio::select! {
            () = self.listen_again() => {}
            () = self.said.closed() => {}
            _ = self.calls.until_closed() => {}
        }
    }

    async fn listen_again(&self) {
        let mut watching = self.alone.watching();
        let mut refusals = 0_u32;
        loop {
            let began = Instant::now();
            let over = self.listen(&mut watching).await;
            let is_short = began.elapsed() < self.pauses.first;
            match over {
                Over::NoMethod => return,
                Over::Changed if is_short => continue,
                Over::Changed => {
                    refusals = 0;
                    continue;
                }
                Over::Ended if !is_short => refusals = 0,
                Over::Ended | Over::Refused => refusals = refusals.saturating_add(1),
            }
            // One that has refused is left alone for a moment, whatever is of interest by then.
            let least = if refusals == 0 { Duration::ZERO } else { self.pauses.first };
            sleep(least).await;
            tokio::select! {
                () = sleep(self.pauses.after(refusals).saturating_sub(least)) => {}
                // It may not refuse what is asked now.
                _ = watching.changed() => refusals = 0,
            }
        }
    }

    /// Listens until that is over.
    async fn listen(&self, watching: &mut watch::Receiver<Watched>) -> Over {
        let Some(mut running) = self.begin(watching).await else { return Over::Refused };
        loop {
            let event = tokio::select! {
                event = running.next() => event,
                _ = watching.changed() => return Over::Changed,
            };
            match event {
                CallEvent::Notification(notification) => {
                    if let Some(change) = stateless::change(notification) {
                        let _ = self.said.send(Said::Notification(change)).await;
                    }
                }
                CallEvent::Request(_) => {}
                CallEvent::Done(Outcome::Error(error)) => {
                    let code = serde_json::from_str::<ErrorObject>(error.get()).map(|error| error.code);
                    let is_unknown = code.is_ok_and(|code| code == code::METHOD_NOT_FOUND);
                    return if is_unknown { Over::NoMethod } else { Over::Refused };
                }
                CallEvent::Done(Outcome::Result(_)) | CallEvent::Lost(_) => return Over::Ended,
            }
        }
    }

    /// Asks for everything that is of interest now.
    async fn begin(&self, watching: &mut watch::Receiver<Watched>) -> Option<Running> {
        let wanted = stateless::listening(&watching.borrow_and_update());
        let params = serde_json::value::to_raw_value(&wanted).ok();
        let calling = Calling { method: LISTEN, params: params.as_deref() };
        let begun = self.way.begin_alone(&self.alone, calling, std::future::pending()).await;
        begun.ok().flatten()
    }
}

#[cfg(test)]
mod tests;
