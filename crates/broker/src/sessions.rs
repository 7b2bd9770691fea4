//! The sessions that are open, by the id that their host has on the wire.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use embody_store::Scope;

use crate::session::{Session, lock};

/// The open sessions.
#[derive(Default)]
pub(crate) struct Sessions {
    open: Mutex<HashMap<String, Arc<Session>>>,
}

impl Sessions {
    pub(crate) fn get(&self, id: &str) -> Option<Arc<Session>> {
        lock(&self.open).get(id).cloned()
    }

    /// Enters a session; the one that had this id before, if there was one.
    pub(crate) fn enter(&self, session: Arc<Session>) -> Option<Arc<Session>> {
        lock(&self.open).insert(session.id.clone(), session)
    }

    pub(crate) fn leave(&self, id: &str) -> Option<Arc<Session>> {
        lock(&self.open).remove(id)
    }

    /// Any session of this user and agent.
    pub(crate) fn of(&self, user: &str, agent: &str) -> Option<Arc<Session>> {
        let is_theirs =
            |session: &&Arc<Session>| session.scope.user() == user && session.scope.agent() == agent;
        lock(&self.open).values().find(is_theirs).cloned()
    }

    /// Every user and agent that has a session, once.
    pub(crate) fn scopes(&self) -> Vec<Scope> {
        let scopes: HashSet<Scope> = lock(&self.open).values().map(|session| session.scope.clone()).collect();
        scopes.into_iter().collect()
    }

    pub(crate) fn take_all(&self) -> Vec<Arc<Session>> {
        lock(&self.open).drain().map(|(_, session)| session).collect()
    }
}
