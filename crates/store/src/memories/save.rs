//! Saving: what is new is kept, what repeats itself within one session is the memory that is there already.

use std::collections::HashMap;

use crate::areas::Memories;
use crate::db::{Conn, Sql, args, transaction};
use crate::error::{Error, Result};
use crate::memories::fields::{Memory, MemoryStatus, NewMemory, SaveResult};
use crate::memories::insert::{self, Entry};
use crate::memories::ledger::Ledger;
use crate::memories::rows::{self, select_listed};
use crate::store::{Scope, new_id, now};

/// More memories than this are several calls.
const BATCH_LIMIT: usize = 10_000;
const BATCH_BYTES_LIMIT: usize = 64 * 1024 * 1024;
/// So many are put into the tables at a time.
pub(super) const PIECE: usize = 1000;

pub(super) const ALIKE: Sql = select_listed!("memory_by_digest", "digest");

impl Memories<'_> {
    /// Saves a memory. An exact repeat of an active memory within its session is that memory: nothing changes.
    pub async fn save(self, scope: &Scope, memory: NewMemory) -> Result<SaveResult> {
        let saved = self.save_all(scope, vec![memory]).await?.pop();
        saved.ok_or_else(|| Error::invalid("there is no memory to save"))
    }

    /// Saves many memories in their order, all of them or none.
    pub async fn save_all(self, scope: &Scope, memories: Vec<NewMemory>) -> Result<Vec<SaveResult>> {
        if memories.len() > BATCH_LIMIT {
            let count = memories.len();
            return Err(Error::invalid(format!(
                "{count} memories are too many at once; {BATCH_LIMIT} are allowed"
            )));
        }
        let bytes: usize = memories.iter().map(|memory| memory.text.len()).sum();
        if bytes > BATCH_BYTES_LIMIT {
            return Err(Error::invalid(format!(
                "the memories have {bytes} bytes together; {BATCH_BYTES_LIMIT} are allowed at once"
            )));
        }
        let memories: Vec<Memory> = memories.into_iter().map(complete).collect::<Result<_>>()?;
        let memories = memories.into_iter().map(|memory| (memory, Vec::new())).collect();
        let entries = Entry::read_all(memories).await?;
        let scope = scope.clone();
        transaction!(self.store, |conn| save(conn, &scope, &entries).await)
    }
}

fn complete(new: NewMemory) -> Result<Memory> {
    let at = now();
    if new.status == MemoryStatus::Forgotten {
        return Err(Error::invalid("a memory cannot begin as forgotten"));
    }
    let memory = Memory {
        id: new_id(),
        version: 1,
        status: new.status,
        text: new.text,
        kind: new.kind,
        tags: new.tags,
        actor: new.actor,
        session: new.session,
        writer: new.writer,
        source: new.source,
        trust: new.trust,
        occurred_at: new.occurred_at.unwrap_or(at),
        created_at: at,
        changed_at: at,
    };
    memory.check()?;
    Ok(memory)
}

async fn save(conn: &mut Conn, scope: &Scope, entries: &[Entry]) -> Result<Vec<SaveResult>> {
    let mut ledger = Ledger::lock(conn, scope).await?;
    let mut saved = Vec::with_capacity(entries.len());
    for piece in entries.chunks(PIECE) {
        let mut known = alike(conn, scope, piece).await?;
        let mut fresh = Vec::new();
        for entry in piece {
            let alike = known.entry(entry.digest).or_default();
            let there = alike.iter().find(|memory| insert::is_repeat(memory, &entry.memory));
            let repeated = there.is_some();
            let Memory { id, version, status, .. } = there.unwrap_or(&entry.memory);
            saved.push(SaveResult { id: id.clone(), version: *version, status: *status, repeated });
            if !repeated {
                alike.push(entry.memory.clone());
                fresh.push(entry.clone());
            }
        }
        insert::insert(conn, scope, &mut ledger, &fresh).await?;
    }
    ledger.write(conn, scope).await?;
    Ok(saved)
}

/// The memories that some of the entries may repeat, by their digest.
async fn alike(conn: &mut Conn, scope: &Scope, entries: &[Entry]) -> Result<HashMap<i64, Vec<Memory>>> {
    let digests: Vec<i64> = entries.iter().map(|entry| entry.digest).collect();
    let mut alike: HashMap<i64, Vec<Memory>> = HashMap::new();
    for kept in rows::all(conn, ALIKE, args![scope.user(), scope.agent(), digests]).await? {
        alike.entry(insert::digest(&kept.memory)).or_default().push(kept.memory);
    }
    Ok(alike)
}
