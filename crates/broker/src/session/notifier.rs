//! What the host is told outside calls. Owns the quiet start: no list is said to have changed before the host has got its
//! first list of tools, because until then there is nothing to correct. What is held back is sent after it.

use std::sync::{Arc, Mutex};

use embody_wire::Notification;
use embody_wire::server::{Era, Host};

use super::exposure::{Exposure, has_text};
use super::lock;
use crate::Principal;
use crate::stateless::Listeners;

/// The host outside calls: on its own stream, or whichever requests of it listen.
#[derive(Clone)]
pub(crate) struct Ear {
    host: Arc<Host<Principal>>,
    pub(crate) listeners: Arc<Listeners>,
    start: Arc<Mutex<QuietStart>>,
    exposure: Arc<Exposure>,
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
    NotAsked,
    Asked,
    Answered,
}

impl Ear {
    pub(super) fn new(host: &Arc<Host<Principal>>, exposure: &Arc<Exposure>) -> Self {
        let (host, exposure) = (Arc::clone(host), Arc::clone(exposure));
        Self { host, listeners: Arc::default(), start: Arc::default(), exposure }
    }

    /// Passes on what an upstream says. It is marked first, if it has an origin that counts and carries any text.
    pub(crate) async fn pass_on(&self, origin: Option<&str>, notification: Notification) {
        if let Some(origin) = origin.filter(|_| has_text(&notification)) {
            self.exposure.mark(origin).await;
        }
        self.tell(notification).await;
    }

    /// Tells it something; that a list has changed only after the first list of tools.
    pub(crate) async fn tell(&self, notification: Notification) {
        if !lock(&self.start).holds_back(&notification) {
            self.send(notification).await;
        }
    }

    /// Whether the host has got a list of tools.
    pub(super) fn has_listed(&self) -> bool {
        lock(&self.start).first_list == FirstList::Answered
    }

    /// The host asks for the list of tools.
    pub(super) fn list_asked(&self) {
        let mut start = lock(&self.start);
        if start.first_list == FirstList::NotAsked {
            start.first_list = FirstList::Asked;
        }
    }

    /// The list of tools is written to the host: nothing is held back from now on. What was, is to be told now.
    #[must_use]
    pub(super) fn list_answered(&self) -> Vec<Notification> {
        lock(&self.start).answered()
    }

    /// The same for a host that has not asked in this session, and may have its lists from another process or an earlier
    /// session; `None` if it is not such a host.
    pub(super) fn assume_listed(&self) -> Option<Vec<Notification>> {
        let may_have_listed = self.host.era() == Era::Stateless || self.host.is_resumed();
        let mut start = lock(&self.start);
        if !may_have_listed || start.first_list != FirstList::NotAsked {
            return None;
        }
        Some(start.answered())
    }

    async fn send(&self, notification: Notification) {
        if self.host.era() == Era::Stateless {
            self.listeners.tell(notification);
        } else {
            self.host.notify(notification).await;
        }
    }
}

impl QuietStart {
    fn answered(&mut self) -> Vec<Notification> {
        self.first_list = FirstList::Answered;
        std::mem::take(&mut self.held_back)
    }

    fn holds_back(&mut self, notification: &Notification) -> bool {
        let method = &notification.method;
        if self.first_list == FirstList::Answered || !method.ends_with("/list_changed") {
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
