//! Memories that restrict something, as the mind judges, stored so that no call needs a search for them. A change of
//! a memory updates them in the same transaction.

use serde::Deserialize;

use crate::areas::MemoryRuleScans;
use crate::db::{Conn, Sql, args, from_row, transaction};
use crate::error::{Error, ErrorKind, Result};
use crate::memories::{Memory, MemoryStatus};
use crate::store::Scope;

const MOST: u32 = 1000;
/// Only the beginning of a text is scanned for restrictions.
const BEGINNING_CHARS: usize = 4096;
/// Memories of the owner, and of others.
const OWNERS: i64 = 2;
const OTHERS: i64 = 1;
const NO_LANE: i64 = 0;
const OWNER: &str = "owner";

macro_rules! lane {
    ($lane:literal, $limit:literal, $by:literal) => {
        concat!(
            "SELECT * FROM (SELECT seq, id, version, occurred_at, trust, beginning FROM mind_cautions",
            $by,
            " WHERE user_id = $1 AND agent = $2 AND lane = ",
            $lane,
            " ORDER BY seq DESC LIMIT ",
            $limit,
            ") lane",
            $lane
        )
    };
}

/// The newest of both lanes, and the newest unscanned ones. They come in one row, as JSON: hundreds of rows cost more
/// than all other work.
macro_rules! newest {
    ($list:literal, $array:literal, $by:literal) => {
        concat!(
            "SELECT CAST(",
            $list,
            "(",
            $array,
            "(seq, id, version, occurred_at, trust, beginning)) AS TEXT) FROM (",
            lane!("2", "$3", $by),
            " UNION ",
            lane!("1", "$4", $by),
            " UNION SELECT * FROM (SELECT seq, id, version, occurred_at, trust, substr(text, 1, 4096) AS beginning \
             FROM agent_long_term_memory WHERE user_id = $1 AND agent = $2 AND seq > $6 AND status = 'active' \
             ORDER BY seq DESC LIMIT +$5) fresh) found"
        )
    };
}

/// SQLite would read the other lanes without the hint.
pub(crate) const NEWEST: Sql = Sql {
    sqlite: newest!("json_group_array", "json_array", " INDEXED BY mind_cautions_by_lane"),
    pg: newest!("json_agg", "json_build_array", ""),
};
pub(crate) const AFTER: &str = "SELECT seq, id, version, occurred_at, trust, substr(text, 1, 4096) FROM agent_long_term_memory \
     WHERE user_id = $1 AND agent = $2 AND seq > $3 ORDER BY seq LIMIT +$4";
/// Those with higher numbers are unscanned anyway.
const AGAIN: &str = "SELECT seq, id, version, occurred_at, trust, beginning FROM mind_cautions \
     WHERE user_id = $1 AND agent = $2 AND seq <= $3 AND judged = 0 ORDER BY seq LIMIT +$4";
/// Judged only if the text is still the one that was scanned; otherwise it is scanned again.
const KEEP: &str = "INSERT INTO mind_cautions (user_id, agent, seq, lane, judged, id, version, occurred_at, trust, beginning) \
     SELECT user_id, agent, seq, \
     CASE WHEN status <> 'active' THEN 0 WHEN trust = 'owner' THEN 2 ELSE 1 END, \
     CASE WHEN version = $4 THEN 1 ELSE 0 END, id, version, occurred_at, trust, substr(text, 1, 4096) \
     FROM agent_long_term_memory WHERE user_id = $1 AND agent = $2 AND seq = $3 AND status NOT IN ('forgotten', 'erased') \
     ON CONFLICT (user_id, agent, seq) DO UPDATE SET lane = excluded.lane, judged = excluded.judged, \
     version = excluded.version, trust = excluded.trust, beginning = excluded.beginning";
const REMOVE: &str =
    "DELETE FROM mind_cautions WHERE user_id = $1 AND agent = $2 AND seq = $3 AND version = $4";
const FAR: &str = "SELECT COALESCE((SELECT seq FROM mind_caution_marks WHERE user_id = $1 AND agent = $2), 0), \
     COALESCE((SELECT last_seq FROM memory_scopes WHERE user_id = $1 AND agent = $2), 0)";
