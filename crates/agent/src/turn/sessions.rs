//! The broker sessions of active conversations: opened with the first turn, closed when idle. A turn without a session
//! opens a new one; the store holds everything that must outlive a session.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use embody_broker::{Broker, InProcessClient, InProcessError};
use embody_store::{Principal, Scope};
use tokio::sync::OnceCell;
use tokio::time::Instant;

/// How long a session waits for the next turn.
const IDLE: Duration = Duration::from_secs(300);
/// Maximum number of idle sessions: each takes a quarter of a megabyte, and opening another takes a few milliseconds.
const WAITING: usize = 128;

type Cell = Arc<OnceCell<InProcessClient>>;

/// The session's owner: the principal, the thread, and whether others read it.
type Key = (Scope, String, String, bool);

#[derive(Default)]
pub(super) struct Sessions {
    open: Mutex<HashMap<Key, SessionEntry>>,
}

struct SessionEntry {
    cell: Cell,
    used: Instant,
}

/// How long closing all sessions may take together.
const END_TIMEOUT: Duration = Duration::from_secs(15);

/// A session while a turn uses it.
pub(super) struct SessionGuard<'a> {
    cell: Cell,
    key: Key,
    sessions: &'a Sessions,
}

impl SessionGuard<'_> {
    pub(super) fn client(&self) -> Option<&InProcessClient> {
        self.cell.get()
    }
}

impl Drop for SessionGuard<'_> {
    /// The idle time starts at the end of a turn.
    fn drop(&mut self) {
        let mut open = self.sessions.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = open.get_mut(&self.key) {
            slot.used = Instant::now();
        }
    }
}

impl Sessions {
    /// Returns the conversation's session, and opens it if needed.
    pub(super) async fn acquire(
        &self,
        broker: &Arc<Broker>,
        principal: Principal,
        thread: &str,
    ) -> Result<SessionGuard<'_>, InProcessError> {
        let Principal { scope, channel, shared_conversation, .. } = principal.clone();
        let key = (scope, channel, thread.to_owned(), shared_conversation.is_some());
        let (cell, too_many) = {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            let slot = open
                .entry(key.clone())
                .or_insert_with(|| SessionEntry { cell: Cell::default(), used: Instant::now() });
            slot.used = Instant::now();
            let cell = Arc::clone(&slot.cell);
            let is_crowded = open.len() > WAITING;
            (cell, if is_crowded { take_idle(&mut open, Instant::now()) } else { Vec::new() })
        };
        if !too_many.is_empty() {
            tokio::spawn(end(too_many));
        }
        cell.get_or_try_init(|| broker.open_in_process(principal)).await?;
        Ok(SessionGuard { cell, key, sessions: self })
    }

    /// Closes sessions that were idle too long, and the least recently used beyond the limit.
    pub(super) async fn close_idle(&self) {
        let idle = {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            take_idle(&mut open, Instant::now())
        };
        end(idle).await;
    }

    /// Closes all sessions; running turns keep theirs until they end.
    pub(super) async fn end(&self) {
        let all: Vec<Cell> = {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            open.drain().map(|(_, slot)| slot.cell).collect()
        };
        end(all).await;
    }
}

/// Removes sessions that were idle too long, and the least recently used beyond the limit.
fn take_idle(open: &mut HashMap<Key, SessionEntry>, now: Instant) -> Vec<Cell> {
    // A turn that uses a session holds a reference to it.
    let mut unused: Vec<(Instant, Key)> = open
        .iter()
        .filter(|(_, slot)| Arc::strong_count(&slot.cell) == 1)
        .map(|(key, slot)| (slot.used, key.clone()))
        .collect();
    unused.sort_unstable_by_key(|(used, _)| *used);
    let too_many = unused.len().saturating_sub(WAITING);
    let goes = unused
        .iter()
        .enumerate()
        .filter(|(place, (used, _))| *place < too_many || now.duration_since(*used) > IDLE);
    goes.filter_map(|(_, (_, key))| open.remove(key)).map(|slot| slot.cell).collect()
}

/// Closes sessions concurrently. A session that a turn still holds is closed when the turn drops it.
async fn end(cells: Vec<Cell>) {
    let mut ends = tokio::task::JoinSet::new();
    for local in cells.into_iter().filter_map(|cell| Arc::into_inner(cell)?.into_inner()) {
        ends.spawn(local.close());
    }
    let all = async { while ends.join_next().await.is_some() {} };
    if tokio::time::timeout(END_TIMEOUT, all).await.is_err() {
        tracing::warn!("not all sessions of an agent ended in time");
    }
}
