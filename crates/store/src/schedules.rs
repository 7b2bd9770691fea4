//! Schedules: what runs when, for whom, and their runs. The caller computes when a cron expression is due next.
//!
//! A due time is run once: starting a run inserts a row that cannot be inserted twice. A run whose lease ran out is
//! `unknown` and is not started again.

use std::time::Duration;

use crate::areas::Schedules;
use crate::audit::Action;
use crate::changes::Topic;
use crate::db::{Conn, Lenient, Sql, Value, WithFence, args, audited, flag, from_row, names, transaction};
use crate::error::{Error, ErrorKind, Result};
use crate::leases::{
    self, Lease, LeaseStatus, LeasedRow, check_duration, claim_sql, clock, finish_sql, later, renew_sql,
};
use crate::store::{Scope, check_name, check_text, new_id, now};
use crate::untrusted_reads::ReadOrigin;

const PROMPT_LIMIT: usize = 64 * 1024;
const OUTPUT_LIMIT: usize = 256 * 1024;
/// Agents add schedules too; this stops one that adds them in a loop.
const SCHEDULES_LIMIT: i64 = 1000;

#[derive(Clone, Debug)]
pub struct NewSchedule {
    pub scope: Scope,
    /// Interpreted by the caller, who computes `next_at`.
    pub cron: String,
    pub timezone: String,
    pub channel: String,
    pub prompt: String,
    /// What to do about missed runs; interpreted by the caller.
    pub misfire: String,
    /// `None`: never.
    pub next_at: Option<i64>,
    pub origin: ScheduleOrigin,
    /// Untrusted text that the agent had read before, latest first.
    pub origins: Vec<ReadOrigin>,
    /// Disabled until the owner enables it, because its prompt gives orders.
    pub quarantined: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleOrigin {
    /// At the terminal.
    Owner,
    Agent,
    /// The agent, after it had read untrusted text.
    ExposedAgent,
    /// Older than this record.
    Unknown,
}

names! {
    pub ScheduleOrigin { Owner = "owner", Agent = "agent", ExposedAgent = "exposed", Unknown = "unknown" }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    pub user: String,
    pub id: String,
    pub agent: String,
    pub cron: String,
    pub timezone: String,
    pub channel: String,
    pub prompt: String,
    pub misfire: String,
    pub enabled: bool,
    /// `None`: never.
    pub next_at: Option<i64>,
    pub created_at: i64,
    /// Runs do not count.
    pub changed_at: i64,
    pub origin: ScheduleOrigin,
    /// Untrusted text that the agent had read before, latest first.
    pub origins: Vec<ReadOrigin>,
    /// Disabled until the owner enables it, because its prompt gives orders.
    pub quarantined: bool,
}

from_row! {
    Schedule {
        user, id as String, agent, cron, timezone, channel, prompt, misfire, enabled: flag, next_at, created_at,
        changed_at, origin: read_origin, quarantined: flag, origins: |text: String| read_origins(&id, &text),
    }
}

fn read_origin(name: String) -> Result<ScheduleOrigin> {
    Ok(ScheduleOrigin::from_name(&name).unwrap_or(ScheduleOrigin::Unknown))
}

fn read_origins(id: &str, origins: &str) -> Result<Vec<ReadOrigin>> {
    serde_json::from_str(origins).map_err(|error| {
        let message = format!("the origins of the schedule `{id}` cannot be read");
        Error::new(ErrorKind::Corrupt, message).because(error)
    })
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddScheduleOutcome {
    Added(Box<Schedule>),
    Full,
}

/// A claimed schedule: a due one, or one that is to run at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleClaim {
    pub schedule: Schedule,
    /// The scheduled time of the run.
    pub due_at: i64,
    /// By the clock that decides what is due.
    pub claimed_at: i64,
    pub fence: i64,
}

impl ScheduleClaim {
    /// Whether it was claimed for a run at once, besides those that it is due for.
    pub fn is_extra(&self) -> bool {
        self.schedule.next_at != Some(self.due_at)
    }

