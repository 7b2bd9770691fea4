//! Consolidation of a mind's memories, commitments and log: claims, runs, and undo.
//!
//! The mind makes a plan; it is applied here in one transaction, without what has changed meanwhile. Memories and
//! commitments can always be restored, pruned log entries only while they are in the archive.

use crate::areas::Consolidations;
use crate::audit::Action;
use crate::db::{Conn, Sql, Value, args, audited, from_row, listed, transaction};
use crate::error::{Error, ErrorKind, Result};
use crate::leases::{self, Lease, LeaseStatus, LeasedRow, clock};
use crate::memories::{Merge, alike};
use crate::store::{Scope, new_id};

const MOST_READ: u32 = 200;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsolidationClaim {
    pub scope: Scope,
    pub fence: i64,
    /// Number of the last memory that was examined.
    pub looked_seq: i64,
}

impl LeasedRow for ConsolidationClaim {
    fn key(&self) -> Vec<Value> {
        args![self.scope.user(), self.scope.agent(), self.fence]
    }
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

/// Prunes the oldest entries, up to the first that is neither old nor too many. Restored ones stay.
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

from_row! { ConsolidationRun { id, at, merged, lapsed, pruned, undone_at } }

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UndoResult {
    pub memories: u64,
    pub commitments: u64,
    pub entries: u64,
    /// Changed since then or gone from the archive, hence not restored.
    pub left: u64,
}

impl Consolidations<'_> {
    /// Claims a scope; `None` if another process holds it.
    pub async fn claim(self, scope: &Scope, lease: &Lease) -> Result<Option<ConsolidationClaim>> {
        lease.check()?;
        let (scope, lease) = (scope.clone(), lease.clone());
        transaction!(self.store, |conn| {
            let now = clock(conn).await?;
            let sql = "INSERT INTO mind_log_scopes AS this \
                 (user_id, agent, last_seq, last_at, lease_owner, lease_until, fence) \
                 VALUES ($1, $2, 0, 0, $3, $4, 1) ON CONFLICT (user_id, agent) DO UPDATE SET \
                 lease_owner = excluded.lease_owner, lease_until = excluded.lease_until, \
                 fence = this.fence + 1 WHERE this.lease_until <= $5 RETURNING fence, looked_seq";
            let claimed: Option<(i64, i64)> = conn
                .fetch_optional(sql, args![scope.user(), scope.agent(), &lease.owner, lease.until(now), now])
                .await?;
            Ok(claimed.map(|(fence, looked_seq)| ConsolidationClaim { scope, fence, looked_seq }))
        })
    }

    /// Another process can claim the scope at once.
    pub async fn release(self, claim: &ConsolidationClaim) -> Result<LeaseStatus> {
        let claim = claim.clone();
        let sql = "UPDATE mind_log_scopes SET lease_owner = NULL, lease_until = 0 \
             WHERE user_id = $1 AND agent = $2 AND fence = $3";
        transaction!(self.store, |conn| leases::update(conn, sql, &claim, Vec::new()).await)
    }

    /// Time of the last log entry or saved memory of this scope; 0 if none.
    pub async fn last_activity_at(self, scope: &Scope) -> Result<i64> {
        let mut conn = self.store.reader().await?;
        let sql = "SELECT last_at FROM mind_log_scopes WHERE user_id = $1 AND agent = $2";
        let told: Option<(i64,)> = conn.fetch_optional(sql, args![scope.user(), scope.agent()]).await?;
        let sql = "SELECT created_at FROM agent_long_term_memory WHERE user_id = $1 AND agent = $2 \
             ORDER BY seq DESC LIMIT 1";
        let saved: Option<(i64,)> = conn.fetch_optional(sql, args![scope.user(), scope.agent()]).await?;
        Ok(told.into_iter().chain(saved).map(|(at,)| at).max().unwrap_or(0))
    }

