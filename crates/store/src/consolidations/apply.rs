//! Carries out a plan in one transaction, and writes down what was done.

use super::{ApplyOutcome, ConsolidationClaim, ConsolidationPlan, ConsolidationRun, PruneLog};
use crate::areas::Consolidations;
use crate::db::{Conn, Sql, args, listed, transaction};
use crate::error::Result;
use crate::memories::alike;
use crate::store::{Scope, new_id};

/// The most commitments that lapse in a run.
const MOST_LAPSED: u32 = 1000;
/// The most entries that are pruned in a run.
const MOST_PRUNED: u32 = 5000;

pub(super) const OVERDUE: &str = "SELECT id FROM commitments WHERE user_id = $1 AND agent = $2 AND status = 'open' \
     AND due_at < $3 AND changed_at < $3 ORDER BY due_at LIMIT +$4";
pub(super) const UNDATED: &str = "SELECT id FROM commitments WHERE user_id = $1 AND agent = $2 AND status = 'open' \
     AND due_at IS NULL AND changed_at < $3 LIMIT +$4";
/// What was brought back into the log stands before the mark, and so is passed over.
pub(super) const OLDEST: &str =
    "SELECT seq, at FROM mind_log WHERE user_id = $1 AND agent = $2 AND seq > $3 ORDER BY seq LIMIT +$4";
pub(super) const ARCHIVE: Sql = listed!(
    "INSERT INTO mind_log_archive (user_id, agent, run_id, seq, at, session, kind, writer, trust, held, pruned_at, text) \
     SELECT user_id, agent, $3, seq, at, session, kind, writer, trust, held, CAST($5 AS BIGINT), text FROM mind_log \
     WHERE user_id = $1 AND agent = $2 AND seq",
    "$4",
    ""
);
pub(super) const EXPIRE: &str =
    "DELETE FROM mind_log_archive WHERE user_id = $1 AND agent = $2 AND pruned_at < $3";
pub(super) const PRUNE: Sql =
    listed!("DELETE FROM mind_log WHERE user_id = $1 AND agent = $2 AND seq", "$3", "");

impl Consolidations<'_> {
    /// Carries out a plan and gives the claim back. What has changed since the plan was made is left alone.
    pub async fn apply(
        self,
        claim: &ConsolidationClaim,
        plan: ConsolidationPlan,
        at: i64,
    ) -> Result<ApplyOutcome> {
        let claim = claim.clone();
        transaction!(self.store, |conn| apply(conn, &claim, plan, at).await)
    }
}

async fn apply(
    conn: &mut Conn,
    claim: &ConsolidationClaim,
    plan: ConsolidationPlan,
    at: i64,
) -> Result<ApplyOutcome> {
    let scope = &claim.scope;
    let held: Option<(i64, i64)> = conn
        .fetch_optional(
            "UPDATE mind_log_scopes SET lease_owner = NULL, lease_until = 0, \
             looked_seq = CASE WHEN looked_seq > $4 THEN looked_seq ELSE $4 END \
             WHERE user_id = $1 AND agent = $2 AND fence = $3 RETURNING last_seq, pruned_seq",
            args![scope.user(), scope.agent(), claim.fence, plan.looked_seq],
        )
        .await?;
    let Some((last_seq, pruned_seq)) = held else { return Ok(ApplyOutcome::Lost) };
    let mut run = ConsolidationRun { id: new_id(), at, merged: 0, lapsed: 0, pruned: 0, undone_at: None };
    alike::remember(conn, scope, &plan.likenesses).await?;
    for merge in &plan.merges {
        if let Some(version) = alike::merge(conn, scope, merge).await? {
            let item = Item { subject: &merge.forgotten, what: "memory", kept: Some(&merge.kept), version };
            add_item(conn, scope, &run.id, item).await?;
            run.merged += 1;
        }
    }
    for (statement, before) in [(OVERDUE, plan.lapse_before), (UNDATED, plan.lapse_undated_before)] {
        if let Some(before) = before {
            run.lapsed += lapse(conn, scope, &run, statement, before).await?;
        }
    }
    if let Some(policy) = &plan.prune {
        run.pruned = prune(conn, scope, &run, policy, Log { last_seq, pruned_seq }).await?;
    }
    if let Some(before) = plan.expire_before {
        conn.execute(EXPIRE, args![scope.user(), scope.agent(), before]).await?;
    }
    if run.merged + run.lapsed + run.pruned == 0 {
        return Ok(ApplyOutcome::Nothing);
    }
    write(conn, scope, &run).await?;
    Ok(ApplyOutcome::Done(run))
}

