//! The sessions that are open, by the id that their host has on the wire.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use embody_store::Scope;
use embody_wire::serve::Host;

use crate::Principal;
use crate::session::{Session, lock};

/// Sessions without one on the wire that one principal may have: each has connections of its own, and whoever calls itself
/// otherwise in every request would get one each time.
const ALONE_EACH_MOST: usize = 64;
/// Those of all principals together.
const ALONE_MOST: usize = 1024;

/// The open sessions.
#[derive(Default)]
pub(crate) struct Sessions {
    open: Mutex<HashMap<String, Arc<Session>>>,
}

/// A session without a host that could say when it leaves, while it is used.
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

    /// Enters a session; the one that had this id before, if there was one.
    pub(crate) fn enter(&self, session: Arc<Session>) -> Option<Arc<Session>> {
        lock(&self.open).insert(session.id.clone(), session)
    }

    pub(crate) fn leave(&self, id: &str) -> Option<Arc<Session>> {
        lock(&self.open).remove(id)
    }

    /// The session of this id, which leaves, if it is this host's: it may have come back meanwhile.
    pub(crate) fn leave_as(&self, id: &str, host: &Arc<Host<Principal>>) -> Option<Arc<Session>> {
        let mut sessions = lock(&self.open);
        let is_theirs = sessions.get(id).is_some_and(|session| Arc::ptr_eq(&session.host, host));
        is_theirs.then(|| sessions.remove(id)).flatten()
    }

    /// The session of this id and host; opened if there is none.
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

    /// The session of this id, in use; opened if there is none. Where its principal has too many, the one that was unused for
    /// longest has left, and is to be ended.
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
        let alone = || sessions.values().filter(|session| session.is_alone());
        let own = || alone().filter(|session| session.host.principal == *principal);
        let mut longest = None;
        if own().count() >= ALONE_EACH_MOST {
            let unused = own().filter(|session| session.users.load(Ordering::Acquire) == 0);
            let found = unused.min_by_key(|session| *lock(&session.used_at));
            longest = Some(found.ok_or_else(|| too_many(ALONE_EACH_MOST))?.id.clone());
        } else if alone().count() >= ALONE_MOST {
            return Err(too_many(ALONE_MOST));
        }
        let session = open().map_err(|error| error.to_string())?;
        let left = longest.and_then(|id| sessions.remove(&id));
        sessions.insert(id.to_owned(), Arc::clone(&session));
        Ok((InUse::new(&session), left))
    }

    /// The session of this id, in use, if it is one without a host and this principal's.
    pub(crate) fn use_alone(&self, id: &str, principal: &Principal) -> Option<InUse> {
        let sessions = lock(&self.open);
        let session = sessions.get(id).filter(|session| session.is_alone());
        session.filter(|session| session.host.principal == *principal).map(InUse::new)
    }

    /// Those without a host that nobody has used for so long, and that no task keeps; they have left.
    pub(crate) fn take_idle(&self, idle: Duration) -> Vec<Arc<Session>> {
        let mut sessions = lock(&self.open);
        let is_idle = |session: &Session| {
            session.is_alone()
                && session.users.load(Ordering::Acquire) == 0
                && lock(&session.used_at).elapsed() >= idle
                && !session.known.is_busy()
        };
        let ids: Vec<String> =
            sessions.iter().filter(|(_, session)| is_idle(session)).map(|(id, _)| id.clone()).collect();
        ids.iter().filter_map(|id| sessions.remove(id)).collect()
    }

    /// All that are open.
    pub(crate) fn all(&self) -> Vec<Arc<Session>> {
        lock(&self.open).values().cloned().collect()
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

fn too_many(most: usize) -> String {
    format!("{most} hosts without a session are being served already; wait until one of them is done")
}
