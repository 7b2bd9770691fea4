//! Carries out a plan in one transaction, and writes down what was done.

use super::{Consolidated, ConsolidationClaim, ConsolidationPlan, ConsolidationRun, PruneLog};
use crate::db::{Conn, Sql, args, listed};
use crate::error::Result;
use crate::memory::alike;
use crate::store::{Scope, Store, new_id};

/// The most commitments that lapse in a run.
const MOST_LAPSED: u32 = 1000;
/// The most entries that are pruned in a run.
const MOST_PRUNED: u32 = 5000;

const ARCHIVE: Sql = listed!(
    "INSERT INTO mind_log_archive (user_id, agent, run_id, seq, at, session, kind, writer, trust, held, text) \
     SELECT user_id, agent, $3, seq, at, session, kind, writer, trust, held, text FROM mind_log \
     WHERE user_id = $1 AND agent = $2 AND seq",
    "$4",
    ""
);
const PRUNE: Sql = listed!("DELETE FROM mind_log WHERE user_id = $1 AND agent = $2 AND seq", "$3", "");

impl Store {
    /// Carries out a plan and gives the claim back. What has changed since the plan was made is left alone.
    pub async fn consolidate(
        &self,
        claim: &ConsolidationClaim,
        plan: ConsolidationPlan,
        at: i64,
    ) -> Result<Consolidated> {
        let claim = claim.clone();
        self.db().write(move |conn| Box::pin(async move { apply(conn, &claim, plan, at).await })).await
    }
}

async fn apply(
    conn: &mut Conn,
    claim: &ConsolidationClaim,
    plan: ConsolidationPlan,
    at: i64,
) -> Result<Consolidated> {
    let scope = &claim.scope;
    let held: Option<(i64,)> = conn
        .maybe(
            "UPDATE mind_log_scopes SET lease_owner = NULL, lease_until = 0, \
             looked_seq = CASE WHEN looked_seq > $4 THEN looked_seq ELSE $4 END \
             WHERE user_id = $1 AND agent = $2 AND fence = $3 RETURNING last_seq",
            args![scope.user(), scope.agent(), claim.fence, plan.looked_seq],
        )
        .await?;
    let Some((last_seq,)) = held else { return Ok(Consolidated::Lost) };
    let mut run = ConsolidationRun { id: new_id(), at, merged: 0, lapsed: 0, pruned: 0, undone_at: None };
    alike::remember(conn, scope, &plan.likenesses).await?;
    for merge in &plan.merges {
        if let Some(version) = alike::merge(conn, scope, merge).await? {
            let item = Item { subject: &merge.forgotten, what: "memory", kept: Some(&merge.kept), version };
            add_item(conn, scope, &run.id, item).await?;
            run.merged += 1;
        }
    }
    if let Some(before) = plan.lapse_before {
        run.lapsed = lapse(conn, scope, &run, before).await?;
    }
    if let Some(policy) = &plan.prune {
        run.pruned = prune(conn, scope, &run.id, policy, last_seq).await?;
    }
    if run.merged + run.lapsed + run.pruned == 0 {
        return Ok(Consolidated::Nothing);
    }
    write(conn, scope, &run).await?;
    Ok(Consolidated::Done(run))
}

struct Item<'i> {
    subject: &'i str,
    what: &'static str,
    kept: Option<&'i str>,
    version: i64,
}

async fn add_item(conn: &mut Conn, scope: &Scope, run: &str, item: Item<'_>) -> Result<()> {
    let Item { subject, what, kept, version } = item;
    conn.run(
        "INSERT INTO consolidation_items (user_id, agent, run_id, subject, what, kept, version) \
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
        args![scope.user(), scope.agent(), run, subject, what, kept, version],
    )
    .await
    .map(drop)
}

async fn lapse(conn: &mut Conn, scope: &Scope, run: &ConsolidationRun, before: i64) -> Result<i64> {
    let overdue: Vec<(String,)> = conn
        .all(
            "SELECT id FROM commitments WHERE user_id = $1 AND agent = $2 AND status = 'open' AND due_at < $3 \
             AND changed_at < $3 ORDER BY due_at LIMIT $4",
            args![scope.user(), scope.agent(), before, MOST_LAPSED],
        )
        .await?;
    let mut lapsed = 0;
    for (id,) in &overdue {
        let changed = conn
            .run(
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

async fn prune(conn: &mut Conn, scope: &Scope, run: &str, policy: &PruneLog, last_seq: i64) -> Result<i64> {
    let oldest_kept = last_seq.saturating_sub(policy.keep.max(0));
    let rows: Vec<(i64,)> = conn
        .all(
            "SELECT seq FROM mind_log WHERE user_id = $1 AND agent = $2 AND pinned = 0 \
             AND (seq <= $3 OR at < $4) ORDER BY seq LIMIT $5",
            args![scope.user(), scope.agent(), oldest_kept, policy.before, MOST_PRUNED],
        )
        .await?;
    let seqs: Vec<i64> = rows.into_iter().map(|(seq,)| seq).collect();
    if seqs.is_empty() {
        return Ok(0);
    }
    conn.run(ARCHIVE, args![scope.user(), scope.agent(), run, seqs.clone()]).await?;
    let pruned = conn.run(PRUNE, args![scope.user(), scope.agent(), seqs]).await?;
    Ok(i64::try_from(pruned).unwrap_or(i64::MAX))
}

/// Writes the run down, and empties the archive of those that came two before it.
async fn write(conn: &mut Conn, scope: &Scope, run: &ConsolidationRun) -> Result<()> {
    conn.run(
        "INSERT INTO consolidations (user_id, agent, id, at, merged, lapsed, pruned) \
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
        args![scope.user(), scope.agent(), &run.id, run.at, run.merged, run.lapsed, run.pruned],
    )
    .await?;
    conn.run(
        "DELETE FROM mind_log_archive WHERE user_id = $1 AND agent = $2 AND run_id NOT IN \
         (SELECT id FROM consolidations WHERE user_id = $1 AND agent = $2 ORDER BY id DESC LIMIT 2)",
        args![scope.user(), scope.agent()],
    )
    .await
    .map(drop)
}