    pub async fn list(self, scope: &Scope, limit: u32) -> Result<Vec<ConsolidationRun>> {
        if limit > MOST_READ {
            return Err(Error::invalid(format!("the limit is `{limit}`; at most {MOST_READ} runs are read")));
        }
        let sql = "SELECT id, at, merged, lapsed, pruned, undone_at FROM consolidations \
             WHERE user_id = $1 AND agent = $2 ORDER BY id DESC LIMIT +$3";
        self.store.fetch_all(sql, args![scope.user(), scope.agent(), limit]).await
    }

    /// Whether there are unexamined memories, or anything that the limits of this plan cover. Ignores its merges and
    /// likenesses.
    pub async fn is_due(self, scope: &Scope, plan: &ConsolidationPlan) -> Result<bool> {
        let mut conn = self.store.reader().await?;
        let (user, agent) = (scope.user(), scope.agent());
        let sql =
            "SELECT looked_seq, last_seq, pruned_seq FROM mind_log_scopes WHERE user_id = $1 AND agent = $2";
        let row: Option<(i64, i64, i64)> = conn.fetch_optional(sql, args![user, agent]).await?;
        let (looked_seq, last_seq, pruned_seq) = row.unwrap_or_default();
        let unseen: Option<(i64,)> = conn.fetch_optional(UNSEEN, args![user, agent, looked_seq]).await?;
        if unseen.is_some() {
            return Ok(true);
        }
        for (statement, before) in [(OVERDUE, plan.lapse_before), (UNDATED, plan.lapse_undated_before)] {
            let Some(before) = before else { continue };
            let lapsing: Option<(String,)> =
                conn.fetch_optional(statement, args![user, agent, before, 1_i64]).await?;
            if lapsing.is_some() {
                return Ok(true);
            }
        }
        if let Some(policy) = &plan.prune
            && !to_prune(&mut conn, scope, policy, Log { last_seq, pruned_seq }, 1).await?.is_empty()
        {
            return Ok(true);
        }
        let Some(before) = plan.expire_before else { return Ok(false) };
        let expired: Option<(i64,)> = conn.fetch_optional(EXPIRED, args![user, agent, before]).await?;
        Ok(expired.is_some())
    }

    /// Applies a plan and releases the claim.
    pub async fn apply(
        self,
        claim: &ConsolidationClaim,
        plan: ConsolidationPlan,
        at: i64,
    ) -> Result<ApplyOutcome> {
        let claim = claim.clone();
        transaction!(self.store, |conn| apply(conn, &claim, plan, at).await)
    }

    /// Restores what a run merged, lapsed and pruned. Undoing twice changes nothing.
    pub async fn undo(self, scope: &Scope, run: &str, at: i64) -> Result<UndoResult> {
        let (scope, run) = (scope.clone(), run.to_owned());
        audited!(self.store, |tx| {
            let undone = undo(&mut tx.conn, &scope, &run, at).await?;
            tx.operation(scope.user(), Action::ConsolidationUndone, &run, Some(scope.agent()))?;
            Ok(undone)
        })
    }
}

const UNSEEN: &str = "SELECT seq FROM agent_long_term_memory WHERE user_id = $1 AND agent = $2 \
     AND seq > $3 ORDER BY seq LIMIT 1";
const EXPIRED: &str =
    "SELECT seq FROM mind_log_archive WHERE user_id = $1 AND agent = $2 AND pruned_at < $3 LIMIT 1";

const MOST_LAPSED: u32 = 1000;
const MOST_PRUNED: u32 = 5000;

const OVERDUE: &str = "SELECT id FROM commitments WHERE user_id = $1 AND agent = $2 AND status = 'open' \
     AND due_at < $3 AND changed_at < $3 ORDER BY due_at LIMIT +$4";
const UNDATED: &str = "SELECT id FROM commitments WHERE user_id = $1 AND agent = $2 AND status = 'open' \
     AND due_at IS NULL AND changed_at < $3 LIMIT +$4";
