//! Later and repeated runs of the agent. The configuration of the body computes when they are due.

use std::sync::Arc;

use embody_store::schedules::{AddScheduleOutcome, NewSchedule, ScheduleOrigin};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Body, Caller, Error, Result, Tool, excerpt, format_timestamp};

const CHANNEL: &str = "scheduled";
/// Missed runs are made up for by one.
const MISFIRE: &str = "once";
const MAX_TEXT_BYTES: usize = 64 * 1024;
/// A longer text is examined on a thread of its own.
const BLOCKING_BYTES: usize = 4 * 1024;
const QUARANTINED: &str = "it reads like an order to the agent; it does not run until the owner resumes it";

/// The arguments of `schedule_run`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScheduleRun {
    /// Five fields (`0 9 * * 1-5`), @daily, or `@every 2h`.
    #[serde(default)]
    pub cron: Option<String>,
    /// 2027-01-31T09:00:00Z, or 2027-01-31T09:00 in the time zone.
    #[serde(default)]
    pub at: Option<String>,
    /// Such as Europe/Berlin; default the user's.
    #[serde(default)]
    pub timezone: Option<String>,
    /// Your prompt for that run.
    pub text: String,
}

/// A run that is planned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ScheduledRun {
    /// The schedule's id.
    pub id: String,
    /// When it runs.
    pub cron: String,
    /// The time zone that it means.
    pub timezone: String,
    /// When it runs first.
    pub next_at: String,
    /// `active`, or `quarantined`.
    pub status: String,
    /// Why it is held back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

pub(crate) struct ScheduleTime {
    cron: String,
    timezone: String,
    next_at: i64,
}

impl Body {
    pub async fn schedule_run(&self, caller: &Caller, args: ScheduleRun) -> Result<ScheduledRun> {
        let ScheduleTime { cron, timezone, next_at } = self.schedule_time(caller, &args)?;
        let now = (self.config.clock)();
        let (scope, writer) = (&caller.scope, caller.scope.writer());
        let is_exposed = self.store.untrusted_reads().has_recent(scope, &writer, now).await?;
        let origins = self.store.untrusted_reads().origins(scope, &writer, now).await?;
        // The owner has read what they approve.
        let quarantined = !caller.is_approved && self.gives_orders(&args.text).await;
        let new = NewSchedule {
            scope: caller.scope.clone(),
            cron,
            timezone,
            channel: CHANNEL.to_owned(),
            prompt: args.text,
            misfire: MISFIRE.to_owned(),
            next_at: Some(next_at),
            origin: if is_exposed { ScheduleOrigin::ExposedAgent } else { ScheduleOrigin::Agent },
            origins,
            quarantined,
        };
        match self.store.schedules().add(new).await? {
            AddScheduleOutcome::Added(added) => Ok(ScheduledRun {
                id: added.id,
                cron: added.cron,
                timezone: added.timezone,
                next_at: format_timestamp(next_at),
                status: if added.quarantined { "quarantined" } else { "active" }.to_owned(),
                reason: added.quarantined.then(|| QUARANTINED.to_owned()),
            }),
            AddScheduleOutcome::Full => Err(Error::Full),
        }
    }

    /// When the run is due; fails if it cannot be scheduled.
    pub(crate) fn schedule_time(&self, caller: &Caller, args: &ScheduleRun) -> Result<ScheduleTime> {
        // The run has the rights of a private conversation.
        caller.require_private(Tool::ScheduleRun)?;
        let refused = |problem: String| Error::arguments(Tool::ScheduleRun, problem);
        if args.text.trim().is_empty() || args.text.len() > MAX_TEXT_BYTES {
            return Err(refused(format!("`text` must have 1 to {MAX_TEXT_BYTES} bytes")));
        }
        let timezone = match &args.timezone {
            Some(named) => named.clone(),
            None => (self.config.zone)(&caller.scope).map_err(refused)?,
        };
        let cron = match (&args.cron, &args.at) {
            (Some(cron), None) => cron.trim().to_owned(),
            (None, Some(at)) => format!("@once {}", parse_time(at, &timezone).map_err(refused)?),
            _ => return Err(refused("give either `cron` or `at`".to_owned())),
        };
        let next_at = (self.config.due)(&cron, &timezone, (self.config.clock)()).map_err(refused)?;
        let Some(next_at) = next_at else {
            let given = args.at.as_deref().unwrap_or(&cron);
            return Err(refused(format!("`{given}` is in the past, or never occurs")));
        };
        Ok(ScheduleTime { cron, timezone, next_at })
    }

    /// The check that memories pass too; a text that cannot be checked gives orders.
    async fn gives_orders(&self, text: &str) -> bool {
        let gives_orders = Arc::clone(&self.config.gives_orders);
        if text.len() < BLOCKING_BYTES {
            return gives_orders(text);
        }
        let text = text.to_owned();
        tokio::task::spawn_blocking(move || gives_orders(&text)).await.unwrap_or(true)
    }
}

/// An RFC 3339 time; without an offset, a local time in the zone.
fn parse_time(text: &str, zone: &str) -> std::result::Result<Timestamp, String> {
    if let Ok(at) = text.trim().parse::<Timestamp>() {
        return Ok(at);
    }
    let shown = excerpt(text);
    let local: DateTime = text.trim().parse().map_err(|_| {
        format!("invalid date or time `{shown}`; write it like 2027-01-31T09:00:00Z or 2027-01-31T09:00")
    })?;
    let zone = TimeZone::get(zone).map_err(|_| format!("unknown time zone `{zone}`"))?;
    let at = local.to_zoned(zone).map_err(|_| format!("`{shown}` is too far in the future"))?;
    Ok(at.timestamp())
}