    fn read(WithFence(Lenient(schedule), fence): WithFence<Lenient<Schedule>>, now: i64) -> Result<Self> {
        let schedule = schedule?;
        Ok(Self { due_at: schedule.next_at.unwrap_or(now), schedule, claimed_at: now, fence })
    }
}

impl LeasedRow for ScheduleClaim {
    fn key(&self) -> Vec<Value> {
        args![&self.schedule.user, &self.schedule.id, self.fence]
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimNowOutcome {
    Claimed(Box<ScheduleClaim>),
    /// Claimed by another worker.
    Busy,
    Disabled,
    Missing,
}

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
    /// Not run, for the reason in its output.
    Skipped,
    /// Stopped, or the runner was gone before the end.
    Unknown,
}

names! { RunOutcome { Done = "done", Failed = "failed", Skipped = "skipped", Unknown = "unknown" } }

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
    /// Of an `Unknown` run: when that was noticed.
    pub finished_at: Option<i64>,
    /// `None` while it runs.
    pub outcome: Option<RunOutcome>,
    pub output: Option<String>,
}

/// A run and the end of its lease.
struct StoredRun(ScheduleRun, i64);

from_row! {
    StoredRun {
        user, schedule, due_at, started_at, finished_at,
        outcome: |name: Option<String>| name.map(read_outcome).transpose(), output, lease_until,
    } => {
        let run = ScheduleRun { user, schedule, due_at, started_at, finished_at, outcome, output };
        Ok(Self(run, lease_until))
    }
}

fn read_outcome(name: String) -> Result<RunOutcome> {
    RunOutcome::from_name(&name)
        .ok_or_else(|| Error::new(ErrorKind::Corrupt, format!("a run has the unknown outcome `{name}`")))
}

macro_rules! columns {
    () => {
        "user_id, id, agent, cron, timezone, channel, prompt, misfire, enabled, next_at, created_at, changed_at, \
         origin, quarantined, origins"
    };
}

const LIST: &str =
    concat!("SELECT ", columns!(), " FROM schedules WHERE user_id = $1 AND id > $2 ORDER BY id LIMIT +$3");
const ONE: &str = concat!("SELECT ", columns!(), " FROM schedules WHERE user_id = $1 AND id = $2");
const ADD: &str = "INSERT INTO schedules (user_id, id, agent, cron, timezone, channel, prompt, misfire, enabled, \
     next_at, created_at, changed_at, origin, quarantined, origins) \
     SELECT $1, $2, $3, $4, $5, $6, $7, $8, $12, $9, $10, $10, $13, $14, $15 \
     WHERE (SELECT count(*) FROM schedules WHERE user_id = $1) < $11";
const ENABLE: &str = "UPDATE schedules SET enabled = $3, next_at = $4, changed_at = $5, \
     quarantined = CASE WHEN $3 = 1 THEN 0 ELSE quarantined END WHERE user_id = $1 AND id = $2";
const CLAIM_DUE: Sql = claim_sql!(
    "WITH picked AS MATERIALIZED (SELECT user_id AS picked_user, id AS picked_id FROM schedules \
     WHERE enabled = 1 AND next_at <= $1 AND lease_until <= $1 AND user_id NOT IN (SELECT users.id FROM users \
     WHERE users.disabled_at IS NOT NULL) ORDER BY next_at, id LIMIT +$2",
    concat!(
        ") UPDATE schedules SET lease_owner = $3, lease_until = $4, fence = fence + 1 FROM picked \
         WHERE user_id = picked_user AND id = picked_id RETURNING ",
        columns!(),
        ", fence"
    ),
);
const CLAIM_NOW: &str = concat!(
    "UPDATE schedules SET lease_owner = $4, lease_until = $5, fence = fence + 1 \
     WHERE user_id = $1 AND id = $2 AND enabled = 1 AND lease_until <= $3 RETURNING ",
    columns!(),
    ", fence"
);
const NEXT_DUE: &str = "SELECT next_at FROM schedules WHERE enabled = 1 AND next_at IS NOT NULL AND lease_until <= $1 \
     AND user_id NOT IN (SELECT users.id FROM users WHERE users.disabled_at IS NOT NULL) ORDER BY next_at LIMIT 1";
const RENEW: &str = renew_sql!("schedules", "");
const RENEW_RUN: &str = "UPDATE schedule_runs SET lease_until = $4 WHERE user_id = $1 AND schedule_id = $2 \
     AND fence = $3 AND finished_at IS NULL AND lease_until > $5";
const RELEASE: &str = finish_sql!(
    "schedules",
    "next_at = CASE WHEN next_at IS NOT DISTINCT FROM $4 THEN $5 ELSE next_at END",
    "lease_owner IS NOT NULL"
);
const LOCK_CLAIMED: &str = "UPDATE schedules SET fence = fence WHERE user_id = $1 AND id = $2 AND fence = $3 \
     AND lease_until > $4 AND enabled = 1 AND next_at IS NOT DISTINCT FROM $5 RETURNING lease_until";
const LOCK: &str = "UPDATE schedules SET fence = fence WHERE user_id = $1 AND id = $2 RETURNING fence";
const START_RUN: &str = "INSERT INTO schedule_runs (user_id, schedule_id, due_at, fence, lease_until, started_at) \
     VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (user_id, schedule_id, due_at) DO NOTHING";
const FINISH_RUN: &str = "UPDATE schedule_runs SET finished_at = $5, outcome = $6, output = $7 \
     WHERE user_id = $1 AND schedule_id = $2 AND due_at = $4 AND fence = $3 AND finished_at IS NULL";
const RUNS: &str = "SELECT user_id, schedule_id, due_at, started_at, finished_at, outcome, output, lease_until \
     FROM schedule_runs WHERE user_id = $1 AND schedule_id = $2 ORDER BY due_at DESC LIMIT +$3";
const EXPIRE_RUNS: Sql = claim_sql!(
    "WITH picked AS MATERIALIZED (SELECT user_id AS picked_user, schedule_id AS picked_schedule, due_at AS picked_due \
     FROM schedule_runs WHERE finished_at IS NULL AND lease_until <= $1 ORDER BY lease_until LIMIT +$2",
    ") UPDATE schedule_runs SET finished_at = $1, outcome = 'unknown' FROM picked \
     WHERE user_id = picked_user AND schedule_id = picked_schedule AND due_at = picked_due \
     RETURNING user_id, schedule_id, due_at, started_at, finished_at, outcome, output, lease_until",
);
const LIST_UNKNOWN_RUNS: &str = "SELECT user_id, schedule_id, due_at, started_at, finished_at, outcome, output, \
     lease_until FROM schedule_runs WHERE outcome = 'unknown' OR (finished_at IS NULL AND lease_until <= $1) \
     ORDER BY started_at DESC LIMIT +$2";
/// A run that its schedule is still due for stays: without it the run would be started again.
const PRUNE_RUNS: Sql = claim_sql!(
    "WITH picked AS MATERIALIZED (SELECT user_id, schedule_id, due_at FROM schedule_runs AS run \
     WHERE finished_at < $1 AND NOT EXISTS (SELECT 1 FROM schedules WHERE schedules.user_id = run.user_id \
     AND schedules.id = run.schedule_id AND schedules.next_at <= run.due_at) LIMIT +$2",
    ") DELETE FROM schedule_runs WHERE (user_id, schedule_id, due_at) IN (SELECT * FROM picked)",
);

impl Schedules<'_> {
    /// Adds a schedule. It is enabled unless it is quarantined.
    pub async fn add(self, new: NewSchedule) -> Result<AddScheduleOutcome> {
        let schedule = enabled_or_quarantined(new)?;
        let row = schedule.clone();
        let origins = serde_json::to_string(&row.origins)
            .map_err(|error| Error::invalid("the origins cannot be written").because(error))?;
        let added = audited!(self.store, |tx| {
            let values = args![
                &row.user,
                &row.id,
                row.agent,
                row.cron,
                row.timezone,
                row.channel,
                row.prompt,
                row.misfire,
                row.next_at,
                row.created_at,
                SCHEDULES_LIMIT,
                row.enabled,
                row.origin.name(),
                row.quarantined,
                origins
            ];
            let added = tx.conn.execute(ADD, values).await?;
            tx.conn.notify(Topic::Schedules).await?;
            // What an agent adds is on record as its call.
            if added > 0 && row.origin == ScheduleOrigin::Owner {
                tx.operation(&row.user, Action::ScheduleAdded, &row.id, None)?;
            }
            Ok(added)
        })?;
        Ok(match added {
            0 => AddScheduleOutcome::Full,
            _ => AddScheduleOutcome::Added(Box::new(schedule)),
        })
    }

