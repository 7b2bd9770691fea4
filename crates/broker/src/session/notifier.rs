//! Notifications to the host outside calls. `list_changed` is held back until the host has received its first tool list,
//! because before that there is nothing to correct.

use std::sync::{Arc, Mutex};

use embody_wire::Notification;
use embody_wire::server::{Era, Host};

use super::lock;
use super::untrusted_reads::{UntrustedReads, has_text};
use crate::Principal;
use crate::stateless::Listeners;

/// The host outside calls: on its own stream, or whichever requests of it listen.
#[derive(Clone)]
pub(crate) struct HostNotifier {
    host: Arc<Host<Principal>>,
    pub(crate) listeners: Arc<Listeners>,
    start: Arc<Mutex<QuietStart>>,
    untrusted_reads: Arc<UntrustedReads>,
}

/// Until the first list of tools has been written to the host.
#[derive(Debug, Default)]
struct QuietStart {
    first_list: FirstList,
    /// Changes of other lists, each once.
    held_back: Vec<Notification>,
}

/// How far the first `tools/list` of a session is.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum FirstList {
    #[default]
    NotRequested,
    Requested,
    Sent,
}

impl HostNotifier {
    pub(super) fn new(host: &Arc<Host<Principal>>, untrusted_reads: &Arc<UntrustedReads>) -> Self {
        let (host, untrusted_reads) = (Arc::clone(host), Arc::clone(untrusted_reads));
        Self { host, listeners: Arc::default(), start: Arc::default(), untrusted_reads }
    }

    /// Passes on what an upstream says. It is marked first, if it has an origin that counts and carries any text.
    pub(crate) async fn forward(&self, origin: Option<&str>, notification: Notification) {
        if let Some(origin) = origin.filter(|_| has_text(&notification)) {
            self.untrusted_reads.mark(origin).await;
        }
        self.notify(notification).await;
    }

    /// Tells it something; that a list has changed only after the first list of tools.
    pub(crate) async fn notify(&self, notification: Notification) {
        if !lock(&self.start).holds_back(&notification) {
            self.send(notification).await;
        }
    }

    /// Whether the host has got a list of tools.
    pub(super) fn has_list(&self) -> bool {
        lock(&self.start).first_list == FirstList::Sent
    }

    pub(super) fn on_list_requested(&self) {
        let mut start = lock(&self.start);
        if start.first_list == FirstList::NotRequested {
            start.first_list = FirstList::Requested;
        }
    }

    /// The list of tools is written to the host: nothing is held back from now on. What was, is to be told now.
    #[must_use]
    pub(super) fn on_list_sent(&self) -> Vec<Notification> {
        lock(&self.start).mark_sent()
    }

    /// The same for a host that has not asked in this session, and may have its lists from another process or an earlier
    /// session; `None` if it is not such a host.
    pub(super) fn assume_listed(&self) -> Option<Vec<Notification>> {
        let may_have_listed = self.host.era() == Era::Stateless || self.host.is_resumed();
        let mut start = lock(&self.start);
        if !may_have_listed || start.first_list != FirstList::NotRequested {
            return None;
        }
        Some(start.mark_sent())
    }

    async fn send(&self, notification: Notification) {
        if self.host.era() == Era::Stateless {
            self.listeners.notify(notification);
        } else {
            self.host.notify(notification).await;
        }
    }
}

impl QuietStart {
    fn mark_sent(&mut self) -> Vec<Notification> {
        self.first_list = FirstList::Sent;
        std::mem::take(&mut self.held_back)
    }

    fn holds_back(&mut self, notification: &Notification) -> bool {
        let method = &notification.method;
        if self.first_list == FirstList::Sent || !method.ends_with("/list_changed") {
            return false;
        }
        // Whether the tools are others than those in the list is compared when it is written.
        let is_about_tools = method == "notifications/tools/list_changed";
        if !is_about_tools && self.held_back.iter().all(|held| held.method != *method) {
            self.held_back.push(notification.clone());
        }
        true
    }
}
