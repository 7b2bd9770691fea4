//! Runs of schedules. One due time is run once: starting writes a row that cannot be written twice. A run whose lease
//! ran out is `unknown` and is not started again.

use std::time::Duration;

use super::{Row as ScheduleRow, Schedule};
use crate::changes::{Topic, tell};
use crate::db::{Conn, Sql, args};
use crate::error::{Error, ErrorKind, Result};
use crate::leases::{Fenced, Lease, check_duration, claim, clock, earlier, later};
use crate::store::{Store, check_text};

/// The longest output that is kept.
const OUTPUT_LIMIT: usize = 256 * 1024;

/// A due schedule that is ours for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleClaim {
    /// The schedule as it was when it was claimed.
    pub schedule: Schedule,
    /// The time that it is to be run for.
    pub due_at: i64,
    /// Proves that it is ours.
    pub fence: i64,
}

/// Whether to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunStart {
    /// It is written down that it runs: run it.
    Started,
    /// Somebody has started the run for this time already. Do not run; give the schedule back with its next time.
    StartedBefore,
    /// The lease ran out or was taken over, or the schedule was removed or disabled. Do not run.
    Lost,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunOutcome {
    /// It did what it was for.
    Done,
    /// It did not.
    Failed,
    /// Nobody can say: whoever ran it was gone before it ended.
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
    /// How it ended.
    pub outcome: RunOutcome,
    /// What it said; at most 256 KiB.
    pub output: String,
    /// When the schedule is due next; `None`: never.
    pub next_at: Option<i64>,
}

/// A run, present or past.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleRun {
    /// Whose schedule.
    pub user: String,
    /// Which schedule.
    pub schedule: String,
    /// The time that it was run for.
    pub due_at: i64,
    /// When it began.
    pub started_at: i64,
    /// When it ended; of one that got lost: when that was noticed.
    pub finished_at: Option<i64>,
    /// How it ended; `None` while it runs.
    pub outcome: Option<RunOutcome>,
    /// What it said.
    pub output: Option<String>,
}

type RunRow = (String, String, i64, i64, Option<i64>, Option<String>, Option<String>, i64);

const CLAIM: Sql = claim!(
    "WITH picked AS MATERIALIZED (SELECT user_id AS picked_user, id AS picked_id FROM schedules \
     WHERE enabled = 1 AND next_at <= $1 AND lease_until <= $1 ORDER BY next_at, id LIMIT $2",
    ") UPDATE schedules SET lease_owner = $3, lease_until = $4, fence = fence + 1 FROM picked \
     WHERE user_id = picked_user AND id = picked_id \
     RETURNING user_id, id, agent, cron, timezone, channel, prompt, misfire, enabled, next_at, created_at, changed_at, \
     fence",
);
const SETTLE: Sql = claim!(
    "WITH picked AS MATERIALIZED (SELECT user_id AS picked_user, schedule_id AS picked_schedule, due_at AS picked_due \
     FROM schedule_runs WHERE finished_at IS NULL AND lease_until <= $1 ORDER BY lease_until LIMIT $2",
    ") UPDATE schedule_runs SET finished_at = $1, outcome = 'unknown' FROM picked \
     WHERE user_id = picked_user AND schedule_id = picked_schedule AND due_at = picked_due \
     RETURNING user_id, schedule_id, due_at, started_at, finished_at, outcome, output, lease_until",
);
const PRUNE: Sql = claim!(
    "WITH picked AS MATERIALIZED (SELECT user_id, schedule_id, due_at FROM schedule_runs \
     WHERE finished_at < $1 LIMIT $2",
    ") DELETE FROM schedule_runs WHERE (user_id, schedule_id, due_at) IN (SELECT * FROM picked)",
);
const RUNS: &str = "SELECT user_id, schedule_id, due_at, started_at, finished_at, outcome, output, lease_until \
     FROM schedule_runs WHERE user_id = $1 AND schedule_id = $2 ORDER BY due_at DESC LIMIT $3";
const LOST: &str = "SELECT user_id, schedule_id, due_at, started_at, finished_at, outcome, output, lease_until \
     FROM schedule_runs WHERE outcome = 'unknown' OR (finished_at IS NULL AND lease_until <= $1) \
     ORDER BY started_at DESC LIMIT $2";