    pub async fn get(self, user: &str, id: &str) -> Result<Option<Schedule>> {
        self.store.fetch_optional(ONE, args![user, id]).await
    }

    /// The user's schedules, oldest first, from the one after the id `after` (empty: from the first).
    pub async fn list(self, user: &str, after: &str, limit: u32) -> Result<Vec<Schedule>> {
        self.store.fetch_all(LIST, args![user, after, limit]).await
    }

    /// For operators. Removes a schedule; returns whether there was one. A run in progress can still be finished, and past ones stay.
    pub async fn remove(self, user: &str, id: &str) -> Result<bool> {
        let (user, id) = (user.to_owned(), id.to_owned());
        audited!(self.store, |tx| {
            let sql = "DELETE FROM schedules WHERE user_id = $1 AND id = $2";
            let removed = tx.conn.execute(sql, args![&user, &id]).await?;
            tx.conn.notify(Topic::Schedules).await?;
            if removed > 0 {
                tx.operation(&user, Action::ScheduleRemoved, &id, None)?;
            }
            Ok(removed > 0)
        })
    }

    /// For operators. Enables a schedule from `next_at` on, which also ends its quarantine; `None` disables it. Returns whether it exists.
    /// A run in progress continues.
    pub async fn enable(self, user: &str, id: &str, next_at: Option<i64>) -> Result<bool> {
        let (user, id) = (user.to_owned(), id.to_owned());
        let action = if next_at.is_some() { Action::ScheduleResumed } else { Action::SchedulePaused };
        audited!(self.store, |tx| {
            let values = args![&user, &id, next_at.is_some(), next_at, now()];
            let changed = tx.conn.execute(ENABLE, values).await?;
            tx.conn.notify(Topic::Schedules).await?;
            if changed > 0 {
                tx.operation(&user, action, &id, None)?;
            }
            Ok(changed > 0)
        })
    }

