//! Claims on due schedules: one worker at a time has a schedule, until it gives it back or its lease runs out.

use std::time::Duration;

use super::{Row, Schedule};
use crate::areas::Schedules;
use crate::changes::Topic;
use crate::db::{Conn, Sql, args, transaction};
use crate::error::Result;
use crate::leases::{Lease, LeaseStatus, check_duration, claim, clock, later};

/// A schedule that is ours for a while: one that is due, or one that somebody wants run at once.
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
}

/// What became of the wish to run a schedule at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimNowOutcome {
    Claimed(Box<ScheduleClaim>),
    /// Claimed by another worker.
    Busy,
    Disabled,
    Missing,
}

const CLAIM: Sql = claim!(
    "WITH picked AS MATERIALIZED (SELECT user_id AS picked_user, id AS picked_id FROM schedules \
     WHERE enabled = 1 AND next_at <= $1 AND lease_until <= $1 AND user_id NOT IN (SELECT users.id FROM users \
     WHERE users.disabled_at IS NOT NULL) ORDER BY next_at, id LIMIT +$2",
    ") UPDATE schedules SET lease_owner = $3, lease_until = $4, fence = fence + 1 FROM picked \
     WHERE user_id = picked_user AND id = picked_id \
     RETURNING user_id, id, agent, cron, timezone, channel, prompt, misfire, enabled, next_at, created_at, changed_at, \
     origin, quarantined, origins, fence",
);

const CLAIM_NOW: &str = "UPDATE schedules SET lease_owner = $4, lease_until = $5, fence = fence + 1 \
     WHERE user_id = $1 AND id = $2 AND enabled = 1 AND lease_until <= $3 \
     RETURNING user_id, id, agent, cron, timezone, channel, prompt, misfire, enabled, next_at, created_at, changed_at, \
     origin, quarantined, origins, fence";
const NEXT: &str = "SELECT next_at FROM schedules WHERE enabled = 1 AND next_at IS NOT NULL AND lease_until <= $1 \
     AND user_id NOT IN (SELECT users.id FROM users WHERE users.disabled_at IS NOT NULL) ORDER BY next_at LIMIT 1";

impl Schedules<'_> {
    /// Takes up to `limit` schedules that are due, of all users, the longest due first. For the scheduler.
    pub async fn claim_due(self, lease: &Lease, limit: u32) -> Result<Vec<ScheduleClaim>> {
        lease.check()?;
        let lease = lease.clone();
        let mut claims = transaction!(self.store, |conn| claim_due(conn, &lease, limit).await)?;
        claims.sort_by(|a, b| (a.due_at, &a.schedule.id).cmp(&(b.due_at, &b.schedule.id)));
        Ok(claims)
    }

    /// Takes one schedule of this user for a run now. It stays due when it is.
    pub async fn claim_now(self, user: &str, id: &str, lease: &Lease) -> Result<ClaimNowOutcome> {
        lease.check()?;
        let (user, id, lease) = (user.to_owned(), id.to_owned(), lease.clone());
        transaction!(self.store, |conn| claim_now(conn, &user, &id, &lease).await)
    }

    /// How long it is until a schedule is due that nobody has, of all users; `None`: none will be. For the scheduler.
    pub async fn next_due(self) -> Result<Option<Duration>> {
        let mut conn = self.store.reader().await?;
        let now = clock(&mut conn).await?;
        let next: Option<(i64,)> = conn.fetch_optional(NEXT, args![now]).await?;
        Ok(next.map(|(at,)| Duration::from_micros(u64::try_from(at.saturating_sub(now)).unwrap_or(0))))
    }

    /// Keeps a claim, and the run that was started under it, for so long from now.
    pub async fn renew(self, claim: &ScheduleClaim, duration: Duration) -> Result<LeaseStatus> {
        check_duration(duration)?;
        let claim = claim.clone();
        transaction!(self.store, |conn| renew(conn, &claim, duration).await)
    }

    /// Gives a schedule back without a run, due again at `next_at`: after `StartedBefore`, or to skip a missed run. A
    /// time that the user set since the claim stays.
    pub async fn release(self, claim: &ScheduleClaim, next_at: Option<i64>) -> Result<LeaseStatus> {
        let claim = claim.clone();
        transaction!(self.store, |conn| give_back(conn, &claim, next_at).await)
    }
}

