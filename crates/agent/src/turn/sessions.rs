//! The broker's sessions of conversations that are going on: opened with the first turn, ended when nobody has spoken for a
//! while. A turn that finds none opens another; what must outlive a session is in the store.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use embody_broker::{Broker, Local, LocalError, Principal};
use tokio::sync::OnceCell;
use tokio::time::Instant;

/// How long a session waits for the next turn.
const IDLE: Duration = Duration::from_secs(300);
/// Sessions that wait at the same time.
const WAITING: usize = 512;

type Cell = Arc<OnceCell<Local>>;

/// Whose session: the principal, and the thread.
type Key = (String, String, String, String);

/// The open sessions.
#[derive(Default)]
pub(super) struct Sessions {
    open: Mutex<HashMap<Key, Slot>>,
}

struct Slot {
    cell: Cell,
    used: Instant,
}

/// A session while a turn uses it.
pub(super) struct InUse(Cell);

impl InUse {
    pub(super) fn local(&self) -> Option<&Local> {
        self.0.get()
    }
}

impl Sessions {
    /// The conversation's session.
    pub(super) async fn of(
        &self,
        broker: &Arc<Broker>,
        principal: Principal,
        thread: &str,
    ) -> Result<InUse, LocalError> {
        let key =
            (principal.user.clone(), principal.agent.clone(), principal.channel.clone(), thread.to_owned());
        let cell = {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            let slot =
                open.entry(key).or_insert_with(|| Slot { cell: Cell::default(), used: Instant::now() });
            slot.used = Instant::now();
            Arc::clone(&slot.cell)
        };
        cell.get_or_try_init(|| broker.local(principal)).await?;
        Ok(InUse(cell))
    }

    /// Ends those that nobody has used for a while, and the longest unused of too many.
    pub(super) async fn sweep(&self) {
        for cell in self.take_idle(Instant::now()) {
            end(cell).await;
        }
    }

    /// Ends all; turns that go on keep theirs until they are over.
    pub(super) async fn end(&self) {
        let all: Vec<Slot> = {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            open.drain().map(|(_, slot)| slot).collect()
        };
        for slot in all {
            end(slot.cell).await;
        }
    }

    fn take_idle(&self, now: Instant) -> Vec<Cell> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever uses one holds it too.
        let mut unused: Vec<(Instant, Key)> = open
            .iter()
            .filter(|(_, slot)| Arc::strong_count(&slot.cell) == 1)
            .map(|(key, slot)| (slot.used, key.clone()))
            .collect();
        unused.sort_unstable();
        let too_many = unused.len().saturating_sub(WAITING);
        let goes = unused
            .iter()
            .enumerate()
            .filter(|(place, (used, _))| *place < too_many || now.duration_since(*used) > IDLE);
        goes.filter_map(|(_, (_, key))| open.remove(key)).map(|slot| slot.cell).collect()
    }
}

async fn end(cell: Cell) {
    // A turn that still holds it keeps it; its end is then the drop.
    if let Some(local) = Arc::into_inner(cell).and_then(OnceCell::into_inner) {
        local.end().await;
    }
}
