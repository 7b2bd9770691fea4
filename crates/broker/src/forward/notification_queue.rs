//! Queues of notifications outside calls, one per upstream and direction, in order: a slow receiver does not block others.
//! Drops notifications that do not fit; equal change notifications are queued once.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use embody_wire::Notification;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::route::is_connected;
use crate::session::{Session, lock};
use crate::upstream::{Roots, Upstream};

const QUEUE_LENGTH: usize = 1_024;
const QUEUE_BYTES: usize = 4 * 1024 * 1024;
const RESERVED_FOR_CHANGES: usize = 256;
/// Limit for sending one notification to an upstream that does not read.
const SEND_TIMEOUT: Duration = Duration::from_secs(5);

/// Notifications count as read from this part of an upstream.
const NOTIFICATIONS: &str = "notifications";

pub(super) struct NotificationQueue {
    waiting: Arc<PendingQueue>,
    work: JoinHandle<()>,
}

#[derive(Default)]
struct PendingQueue {
    queue: Mutex<BoundedQueue>,
    news: Notify,
}

#[derive(Default)]
struct BoundedQueue {
    notifications: VecDeque<Notification>,
    bytes: usize,
}

pub(super) fn to_host(session: &Session, upstream: &str, notification: Notification) {
    let mut queues = lock(&session.routes.to_host);
    let queue = queues.entry(upstream.to_owned()).or_insert_with(|| {
        let (notifier, origin) =
            (session.notifier.clone(), session.origin(upstream, NOTIFICATIONS).map(Arc::<str>::from));
        NotificationQueue::start(move |notification| {
            let (notifier, origin) = (notifier.clone(), origin.clone());
            async move { notifier.forward(origin.as_deref(), notification).await }
        })
    });
    queue.push(notification);
}

/// Queues it for every connected upstream. A change of the roots goes only to those that may list them.
pub(super) fn to_upstreams(session: &Session, notification: &Notification) {
    let is_of_roots = notification.method == "notifications/roots/list_changed";
    let concerns = |upstream: &Upstream| !is_of_roots || *upstream.spec().role.roots() == Roots::Forward;
    let mut queues = lock(&session.routes.to_upstreams);
    for upstream in session.upstreams().filter(|upstream| is_connected(upstream) && concerns(upstream)) {
        let queue = queues.entry(upstream.spec().name.clone()).or_insert_with(|| {
            let upstream = Arc::clone(upstream);
            NotificationQueue::start(move |Notification { method, params }| {
                let upstream = Arc::clone(&upstream);
                async move {
                    // A server that reconnects requests everything again.
                    if !is_connected(&upstream) {
                        return;
                    }
                    let sending = async {
                        if let Ok(link) = upstream.lease().await {
                            let _ = link.notify(&method, params.as_deref()).await;
                        }
                    };
                    let _ = timeout(SEND_TIMEOUT, sending).await;
                }
            })
        });
        queue.push(notification.clone());
    }
}

impl NotificationQueue {
    fn start<F>(deliver: impl Fn(Notification) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send,
    {
        let waiting = Arc::<PendingQueue>::default();
        let work = tokio::spawn({
            let waiting = Arc::clone(&waiting);
            async move {
                loop {
                    let notification = waiting.next().await;
                    deliver(notification).await;
                }
            }
        });
        Self { waiting, work }
    }

    fn push(&self, notification: Notification) {
        if lock(&self.waiting.queue).push(notification) {
            self.waiting.news.notify_one();
        }
    }
}

impl Drop for NotificationQueue {
    fn drop(&mut self) {
        self.work.abort();
    }
}

impl PendingQueue {
    async fn next(&self) -> Notification {
        loop {
            if let Some(notification) = lock(&self.queue).pop() {
                return notification;
            }
            self.news.notified().await;
        }
    }
}

impl BoundedQueue {
    fn push(&mut self, notification: Notification) -> bool {
        let (count, size) = (self.notifications.len(), size(&notification));
        let is_change = is_change(&notification.method);
        if is_change && self.notifications.iter().any(|known| is_same(known, &notification)) {
            return false;
        }
        let has_room = count == 0 || (count < QUEUE_LENGTH && self.bytes + size <= QUEUE_BYTES);
        // The last slots are reserved for change notifications, which are small.
        let has_last =
            is_change && count < QUEUE_LENGTH + RESERVED_FOR_CHANGES && size <= QUEUE_BYTES / QUEUE_LENGTH;
        if !has_room && !has_last {
            return false;
        }
        self.bytes += size;
        self.notifications.push_back(notification);
        true
    }

    fn pop(&mut self) -> Option<Notification> {
        let notification = self.notifications.pop_front()?;
        self.bytes = self.bytes.saturating_sub(size(&notification));
        Some(notification)
    }
}

fn size(notification: &Notification) -> usize {
    notification.method.len() + text(notification).map_or(0, str::len)
}

fn text(notification: &Notification) -> Option<&str> {
    notification.params.as_deref().map(|params| params.get())
}

fn is_same(one: &Notification, other: &Notification) -> bool {
    one.method == other.method && text(one) == text(other)
}

fn is_change(method: &str) -> bool {
    method.ends_with("/list_changed") || method == "notifications/resources/updated"
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::value::RawValue;

    fn note(method: &str, params: &str) -> Notification {
        Notification {
            method: method.to_owned(),
            params: Some(RawValue::from_string(params.to_owned()).unwrap()),
        }
    }

    #[test]
    fn what_is_said_too_often_is_dropped_and_a_change_is_not() {
        let mut queue = BoundedQueue::default();
        for number in 0..QUEUE_LENGTH {
            assert!(queue.push(note("notifications/message", &number.to_string())));
        }
        assert!(!queue.push(note("notifications/message", "\"one too many\"")));
        assert!(queue.push(note("notifications/resources/list_changed", "{}")));
        assert!(!queue.push(note("notifications/resources/list_changed", "{}")), "it waits already");
        assert!(queue.push(note("notifications/prompts/list_changed", "{}")));
        for number in 0..2 * RESERVED_FOR_CHANGES {
            queue.push(note("notifications/resources/updated", &number.to_string()));
        }
        assert_eq!(queue.notifications.len(), QUEUE_LENGTH + RESERVED_FOR_CHANGES);
        assert_eq!(text(&queue.pop().unwrap()), Some("0"));
        while queue.pop().is_some() {}
        assert_eq!(queue.bytes, 0);
    }

    #[test]
    fn bytes_are_counted_too() {
        let mut queue = BoundedQueue::default();
        let large = format!("\"{}\"", "x".repeat(QUEUE_BYTES));
        assert!(queue.push(note("a", &large)), "one that is large by itself passes");
        assert!(!queue.push(note("a", "1")));
        queue.pop();
        assert!(queue.push(note("a", "1")));
        assert!(!queue.push(note("a", &large)));
    }
}