/// Whether there are more than the newest of each lane.
const BEHIND: &str = "SELECT (SELECT COUNT(*) FROM (SELECT seq FROM mind_cautions \
     WHERE user_id = $1 AND agent = $2 AND lane = 2 ORDER BY seq DESC LIMIT 1 OFFSET $3) owners) \
     + (SELECT COUNT(*) FROM (SELECT seq FROM mind_cautions \
     WHERE user_id = $1 AND agent = $2 AND lane = 1 ORDER BY seq DESC LIMIT 1 OFFSET $4) others)";

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ScanCandidate {
    pub seq: i64,
    pub id: String,
    pub version: i64,
    pub occurred_at: i64,
    pub trust: String,
    /// The beginning of the memory's text.
    pub text: String,
}

from_row! { ScanCandidate { seq, id, version, occurred_at, trust, text } }

/// How many memories are read for a call; each group has its own limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryRuleLimits {
    pub owners: u32,
    pub others: u32,
    pub fresh: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryRules {
    /// Active memories that restrict something, and the newest unscanned ones: the owner's first, each group newest
    /// first.
    pub memories: Vec<ScanCandidate>,
    /// Whether more of them restrict something.
    pub more: bool,
    /// Number of unscanned memories, those above included.
    pub unscanned: u64,
    /// Number of memories ever saved.
    pub saved: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnscannedMemories {
    /// Unscanned memories of any status in the order of saving, then those changed since their scan.
    pub memories: Vec<ScanCandidate>,
    /// After these, every memory up to this number is scanned.
    pub up_to: i64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryRuleScan {
    /// Every memory up to this number is scanned.
    pub up_to: i64,
    /// Number and version of each memory that restricts something.
    pub restricting: Vec<(i64, i64)>,
    /// Number and version of each memory that does not.
    pub harmless: Vec<(i64, i64)>,
}

impl MemoryRuleScans<'_> {
    /// The newest active memories that restrict something, and the newest unscanned ones.
    pub async fn list(self, scope: &Scope, limits: MemoryRuleLimits) -> Result<MemoryRules> {
        let (owners, others, fresh) =
            (limits.owners.min(MOST), limits.others.min(MOST), limits.fresh.min(MOST));
        let mut conn = self.store.reader().await?;
        let (seen, last): (i64, i64) = conn.fetch_one(FAR, args![scope.user(), scope.agent()]).await?;
        let (behind,): (i64,) =
            conn.fetch_one(BEHIND, args![scope.user(), scope.agent(), owners, others]).await?;
        let values = args![scope.user(), scope.agent(), owners, others, fresh, seen];
        let (rows,): (Option<String>,) = conn.fetch_one(NEWEST, values).await?;
        let unreadable =
            |error| Error::new(ErrorKind::Other, "the memory rules cannot be read").because(error);
        let mut memories: Vec<ScanCandidate> = match rows.as_deref() {
            None | Some("") => Vec::new(),
            Some(rows) => serde_json::from_str(rows).map_err(unreadable)?,
        };
        memories.sort_by_key(|memory| std::cmp::Reverse((memory.trust == OWNER, memory.seq)));
        let positive = |count: i64| u64::try_from(count).unwrap_or(0);
        Ok(MemoryRules {
            memories,
            more: behind > 0,
            unscanned: positive(last - seen),
            saved: positive(last),
        })
    }

    /// Unscanned memories, and those that were changed since their scan; at most `limit` of each.
    pub async fn list_unscanned(self, scope: &Scope, limit: u32) -> Result<UnscannedMemories> {
        let limit = limit.min(MOST);
        let mut conn = self.store.reader().await?;
        let (seen, _): (i64, i64) = conn.fetch_one(FAR, args![scope.user(), scope.agent()]).await?;
        let values = args![scope.user(), scope.agent(), seen, limit];
        let mut memories: Vec<ScanCandidate> = conn.fetch_all(AFTER, values.clone()).await?;
        let up_to = memories.last().map_or(seen, |memory| memory.seq);
        memories.extend(conn.fetch_all::<ScanCandidate>(AGAIN, values).await?);
        Ok(UnscannedMemories { memories, up_to })
    }

    /// Records a scan. Scans of two processes may overlap: `up_to` never goes back.
    pub async fn record_scan(self, scope: &Scope, scan: MemoryRuleScan) -> Result<()> {
        if scan.restricting.len() + scan.harmless.len() > 2 * MOST as usize {
            return Err(Error::invalid(format!(
                "{} memory rules at once; {} are allowed",
                scan.restricting.len() + scan.harmless.len(),
                2 * MOST
            )));
        }
        let scope = scope.clone();
        transaction!(self.store, |conn| note(conn, &scope, scan).await)
    }
}

/// Follows a change of a memory: one that is active is scanned again.
pub(crate) async fn on_changed(conn: &mut Conn, scope: &Scope, seq: i64, after: &Memory) -> Result<()> {
    let lane = match after.status {
        MemoryStatus::Forgotten | MemoryStatus::Erased => {
            let sql = "DELETE FROM mind_cautions WHERE user_id = $1 AND agent = $2 AND seq = $3";
            return conn.execute(sql, args![scope.user(), scope.agent(), seq]).await.map(drop);
        }
        MemoryStatus::Active if after.trust == OWNER => OWNERS,
        MemoryStatus::Active => OTHERS,
        MemoryStatus::Quarantined => NO_LANE,
    };
    let sql = "INSERT INTO mind_cautions \
         (user_id, agent, seq, lane, judged, id, version, occurred_at, trust, beginning) \
         VALUES ($1, $2, $3, $4, 0, $5, $6, $7, $8, $9) \
         ON CONFLICT (user_id, agent, seq) DO UPDATE SET lane = excluded.lane, judged = 0, \
         version = excluded.version, trust = excluded.trust, beginning = excluded.beginning";
    let Memory { id, version, occurred_at, trust, text, .. } = after;
    let beginning: String = text.chars().take(BEGINNING_CHARS).collect();
    let (user, agent) = (scope.user(), scope.agent());
    let values = args![user, agent, seq, lane, id, *version, *occurred_at, trust, beginning];
    conn.execute(sql, values).await.map(drop)
}

async fn note(conn: &mut Conn, scope: &Scope, scan: MemoryRuleScan) -> Result<()> {
    let sql = "INSERT INTO mind_caution_marks AS this (user_id, agent, seq) VALUES ($1, $2, $3) \
         ON CONFLICT (user_id, agent) DO UPDATE \
         SET seq = CASE WHEN this.seq > excluded.seq THEN this.seq ELSE excluded.seq END";
    conn.execute(sql, args![scope.user(), scope.agent(), scan.up_to]).await?;
    for (seq, version) in scan.harmless {
        conn.execute(REMOVE, args![scope.user(), scope.agent(), seq, version]).await?;
    }
    for (seq, version) in scan.restricting {
        conn.execute(KEEP, args![scope.user(), scope.agent(), seq, version]).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{DatabaseUrl, Store};

    /// SQLite plans without statistics: it must not read a whole scope for a few rows of it.
    #[tokio::test]
    async fn no_statement_walks_through_a_whole_scope() {
        let store = Store::open(DatabaseUrl::Memory).await.unwrap();
        let mut conn = store.db().reader().await.unwrap();
        for sql in [NEWEST.sqlite, AFTER, AGAIN, KEEP, REMOVE, FAR, BEHIND] {
            let explained: &'static str = format!("EXPLAIN QUERY PLAN {sql}").leak();
            let plan: Vec<(i64, i64, i64, String)> = conn.fetch_all(explained, args![]).await.unwrap();
            let walks = |step: &str| {
                step.starts_with("SCAN agent_long_term_memory")
                    || step.starts_with("SCAN mind_cautions")
                    || step.contains("SEARCH agent_long_term_memory") && !step.contains("seq")
                    || step.contains("SEARCH mind_cautions")
                        && !step.contains("lane=?")
                        && !step.contains("seq")
            };
            assert!(!plan.iter().any(|(.., step)| walks(step)), "{sql}\n{plan:#?}");
        }
    }
}
