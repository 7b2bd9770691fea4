//! Revising, forgetting and releasing memories. The history keeps the version before.

use crate::areas::Memories;
use crate::db::{Conn, args, transaction};
use crate::error::{Error, ErrorKind, Result};
use crate::memories::analyze::{self, Document};
use crate::memories::index::Ledger;
use crate::memories::index::{self, Placed};
use crate::memories::rows::{self, Kept, SAVED_AFTER};
use crate::memories::save::{Entry, digest, flags, json};
use crate::memories::{Memory, MemoryRevision, MemoryStatus, RevisionOutcome};
use crate::memory_rules;
use crate::store::{Scope, now};

pub(super) const UPDATE: &str = "UPDATE agent_long_term_memory SET version = $4, status = $5, text = $6, writer = $7, \
     trust = $8, changed_at = $9, digest = $10, asks = $11 WHERE user_id = $1 AND agent = $2 AND seq = $3";

#[derive(Clone, Debug, PartialEq)]
pub enum ForgetOutcome {
    Forgotten(Memory),
    /// Not allowed; it stays as it is.
    Refused(Memory),
}

impl Memories<'_> {
    /// Replaces the text of a memory, if it still has the expected version. A forgotten one stays forgotten.
    pub async fn revise(self, scope: &Scope, revision: MemoryRevision) -> Result<RevisionOutcome> {
        let scope = scope.clone();
        transaction!(self.store, |conn| {
            let mut ledger = Ledger::lock(conn, &scope).await?;
            let kept = rows::expect(conn, &scope, &revision.id).await?;
            if revision.expected_version.is_some_and(|expected| expected != kept.memory.version) {
                return Ok(RevisionOutcome::Stale(kept.memory));
            }
            if kept.memory.status == MemoryStatus::Forgotten {
                return Err(forgotten(&revision.id));
            }
            let MemoryRevision { text, writer, trust, .. } = revision;
            let after = Memory { text, writer, trust, ..kept.memory.clone() };
            change(conn, &scope, &mut ledger, kept, after).await.map(RevisionOutcome::Written)
        })
    }

    /// Excludes a memory from every search; its history stays. Forgetting again changes nothing.
    pub async fn forget(self, scope: &Scope, id: &str) -> Result<Memory> {
        self.set_status(scope, id, MemoryStatus::Forgotten).await
    }

    /// The same, if `may` accepts the memory in the same transaction.
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

    async fn set_status(self, scope: &Scope, id: &str, status: MemoryStatus) -> Result<Memory> {
        let (scope, id) = (scope.clone(), id.to_owned());
        transaction!(self.store, |conn| {
            let mut ledger = Ledger::lock(conn, &scope).await?;
            let kept = rows::expect(conn, &scope, &id).await?;
            enter(conn, &scope, &mut ledger, kept, status).await
        })
    }

    /// Rebuilds the search index of a scope; returns the number of its memories. For operators.
    pub async fn rebuild_index(self, scope: &Scope) -> Result<u64> {
        let scope = scope.clone();
        transaction!(self.store, |conn| {
            let mut ledger = Ledger::lock(conn, &scope).await?;
            ledger.clear_statistics();
            index::clear(conn, &scope).await?;
            let mut last = 0;
            loop {
                let page =
                    rows::all(conn, SAVED_AFTER, args![scope.user(), scope.agent(), last, PAGE]).await?;
                let Some(newest) = page.last() else { break };
                last = i64::from(newest.seq);
                let active = page.into_iter().filter(|kept| kept.memory.status == MemoryStatus::Active);
                let read: Vec<(u32, u32, Entry)> = active
                    .map(|kept| (kept.seq, kept.session, Entry::new(kept.memory, Vec::new())))
                    .collect();
                let placed: Vec<Placed<'_>> = read
                    .iter()
                    .map(|(seq, session, entry)| Placed {
                        seq: *seq,
                        session: *session,
                        document: &entry.document,
                    })
                    .collect();
                placed.iter().for_each(|placed| ledger.add(placed.document));
                index::append(conn, &scope, &placed).await?;
            }
            ledger.write(conn, &scope).await?;
            Ok(ledger.statistics().memories)
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
    kept: Kept,
    status: MemoryStatus,
) -> Result<Memory> {
    if kept.memory.status == status {
        return Ok(kept.memory);
    }
    if kept.memory.status == MemoryStatus::Forgotten {
        return Err(forgotten(&kept.memory.id));
    }
    let after = Memory { status, ..kept.memory.clone() };
    change(conn, scope, ledger, kept, after).await
}

/// Writes the next version of a memory, stores the one before, and updates the index.
pub(super) async fn change(
    conn: &mut Conn,
    scope: &Scope,
    ledger: &mut Ledger,
    kept: Kept,
    after: Memory,
) -> Result<Memory> {
    let Kept { seq, session, memory: before } = kept;
    let after = Memory { version: before.version + 1, changed_at: now(), ..after };
    after.check()?;
    let words = |memory: &Memory| -> Option<Document> {
        (memory.status == MemoryStatus::Active).then(|| analyze::document(&memory.text))
    };
    let (old, new) = (words(&before), words(&after));
    old.iter().for_each(|document| ledger.remove(document));
    new.iter().for_each(|document| ledger.add(document));
    let placed = |document| Placed { seq, session, document };
    index::exchange(conn, scope, old.as_ref().map(placed), new.as_ref().map(placed)).await?;
    conn.execute(
        "INSERT INTO memory_history (user_id, agent, id, version, state) VALUES ($1, $2, $3, $4, $5)",
        args![scope.user(), scope.agent(), &before.id, before.version, json(&before)?],
    )
    .await?;
    let asks = flags(&analyze::document(&after.text));
    conn.execute(
        UPDATE,
        args![
            scope.user(),
            scope.agent(),
            i64::from(seq),
            after.version,
            after.status.name(),
            &after.text,
            &after.writer,
            &after.trust,
            after.changed_at,
            digest(&after),
            asks
        ],
    )
    .await?;
    memory_rules::follow(conn, scope, i64::from(seq), &before, &after).await?;
    ledger.write(conn, scope).await?;
    Ok(after)
}

const PAGE: u32 = 1000;