impl Store {
    /// Takes up to `limit` schedules that are due, of all users, the longest due first. For the scheduler.
    pub async fn claim_due_schedules(&self, lease: &Lease, limit: u32) -> Result<Vec<ScheduleClaim>> {
        lease.check()?;
        let lease = lease.clone();
        let mut claims = self
            .db()
            .write(move |conn| Box::pin(async move { claim_due(conn, &lease, limit).await }))
            .await?;
        claims.sort_by(|a, b| (a.due_at, &a.schedule.id).cmp(&(b.due_at, &b.schedule.id)));
        Ok(claims)
    }

    /// Keeps a claim, and the run that was started under it, for so long from now.
    pub async fn renew_schedule(&self, claim: &ScheduleClaim, duration: Duration) -> Result<Fenced> {
        check_duration(duration)?;
        let claim = claim.clone();
        self.db().write(move |conn| Box::pin(async move { renew(conn, &claim, duration).await })).await
    }

    /// Writes down that the run begins, durably, before it does.
    pub async fn start_run(&self, claim: &ScheduleClaim) -> Result<RunStart> {
        let claim = claim.clone();
        self.db().write(move |conn| Box::pin(async move { start(conn, &claim).await })).await
    }

    /// Writes down how the run ended, and gives the schedule back.
    pub async fn finish_run(&self, claim: &ScheduleClaim, finish: FinishRun) -> Result<Fenced> {
        check_text("output of the run", &finish.output, OUTPUT_LIMIT)?;
        let claim = claim.clone();
        let finished =
            self.db().write(move |conn| Box::pin(async move { end(conn, &claim, finish).await })).await?;
        if finished == Fenced::Kept {
            self.wake(Topic::Schedules);
        }
        Ok(finished)
    }

    /// Gives a schedule back without a run, due again at `next_at`: after `StartedBefore`, or to skip a missed run.
    pub async fn return_schedule(&self, claim: &ScheduleClaim, next_at: Option<i64>) -> Result<Fenced> {
        let claim = claim.clone();
        let returned = self
            .db()
            .write(move |conn| Box::pin(async move { give_back(conn, &claim, next_at).await }))
            .await?;
        if returned == Fenced::Kept {
            self.wake(Topic::Schedules);
        }
        Ok(returned)
    }

    /// The runs of a schedule, newest first. One whose lease ran out is shown as `unknown`.
    pub async fn schedule_runs(&self, user: &str, schedule: &str, limit: u32) -> Result<Vec<ScheduleRun>> {
        let mut conn = self.db().reader().await?;
        let now = clock(&mut conn).await?;
        let rows: Vec<RunRow> = conn.all(RUNS, args![user, schedule, limit]).await?;
        rows.into_iter().map(|row| run(row, now)).collect()
    }

    /// Ends up to `limit` runs whose lease ran out as `unknown`, and returns them: each is returned once, whoever
    /// asks. Of all users; for the scheduler.
    pub async fn settle_lost_runs(&self, limit: u32) -> Result<Vec<ScheduleRun>> {
        self.db()
            .write(move |conn| {
                Box::pin(async move {
                    let now = clock(conn).await?;
                    let rows: Vec<RunRow> = conn.all(SETTLE, args![now, limit]).await?;
                    rows.into_iter().map(|row| run(row, now)).collect()
                })
            })
            .await
    }

    /// The runs of which nobody knows how they ended, newest first. Of all users; for the operator.
    pub async fn lost_runs(&self, limit: u32) -> Result<Vec<ScheduleRun>> {
        let mut conn = self.db().reader().await?;
        let now = clock(&mut conn).await?;
        let rows: Vec<RunRow> = conn.all(LOST, args![now, limit]).await?;
        rows.into_iter().map(|row| run(row, now)).collect()
    }

    /// Forgets up to `limit` runs that ended longer ago than `age`, of all users; how many it were.
    pub async fn prune_runs(&self, age: Duration, limit: u32) -> Result<u64> {
        self.db()
            .write(move |conn| {
                Box::pin(async move {
                    let before = earlier(clock(conn).await?, age);
                    conn.run(PRUNE, args![before, limit]).await
                })
            })
            .await
    }
}