/// Restored entries have numbers up to `pruned_seq`, and so are skipped.
const OLDEST: &str =
    "SELECT seq, at FROM mind_log WHERE user_id = $1 AND agent = $2 AND seq > $3 ORDER BY seq LIMIT +$4";
const ARCHIVE: Sql = listed!(
    "INSERT INTO mind_log_archive (user_id, agent, run_id, seq, at, session, kind, writer, trust, held, pruned_at, text) \
     SELECT user_id, agent, $3, seq, at, session, kind, writer, trust, held, CAST($5 AS BIGINT), text FROM mind_log \
     WHERE user_id = $1 AND agent = $2 AND seq",
    "$4",
    ""
);
const EXPIRE: &str = "DELETE FROM mind_log_archive WHERE user_id = $1 AND agent = $2 AND pruned_at < $3";
const PRUNE: Sql = listed!("DELETE FROM mind_log WHERE user_id = $1 AND agent = $2 AND seq", "$3", "");

async fn apply(
    conn: &mut Conn,
    claim: &ConsolidationClaim,
    plan: ConsolidationPlan,
    at: i64,
) -> Result<ApplyOutcome> {
    let scope = &claim.scope;
    let sql = "UPDATE mind_log_scopes SET lease_owner = NULL, lease_until = 0, \
         looked_seq = CASE WHEN looked_seq > $4 THEN looked_seq ELSE $4 END \
         WHERE user_id = $1 AND agent = $2 AND fence = $3 RETURNING last_seq, pruned_seq";
    let held: Option<(i64, i64)> =
        conn.fetch_optional(sql, args![scope.user(), scope.agent(), claim.fence, plan.looked_seq]).await?;
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
    let sql = "INSERT INTO consolidation_items (user_id, agent, run_id, subject, what, kept, version) \
         VALUES ($1, $2, $3, $4, $5, $6, $7)";
    conn.execute(sql, args![scope.user(), scope.agent(), run, subject, what, kept, version]).await.map(drop)
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
        let sql = "UPDATE commitments SET status = 'lapsed', changed_at = $4 \
             WHERE user_id = $1 AND agent = $2 AND id = $3 AND status = 'open'";
        let changed = conn.execute(sql, args![scope.user(), scope.agent(), id, run.at]).await?;
        if changed > 0 {
            let item = Item { subject: id, what: "commitment", kept: None, version: run.at };
            add_item(conn, scope, &run.id, item).await?;
            lapsed += 1;
        }
    }
    Ok(lapsed)
}

#[derive(Clone, Copy)]
struct Log {
    last_seq: i64,
    pruned_seq: i64,
}

/// The oldest unpruned entries that the policy covers.
async fn to_prune(
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
    let sql = "UPDATE mind_log_scopes SET pruned_seq = $3 WHERE user_id = $1 AND agent = $2";
    conn.execute(sql, args![scope.user(), scope.agent(), last]).await?;
    Ok(i64::try_from(pruned).unwrap_or(i64::MAX))
}

async fn write(conn: &mut Conn, scope: &Scope, run: &ConsolidationRun) -> Result<()> {
    let sql = "INSERT INTO consolidations (user_id, agent, id, at, merged, lapsed, pruned) \
         VALUES ($1, $2, $3, $4, $5, $6, $7)";
    conn.execute(sql, args![scope.user(), scope.agent(), &run.id, run.at, run.merged, run.lapsed, run.pruned])
        .await
        .map(drop)
}

const ITEMS: &str = "SELECT subject, what, version FROM consolidation_items \
     WHERE user_id = $1 AND agent = $2 AND run_id = $3 ORDER BY subject";
const RESTORE: &str = "INSERT INTO mind_log (user_id, agent, seq, at, session, kind, writer, trust, pinned, held, text) \
     SELECT user_id, agent, seq, at, session, kind, writer, trust, 1, held, text FROM mind_log_archive \
     WHERE user_id = $1 AND agent = $2 AND run_id = $3";

