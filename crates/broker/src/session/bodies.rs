//! The bodies of a session. The configuration may replace them while the session is open.
//!
//! An upstream lives as long as its session, so that calls borrow it: the list only grows, and one that is no longer
//! configured is skipped. Its server ends when no call uses it, after [`RETIREMENT`] at most. Tasks of a process end with it,
//! as when it is restarted.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use super::{Session, lock};
use crate::BrokerConfig;
use crate::upstream::{Spec, Upstream};

/// How often the bodies of one session can be replaced; a new session starts at zero.
const REPLACEMENTS_MAX: usize = 1000;
/// How long calls in progress may keep a body that was removed.
const RETIREMENT: Duration = Duration::from_secs(3600);

#[derive(Default)]
pub(crate) struct Bodies {
    first: Vec<Arc<Upstream>>,
    later: Later,
    /// Locked while they change.
    changes: Mutex<Changes>,
}

#[derive(Default)]
struct Changes {
    added: usize,
    /// Whether the session has ended: nothing is started any more.
    is_closed: bool,
}

type Later = OnceLock<Box<Added>>;

struct Added {
    body: Arc<Upstream>,
    next: Later,
}

impl Bodies {
    pub(super) fn new(first: Vec<Arc<Upstream>>) -> Self {
        Self { first, ..Self::default() }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Upstream>> {
        self.all().filter(|body| !body.is_retired())
    }

    /// Also those that are no longer configured.
    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<Upstream>> {
        let later = std::iter::successors(self.later.get(), |added| added.next.get());
        self.first.iter().chain(later.map(|added| &added.body))
    }

    pub(super) fn close(&self) {
        lock(&self.changes).is_closed = true;
    }

    fn push(&self, body: Arc<Upstream>) {
        let mut end = &self.later;
        while let Some(added) = end.get() {
            end = &added.next;
        }
        let _ = end.set(Box::new(Added { body, next: Later::default() }));
    }

    /// Makes these the bodies of the session, and returns those that no longer are. `start` starts a new one.
    fn replace(
        &self,
        specs: impl FnOnce() -> Vec<Arc<Spec>>,
        start: impl Fn(Arc<Spec>) -> Arc<Upstream>,
    ) -> Vec<Arc<Upstream>> {
        let mut changes = lock(&self.changes);
        if changes.is_closed {
            return Vec::new();
        }
        // Read under the lock: of two changes at once, the later one wins.
        let specs = specs();
        // An embedded body has a specification of its own in each session, and no configuration.
        let is_kept = |body: &Upstream, spec: &Arc<Spec>| {
            body.has_spec(spec) || body.spec().is_embedded() && body.spec().name == spec.name
        };
        let removed: Vec<Arc<Upstream>> =
            self.iter().filter(|body| !specs.iter().any(|spec| is_kept(body, spec))).cloned().collect();
        let new: Vec<Arc<Spec>> =
            specs.into_iter().filter(|spec| !self.iter().any(|body| is_kept(body, spec))).collect();
        if changes.added + new.len() > REPLACEMENTS_MAX {
            tracing::warn!(
                "the bodies of a session were replaced too often: new ones are only in new sessions"
            );
        } else {
            changes.added += new.len();
            new.into_iter().for_each(|spec| self.push(start(spec)));
        }
        // Last, so that the name of a changed body is never unknown.
        removed.iter().for_each(|body| body.retire());
        removed
    }
}

impl Session {
    /// Starts the bodies that the settings have added or changed, ends those that they no longer have, and notifies the host
    /// if its list of tools has changed.
    pub(crate) async fn apply_settings(self: &Arc<Self>, config: &Arc<BrokerConfig>) {
        let specs = || config.body_specs(&self.host.principal);
        for body in self.bodies.replace(specs, |spec| self.starter.start(config, spec)) {
            let name = &body.spec().name;
            lock(&self.compared_listings).remove(name);
            self.routes.forget_server(&body, self.upstream(name).is_some());
            tokio::spawn(async move {
                body.wait_unused(RETIREMENT).await;
                body.shutdown().await;
            });
        }
        self.refresh_catalogue(config).await;
    }
}
