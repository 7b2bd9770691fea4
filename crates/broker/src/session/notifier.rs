//! Notifications to the host outside calls. `list_changed` waits until the host has received its first tool list; before that
//! a change does not matter to it.

use std::sync::{Arc, Mutex};

use embody_store::Principal;
use embody_wire::Notification;
use embody_wire::server::{Era, Host};

use super::lock;
use super::untrusted_reads::{UntrustedReads, has_text};
use crate::stateless::Listeners;

#[derive(Clone)]
pub(crate) struct HostNotifier {
    host: Arc<Host<Principal>>,
    pub(crate) listeners: Arc<Listeners>,
    start: Arc<Mutex<QuietStart>>,
    untrusted_reads: Arc<UntrustedReads>,
}

/// The state until the first tool list is written to the host.
#[derive(Debug, Default)]
struct QuietStart {
    first_list: FirstList,
    /// Changes of other lists, without duplicates.
    held_back: Vec<Notification>,
}

/// The progress of a session's first `tools/list`.
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

    /// Forwards a notification of an upstream. Marks its origin as read first, if the origin is untrusted and the
    /// notification has text.
    pub(crate) async fn forward(&self, origin: Option<&str>, notification: Notification) {
        if let Some(origin) = origin.filter(|_| has_text(&notification)) {
            self.untrusted_reads.mark(origin).await;
        }
        self.notify(notification).await;
    }

    /// Notifies the host. A `list_changed` waits for the first tool list.
    pub(crate) async fn notify(&self, notification: Notification) {
        if !lock(&self.start).holds_back(&notification) {
            self.send(notification).await;
        }
    }

    pub(super) fn has_list(&self) -> bool {
        lock(&self.start).first_list == FirstList::Sent
    }

    pub(super) fn on_list_requested(&self) {
        let mut start = lock(&self.start);
        if start.first_list == FirstList::NotRequested {
            start.first_list = FirstList::Requested;
        }
    }

    /// Called when the tool list is written to the host: returns the notifications that were waiting and stops holding them
    /// back.
    #[must_use]
    pub(super) fn on_list_sent(&self) -> Vec<Notification> {
        lock(&self.start).mark_sent()
    }

    /// The same for a host that did not list in this session but may have its lists from another process or an earlier
    /// session; `None` for any other host.
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
        // The tool list is compared when it is written.
        let is_about_tools = method == "notifications/tools/list_changed";
        if !is_about_tools && self.held_back.iter().all(|held| held.method != *method) {
            self.held_back.push(notification.clone());
        }
        true
    }
}
