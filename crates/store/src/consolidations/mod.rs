//! Consolidation of what a mind holds: who may run it, what a run did, and how to take it back.
//!
//! A plan is made outside from what was read; it is applied here in one transaction, and whatever has changed meanwhile
//! is left alone. Memories and commitments can be brought back for ever. Entries of the log that were pruned wait in an
//! archive for some days: they are small talk, and a log that never shrinks was the thing to be cured.

mod apply;
mod due;
#[cfg(test)]
mod plans;
mod undo;

use crate::areas::Consolidations;
use crate::db::{Conn, args, transaction};
use crate::error::{Error, Result};
use crate::leases::{Lease, LeaseStatus, clock};
use crate::memories::Merge;
use crate::store::Scope;

const MOST_READ: u32 = 200;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsolidationClaim {
    pub scope: Scope,
    pub fence: i64,
    /// Number of the last memory that was examined.
    pub looked_seq: i64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConsolidationPlan {
    /// Number of the last memory that was examined.
    pub looked_seq: i64,
    /// Index keys of the examined memories, with their numbers.
    pub likenesses: Vec<(String, i64)>,
    pub merges: Vec<Merge>,
    /// Open commitments that were due, and last changed, before this time lapse.
    pub lapse_before: Option<i64>,
    /// Open commitments without a due time that were last changed before this time lapse.
    pub lapse_undated_before: Option<i64>,
    pub prune: Option<PruneLog>,
    /// Entries pruned before this time can no longer be restored.
    pub expire_before: Option<i64>,
}

/// Which entries of the log go: the oldest, up to the first that is neither old nor too much. Those that somebody brought
/// back stay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PruneLog {
    pub before: i64,
    pub keep: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApplyOutcome {
    Done(ConsolidationRun),
    Nothing,
    /// Another process took over the lease; nothing is changed.
    Lost,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsolidationRun {
    pub id: String,
    pub at: i64,
    pub merged: i64,
    pub lapsed: i64,
    pub pruned: i64,
    pub undone_at: Option<i64>,
}

/// What a run did to one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsolidationItem {
    pub run: String,
    pub subject: String,
    /// The memory that replaces it; `None` for a commitment.
    pub kept: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UndoResult {
    pub memories: u64,
    pub commitments: u64,
    pub entries: u64,
    /// Changed since then or gone from the archive, hence not restored.
    pub left: u64,
}

impl Consolidations<'_> {
    /// The right to consolidate a scope; `None` while somebody else has it.
    pub async fn claim(self, scope: &Scope, lease: &Lease) -> Result<Option<ConsolidationClaim>> {
        lease.check()?;
        let (scope, lease) = (scope.clone(), lease.clone());
        transaction!(self.store, |conn| {
            let now = clock(conn).await?;
            let claimed: Option<(i64, i64)> = conn
                .fetch_optional(
                    "INSERT INTO mind_log_scopes AS this \
                             (user_id, agent, last_seq, last_at, lease_owner, lease_until, fence) \
                             VALUES ($1, $2, 0, 0, $3, $4, 1) ON CONFLICT (user_id, agent) DO UPDATE SET \
                             lease_owner = excluded.lease_owner, lease_until = excluded.lease_until, \
                             fence = this.fence + 1 WHERE this.lease_until <= $5 RETURNING fence, looked_seq",
                    args![scope.user(), scope.agent(), &lease.owner, lease.until(now), now],
                )
                .await?;
            Ok(claimed.map(|(fence, looked_seq)| ConsolidationClaim { scope, fence, looked_seq }))
        })
    }

    /// Gives the right back; the next one may begin at once.
    pub async fn release(self, claim: &ConsolidationClaim) -> Result<LeaseStatus> {
        let claim = claim.clone();
        transaction!(self.store, |conn| release(conn, &claim).await)
    }

    /// When the mind of this scope was last told something or saved a memory; 0 if never.
    pub async fn last_activity_at(self, scope: &Scope) -> Result<i64> {
        let mut conn = self.store.reader().await?;
        let told: Option<(i64,)> = conn
            .fetch_optional(
                "SELECT last_at FROM mind_log_scopes WHERE user_id = $1 AND agent = $2",
                args![scope.user(), scope.agent()],
            )
            .await?;
        let saved: Option<(i64,)> = conn
            .fetch_optional(
                "SELECT created_at FROM agent_long_term_memory WHERE user_id = $1 AND agent = $2 \
                 ORDER BY seq DESC LIMIT 1",
                args![scope.user(), scope.agent()],
            )
            .await?;
        Ok(told.into_iter().chain(saved).map(|(at,)| at).max().unwrap_or(0))
    }

    pub async fn list(self, scope: &Scope, limit: u32) -> Result<Vec<ConsolidationRun>> {
        if limit > MOST_READ {
            return Err(Error::invalid(format!("the limit is `{limit}`; at most {MOST_READ} runs are read")));
        }
        let rows: Vec<Row> = self
            .store
            .reader()
            .await?
            .fetch_all(
                "SELECT id, at, merged, lapsed, pruned, undone_at FROM consolidations \
                 WHERE user_id = $1 AND agent = $2 ORDER BY id DESC LIMIT +$3",
                args![scope.user(), scope.agent(), limit],
            )
            .await?;
        Ok(rows.into_iter().map(run).collect())
    }

    /// What consolidations did to a memory or a commitment, newest first.
    pub async fn list_for(self, scope: &Scope, subject: &str) -> Result<Vec<ConsolidationItem>> {
        let rows: Vec<(String, String, Option<String>)> = self
            .store
            .reader()
            .await?
            .fetch_all(
                "SELECT run_id, subject, kept FROM consolidation_items \
                 WHERE user_id = $1 AND agent = $2 AND subject = $3 ORDER BY run_id DESC LIMIT 100",
                args![scope.user(), scope.agent(), subject],
            )
            .await?;
        let item = |(run, subject, kept)| ConsolidationItem { run, subject, kept };
        Ok(rows.into_iter().map(item).collect())
    }
}

type Row = (String, i64, i64, i64, i64, Option<i64>);

fn run((id, at, merged, lapsed, pruned, undone_at): Row) -> ConsolidationRun {
    ConsolidationRun { id, at, merged, lapsed, pruned, undone_at }
}

async fn release(conn: &mut Conn, claim: &ConsolidationClaim) -> Result<LeaseStatus> {
    let returned = conn
        .execute(
            "UPDATE mind_log_scopes SET lease_owner = NULL, lease_until = 0 \
             WHERE user_id = $1 AND agent = $2 AND fence = $3",
            args![claim.scope.user(), claim.scope.agent(), claim.fence],
        )
        .await?;
    Ok(LeaseStatus::by(returned))
}