async fn claim_due(conn: &mut Conn, lease: &Lease, limit: u32) -> Result<Vec<ScheduleClaim>> {
    type Claimed =
        (String, String, String, String, String, String, String, String, i64, Option<i64>, i64, i64, i64);
    let now = clock(conn).await?;
    let rows: Vec<Claimed> = conn.all(CLAIM, args![now, limit, &lease.owner, lease.until(now)]).await?;
    let claims = rows.into_iter().map(|row| {
        let (
            user,
            id,
            agent,
            cron,
            zone,
            channel,
            prompt,
            misfire,
            enabled,
            next_at,
            created,
            changed,
            fence,
        ) = row;
        let row: ScheduleRow =
            (user, id, agent, cron, zone, channel, prompt, misfire, enabled, next_at, created, changed);
        ScheduleClaim { schedule: row.into(), due_at: next_at.unwrap_or(now), fence }
    });
    Ok(claims.collect())
}

async fn renew(conn: &mut Conn, claim: &ScheduleClaim, duration: Duration) -> Result<Fenced> {
    let now = clock(conn).await?;
    let (user, id, until) = (&claim.schedule.user, &claim.schedule.id, later(now, duration));
    let schedules = conn
        .run(
            "UPDATE schedules SET lease_until = $4 \
             WHERE user_id = $1 AND id = $2 AND fence = $3 AND lease_until > $5",
            args![user, id, claim.fence, until, now],
        )
        .await?;
    // The schedule may have been removed meanwhile; its run goes on and is still ours.
    let runs = conn
        .run(
            "UPDATE schedule_runs SET lease_until = $4 WHERE user_id = $1 AND schedule_id = $2 AND fence = $3 \
             AND finished_at IS NULL AND lease_until > $5",
            args![user, id, claim.fence, until, now],
        )
        .await?;
    Ok(Fenced::by(schedules + runs))
}

async fn start(conn: &mut Conn, claim: &ScheduleClaim) -> Result<RunStart> {
    let now = clock(conn).await?;
    let (user, id) = (&claim.schedule.user, &claim.schedule.id);
    // Locks the schedule: nobody can take it over before the run is written down.
    let lease: Option<(i64,)> = conn
        .maybe(
            "UPDATE schedules SET fence = fence \
             WHERE user_id = $1 AND id = $2 AND fence = $3 AND lease_until > $4 AND enabled = 1 RETURNING lease_until",
            args![user, id, claim.fence, now],
        )
        .await?;
    let Some((lease_until,)) = lease else { return Ok(RunStart::Lost) };
    let started = conn
        .run(
            "INSERT INTO schedule_runs (user_id, schedule_id, due_at, fence, lease_until, started_at) \
             VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (user_id, schedule_id, due_at) DO NOTHING",
            args![user, id, claim.due_at, claim.fence, lease_until, now],
        )
        .await?;
    Ok(if started == 0 { RunStart::StartedBefore } else { RunStart::Started })
}

async fn end(conn: &mut Conn, claim: &ScheduleClaim, finish: FinishRun) -> Result<Fenced> {
    let now = clock(conn).await?;
    // Locks the schedule before the run, as everywhere: two that lock in different orders would wait for each other.
    let fence: Option<(i64,)> = conn
        .maybe(
            "UPDATE schedules SET fence = fence WHERE user_id = $1 AND id = $2 RETURNING fence",
            args![&claim.schedule.user, &claim.schedule.id],
        )
        .await?;
    // A removed schedule cannot be taken over; its run may still end.
    if fence.is_some_and(|(fence,)| fence != claim.fence) {
        return Ok(Fenced::Lost);
    }
    let finished = conn
        .run(
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
    Ok(Fenced::by(finished))
}

async fn give_back(conn: &mut Conn, claim: &ScheduleClaim, next_at: Option<i64>) -> Result<Fenced> {
    let returned = conn
        .run(
            "UPDATE schedules SET next_at = $4, lease_owner = NULL, lease_until = 0 \
             WHERE user_id = $1 AND id = $2 AND fence = $3 AND lease_owner IS NOT NULL",
            args![&claim.schedule.user, &claim.schedule.id, claim.fence, next_at],
        )
        .await?;
    if returned > 0 {
        tell(conn, Topic::Schedules).await?;
    }
    Ok(Fenced::by(returned))
}

fn run(row: RunRow, now: i64) -> Result<ScheduleRun> {
    let (user, schedule, due_at, started_at, finished_at, outcome, output, lease_until) = row;
    let outcome = match outcome {
        Some(name) => Some(RunOutcome::named(&name)?),
        None => (lease_until <= now).then_some(RunOutcome::Unknown),
    };
    Ok(ScheduleRun { user, schedule, due_at, started_at, finished_at, outcome, output })
}
