//! The open sessions, by their id on the wire.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use embody_store::{Principal, Scope};
use embody_wire::server::Host;

use crate::session::{Session, lock};

/// Stateless sessions per principal: each has its own connections, and a host that changes its client info with every request
/// would open one each time.
const STATELESS_PER_PRINCIPAL_MAX: usize = 64;
const STATELESS_MAX: usize = 1024;

#[derive(Default)]
pub(crate) struct Sessions {
    open: Mutex<HashMap<String, Arc<Session>>>,
}

pub(crate) struct InUse {
    pub(crate) session: Arc<Session>,
}

impl InUse {
    fn new(session: &Arc<Session>) -> Self {
        session.users.fetch_add(1, Ordering::AcqRel);
        Self { session: Arc::clone(session) }
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        *lock(&self.session.used_at) = Instant::now();
        self.session.users.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Sessions {
    pub(crate) fn get(&self, id: &str) -> Option<Arc<Session>> {
        lock(&self.open).get(id).cloned()
    }

    pub(crate) fn leave(&self, id: &str) -> Option<Arc<Session>> {
        lock(&self.open).remove(id)
    }

    /// Removes the session if it is this host's: another host may have resumed it meanwhile.
    pub(crate) fn leave_as(&self, id: &str, host: &Arc<Host<Principal>>) -> Option<Arc<Session>> {
        let mut sessions = lock(&self.open);
        let is_theirs = sessions.get(id).is_some_and(|session| Arc::ptr_eq(&session.host, host));
        is_theirs.then(|| sessions.remove(id)).flatten()
    }

    /// The session with this id and host; opened if it does not exist.
    pub(crate) fn get_or_open(
        &self,
        id: &str,
        host: &Arc<Host<Principal>>,
        open: impl FnOnce() -> embody_store::Result<Arc<Session>>,
    ) -> embody_store::Result<Arc<Session>> {
        let mut sessions = lock(&self.open);
        if let Some(session) = sessions.get(id).filter(|session| Arc::ptr_eq(&session.host, host)) {
            return Ok(Arc::clone(session));
        }
        let session = open()?;
        sessions.insert(id.to_owned(), Arc::clone(&session));
        Ok(session)
    }

    /// The session with this id; opened if it does not exist. Also returns an unused session that was evicted, which the
    /// caller must end.
    pub(crate) fn enter_or_open(
        &self,
        id: &str,
        principal: &Principal,
        open: impl FnOnce() -> embody_store::Result<Arc<Session>>,
    ) -> Result<(InUse, Option<Arc<Session>>), String> {
        let mut sessions = lock(&self.open);
        if let Some(session) = sessions.get(id) {
            return Ok((InUse::new(session), None));
        }
        let stateless = || sessions.values().filter(|session| session.is_stateless());
        let own = || stateless().filter(|session| session.host.principal == *principal);
        let mut leaves = None;
        if own().count() >= STATELESS_PER_PRINCIPAL_MAX {
            leaves = Some(
                evicted(own().map(EvictionCandidate::of))
                    .ok_or_else(|| too_many(STATELESS_PER_PRINCIPAL_MAX))?,
            );
        } else if stateless().count() >= STATELESS_MAX {
            leaves =
                Some(evicted(stateless().map(EvictionCandidate::of)).ok_or_else(|| too_many(STATELESS_MAX))?);
        }
        let session = open().map_err(|error| error.to_string())?;
        let left = leaves.and_then(|id| sessions.remove(&id));
        sessions.insert(id.to_owned(), Arc::clone(&session));
        Ok((InUse::new(&session), left))
    }

    pub(crate) fn use_stateless(&self, id: &str, principal: &Principal) -> Option<InUse> {
        let sessions = lock(&self.open);
        let session = sessions.get(id).filter(|session| session.is_stateless());
        session.filter(|session| session.host.principal == *principal).map(InUse::new)
    }

    /// Removes stateless sessions that were idle for this long and have no task.
    pub(crate) fn take_idle(&self, idle: Duration) -> Vec<Arc<Session>> {
        let mut sessions = lock(&self.open);
        let is_idle = |session: &Session| {
            session.is_stateless()
                && session.users.load(Ordering::Acquire) == 0
                && lock(&session.used_at).elapsed() >= idle
                && !session.routes.is_busy()
        };
        let ids: Vec<String> =
            sessions.iter().filter(|(_, session)| is_idle(session)).map(|(id, _)| id.clone()).collect();
        ids.iter().filter_map(|id| sessions.remove(id)).collect()
    }

    pub(crate) fn all(&self) -> Vec<Arc<Session>> {
        lock(&self.open).values().cloned().collect()
    }

    pub(crate) fn of(&self, user: &str, agent: &str) -> Option<Arc<Session>> {
        let is_theirs =
            |session: &&Arc<Session>| session.scope.user() == user && session.scope.agent() == agent;
        lock(&self.open).values().find(is_theirs).cloned()
    }

    /// The scope of this host's session, if it is the only session of that scope.
    pub(crate) fn last_of_its_scope(&self, id: &str, host: &Arc<Host<Principal>>) -> Option<Scope> {
        let sessions = lock(&self.open);
        let session = sessions.get(id).filter(|session| Arc::ptr_eq(&session.host, host))?;
        let is_only = sessions.values().filter(|other| other.scope == session.scope).count() == 1;
        is_only.then(|| session.scope.clone())
    }

    /// All users and agents with a session, without duplicates.
    pub(crate) fn scopes(&self) -> Vec<Scope> {
        let scopes: HashSet<Scope> = lock(&self.open).values().map(|session| session.scope.clone()).collect();
        scopes.into_iter().collect()
    }

    pub(crate) fn take_all(&self) -> Vec<Arc<Session>> {
        lock(&self.open).drain().map(|(_, session)| session).collect()
    }
}

struct EvictionCandidate {
    id: String,
    is_in_use: bool,
    /// A task would end with the session.
    is_busy: bool,
    used_at: Instant,
}

impl EvictionCandidate {
    fn of(session: &Arc<Session>) -> Self {
        Self {
            id: session.id.clone(),
            is_in_use: session.users.load(Ordering::Acquire) > 0,
            is_busy: session.routes.is_busy(),
            used_at: *lock(&session.used_at),
        }
    }
}

/// Never a session in use; prefers those without a task, and among them the least recently used.
fn evicted(sessions: impl Iterator<Item = EvictionCandidate>) -> Option<String> {
    let unused = sessions.filter(|session| !session.is_in_use);
    unused.min_by_key(|session| (session.is_busy, session.used_at)).map(|session| session.id)
}

fn too_many(most: usize) -> String {
    format!("{most} hosts without a session are already being served; try again later")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_session_without_a_task_is_evicted() {
        let start = Instant::now();
        let stay = |id: &str, is_in_use, is_busy, second| EvictionCandidate {
            id: id.to_owned(),
            is_in_use,
            is_busy,
            used_at: start + Duration::from_secs(second),
        };
        let leaves = |sessions: Vec<EvictionCandidate>| evicted(sessions.into_iter());
        let all = || {
            vec![stay("used", true, false, 0), stay("busy", false, true, 1), stay("older", false, false, 2)]
        };
        let more = || all().into_iter().chain([stay("younger", false, false, 3)]).collect();
        assert_eq!(leaves(more()).as_deref(), Some("older"));
        let tasks_only = all().into_iter().filter(|session| session.id != "older").collect();
        assert_eq!(leaves(tasks_only).as_deref(), Some("busy"), "rather a task than nobody else");
        assert_eq!(leaves(vec![stay("used", true, true, 0)]), None);
    }
}
