//! Runs of schedules. One due time is run once: starting writes a row that cannot be written twice. A run whose lease
//! ran out is `unknown` and is not started again.

use std::time::Duration;

use super::ScheduleClaim;
use super::claims::give_back;
use crate::areas::Schedules;
use crate::db::{Conn, Sql, args, transaction};
use crate::error::{Error, ErrorKind, Result};
use crate::leases::{LeaseStatus, claim, clock, earlier};
use crate::store::check_text;

/// The longest output that is kept.
const OUTPUT_LIMIT: usize = 256 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunStart {
    /// Recorded as started: run it.
    Started,
    /// The run for this time was started before. Do not run; return the schedule with its next time.
    StartedBefore,
    /// The lease was lost, or the schedule was moved, disabled or removed. Do not run; once returned it is
    /// free for its new time.
    Lost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunOutcome {
    Done,
    Failed,
    /// Stopped, or the runner was gone before the end.
    Unknown,
}

impl RunOutcome {
    fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
        }
    }

    fn named(name: &str) -> Result<Self> {
        match name {
            "done" => Ok(Self::Done),
            "failed" => Ok(Self::Failed),
            "unknown" => Ok(Self::Unknown),
            _ => Err(Error::new(ErrorKind::Corrupt, format!("a run ended as `{name}`, which is no outcome"))),
        }
    }
}

/// How a run ended, and when the next one is due.
#[derive(Clone, Debug)]
pub struct FinishRun {
    pub outcome: RunOutcome,
    /// At most 256 KiB.
    pub output: String,
    /// `None`: never. A time that the user set during the run wins.
    pub next_at: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleRun {
    pub user: String,
    pub schedule: String,
    pub due_at: i64,
    pub started_at: i64,
    /// Of a lost run: when the loss was noticed.
    pub finished_at: Option<i64>,
    /// `None` while it runs.
    pub outcome: Option<RunOutcome>,
    pub output: Option<String>,
}

type RunRow = (String, String, i64, i64, Option<i64>, Option<String>, Option<String>, i64);

const SETTLE: Sql = claim!(
    "WITH picked AS MATERIALIZED (SELECT user_id AS picked_user, schedule_id AS picked_schedule, due_at AS picked_due \
     FROM schedule_runs WHERE finished_at IS NULL AND lease_until <= $1 ORDER BY lease_until LIMIT +$2",
    ") UPDATE schedule_runs SET finished_at = $1, outcome = 'unknown' FROM picked \
     WHERE user_id = picked_user AND schedule_id = picked_schedule AND due_at = picked_due \
     RETURNING user_id, schedule_id, due_at, started_at, finished_at, outcome, output, lease_until",
);
/// A run that its schedule is still due for stays: without it the run would be started again.
const PRUNE: Sql = claim!(
    "WITH picked AS MATERIALIZED (SELECT user_id, schedule_id, due_at FROM schedule_runs AS run \
     WHERE finished_at < $1 AND NOT EXISTS (SELECT 1 FROM schedules WHERE schedules.user_id = run.user_id \
     AND schedules.id = run.schedule_id AND schedules.next_at <= run.due_at) LIMIT +$2",
    ") DELETE FROM schedule_runs WHERE (user_id, schedule_id, due_at) IN (SELECT * FROM picked)",
);
const RUNS: &str = "SELECT user_id, schedule_id, due_at, started_at, finished_at, outcome, output, lease_until \
     FROM schedule_runs WHERE user_id = $1 AND schedule_id = $2 ORDER BY due_at DESC LIMIT +$3";
const LOST: &str = "SELECT user_id, schedule_id, due_at, started_at, finished_at, outcome, output, lease_until \
     FROM schedule_runs WHERE outcome = 'unknown' OR (finished_at IS NULL AND lease_until <= $1) \
     ORDER BY started_at DESC LIMIT +$2";

impl Schedules<'_> {
    /// Writes down that the run begins, durably, before it does.
    pub async fn start_run(self, claim: &ScheduleClaim) -> Result<RunStart> {
        let claim = claim.clone();
        transaction!(self.store, |conn| start(conn, &claim).await)
    }

    /// Writes down how the run ended, and gives the schedule back.
    pub async fn finish_run(self, claim: &ScheduleClaim, finish: FinishRun) -> Result<LeaseStatus> {
        check_text("output of the run", &finish.output, OUTPUT_LIMIT)?;
        let claim = claim.clone();
        transaction!(self.store, |conn| end(conn, &claim, finish).await)
    }