    /// Claims up to `limit` due schedules, of all users, the longest due first. For the scheduler.
    pub async fn claim_due(self, lease: &Lease, limit: u32) -> Result<Vec<ScheduleClaim>> {
        lease.check()?;
        let lease = lease.clone();
        let (now, rows) = transaction!(self.store, |conn| {
            leases::claim(conn, CLAIM_DUE, &lease, limit, Vec::new()).await
        })?;
        let read = |row| {
            // One that cannot be read stays claimed until its lease ends, and stops no other.
            ScheduleClaim::read(row, now)
                .inspect_err(|error| tracing::error!(reason = %error, "a schedule cannot run"))
                .ok()
        };
        let mut claims: Vec<ScheduleClaim> = rows.into_iter().filter_map(read).collect();
        claims.sort_by(|a, b| (a.due_at, &a.schedule.id).cmp(&(b.due_at, &b.schedule.id)));
        Ok(claims)
    }

    /// Claims one schedule of this user for a run now. It stays due when it is.
    pub async fn claim_now(self, user: &str, id: &str, lease: &Lease) -> Result<ClaimNowOutcome> {
        lease.check()?;
        let (user, id, lease) = (user.to_owned(), id.to_owned(), lease.clone());
        transaction!(self.store, |conn| {
            let now = clock(conn).await?;
            let values = args![&user, &id, now, &lease.owner, lease.until(now)];
            if let Some(row) = conn.fetch_optional(CLAIM_NOW, values).await? {
                let claim = ScheduleClaim { due_at: now, ..ScheduleClaim::read(row, now)? };
                return Ok(ClaimNowOutcome::Claimed(Box::new(claim)));
            }
            let sql = "SELECT enabled FROM schedules WHERE user_id = $1 AND id = $2";
            let enabled: Option<(i64,)> = conn.fetch_optional(sql, args![user, id]).await?;
            Ok(match enabled {
                None => ClaimNowOutcome::Missing,
                Some((0,)) => ClaimNowOutcome::Disabled,
                Some(_) => ClaimNowOutcome::Busy,
            })
        })
    }

