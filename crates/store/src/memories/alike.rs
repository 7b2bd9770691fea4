//! Memories that say the same, for consolidation: listing, finding similar ones, merging and restoring them. The
//! caller defines what is alike; the store only hashes it.

use crate::areas::Memories;
use crate::db::{Conn, Sql, Value, args, listed};
use crate::error::{Error, Result};
use crate::memories::change::change;
use crate::memories::index::Ledger;
use crate::memories::rows::{self, MemoryRow, SAVED_AFTER};
use crate::memories::{Memory, MemoryStatus};
use crate::store::Scope;

const MOST_READ: u32 = 1000;

pub(crate) const ALIKE: Sql = listed!(
    "SELECT likeness, seq FROM memory_likeness WHERE user_id = $1 AND agent = $2 AND likeness",
    "$3",
    " ORDER BY likeness, seq DESC LIMIT 5000"
);
pub(crate) const NEIGHBOURS: &str = "SELECT COUNT(*) FROM agent_long_term_memory AS this \
     JOIN agent_long_term_memory AS other ON other.user_id = this.user_id AND other.agent = this.agent \
     AND (other.seq = this.previous_seq OR other.seq = this.next_seq) \
     WHERE this.user_id = $1 AND this.agent = $2 AND this.seq = $3 AND other.status = 'active'";

pub(crate) const UNLEARN: &str = "DELETE FROM memory_likeness WHERE user_id = $1 AND agent = $2 AND seq = $3";

/// A memory and its number in the scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumberedMemory {
    /// Ascending in the order of saving.
    pub seq: i64,
    pub memory: Memory,
}

/// Forgets one memory in favour of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merge {
    pub kept: String,
    pub forgotten: String,
    /// The version of the forgotten memory that the decision was made from.
    pub version: i64,
}

impl Memories<'_> {
    /// Of every status, in the order of saving.
    pub async fn list_saved_after(self, scope: &Scope, seq: i64, limit: u32) -> Result<Vec<NumberedMemory>> {
        if limit > MOST_READ {
            return Err(Error::invalid(format!(
                "the limit is `{limit}`; at most {MOST_READ} memories are read"
            )));
        }
        let values = args![scope.user(), scope.agent(), seq, limit];
        let kept = rows::fetch_all(&mut self.store.reader().await?, SAVED_AFTER, values).await?;
        Ok(kept.into_iter().map(numbered).collect())
    }

    /// The active memories that were stored under one of these likenesses.
    pub async fn list_alike(self, scope: &Scope, likenesses: &[String]) -> Result<Vec<NumberedMemory>> {
        let hashes: Vec<i64> = likenesses.iter().map(|likeness| hash(likeness)).collect();
        let mut conn = self.store.reader().await?;
        let rows: Vec<(i64, i64)> = conn.fetch_all(ALIKE, args![scope.user(), scope.agent(), hashes]).await?;
        let seqs: Vec<u32> = rows.iter().map(|(_, seq)| rows::number(*seq)).collect::<Result<_>>()?;
        if seqs.is_empty() {
            return Ok(Vec::new());
        }
        let kept = rows::by_seqs(&mut conn, scope, &seqs).await?;
        let mut active: Vec<NumberedMemory> = kept
            .into_iter()
            .filter(|kept| kept.memory.status == MemoryStatus::Active)
            .map(numbered)
            .collect();
        active.sort_by_key(|numbered| numbered.seq);
        Ok(active)
    }
}

/// Stores the likenesses of memories.
pub(crate) async fn remember(conn: &mut Conn, scope: &Scope, likenesses: &[(String, i64)]) -> Result<()> {
    let rows: Vec<Vec<Value>> = likenesses
        .iter()
        .map(|(likeness, seq)| args![scope.user(), scope.agent(), hash(likeness), *seq])
        .collect();
    conn.insert_rows(
        "INSERT INTO memory_likeness (user_id, agent, likeness, seq)",
        rows,
        "ON CONFLICT DO NOTHING",
    )
    .await
}

/// Forgets a memory in favour of another; returns its new version, or `None` if either has changed meanwhile, or if
/// it is the last of its session.
pub(crate) async fn merge(conn: &mut Conn, scope: &Scope, merge: &Merge) -> Result<Option<i64>> {
    let mut ledger = Ledger::lock(conn, scope).await?;
    let (Some(stays), Some(goes)) =
        (rows::by_id(conn, scope, &merge.kept).await?, rows::by_id(conn, scope, &merge.forgotten).await?)
    else {
        return Ok(None);
    };
    let is_active = |kept: &MemoryRow| kept.memory.status == MemoryStatus::Active;
    if !is_active(&stays) || !is_active(&goes) || goes.memory.version != merge.version {
        return Ok(None);
    }
    let (one, other) = (&stays.memory, &goes.memory);
    if one.trust != other.trust || one.writer != other.writer {
        return Ok(None);
    }
    if goes.memory.session.is_some() {
        // Only the neighbours are checked: without them it may be the last one of its session.
        let values = args![scope.user(), scope.agent(), i64::from(goes.seq)];
        let (neighbours,): (i64,) = conn.fetch_one(NEIGHBOURS, values).await?;
        if neighbours == 0 {
            return Ok(None);
        }
    }
    Ok(Some(change(conn, scope, &mut ledger, goes, MemoryStatus::Forgotten).await?.version))
}

/// Restores a memory that was forgotten with this version, and excludes it from further merges.
pub(crate) async fn revive(conn: &mut Conn, scope: &Scope, id: &str, version: i64) -> Result<bool> {
    let mut ledger = Ledger::lock(conn, scope).await?;
    let Some(kept) = rows::by_id(conn, scope, id).await? else { return Ok(false) };
    if kept.memory.status != MemoryStatus::Forgotten || kept.memory.version != version {
        return Ok(false);
    }
    conn.execute(UNLEARN, args![scope.user(), scope.agent(), i64::from(kept.seq)]).await?;
    change(conn, scope, &mut ledger, kept, MemoryStatus::Active).await.map(|_| true)
}

fn numbered(kept: MemoryRow) -> NumberedMemory {
    NumberedMemory { seq: i64::from(kept.seq), memory: kept.memory }
}

fn hash(likeness: &str) -> i64 {
    let [a, b, c, d, e, f, g, h, ..] = *blake3::hash(likeness.as_bytes()).as_bytes();
    i64::from_le_bytes([a, b, c, d, e, f, g, h])
}
