//! Tells waiting tasks that something changed, in this process or in another one on the same store.
//!
//! A wake says "look again", no more: there may be one too many, never one too few. Only topics that change rarely are
//! announced; the audit chain and the outbox are not among them.

mod watch;

use std::sync::Arc;

use tokio::sync::{Notify, watch as latest};
use tokio::task::AbortHandle;

use crate::error::{Error, ErrorKind, Result};
use crate::store::{DatabaseUrl, Store};

/// The channel that PostgreSQL carries the topics on.
pub(crate) const CHANNEL: &str = "embody";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    Approvals,
    Pins,
    Instructions,
    Schedules,
    /// A message arrived, or one was finished so that the next of its conversation may start.
    Incoming,
    /// A message is ready to send, or the one before it was sent.
    Outgoing,
    ReplicaMessages,
}

impl Topic {
    const ALL: [Self; 7] = [
        Self::Approvals,
        Self::Pins,
        Self::Instructions,
        Self::Schedules,
        Self::Incoming,
        Self::Outgoing,
        Self::ReplicaMessages,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Approvals => "approvals",
            Self::Pins => "pins",
            Self::Instructions => "instructions",
            Self::Schedules => "schedules",
            Self::Incoming => "incoming",
            Self::Outgoing => "outgoing",
            Self::ReplicaMessages => "letters",
        }
    }
}

/// Waits for changes of one topic. It does not keep the store open.
#[derive(Debug)]
pub struct Changes {
    seen: latest::Receiver<u64>,
}

impl Changes {
    /// Returns when something may have changed since the last return, or since this was made. An error says that the
    /// store is closed. Giving up halfway loses nothing.
    pub async fn changed(&mut self) -> Result<()> {
        self.seen.changed().await.map_err(|_| Error::new(ErrorKind::Other, "the store is closed"))
    }
}

impl Store {
    /// From now on, the changes of this topic. Look at the state after calling this, not before.
    pub fn changes(&self, topic: Topic) -> Changes {
        self.watch().hub.subscribe(topic)
    }

    /// Notifies tasks that wait in this process; call it when the change is durable.
    pub(crate) fn notify(&self, topic: Topic) {
        self.watch().hub.notify(topic);
    }
}

/// The task that looks out for changes by others; it ends with the store.
pub(crate) struct Watch {
    hub: Arc<Hub>,
    task: AbortHandle,
}

impl Watch {
    pub(crate) fn start(url: &DatabaseUrl) -> Self {
        let hub = Arc::new(Hub::default());
        let task = tokio::spawn(watch::watch(Arc::clone(&hub), url.clone())).abort_handle();
        Self { hub, task }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Where those who wait and those who wake meet.
#[derive(Default)]
struct Hub {
    approvals: latest::Sender<u64>,
    pins: latest::Sender<u64>,
    instructions: latest::Sender<u64>,
    schedules: latest::Sender<u64>,
    incoming: latest::Sender<u64>,
    outgoing: latest::Sender<u64>,
    replica_messages: latest::Sender<u64>,
    subscribed: Notify,
}

impl Hub {
    fn of(&self, topic: Topic) -> &latest::Sender<u64> {
        match topic {
            Topic::Approvals => &self.approvals,
            Topic::Pins => &self.pins,
            Topic::Instructions => &self.instructions,
            Topic::Schedules => &self.schedules,
            Topic::Incoming => &self.incoming,
            Topic::Outgoing => &self.outgoing,
            Topic::ReplicaMessages => &self.replica_messages,
        }
    }

    fn subscribe(&self, topic: Topic) -> Changes {
        let seen = self.of(topic).subscribe();
        self.subscribed.notify_one();
        Changes { seen }
    }

    fn notify(&self, topic: Topic) {
        self.of(topic).send_modify(|count| *count = count.wrapping_add(1));
    }

    fn notify_all(&self) {
        Topic::ALL.into_iter().for_each(|topic| self.notify(topic));
    }

    /// Wakes by the name that came over the channel; one that a newer version knows wakes everybody.
    fn notify_named(&self, name: &str) {
        match Topic::ALL.into_iter().find(|topic| topic.name() == name) {
            Some(topic) => self.notify(topic),
            None => self.notify_all(),
        }
    }

    fn is_watched(&self) -> bool {
        Topic::ALL.into_iter().any(|topic| self.of(topic).receiver_count() > 0)
    }

    async fn watched(&self) {
        while !self.is_watched() {
            self.subscribed.notified().await;
        }
    }
}
