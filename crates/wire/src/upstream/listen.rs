//! The long-lived `subscriptions/listen` request to a stateless server. It is sent again when it ends; after rejections the
//! delay grows. When the watched set changes, a new request replaces it; the old one is read until shortly after the server
//! acknowledges the new one. After a gap without a request, everything is reported as changed.

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

/// How long to wait before the request is sent again.
#[derive(Debug, Clone, Copy)]
pub(super) struct ListenBackoff {
    /// Delay after the request ended or was rejected once. A request that ends sooner counts as rejected.
    first: Duration,
    /// Factor by which the delay grows with each rejection.
    growth: u32,
    most: Duration,
    /// How long the old request is read after the server has acknowledged the new one.
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
    pub(super) messages: mpsc::Sender<ServerMessage>,
    pub(super) pauses: ListenBackoff,
}

enum ListenEnd {
    /// The server ended the new request while the old one was still open. The old one is ended now, and one request is
    /// sent again.
    Alone,
    Ended,
    Refused,
    /// The server does not know the method. This does not change while the connection lasts.
    NoMethod,
}

impl Listener {
    /// Runs until the connection closes, no listener is left, or the server turns out not to have this request.
    pub(super) async fn run(self) {
        tokio::select! {
            () = self.listen_again() => {}
            () = self.messages.closed() => {}
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
                ListenEnd::NoMethod => return,
                ListenEnd::Alone => continue,
                ListenEnd::Ended if !is_short => refusals = 0,
                ListenEnd::Ended | ListenEnd::Refused => refusals = refusals.saturating_add(1),
            }
            // After a rejection the first delay always applies, even if the watched set has changed.
            let least = if refusals == 0 { Duration::ZERO } else { self.pauses.first };
            sleep(least).await;
            tokio::select! {
                () = sleep(self.pauses.after(refusals).saturating_sub(least)) => {}
                // The server may accept the new request.
                _ = watching.changed() => refusals = 0,
            }
        }
    }

    async fn listen(&self, watching: &mut watch::Receiver<Watched>, mut gap: Gap) -> ListenEnd {
        let Some(mut running) = self.begin(watching).await else { return ListenEnd::Refused };
        let (mut replaced, mut is_agreed) = (None::<ReplacedRequest>, false);
        // When the next request for a changed set is due.
        let mut renewal = None::<Instant>;
        loop {
            let event = tokio::select! {
                event = running.next() => event,
                event = ReplacedRequest::next(&mut replaced) => {
                    match event {
                        Some(CallEvent::Notification(notification)) => self.report(notification).await,
                        Some(CallEvent::Request(_)) => {}
                        Some(CallEvent::Done(_) | CallEvent::Lost(_)) | None => {
                            replaced = None;
                            // From here on no request is open until the server acknowledges the new one.
                            gap = if is_agreed { gap } else { Gap::Some };
                        }
                    }
                    continue;
                }
                _ = watching.changed(), if renewal.is_none() => {
                    renewal = Some(Instant::now());
                    continue;
                }
                () = until(renewal), if replaced.is_none() => {
                    let now = Instant::now();
                    let Some(renewed) = self.begin(watching).await else {
                        // The current request still works.
                        renewal = Some(now + self.pauses.first);
                        continue;
                    };
                    let last = now + self.pauses.first;
                    replaced = Some(ReplacedRequest { running: std::mem::replace(&mut running, renewed), until: last });
                    (renewal, is_agreed) = (None, false);
                    continue;
                }
            };
            match event {
                CallEvent::Notification(notification) if notification.method == ACKNOWLEDGED => {
                    is_agreed = true;
                    if let Some(replaced) = &mut replaced {
                        replaced.until = replaced.until.min(Instant::now() + self.pauses.grace);
                    }
                    let gap = std::mem::replace(&mut gap, Gap::None);
                    let missed =
                        if gap == Gap::Some { missed(&notification, &watching.borrow()) } else { Vec::new() };
                    self.report(notification).await;
                    for change in missed {
                        self.report(change).await;
                    }
                }
                CallEvent::Notification(notification) => self.report(notification).await,
                CallEvent::Request(_) => {}
                // The server may allow only one such request at a time.
                CallEvent::Done(_) | CallEvent::Lost(_) if replaced.is_some() && !is_agreed => {
                    return ListenEnd::Alone;
                }
                CallEvent::Done(Outcome::Error(error)) if !is_agreed => {
                    let code = serde_json::from_str::<ErrorObject>(error.get()).map(|error| error.code);
                    let is_unknown = code.is_ok_and(|code| code == code::METHOD_NOT_FOUND);
                    return if is_unknown { ListenEnd::NoMethod } else { ListenEnd::Refused };
                }
                CallEvent::Done(_) | CallEvent::Lost(_) => return ListenEnd::Ended,
            }
        }
    }

    async fn report(&self, notification: Notification) {
        if let Some(change) = stateless::change(notification) {
            let _ = self.messages.send(ServerMessage::Notification(change)).await;
        }
    }

    /// Sends a request for everything that is currently watched.
    async fn begin(&self, watching: &mut watch::Receiver<Watched>) -> Option<PendingCall> {
        let wanted = stateless::listening(&watching.borrow_and_update());
        let params = serde_json::value::to_raw_value(&wanted).ok();
        let call = OutgoingCall { method: LISTEN, params: params.as_deref() };
        let begun = self.transport.begin_stateless(&self.stateless, call, std::future::pending()).await;
        begun.ok().flatten()
    }
}

/// Waits until `then`, or for ever if it is `None`.
async fn until(then: Option<Instant>) {
    match then {
        // A timer would be a millisecond late.
        Some(then) if then <= Instant::now() => {}
        Some(then) => sleep_until(then).await,
        None => std::future::pending().await,
    }
}

/// Whether there was a time without an open request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gap {
    None,
    Some,
}

/// The request that is being replaced. It stays open until the server acknowledges the new one and for the grace
/// period, up to a limit.
struct ReplacedRequest {
    running: PendingCall,
    until: Instant,
}

impl ReplacedRequest {
    /// The next event on it; `None` once the grace period is over. Pending for ever if there is no such request.
    async fn next(replaced: &mut Option<Self>) -> Option<CallEvent> {
        let Some(Self { running, until }) = replaced else { return std::future::pending().await };
        tokio::select! {
            event = running.next() => Some(event),
            () = sleep_until(*until) => None,
        }
    }
}

/// Notifications for what may have changed during a gap, limited to what the server has acknowledged.
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
