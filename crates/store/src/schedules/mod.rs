//! Schedules: what runs when, for whom. When a cron expression is due next is computed by whoever gives `next_at`.

mod claims;
mod runs;

pub use self::claims::{ClaimNowOutcome, ScheduleClaim};
pub use self::runs::{FinishRun, RunOutcome, RunStart, ScheduleRun};
use crate::areas::Schedules;
use crate::changes::Topic;
use crate::db::{args, transaction};
use crate::error::{Error, ErrorKind, Result};
use crate::store::{Scope, check_name, check_text, new_id, now};
use crate::untrusted_reads::ReadOrigin;

const PROMPT_LIMIT: usize = 64 * 1024;
/// Agents make schedules too; one that makes them in a loop is stopped here.
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

impl ScheduleOrigin {
    pub fn name(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Agent => "agent",
            Self::ExposedAgent => "exposed",
            Self::Unknown => "unknown",
        }
    }

    fn named(name: &str) -> Self {
        let all = [Self::Owner, Self::Agent, Self::ExposedAgent];
        all.into_iter().find(|origin| origin.name() == name).unwrap_or(Self::Unknown)
    }
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

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddScheduleOutcome {
    Added(Box<Schedule>),
    Full,
}

type Row = (
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
);

const LIST: &str = "SELECT user_id, id, agent, cron, timezone, channel, prompt, misfire, enabled, next_at, created_at, \
     changed_at, origin, quarantined, origins FROM schedules WHERE user_id = $1 AND id > $2 ORDER BY id LIMIT +$3";
const ONE: &str = "SELECT user_id, id, agent, cron, timezone, channel, prompt, misfire, enabled, next_at, created_at, \
     changed_at, origin, quarantined, origins FROM schedules WHERE user_id = $1 AND id = $2";

impl Schedules<'_> {
    /// Adds a schedule. It is enabled unless it is quarantined.
    pub async fn add(self, new: NewSchedule) -> Result<AddScheduleOutcome> {
        let schedule = fresh(new)?;
        let row = schedule.clone();
        let origins = serde_json::to_string(&row.origins)
            .map_err(|error| Error::invalid("the origins cannot be written").because(error))?;
        let added = transaction!(self.store, |conn| {
            let added = conn
                .execute(
                    "INSERT INTO schedules (user_id, id, agent, cron, timezone, channel, prompt, misfire, \
                             enabled, next_at, created_at, changed_at, origin, quarantined, origins) \
                             SELECT $1, $2, $3, $4, $5, $6, $7, $8, $12, $9, $10, $10, $13, $14, $15 \
                             WHERE (SELECT count(*) FROM schedules WHERE user_id = $1) < $11",
                    args![
                        row.user,
                        row.id,
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
                    ],
                )
                .await?;
            conn.notify(Topic::Schedules).await?;
            Ok(added)
        })?;
        if added == 0 {
            return Ok(AddScheduleOutcome::Full);
        }
        Ok(AddScheduleOutcome::Added(Box::new(schedule)))
    }

    pub async fn get(self, user: &str, id: &str) -> Result<Option<Schedule>> {
        let row: Option<Row> = self.store.reader().await?.fetch_optional(ONE, args![user, id]).await?;
        row.map(Schedule::try_from).transpose()
    }

    /// The user's schedules, oldest first, from the one after the id `after` (empty: from the first).
    pub async fn list(self, user: &str, after: &str, limit: u32) -> Result<Vec<Schedule>> {
        let rows: Vec<Row> = self.store.reader().await?.fetch_all(LIST, args![user, after, limit]).await?;
        rows.into_iter().map(Schedule::try_from).collect()
    }

    /// Removes a schedule; whether there was one. A run that goes on may still be finished, and past ones are kept.
    pub async fn remove(self, user: &str, id: &str) -> Result<bool> {
        let (user, id) = (user.to_owned(), id.to_owned());
        let removed = transaction!(self.store, |conn| {
            let removed =
                conn.execute("DELETE FROM schedules WHERE user_id = $1 AND id = $2", args![user, id]).await?;
            conn.notify(Topic::Schedules).await?;
            Ok(removed)
        })?;
        Ok(removed > 0)
    }

    /// Enables a schedule from `next_at` on, which also ends its quarantine; `None` disables it. Whether there is one. A run
    /// that goes on is left alone.
    pub async fn enable(self, user: &str, id: &str, next_at: Option<i64>) -> Result<bool> {
        let (user, id) = (user.to_owned(), id.to_owned());
        let changed = transaction!(self.store, |conn| {
            let changed = conn
                .execute(
                    "UPDATE schedules SET enabled = $3, next_at = $4, changed_at = $5, \
                             quarantined = CASE WHEN $3 = 1 THEN 0 ELSE quarantined END \
                             WHERE user_id = $1 AND id = $2",
                    args![user, id, next_at.is_some(), next_at, now()],
                )
                .await?;
            conn.notify(Topic::Schedules).await?;
            Ok(changed)
        })?;
        Ok(changed > 0)
    }
}

fn fresh(new: NewSchedule) -> Result<Schedule> {
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

impl TryFrom<Row> for Schedule {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self> {
        let (
            user,
            id,
            agent,
            cron,
            timezone,
            channel,
            prompt,
            misfire,
            enabled,
            next_at,
            created_at,
            changed_at,
            origin,
            quarantined,
            origins,
        ) = row;
        let (enabled, quarantined) = (enabled != 0, quarantined != 0);
        let origin = ScheduleOrigin::named(&origin);
        let origins = serde_json::from_str(&origins).map_err(|error| {
            let message = format!("the origins of the schedule `{id}` cannot be read");
            Error::new(ErrorKind::Corrupt, message).because(error)
        })?;
        Ok(Self {
            user,
            id,
            agent,
            cron,
            timezone,
            channel,
            prompt,
            misfire,
            enabled,
            next_at,
            created_at,
            changed_at,
            origin,
            origins,
            quarantined,
        })
    }
}