type Claimed = (
    String,
    String,
    String,
    String,
    String,
    String,
    String,
    String,
    i64,
    Option<i64>,
    i64,
    i64,
    String,
    i64,
    String,
    i64,
);

async fn claim_due(conn: &mut Conn, lease: &Lease, limit: u32) -> Result<Vec<ScheduleClaim>> {
    let now = clock(conn).await?;
    let rows: Vec<Claimed> = conn.fetch_all(CLAIM, args![now, limit, &lease.owner, lease.until(now)]).await?;
    let claims = rows.into_iter().filter_map(|row| {
        // One that cannot be read stays claimed until its lease ends, and stops no other.
        claimed(row, now).inspect_err(|error| tracing::error!(reason = %error, "a schedule cannot run")).ok()
    });
    Ok(claims.collect())
}

async fn claim_now(conn: &mut Conn, user: &str, id: &str, lease: &Lease) -> Result<ClaimNowOutcome> {
    let now = clock(conn).await?;
    let row: Option<Claimed> =
        conn.fetch_optional(CLAIM_NOW, args![user, id, now, &lease.owner, lease.until(now)]).await?;
    if let Some(row) = row {
        return Ok(ClaimNowOutcome::Claimed(Box::new(ScheduleClaim { due_at: now, ..claimed(row, now)? })));
    }
    let enabled: Option<(i64,)> = conn
        .fetch_optional("SELECT enabled FROM schedules WHERE user_id = $1 AND id = $2", args![user, id])
        .await?;
    Ok(match enabled {
        None => ClaimNowOutcome::Missing,
        Some((0,)) => ClaimNowOutcome::Disabled,
        Some(_) => ClaimNowOutcome::Busy,
    })
}

fn claimed(row: Claimed, now: i64) -> Result<ScheduleClaim> {
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
        origin,
        held,
        origins,
        fence,
    ) = row;
    let row: Row = (
        user, id, agent, cron, zone, channel, prompt, misfire, enabled, next_at, created, changed, origin,
        held, origins,
    );
    let schedule = Schedule::try_from(row)?;
    Ok(ScheduleClaim { schedule, due_at: next_at.unwrap_or(now), claimed_at: now, fence })
}

async fn renew(conn: &mut Conn, claim: &ScheduleClaim, duration: Duration) -> Result<LeaseStatus> {
    let now = clock(conn).await?;
    let (user, id, until) = (&claim.schedule.user, &claim.schedule.id, later(now, duration));
    let schedules = conn
        .execute(
            "UPDATE schedules SET lease_until = $4 \
             WHERE user_id = $1 AND id = $2 AND fence = $3 AND lease_until > $5",
            args![user, id, claim.fence, until, now],
        )
        .await?;
    // The schedule may have been removed meanwhile; its run goes on and is still ours.
    let runs = conn
        .execute(
            "UPDATE schedule_runs SET lease_until = $4 WHERE user_id = $1 AND schedule_id = $2 AND fence = $3 \
             AND finished_at IS NULL AND lease_until > $5",
            args![user, id, claim.fence, until, now],
        )
        .await?;
    Ok(LeaseStatus::by(schedules + runs))
}

/// Lets the schedule go, inside the caller's transaction. What the user set since the claim is newer than `next_at`.
pub(super) async fn give_back(
    conn: &mut Conn,
    claim: &ScheduleClaim,
    next_at: Option<i64>,
) -> Result<LeaseStatus> {
    let returned = conn
        .execute(
            "UPDATE schedules SET next_at = CASE WHEN next_at IS NOT DISTINCT FROM $4 THEN $5 ELSE next_at END, \
             lease_owner = NULL, lease_until = 0 WHERE user_id = $1 AND id = $2 AND fence = $3 AND lease_owner IS NOT NULL",
            args![&claim.schedule.user, &claim.schedule.id, claim.fence, claim.schedule.next_at, next_at],
        )
        .await?;
    if returned > 0 {
        conn.notify(Topic::Schedules).await?;
    }
    Ok(LeaseStatus::by(returned))
}