    /// How long until an unclaimed schedule is due, of all users; `None`: never. For the scheduler.
    pub async fn next_due(self) -> Result<Option<Duration>> {
        let mut conn = self.store.reader().await?;
        let now = clock(&mut conn).await?;
        let next: Option<(i64,)> = conn.fetch_optional(NEXT_DUE, args![now]).await?;
        Ok(next.map(|(at,)| Duration::from_micros(u64::try_from(at.saturating_sub(now)).unwrap_or(0))))
    }

    /// Renews a claim, and the run that was started under it.
    pub async fn renew(self, claim: &ScheduleClaim, duration: Duration) -> Result<LeaseStatus> {
        check_duration(duration)?;
        let claim = claim.clone();
        transaction!(self.store, |conn| {
            let now = clock(conn).await?;
            let values = args![later(now, duration), now];
            let schedule = leases::update(conn, RENEW, &claim, values.clone()).await?;
            // The schedule may have been removed meanwhile; its run continues and is still ours.
            let run = leases::update(conn, RENEW_RUN, &claim, values).await?;
            Ok(if run == LeaseStatus::Kept { run } else { schedule })
        })
    }

    /// Releases a schedule without a run, due again at `next_at`: after `StartedBefore`, or to skip a missed run. A time
    /// that the user set since the claim wins.
    pub async fn release(self, claim: &ScheduleClaim, next_at: Option<i64>) -> Result<LeaseStatus> {
        let claim = claim.clone();
        transaction!(self.store, |conn| release(conn, &claim, next_at).await)
    }

    /// Records durably that the run begins, before it does.
    pub async fn start_run(self, claim: &ScheduleClaim) -> Result<RunStart> {
        let claim = claim.clone();
        transaction!(self.store, |conn| {
            let now = clock(conn).await?;
            let (user, id) = (&claim.schedule.user, &claim.schedule.id);
            // Locks the schedule: no other worker can claim it before the run is recorded.
            let values = args![user, id, claim.fence, now, claim.schedule.next_at];
            let lease: Option<(i64,)> = conn.fetch_optional(LOCK_CLAIMED, values).await?;
            let Some((lease_until,)) = lease else { return Ok(RunStart::Lost) };
            let values = args![user, id, claim.due_at, claim.fence, lease_until, now];
            let started = conn.execute(START_RUN, values).await?;
            Ok(if started == 0 { RunStart::StartedBefore } else { RunStart::Started })
        })
    }