async fn undo(conn: &mut Conn, scope: &Scope, run: &str, at: i64) -> Result<UndoResult> {
    let sql = "UPDATE consolidations SET undone_at = $4 \
         WHERE user_id = $1 AND agent = $2 AND id = $3 AND undone_at IS NULL RETURNING pruned";
    let marked: Option<(i64,)> =
        conn.fetch_optional(sql, args![scope.user(), scope.agent(), run, at]).await?;
    let Some((pruned,)) = marked else {
        return if exists(conn, scope, run).await? { Ok(UndoResult::default()) } else { Err(missing(run)) };
    };
    let mut undone = UndoResult::default();
    let items: Vec<(String, String, i64)> =
        conn.fetch_all(ITEMS, args![scope.user(), scope.agent(), run]).await?;
    for (subject, what, version) in items {
        if what == "memory" {
            match alike::revive(conn, scope, &subject, version).await? {
                true => undone.memories += 1,
                false => undone.left += 1,
            }
        } else {
            // It gets its whole time again: lapsing depends on the last change too.
            let sql = "UPDATE commitments SET status = 'open', changed_at = $5 WHERE user_id = $1 AND agent = $2 \
                 AND id = $3 AND status = 'lapsed' AND changed_at = $4";
            let opened = conn.execute(sql, args![scope.user(), scope.agent(), &subject, version, at]).await?;
            undone.commitments += opened;
            undone.left += 1 - opened.min(1);
        }
    }
    undone.entries = restore(conn, scope, run).await?;
    undone.left += u64::try_from(pruned).unwrap_or(0).saturating_sub(undone.entries);
    Ok(undone)
}

async fn restore(conn: &mut Conn, scope: &Scope, run: &str) -> Result<u64> {
    let restored = conn.execute(RESTORE, args![scope.user(), scope.agent(), run]).await?;
    let sql = "DELETE FROM mind_log_archive WHERE user_id = $1 AND agent = $2 AND run_id = $3";
    conn.execute(sql, args![scope.user(), scope.agent(), run]).await?;
    Ok(restored)
}

async fn exists(conn: &mut Conn, scope: &Scope, run: &str) -> Result<bool> {
    let sql = "SELECT id FROM consolidations WHERE user_id = $1 AND agent = $2 AND id = $3";
    let row: Option<(String,)> = conn.fetch_optional(sql, args![scope.user(), scope.agent(), run]).await?;
    Ok(row.is_some())
}

fn missing(run: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("unknown consolidation `{run}`")).hint(
        "`embody memory consolidations` lists them; `--user` and `--agent` select the user and the agent",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{DatabaseUrl, Store};

    /// SQLite plans without statistics: it must not read more of a scope than it needs.
    #[tokio::test]
    async fn no_statement_walks_through_a_whole_scope() {
        let store = Store::open(DatabaseUrl::Memory).await.unwrap();
        let mut conn = store.db().reader().await.unwrap();
        let statements: [&str; 13] = [
            UNSEEN,
            EXPIRED,
            OVERDUE,
            UNDATED,
            OLDEST,
            ARCHIVE.sqlite,
            PRUNE.sqlite,
            EXPIRE,
            ITEMS,
            RESTORE,
            alike::ALIKE.sqlite,
            alike::NEIGHBOURS,
            alike::UNLEARN,
        ];
        for sql in statements {
            let explained = format!("EXPLAIN QUERY PLAN {sql}");
            let plan: Vec<(i64, i64, i64, String)> = conn.fetch_all(explained, args![]).await.unwrap();
            for (.., step) in &plan {
                let walks = step.contains("(user_id=? AND agent=?)")
                    || (step.starts_with("SCAN") && !step.contains("json_each"));
                assert!(!walks && !step.contains("TEMP B-TREE FOR ORDER"), "{sql}\n{plan:#?}");
            }
            assert!(plan.iter().any(|(.., step)| step.contains("SEARCH")), "{sql}\n{plan:#?}");
        }
    }
}
