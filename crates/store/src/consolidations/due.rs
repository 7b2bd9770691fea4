//! Whether there is anything to consolidate, found out by reading alone: a mind that nobody talks to writes nothing.

use super::ConsolidationPlan;
use super::apply::{Log, OVERDUE, UNDATED, to_prune};
use crate::areas::Consolidations;
use crate::db::args;
use crate::error::Result;
use crate::store::Scope;

pub(super) const UNSEEN: &str = "SELECT seq FROM agent_long_term_memory WHERE user_id = $1 AND agent = $2 \
     AND seq > $3 ORDER BY seq LIMIT 1";
pub(super) const EXPIRED: &str =
    "SELECT seq FROM mind_log_archive WHERE user_id = $1 AND agent = $2 AND pruned_at < $3 LIMIT 1";

impl Consolidations<'_> {
    /// Whether there are memories that no consolidation has looked at, or anything that goes by the limits of this plan.
    /// Its merges and likenesses are not asked for.
    pub async fn is_due(self, scope: &Scope, plan: &ConsolidationPlan) -> Result<bool> {
        let mut conn = self.store.reader().await?;
        let (user, agent) = (scope.user(), scope.agent());
        let row: Option<(i64, i64, i64)> = conn
            .fetch_optional(
                "SELECT looked_seq, last_seq, pruned_seq FROM mind_log_scopes WHERE user_id = $1 AND agent = $2",
                args![user, agent],
            )
            .await?;
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
}
