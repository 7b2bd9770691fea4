//! `embody schedule add`: adds a schedule.

use std::process::ExitCode;

use clap::{ArgGroup, Args};
use embody_agent::schedule::{self, Misfire, Timetable};
use embody_store::schedules::{AddScheduleOutcome, NewSchedule, Schedule, ScheduleOrigin};
use embody_store::{Scope, Store};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::super::{Context, ScopeArgs};
use super::list;
use crate::error::CliError;
use crate::prompt_service::PromptService;
use crate::{input, output, store};

#[derive(Args, Debug)]
#[command(group = ArgGroup::new("when").required(true).args(["cron", "at", "within"]))]
pub(crate) struct AddArgs {
    /// What the agent is told then; `-` reads it from stdin
    text: String,
    /// Again and again: minute, hour, day of the month, month, day of the week; or @hourly, @daily,
    /// @weekly, @monthly, @yearly, `@every 15m`
    #[arg(long, value_name = "EXPR")]
    cron: Option<String>,
    /// Once, at this time: 2027-01-31T09:00:00Z, or `2027-01-31 09:00` in the time zone
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
    /// Once, after this time: 20m, 2h, 3d
    #[arg(long = "in", value_name = "SPAN", value_parser = span)]
    within: Option<SignedDuration>,
    /// The time zone, such as Europe/Berlin [default: the user's, else this machine's]
    #[arg(long, value_name = "TZ")]
    timezone: Option<String>,
    /// The channel that it is as if it came through
    #[arg(long, default_value = "scheduled")]
    channel: String,
    /// What becomes of runs that were missed: skip them, run once for all of them, or run them all
    #[arg(long, value_parser = ["skip", "once", "all"], default_value = Misfire::Once.name())]
    misfire: String,
    #[command(flatten)]
    scope: ScopeArgs,
}

pub(super) fn run(args: &AddArgs, context: Context) -> Result<ExitCode, CliError> {
    let text = input::text(&args.text)?;
    if text.trim().is_empty() {
        return Err(CliError::usage("there is nothing to tell the agent"));
    }
    let scope = args.scope.resolve()?;
    let json = context.json;
    // Before the store is created: a wrong command leaves nothing behind.
    if let Some(zone) = &args.timezone {
        parse(args.cron.as_deref().unwrap_or("@daily"), zone)?;
    } else if let Some(cron) = &args.cron {
        parse(cron, "UTC")?;
    }
    let url = store::database_url(&context);
    let schedule = store::block_on(async {
        let store = Store::open(url).await?;
        let added = add(args, context, &store, scope, text).await;
        store.close().await;
        added
    })?;
    if json {
        output::json(&list::as_json(&schedule, None))?;
    } else {
        output::plain(&format!("added {}\n{}", schedule.id, list::due(&schedule)?))?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn add(
    args: &AddArgs,
    context: Context,
    store: &Store,
    scope: Scope,
    text: String,
) -> Result<Schedule, CliError> {
    let zone = match &args.timezone {
        Some(zone) => zone.clone(),
        None => prompt_zone(context, store, &scope).await?,
    };
    let now = store.clock().await?;
    let cron = expression(args, &zone, now)?;
    let table = parse(&cron, &zone)?;
    let Some(next) = table.next_after(now) else {
        let given = args.at.as_deref().unwrap_or(&cron);
        return Err(CliError::usage(format!("`{given}` is over already")));
    };
    let new = NewSchedule {
        scope,
        cron,
        timezone: table.zone_name().to_owned(),
        channel: args.channel.clone(),
        prompt: text,
        misfire: args.misfire.clone(),
        next_at: Some(next),
        origin: ScheduleOrigin::Owner,
        origins: Vec::new(),
        quarantined: false,
    };
    match store.schedules().add(new).await? {
        AddScheduleOutcome::Added(schedule) => Ok(*schedule),
        AddScheduleOutcome::Full => Err(CliError::new("there are as many schedules as one user may have")
            .hint("`embody schedule list` shows them, `embody schedule remove` removes one")),
    }
}

fn parse(cron: &str, zone: &str) -> Result<Timetable, CliError> {
    Timetable::parse(cron, zone).map_err(|error| CliError::usage(&error))
}

fn expression(args: &AddArgs, zone: &str, now: i64) -> Result<String, CliError> {
    if let Some(cron) = &args.cron {
        return Ok(cron.trim().to_owned());
    }
    let far = || CliError::usage("that is too far away");
    let at = match (&args.at, args.within) {
        (Some(at), _) => parse_time(at, zone)?,
        (None, span) => {
            let now = Timestamp::from_microsecond(now).map_err(|_| far())?;
            now.checked_add(span.unwrap_or_default()).map_err(|_| far())?
        }
    };
    Ok(format!("@once {at:.0}"))
}

/// An RFC 3339 time, or a local time in the zone.
fn parse_time(text: &str, zone: &str) -> Result<Timestamp, CliError> {
    if let Ok(at) = text.trim().parse() {
        return Ok(at);
    }
    let wrong = || {
        CliError::usage(format!("`{text}` is no moment"))
            .hint("write it like 2027-01-31T09:00:00Z, or 2027-01-31 09:00 for the time zone's clock")
    };
    let local: DateTime = text.trim().parse().map_err(|_| wrong())?;
    let zone = TimeZone::get(zone).map_err(|_| CliError::usage(format!("there is no time zone `{zone}`")))?;
    Ok(local.to_zoned(zone).map_err(|_| wrong())?.timestamp())
}

fn span(text: &str) -> Result<SignedDuration, &'static str> {
    schedule::span(text).ok_or("write a span up to a year, such as 20m, 1h30m or 3d")
}

/// The time zone of the prompts.
async fn prompt_zone(context: Context, store: &Store, scope: &Scope) -> Result<String, CliError> {
    let prompts = PromptService::new(context, store.clone(), scope.user().to_owned());
    prompts.load_zone(scope.agent()).await?;
    prompts.scheduling_zone(scope).map_err(|reason| {
        CliError::usage(reason)
            .hint("write a name like Europe/Berlin, America/New_York or UTC there, or pass `--timezone`")
    })
}
