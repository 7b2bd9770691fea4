//! Forgetting, releasing and editing memories. The history keeps the version before.

use crate::areas::Memories;
use crate::audit::Action;
use crate::db::{Conn, args, audited, transaction};
use crate::error::{Error, ErrorKind, Result};
use crate::memories::alike;
use crate::memories::index::{self, IndexedMemory, Ledger};
use crate::memories::rows::{self, MemoryRow};
use crate::memories::save::{digest, flags, json};
use crate::memories::{Memory, MemoryStatus, analyze};
use crate::memory_rules;
use crate::store::{OPERATOR, Scope, now};

pub(super) const UPDATE: &str = "UPDATE agent_long_term_memory SET version = $4, status = $5, changed_at = $6, \
     text = $7, writer = $8, trust = $9, digest = $10, asks = $11 WHERE user_id = $1 AND agent = $2 AND seq = $3";
const OWNER: &str = "owner";

#[derive(Clone, Debug, PartialEq)]
pub enum ForgetOutcome {
    Forgotten(Memory),
    /// Not allowed; it stays as it is.
    Refused(Memory),
}

/// A new text for a memory.
#[derive(Clone, Debug)]
pub struct MemoryEdit {
    pub id: String,
    pub text: String,
    /// `None` replaces any version.
    pub expected_version: Option<i64>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum EditOutcome {
    Edited(Memory),
    /// It has this text already.
    Unchanged(Memory),
    /// Another version is current; nothing is written.
    Stale(Memory),
}

impl Memories<'_> {
    /// Writes a new version with another text, as the owner. For operators.
    pub async fn edit(self, scope: &Scope, edit: MemoryEdit) -> Result<EditOutcome> {
        let scope = scope.clone();
        audited!(self.store, |tx| {
            let MemoryEdit { id, text, expected_version } = edit;
            let mut ledger = Ledger::lock(&mut tx.conn, &scope).await?;
            let kept = rows::expect(&mut tx.conn, &scope, &id).await?;
            if expected_version.is_some_and(|expected| expected != kept.memory.version) {
                return Ok(EditOutcome::Stale(kept.memory));
            }
            refuse_gone(&kept.memory)?;
            if kept.memory.text == text {
                return Ok(EditOutcome::Unchanged(kept.memory));
            }
            let (writer, trust) = (OPERATOR.to_owned(), OWNER.to_owned());
            let after = Memory { text, writer, trust, ..kept.memory.clone() };
            let seq = i64::from(kept.seq);
            let edited = rewrite(&mut tx.conn, &scope, &mut ledger, kept, after).await?;
            tx.conn.execute(alike::UNLEARN, args![scope.user(), scope.agent(), seq]).await?;
            let note = format!("{}, version {}", scope.agent(), edited.version);
            tx.operation(scope.user(), Action::MemoryEdited, &id, Some(&note))?;
            Ok(EditOutcome::Edited(edited))
        })
    }

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

/// A memory that is forgotten or erased stays so.
fn refuse_gone(memory: &Memory) -> Result<()> {
    if !matches!(memory.status, MemoryStatus::Forgotten | MemoryStatus::Erased) {
        return Ok(());
    }
    let message = format!("the memory `{}` is {}", memory.id, memory.status.name());
    Err(Error::new(ErrorKind::Conflict, message).hint("save what should be remembered as a new memory"))
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
    refuse_gone(&kept.memory)?;
    change(conn, scope, ledger, kept, status).await
}

/// Writes the next version of a memory, with another status.
pub(super) async fn change(
    conn: &mut Conn,
    scope: &Scope,
    ledger: &mut Ledger,
    kept: MemoryRow,
    status: MemoryStatus,
) -> Result<Memory> {
    let after = Memory { status, ..kept.memory.clone() };
    rewrite(conn, scope, ledger, kept, after).await
}

/// Writes the next version of a memory, stores the one before, and updates the index.
async fn rewrite(
    conn: &mut Conn,
    scope: &Scope,
    ledger: &mut Ledger,
    kept: MemoryRow,
    after: Memory,
) -> Result<Memory> {
    let before = kept.memory.clone();
    let after = Memory { version: before.version + 1, changed_at: now(), ..after };
    after.check()?;
    let sql = "INSERT INTO memory_history (user_id, agent, id, version, state) VALUES ($1, $2, $3, $4, $5)";
    let values = args![scope.user(), scope.agent(), &before.id, before.version, json(&before)?];
    conn.execute(sql, values).await?;
    replace(conn, scope, ledger, kept, &after).await?;
    Ok(after)
}

/// Puts a memory in the place of another version of it, and updates the index.
pub(super) async fn replace(
    conn: &mut Conn,
    scope: &Scope,
    ledger: &mut Ledger,
    kept: MemoryRow,
    after: &Memory,
) -> Result<()> {
    let MemoryRow { seq, session, memory: before } = kept;
    let (old, new) = (analyze::document(&before.text), analyze::document(&after.text));
    let was_found = before.status == MemoryStatus::Active;
    let is_found = after.status == MemoryStatus::Active;
    if was_found {
        ledger.remove(&old);
    }
    if is_found {
        ledger.add(&new);
    }
    let indexed = |document| IndexedMemory { seq, session, document };
    index::exchange(conn, scope, was_found.then(|| indexed(&old)), is_found.then(|| indexed(&new))).await?;
    let seq = i64::from(seq);
    let values = args![
        scope.user(),
        scope.agent(),
        seq,
        after.version,
        after.status.name(),
        after.changed_at,
        &after.text,
        &after.writer,
        &after.trust,
        digest(after),
        flags(&new)
    ];
    conn.execute(UPDATE, values).await?;
    memory_rules::on_changed(conn, scope, seq, after).await?;
    ledger.write(conn, scope).await
}
