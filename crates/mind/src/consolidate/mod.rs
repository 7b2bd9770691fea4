//! Tidies up at quiet times: memories that say the same become one, commitments that are long overdue, or old and without
//! a time, lapse, the log is pruned.
//!
//! It reads on from where it stopped, a bounded number of memories at a time, and hands the store a plan that is carried
//! out in one transaction under a lease. Memories have no weight that could decay: ranking does not use one, and an old
//! memory is as true as a new one. Everything is written down as a run and can be taken back with [`undo`]; what was taken
//! back is not tidied up again. A second run does nothing, and where there is nothing to do nothing is written.

mod alike;

use std::time::Duration;

use embody_store::{
    Consolidated, ConsolidationClaim, ConsolidationPlan, ConsolidationRun, Lease, MemoryStatus, PruneLog,
    Scope, Store, Undone,
};

use crate::Moment;
use crate::error::{Error, Result};

/// No run takes longer; one whose process died blocks the next no longer than this.
const LEASE: Duration = Duration::from_secs(300);

/// When and how far to tidy up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Who runs it, for people to read.
    pub owner: String,
    /// It is quiet when nothing was said or saved for so long.
    pub quiet: Duration,
    /// Memories that say the same are one if they happened no further apart than this.
    pub window: Duration,
    /// The most memories that are looked at in one run; at most 1,000.
    pub memories: u32,
    /// Commitments that are overdue for so long lapse.
    pub lapse_after: Duration,
    /// Commitments without a time lapse when nothing was heard of them for so long.
    pub lapse_undated_after: Duration,
    /// Entries of the log that are older than this are pruned.
    pub log_age: Duration,
    /// So many entries of the log are kept; older ones are pruned.
    pub log_entries: u32,
    /// What was pruned can be brought back for so long.
    pub archive_age: Duration,
}

impl Policy {
    /// What is right for most: ten quiet minutes; the same within a day is one; what is overdue for a month, or has no time
    /// and is ninety days old, has lapsed; the log holds ninety days and 2,000 entries, its archive seven days.
    #[must_use]
    pub fn usual(owner: &str) -> Self {
        const DAY: Duration = Duration::from_secs(24 * 60 * 60);
        Self {
            owner: owner.to_owned(),
            quiet: Duration::from_secs(10 * 60),
            window: DAY,
            memories: 500,
            lapse_after: 30 * DAY,
            lapse_undated_after: 90 * DAY,
            log_age: 90 * DAY,
            log_entries: 2000,
            archive_age: 7 * DAY,
        }
    }
}

/// What became of a consolidation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Something was tidied up.
    Done {
        /// What was done; its id takes it back.
        run: ConsolidationRun,
        /// Whether there are memories left to look at.
        more: bool,
    },
    /// Nothing was to be done.
    Nothing {
        /// Whether there are memories left to look at.
        more: bool,
    },
    /// Somebody is talking; try again later.
    NotQuiet,
    /// Another process is at it.
    Busy,
}

/// Tidies up once, if it is quiet and nobody else does.
pub async fn consolidate(store: &Store, scope: &Scope, now: &Moment, policy: &Policy) -> Result<Outcome> {
    if !(1..=1000).contains(&policy.memories) {
        let problem =
            format!("the policy looks at `{}` memories in a run; 1 to 1000 are allowed", policy.memories);
        return Err(Error::Arguments { tool: "consolidate", problem });
    }
    let at = now.micros();
    if store.mind_active_at(scope).await? > ago(at, policy.quiet) {
        return Ok(Outcome::NotQuiet);
    }
    let limits = limits(at, policy);
    if !store.consolidation_due(scope, &limits).await? {
        return Ok(Outcome::Nothing { more: false });
    }
    let lease = Lease { owner: policy.owner.clone(), duration: LEASE };
    let Some(claim) = store.claim_consolidation(scope, &lease).await? else { return Ok(Outcome::Busy) };
    let planned = plan(store, &claim, limits, policy).await;
    let (plan, more) = match planned {
        Ok(planned) => planned,
        Err(error) => {
            // The failure itself is what the caller must hear of; the lease ends by itself if this fails too.
            let _ = store.return_consolidation(&claim).await;
            return Err(error);
        }
    };
    Ok(match store.consolidate(&claim, plan, at).await? {
        Consolidated::Done(run) => Outcome::Done { run, more },
        Consolidated::Nothing => Outcome::Nothing { more },
        Consolidated::Lost => Outcome::Busy,
    })
}

/// Takes back what a run did. What somebody changed since is left alone, and counted.
pub async fn undo(store: &Store, scope: &Scope, run: &str, now: &Moment) -> Result<Undone> {
    Ok(store.undo_consolidation(scope, run, now.micros()).await?)
}

async fn plan(
    store: &Store,
    claim: &ConsolidationClaim,
    limits: ConsolidationPlan,
    policy: &Policy,
) -> Result<(ConsolidationPlan, bool)> {
    let (scope, looked_seq) = (&claim.scope, claim.looked_seq);
    let batch = store.memories_saved_after(scope, looked_seq, policy.memories).await?;
    let more = batch.len() >= policy.memories as usize;
    let looked_seq = batch.last().map_or(looked_seq, |last| last.seq);
    let active: Vec<_> =
        batch.into_iter().filter(|numbered| numbered.memory.status == MemoryStatus::Active).collect();
    let likenesses: Vec<(String, i64)> =
        active.iter().map(|numbered| (alike::likeness(&numbered.memory), numbered.seq)).collect();
    let keys: Vec<String> = likenesses.iter().map(|(likeness, _)| likeness.clone()).collect();
    let before = store.alike_memories(scope, &keys).await?;
    let window_us = i64::try_from(policy.window.as_micros()).unwrap_or(i64::MAX);
    let merges = alike::merges(before.into_iter().chain(active).collect(), window_us);
    Ok((ConsolidationPlan { looked_seq, likenesses, merges, ..limits }, more))
}

/// What goes by its age or number alone, whatever it says.
fn limits(at: i64, policy: &Policy) -> ConsolidationPlan {
    ConsolidationPlan {
        lapse_before: Some(ago(at, policy.lapse_after)),
        lapse_undated_before: Some(ago(at, policy.lapse_undated_after)),
        prune: Some(PruneLog { before: ago(at, policy.log_age), keep: i64::from(policy.log_entries) }),
        expire_before: Some(ago(at, policy.archive_age)),
        ..ConsolidationPlan::default()
    }
}

fn ago(at: i64, duration: Duration) -> i64 {
    at.saturating_sub(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX))
}