struct Item<'i> {
    subject: &'i str,
    what: &'static str,
    kept: Option<&'i str>,
    version: i64,
}

async fn add_item(conn: &mut Conn, scope: &Scope, run: &str, item: Item<'_>) -> Result<()> {
    let Item { subject, what, kept, version } = item;
    conn.execute(
        "INSERT INTO consolidation_items (user_id, agent, run_id, subject, what, kept, version) \
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
        args![scope.user(), scope.agent(), run, subject, what, kept, version],
    )
    .await
    .map(drop)
}

async fn lapse(
    conn: &mut Conn,
    scope: &Scope,
    run: &ConsolidationRun,
    statement: &'static str,
    before: i64,
) -> Result<i64> {
    let old: Vec<(String,)> =
        conn.fetch_all(statement, args![scope.user(), scope.agent(), before, MOST_LAPSED]).await?;
    let mut lapsed = 0;
    for (id,) in &old {
        let changed = conn
            .execute(
                "UPDATE commitments SET status = 'lapsed', changed_at = $4 \
                 WHERE user_id = $1 AND agent = $2 AND id = $3 AND status = 'open'",
                args![scope.user(), scope.agent(), id, run.at],
            )
            .await?;
        if changed > 0 {
            let item = Item { subject: id, what: "commitment", kept: None, version: run.at };
            add_item(conn, scope, &run.id, item).await?;
            lapsed += 1;
        }
    }
    Ok(lapsed)
}

/// How far the log goes, and how far it was pruned.
#[derive(Clone, Copy)]
pub(super) struct Log {
    pub(super) last_seq: i64,
    pub(super) pruned_seq: i64,
}

/// The oldest entries that were not pruned yet, as far as they are to go.
pub(super) async fn to_prune(
    conn: &mut Conn,
    scope: &Scope,
    policy: &PruneLog,
    log: Log,
    limit: u32,
) -> Result<Vec<i64>> {
    let oldest_kept = log.last_seq.saturating_sub(policy.keep.max(0));
    let rows: Vec<(i64, i64)> =
        conn.fetch_all(OLDEST, args![scope.user(), scope.agent(), log.pruned_seq, limit]).await?;
    let goes = |&(seq, at): &(i64, i64)| seq <= oldest_kept || at < policy.before;
    Ok(rows.into_iter().take_while(goes).map(|(seq, _)| seq).collect())
}

async fn prune(
    conn: &mut Conn,
    scope: &Scope,
    run: &ConsolidationRun,
    policy: &PruneLog,
    log: Log,
) -> Result<i64> {
    let seqs = to_prune(conn, scope, policy, log, MOST_PRUNED).await?;
    let Some(&last) = seqs.last() else { return Ok(0) };
    conn.execute(ARCHIVE, args![scope.user(), scope.agent(), &run.id, seqs.clone(), run.at]).await?;
    let pruned = conn.execute(PRUNE, args![scope.user(), scope.agent(), seqs]).await?;
    conn.execute(
        "UPDATE mind_log_scopes SET pruned_seq = $3 WHERE user_id = $1 AND agent = $2",
        args![scope.user(), scope.agent(), last],
    )
    .await?;
    Ok(i64::try_from(pruned).unwrap_or(i64::MAX))
}

async fn write(conn: &mut Conn, scope: &Scope, run: &ConsolidationRun) -> Result<()> {
    conn.execute(
        "INSERT INTO consolidations (user_id, agent, id, at, merged, lapsed, pruned) \
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
        args![scope.user(), scope.agent(), &run.id, run.at, run.merged, run.lapsed, run.pruned],
    )
    .await
    .map(drop)
}
