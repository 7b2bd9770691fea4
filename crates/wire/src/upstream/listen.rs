//! The one request that stays open to a server without sessions: on it the server tells of changes, for as long as the
//! connection lasts. A server that ends it is asked again after a while; one that refuses it, ever more seldom.
//!
//! When something else is of interest another request takes its place. The other one is read on until the server has agreed to
//! that one, and a little longer, as it may be on another connection. Where nobody listened for a while, everything may have
//! changed.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until};

use super::calls::Calls;
use super::stateless::{self, ACKNOWLEDGED, LISTEN, Stateless, Watched};
use super::transport::Transport;
use super::{CallEvent, OutgoingCall, PendingCall, ServerMessage};
use crate::message::{ErrorObject, Notification, Outcome};
use crate::server::code;

/// How long a server is left stateless before it is asked again.
#[derive(Debug, Clone, Copy)]
pub(super) struct ListenBackoff {
    /// After it has ended the request, or refused it once. One that ends it sooner has refused it.
    first: Duration,
    /// How many times longer after each refusal.
    growth: u32,
    most: Duration,
    /// How long a request is read on when the server has agreed to the next.
    grace: Duration,
}

impl Default for ListenBackoff {
    fn default() -> Self {
        Self {
            first: Duration::from_secs(5),
            growth: 2,
            most: Duration::from_secs(300),
            grace: Duration::from_secs(1),
        }
    }
}

impl ListenBackoff {
    fn after(self, refusals: u32) -> Duration {
        let longer = self.growth.checked_pow(refusals.saturating_sub(1));
        longer.and_then(|times| self.first.checked_mul(times)).unwrap_or(self.most).min(self.most)
    }
}

pub(super) struct Listener {
    pub(super) transport: Arc<Transport>,
    pub(super) stateless: Arc<Stateless>,
    pub(super) calls: Arc<Calls>,
    pub(super) said: mpsc::Sender<ServerMessage>,
    pub(super) pauses: ListenBackoff,
}

/// Why the server is not listened to any longer.
enum Over {
    /// The server has ended the second of two, of which the first is ended now: it is asked once more, for one stateless.
    Alone,
    Ended,
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
        let mut watching = self.stateless.watching();
        let (mut refusals, mut gap) = (0_u32, Gap::None);
        loop {
            let began = Instant::now();
            let over = self.listen(&mut watching, gap).await;
            let is_short = began.elapsed() < self.pauses.first;
            gap = Gap::Some;
            match over {
                Over::NoMethod => return,
                Over::Alone => continue,
                Over::Ended if !is_short => refusals = 0,
                Over::Ended | Over::Refused => refusals = refusals.saturating_add(1),
            }
            // One that has refused is left stateless for a moment, whatever is of interest by then.
            let least = if refusals == 0 { Duration::ZERO } else { self.pauses.first };
            sleep(least).await;
            tokio::select! {
                () = sleep(self.pauses.after(refusals).saturating_sub(least)) => {}
                // It may not refuse what is asked now.
                _ = watching.changed() => refusals = 0,
            }
        }
    }

    async fn listen(&self, watching: &mut watch::Receiver<Watched>, mut gap: Gap) -> Over {
        let Some(mut running) = self.begin(watching).await else { return Over::Refused };
        let (mut before, mut is_agreed) = (None::<Before>, false);
        // When something else is to be asked for.
        let mut renewal = None::<Instant>;
        loop {
            let event = tokio::select! {
                event = running.next() => event,
                event = Before::next(&mut before) => {
                    match event {
                        Some(CallEvent::Notification(notification)) => self.tell(notification).await,
                        Some(CallEvent::Request(_)) => {}
                        Some(CallEvent::Done(_) | CallEvent::Lost(_)) | None => {
                            before = None;
                            // From here on nobody tells, until the server agrees to the other one.
                            gap = if is_agreed { gap } else { Gap::Some };
                        }
                    }
                    continue;
                }
                _ = watching.changed(), if renewal.is_none() => {
                    renewal = Some(Instant::now());
                    continue;
                }
                () = until(renewal), if before.is_none() => {
                    let now = Instant::now();
                    let Some(renewed) = self.begin(watching).await else {
                        // This one is still good.
                        renewal = Some(now + self.pauses.first);
                        continue;
                    };
                    let last = now + self.pauses.first;
                    before = Some(Before { running: std::mem::replace(&mut running, renewed), until: last });
                    (renewal, is_agreed) = (None, false);
                    continue;
                }
            };
            match event {
                CallEvent::Notification(notification) if notification.method == ACKNOWLEDGED => {
                    is_agreed = true;
                    if let Some(before) = &mut before {
                        before.until = before.until.min(Instant::now() + self.pauses.grace);
                    }
                    let gap = std::mem::replace(&mut gap, Gap::None);
                    let missed =
                        if gap == Gap::Some { missed(&notification, &watching.borrow()) } else { Vec::new() };
                    self.tell(notification).await;
                    for change in missed {
                        self.tell(change).await;
                    }
                }
                CallEvent::Notification(notification) => self.tell(notification).await,
                CallEvent::Request(_) => {}
                // Perhaps it has but one such request at a time.
                CallEvent::Done(_) | CallEvent::Lost(_) if before.is_some() && !is_agreed => {
                    return Over::Alone;
                }
                CallEvent::Done(Outcome::Error(error)) if !is_agreed => {
                    let code = serde_json::from_str::<ErrorObject>(error.get()).map(|error| error.code);
                    let is_unknown = code.is_ok_and(|code| code == code::METHOD_NOT_FOUND);
                    return if is_unknown { Over::NoMethod } else { Over::Refused };
                }
                CallEvent::Done(_) | CallEvent::Lost(_) => return Over::Ended,
            }
        }
    }

    async fn tell(&self, notification: Notification) {
        if let Some(change) = stateless::change(notification) {
            let _ = self.said.send(ServerMessage::Notification(change)).await;
        }
    }

    /// Asks for everything that is of interest now.
    async fn begin(&self, watching: &mut watch::Receiver<Watched>) -> Option<PendingCall> {
        let wanted = stateless::listening(&watching.borrow_and_update());
        let params = serde_json::value::to_raw_value(&wanted).ok();
        let call = OutgoingCall { method: LISTEN, params: params.as_deref() };
        let begun = self.transport.begin_stateless(&self.stateless, call, std::future::pending()).await;
        begun.ok().flatten()
    }
}