    /// The runs of a schedule, newest first. One whose lease ran out is shown as `unknown`.
    pub async fn runs(self, user: &str, schedule: &str, limit: u32) -> Result<Vec<ScheduleRun>> {
        let mut conn = self.store.reader().await?;
        let now = clock(&mut conn).await?;
        let rows: Vec<RunRow> = conn.fetch_all(RUNS, args![user, schedule, limit]).await?;
        rows.into_iter().map(|row| run(row, now)).collect()
    }

    /// Ends up to `limit` runs whose lease ran out as `unknown`, and returns them: each is returned once, whoever
    /// asks. Of all users; for the scheduler.
    pub async fn expire_runs(self, limit: u32) -> Result<Vec<ScheduleRun>> {
        transaction!(self.store, |conn| {
            let now = clock(conn).await?;
            let rows: Vec<RunRow> = conn.fetch_all(SETTLE, args![now, limit]).await?;
            rows.into_iter().map(|row| run(row, now)).collect()
        })
    }

    /// The runs of which nobody knows how they ended, newest first. Of all users; for the operator.
    pub async fn list_unknown_runs(self, limit: u32) -> Result<Vec<ScheduleRun>> {
        let mut conn = self.store.reader().await?;
        let now = clock(&mut conn).await?;
        let rows: Vec<RunRow> = conn.fetch_all(LOST, args![now, limit]).await?;
        rows.into_iter().map(|row| run(row, now)).collect()
    }

    /// Forgets up to `limit` runs that ended longer ago than `age`, of all users; how many there were.
    pub async fn prune_runs(self, age: Duration, limit: u32) -> Result<u64> {
        transaction!(self.store, |conn| {
            let before = earlier(clock(conn).await?, age);
            conn.execute(PRUNE, args![before, limit]).await
        })
    }
}

async fn start(conn: &mut Conn, claim: &ScheduleClaim) -> Result<RunStart> {
    let now = clock(conn).await?;
    let (user, id) = (&claim.schedule.user, &claim.schedule.id);
    // Locks the schedule: nobody can take it over before the run is written down.
    let lease: Option<(i64,)> = conn
        .fetch_optional(
            "UPDATE schedules SET fence = fence \
             WHERE user_id = $1 AND id = $2 AND fence = $3 AND lease_until > $4 AND enabled = 1 \
             AND next_at IS NOT DISTINCT FROM $5 RETURNING lease_until",
            args![user, id, claim.fence, now, claim.schedule.next_at],
        )
        .await?;
    let Some((lease_until,)) = lease else { return Ok(RunStart::Lost) };
    let started = conn
        .execute(
            "INSERT INTO schedule_runs (user_id, schedule_id, due_at, fence, lease_until, started_at) \
             VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (user_id, schedule_id, due_at) DO NOTHING",
            args![user, id, claim.due_at, claim.fence, lease_until, now],
        )
        .await?;
    Ok(if started == 0 { RunStart::StartedBefore } else { RunStart::Started })
}

async fn end(conn: &mut Conn, claim: &ScheduleClaim, finish: FinishRun) -> Result<LeaseStatus> {
    let now = clock(conn).await?;
    // Locks the schedule before the run, as everywhere: two that lock in different orders would wait for each other.
    let fence: Option<(i64,)> = conn
        .fetch_optional(
            "UPDATE schedules SET fence = fence WHERE user_id = $1 AND id = $2 RETURNING fence",
            args![&claim.schedule.user, &claim.schedule.id],
        )
        .await?;
    // A removed schedule cannot be taken over; its run may still end.
    if fence.is_some_and(|(fence,)| fence != claim.fence) {
        return Ok(LeaseStatus::Lost);
    }
    let finished = conn
        .execute(
            "UPDATE schedule_runs SET finished_at = $5, outcome = $6, output = $7 \
             WHERE user_id = $1 AND schedule_id = $2 AND due_at = $3 AND fence = $4 AND finished_at IS NULL",
            args![
                &claim.schedule.user,
                &claim.schedule.id,
                claim.due_at,
                claim.fence,
                now,
                finish.outcome.name(),
                finish.output
            ],
        )
        .await?;
    if finished > 0 {
        give_back(conn, claim, finish.next_at).await?;
    }
    Ok(LeaseStatus::by(finished))
}

fn run(row: RunRow, now: i64) -> Result<ScheduleRun> {
    let (user, schedule, due_at, started_at, finished_at, outcome, output, lease_until) = row;
    let outcome = match outcome {
        Some(name) => Some(RunOutcome::named(&name)?),
        None => (lease_until <= now).then_some(RunOutcome::Unknown),
    };
    Ok(ScheduleRun { user, schedule, due_at, started_at, finished_at, outcome, output })
}
