//! The health of a session's bodies: recorded in the store for the operator, and which of them a turn has to do without.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::Session;
use crate::BrokerConfig;
use crate::upstream::{Health, Upstream};

/// A contact that changes nothing is recorded again after this time.
const REFRESH: Duration = Duration::from_secs(60);

/// A body whose tools a turn does not have, or cannot call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingServer {
    pub name: String,
    /// Why it is unavailable, in words of the server too; `None` while it starts for the first time.
    pub reason: Option<String>,
}

/// What this session recorded last about each body, and when, so that most events need no access to the store.
#[derive(Debug, Default)]
pub(super) struct RecordedHealth(HashMap<String, (Option<String>, Instant)>);

impl RecordedHealth {
    /// Records that this body works or does not, unless the same was recorded less than [`REFRESH`] ago.
    pub(super) async fn record(&mut self, config: &BrokerConfig, session: &Session, body: &str) {
        let Some(upstream) = session.bodies.iter().find(|one| one.spec().name == body) else { return };
        let Some(error) = contact(upstream) else { return };
        if let Some((recorded, at)) = self.0.get(body)
            && *recorded == error
            && at.elapsed() < REFRESH
        {
            return;
        }
        let stored = config.store.server_health().record_news(body, error.as_deref(), REFRESH).await;
        match stored {
            Ok(()) => drop(self.0.insert(body.to_owned(), (error, Instant::now()))),
            Err(reason) => {
                tracing::warn!(session = session.id, body, %reason, "the health of a server is not stored");
            }
        }
    }
}

/// The error of the last contact, or `Some(None)` if it worked. `None` while nothing is known.
fn contact(upstream: &Upstream) -> Option<Option<String>> {
    if upstream.spec().is_embedded() {
        return None;
    }
    let status = upstream.status();
    match (status.health, status.reason) {
        (Health::Connected | Health::Unavailable, Some(reason)) => Some(Some(reason)),
        (Health::Connected, None) if upstream.is_listed() => Some(None),
        _ => None,
    }
}

impl Session {
    /// The bodies whose tools are unknown because their first start is in progress.
    pub(crate) fn starting_servers(&self) -> Vec<String> {
        self.configured().filter(|body| !body.knows_tools()).map(|body| body.spec().name.clone()).collect()
    }

    /// Waits until the tools of every body are known, or its first start has failed; at most until the session is `limit` old.
    pub(crate) async fn wait_for_servers(&self, limit: Duration) {
        let all = async {
            for body in self.configured() {
                body.wait_tools_known().await;
            }
        };
        let _ = timeout(limit.saturating_sub(self.opened_at.elapsed()), all).await;
    }

    pub(crate) fn missing_servers(&self) -> Vec<MissingServer> {
        self.configured().filter_map(|body| missing(body)).collect()
    }

    fn configured(&self) -> impl Iterator<Item = &Arc<Upstream>> {
        self.bodies.iter().filter(|body| !body.spec().is_embedded())
    }
}

fn missing(body: &Upstream) -> Option<MissingServer> {
    let name = body.spec().name.clone();
    if !body.knows_tools() {
        return Some(MissingServer { name, reason: None });
    }
    let status = body.status();
    let is_missing = status.health == Health::Unavailable || !body.has_listed();
    is_missing.then(|| {
        let reason = status.reason.unwrap_or_else(|| super::CONNECTING.to_owned());
        MissingServer { name, reason: Some(reason) }
    })
}