/// Waits until then; for ever, if there is no such time.
async fn until(then: Option<Instant>) {
    match then {
        // A timer would be a millisecond late.
        Some(then) if then <= Instant::now() => {}
        Some(then) => sleep_until(then).await,
        None => std::future::pending().await,
    }
}

/// Whether there was a time in which nobody listened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gap {
    None,
    Some,
}

/// The request whose place another one takes: it stays until the server has agreed to that and a little longer, but not for
/// ever.
struct Before {
    running: PendingCall,
    until: Instant,
}

impl Before {
    /// What comes on it; `None` when it has stayed long enough. Nothing ever, if there is none.
    async fn next(before: &mut Option<Self>) -> Option<CallEvent> {
        let Some(Self { running, until }) = before else { return std::future::pending().await };
        tokio::select! {
            event = running.next() => Some(event),
            () = sleep_until(*until) => None,
        }
    }
}

/// What may have changed while nobody listened, of what the server has agreed to tell of.
fn missed(acknowledged: &Notification, watched: &Watched) -> Vec<Notification> {
    #[derive(Deserialize)]
    struct Params {
        notifications: Agreed,
    }
    #[derive(Deserialize, Default)]
    #[serde(rename_all = "camelCase", default)]
    struct Agreed {
        tools_list_changed: bool,
        prompts_list_changed: bool,
        resources_list_changed: bool,
        resource_subscriptions: Vec<String>,
    }
    let params = acknowledged.params.as_deref().and_then(|params| serde_json::from_str(params.get()).ok());
    let Some(Params { notifications: agreed }) = params else { return Vec::new() };
    let lists = [
        ("tools", agreed.tools_list_changed),
        ("prompts", agreed.prompts_list_changed),
        ("resources", agreed.resources_list_changed),
    ];
    let lists = lists.into_iter().filter(|(_, is_told)| *is_told);
    let lists = lists
        .map(|(list, _)| Notification { method: format!("notifications/{list}/list_changed"), params: None });
    let is_told = |uri: &&String| agreed.resource_subscriptions.contains(uri);
    let updated = watched.resources().filter(is_told).map(|uri| Notification {
        method: "notifications/resources/updated".to_owned(),
        params: serde_json::value::to_raw_value(&json!({ "uri": uri })).ok(),
    });
    lists.chain(updated).collect()
}

#[cfg(test)]
mod tests;