    /// Records how the run ended, and releases the schedule.
    pub async fn finish_run(self, claim: &ScheduleClaim, finish: FinishRun) -> Result<LeaseStatus> {
        check_text("output of the run", &finish.output, OUTPUT_LIMIT)?;
        let claim = claim.clone();
        transaction!(self.store, |conn| {
            let now = clock(conn).await?;
            // Locks the schedule before the run, as everywhere: two that lock in different orders would wait for each
            // other.
            let values = args![&claim.schedule.user, &claim.schedule.id];
            let fence: Option<(i64,)> = conn.fetch_optional(LOCK, values).await?;
            // A removed schedule cannot be taken over; its run may still end.
            if fence.is_some_and(|(fence,)| fence != claim.fence) {
                return Ok(LeaseStatus::Lost);
            }
            let values = args![claim.due_at, now, finish.outcome.name(), finish.output];
            let status = leases::update(conn, FINISH_RUN, &claim, values).await?;
            if status == LeaseStatus::Kept {
                release(conn, &claim, finish.next_at).await?;
            }
            Ok(status)
        })
    }

    /// The runs of a schedule, newest first. One whose lease ran out is shown as `unknown`.
    pub async fn runs(self, user: &str, schedule: &str, limit: u32) -> Result<Vec<ScheduleRun>> {
        let mut conn = self.store.reader().await?;
        let now = clock(&mut conn).await?;
        let rows = conn.fetch_all(RUNS, args![user, schedule, limit]).await?;
        Ok(rows.into_iter().map(|run| shown_run(run, now)).collect())
    }

    /// Ends up to `limit` runs whose lease ran out as `unknown`, and returns them: each is returned once, to one caller.
    /// Of all users; for the scheduler.
    pub async fn expire_runs(self, limit: u32) -> Result<Vec<ScheduleRun>> {
        let runs: Vec<StoredRun> =
            transaction!(self.store, |conn| leases::expire(conn, EXPIRE_RUNS, limit, Vec::new()).await)?;
        Ok(runs.into_iter().map(|StoredRun(run, _)| run).collect())
    }

    /// The runs with an unknown outcome, newest first. Of all users; for the operator.
    pub async fn list_unknown_runs(self, limit: u32) -> Result<Vec<ScheduleRun>> {
        let mut conn = self.store.reader().await?;
        let now = clock(&mut conn).await?;
        let rows = conn.fetch_all(LIST_UNKNOWN_RUNS, args![now, limit]).await?;
        Ok(rows.into_iter().map(|run| shown_run(run, now)).collect())
    }

    /// Deletes up to `limit` runs that ended longer ago than `age`, of all users; returns how many.
    pub async fn prune_runs(self, age: Duration, limit: u32) -> Result<u64> {
        transaction!(self.store, |conn| leases::prune(conn, PRUNE_RUNS, age, limit).await)
    }
}

fn enabled_or_quarantined(new: NewSchedule) -> Result<Schedule> {
    let NewSchedule {
        scope,
        cron,
        timezone,
        channel,
        prompt,
        misfire,
        next_at,
        origin,
        origins,
        quarantined,
    } = new;
    check_name("cron expression", &cron)?;
    check_name("time zone", &timezone)?;
    check_name("channel", &channel)?;
    check_name("misfire policy", &misfire)?;
    check_text("prompt of the schedule", &prompt, PROMPT_LIMIT)?;
    let at = now();
    Ok(Schedule {
        user: scope.user().to_owned(),
        id: new_id(),
        agent: scope.agent().to_owned(),
        cron,
        timezone,
        channel,
        prompt,
        misfire,
        enabled: !quarantined,
        next_at,
        created_at: at,
        changed_at: at,
        origin,
        origins,
        quarantined,
    })
}

/// A time that the user set since the claim is newer than `next_at`.
async fn release(conn: &mut Conn, claim: &ScheduleClaim, next_at: Option<i64>) -> Result<LeaseStatus> {
    let status = leases::update(conn, RELEASE, claim, args![claim.schedule.next_at, next_at]).await?;
    if status == LeaseStatus::Kept {
        conn.notify(Topic::Schedules).await?;
    }
    Ok(status)
}

fn shown_run(StoredRun(run, lease_until): StoredRun, now: i64) -> ScheduleRun {
    let lost = run.outcome.is_none() && lease_until <= now;
    ScheduleRun { outcome: if lost { Some(RunOutcome::Unknown) } else { run.outcome }, ..run }
}
