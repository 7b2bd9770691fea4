//! Forgetting and releasing memories. The history keeps the version before.

use crate::areas::Memories;
use crate::audit::Action;
use crate::db::{Conn, args, audited, transaction};
use crate::error::{Error, ErrorKind, Result};
use crate::memories::index::{self, IndexedMemory, Ledger};
use crate::memories::rows::{self, MemoryRow};
use crate::memories::save::json;
use crate::memories::{Memory, MemoryStatus, analyze};
use crate::memory_rules;
use crate::store::{Scope, now};

pub(super) const UPDATE: &str = "UPDATE agent_long_term_memory SET version = $4, status = $5, changed_at = $6 \
     WHERE user_id = $1 AND agent = $2 AND seq = $3";

#[derive(Clone, Debug, PartialEq)]
pub enum ForgetOutcome {
    Forgotten(Memory),
    /// Not allowed; it stays as it is.
    Refused(Memory),
}

impl Memories<'_> {
    /// Excludes a memory from every search; its history stays. Forgetting again changes nothing. For operators.
    pub async fn forget(self, scope: &Scope, id: &str) -> Result<Memory> {
        self.set_status(scope, id, MemoryStatus::Forgotten).await
    }

    /// The same for an agent, if `may` accepts the memory in the same transaction.
    pub async fn forget_if(self, scope: &Scope, id: &str, may: fn(&Memory) -> bool) -> Result<ForgetOutcome> {
        let (scope, id) = (scope.clone(), id.to_owned());
        transaction!(self.store, |conn| {
            let mut ledger = Ledger::lock(conn, &scope).await?;
            let kept = rows::expect(conn, &scope, &id).await?;
            if !may(&kept.memory) {
                return Ok(ForgetOutcome::Refused(kept.memory));
            }
            let status = MemoryStatus::Forgotten;
            enter(conn, &scope, &mut ledger, kept, status).await.map(ForgetOutcome::Forgotten)
        })
    }

    /// Makes a quarantined memory searchable. Releasing again changes nothing. For operators.
    pub async fn release(self, scope: &Scope, id: &str) -> Result<Memory> {
        self.set_status(scope, id, MemoryStatus::Active).await
    }

    /// Every version of a memory, the current one first.
    pub async fn history(self, scope: &Scope, id: &str) -> Result<Vec<Memory>> {
        let mut conn = self.store.reader().await?;
        let present = rows::expect(&mut conn, scope, id).await?;
        let sql = "SELECT state FROM memory_history WHERE user_id = $1 AND agent = $2 AND id = $3 AND version < $4 \
             ORDER BY version DESC";
        let past: Vec<(String,)> =
            conn.fetch_all(sql, args![scope.user(), scope.agent(), id, present.memory.version]).await?;
        let past = past.iter().map(|(state,)| read_state(id, state));
        std::iter::once(Ok(present.memory)).chain(past).collect()
    }

    /// An operator's change.
    async fn set_status(self, scope: &Scope, id: &str, status: MemoryStatus) -> Result<Memory> {
        let (scope, id) = (scope.clone(), id.to_owned());
        audited!(self.store, |tx| {
            let mut ledger = Ledger::lock(&mut tx.conn, &scope).await?;
            let kept = rows::expect(&mut tx.conn, &scope, &id).await?;
            let version = kept.memory.version;
            let now = enter(&mut tx.conn, &scope, &mut ledger, kept, status).await?;
            if now.version != version {
                let action = match status {
                    MemoryStatus::Forgotten => Action::MemoryForgotten,
                    _ => Action::MemoryReleased,
                };
                tx.operation(scope.user(), action, &id, Some(scope.agent()))?;
            }
            Ok(now)
        })
    }
}

pub(super) fn read_state(id: &str, state: &str) -> Result<Memory> {
    serde_json::from_str(state).map_err(|error| {
        Error::new(ErrorKind::Corrupt, format!("the history of memory `{id}` cannot be read")).because(error)
    })
}

fn forgotten(id: &str) -> Error {
    Error::new(ErrorKind::Conflict, format!("the memory `{id}` is forgotten"))
        .hint("save what should be remembered as a new memory")
}

async fn enter(
    conn: &mut Conn,
    scope: &Scope,
    ledger: &mut Ledger,
    kept: MemoryRow,
    status: MemoryStatus,
) -> Result<Memory> {
    if kept.memory.status == status {
        return Ok(kept.memory);
    }
    if kept.memory.status == MemoryStatus::Forgotten {
        return Err(forgotten(&kept.memory.id));
    }
    change(conn, scope, ledger, kept, status).await
}

/// Writes the next version of a memory, with another status, stores the one before, and updates the index.
pub(super) async fn change(
    conn: &mut Conn,
    scope: &Scope,
    ledger: &mut Ledger,
    kept: MemoryRow,
    status: MemoryStatus,
) -> Result<Memory> {
    let MemoryRow { seq, session, memory: before } = kept;
    let after = Memory { version: before.version + 1, status, changed_at: now(), ..before.clone() };
    after.check()?;
    let document = analyze::document(&after.text);
    let placed = || IndexedMemory { seq, session, document: &document };
    let (was_found, is_found) = (before.status == MemoryStatus::Active, status == MemoryStatus::Active);
    if was_found {
        ledger.remove(&document);
    }
    if is_found {
        ledger.add(&document);
    }
    index::exchange(conn, scope, was_found.then(placed), is_found.then(placed)).await?;
    let sql = "INSERT INTO memory_history (user_id, agent, id, version, state) VALUES ($1, $2, $3, $4, $5)";
    let values = args![scope.user(), scope.agent(), &before.id, before.version, json(&before)?];
    conn.execute(sql, values).await?;
    let seq = i64::from(seq);
    let values =
        args![scope.user(), scope.agent(), seq, after.version, after.status.name(), after.changed_at];
    conn.execute(UPDATE, values).await?;
    memory_rules::on_status_changed(conn, scope, seq, &after).await?;
    ledger.write(conn, scope).await?;
    Ok(after)
}
