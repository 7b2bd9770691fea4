//! How often the servers of one session came back: each connection counts its own, and what is new is added to the server's.

use std::collections::HashMap;

use super::Meter;
use crate::session::Session;

/// What was counted already.
#[derive(Debug, Default)]
pub(crate) struct Restarts(HashMap<String, u32>);

impl Restarts {
    /// Something about this server has changed.
    pub(crate) fn count(&mut self, meter: &Meter, session: &Session, upstream: &str) {
        let Some(found) = session.upstream(upstream) else { return };
        let restarts = found.state().restarts;
        let counted = self.0.entry(upstream.to_owned()).or_default();
        meter.body(upstream).restarts.add(restarts.saturating_sub(*counted).into());
        *counted = restarts;
    }
}
