//! `embody schedule list` and `runs`: schedules, when they are due and how their runs ended.

use std::fmt::Write;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use clap::Args;
use embody_agent::schedule::Timetable;
use embody_store::schedules::{RunOutcome, Schedule, ScheduleOrigin, ScheduleRun};
use embody_store::untrusted_reads::ReadOrigin;
use serde_json::{Value, json};

use super::super::{Context, ScopeArgs};
use super::{not_found, table};
use crate::error::CliError;
use crate::output::{self, printable};
use crate::{store, time};

const HEAD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const BAD: Style = AnsiColor::Yellow.on_default();
/// The limit of schedules of a user.
const ALL: u32 = 1000;
/// How many due times are shown.
const NEXT_TIMES: usize = 3;

#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// The user [env: EMBODY_USER] [default: owner]
    #[arg(long)]
    user: Option<String>,
    /// Only those of this agent
    #[arg(long)]
    agent: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct RunsArgs {
    /// The schedule's id
    id: String,
    /// At most so many
    #[arg(long, short = 'n', default_value_t = 10)]
    count: u32,
    #[command(flatten)]
    scope: ScopeArgs,
}

pub(super) fn list(args: &ListArgs, context: &Context) -> Result<ExitCode, CliError> {
    let user = ScopeArgs { user: args.user.clone(), agent: None }.user();
    let found = store::with_existing(context, async |store| {
        let mut found = Vec::new();
        for schedule in store.schedules().list(&user, "", ALL).await? {
            if args.agent.as_ref().is_none_or(|agent| *agent == schedule.agent) {
                let last = store.schedules().runs(&user, &schedule.id, 1).await?.pop();
                found.push((schedule, last));
            }
        }
        Ok(found)
    })?;
    let found = found.unwrap_or_default();
    if context.json {
        let schedules: Vec<Value> =
            found.iter().map(|(schedule, last)| as_json(schedule, last.as_ref())).collect();
        output::json(&json!({ "schedules": schedules }))?;
    } else if found.is_empty() {
        output::plain("Nothing is scheduled.\n")?;
    } else {
        output::styled(
            &found.iter().map(|(schedule, last)| as_text(schedule, last.as_ref())).collect::<String>(),
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn runs(args: &RunsArgs, context: &Context) -> Result<ExitCode, CliError> {
    let user = args.scope.user();
    let found = store::with_existing(context, async |store| {
        // Runs outlive their schedule.
        let schedule = store.schedules().get(&user, &args.id).await?;
        Ok((schedule, store.schedules().runs(&user, &args.id, args.count).await?))
    })?;
    let (schedule, runs) = found.unwrap_or_default();
    if schedule.is_none() && runs.is_empty() {
        return Err(not_found(&args.id, &user));
    }
    let table = schedule.and_then(|schedule| table(&schedule).ok());
    if context.json {
        output::json(&json!({ "runs": runs.iter().map(run_json).collect::<Vec<_>>() }))?;
    } else if runs.is_empty() {
        output::plain("It has not run yet.\n")?;
    } else {
        output::styled(&runs.iter().map(|run| run_text(run, table.as_ref())).collect::<String>())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The next times, in the time zone of the schedule.
pub(super) fn due(schedule: &Schedule) -> Result<String, CliError> {
    let table = table(schedule)?;
    let mut out = String::new();
    for at in next_times(schedule, &table) {
        let _ = writeln!(out, "due {} {}", table.local(at), table.zone_name());
    }
    Ok(out)
}

fn next_times(schedule: &Schedule, table: &Timetable) -> Vec<i64> {
    std::iter::successors(schedule.next_at, |at| table.next_after(*at)).take(NEXT_TIMES).collect()
}

fn as_text(schedule: &Schedule, last: Option<&ScheduleRun>) -> String {
    let mut out = String::new();
    let table = table(schedule).ok();
    let next = match (schedule.enabled, schedule.next_at) {
        (false, _) if schedule.quarantined => "quarantined: it gives orders".to_owned(),
        (false, _) => "paused".to_owned(),
        (true, None) => "over".to_owned(),
        (true, Some(at)) => format!("due {}", local_time(at, table.as_ref())),
    };
    let _ = writeln!(out, "{HEAD}{}{HEAD:#}  {next}", schedule.id);
    let (cron, zone, agent) =
        (printable(&schedule.cron), printable(&schedule.timezone), printable(&schedule.agent));
    let by = match schedule.origin {
        ScheduleOrigin::Owner => "you".to_owned(),
        ScheduleOrigin::Agent => "the agent".to_owned(),
        ScheduleOrigin::ExposedAgent => format!("the agent after reading {}", origin_names(schedule)),
        ScheduleOrigin::Unknown => "an earlier version".to_owned(),
    };
    let misfire = &schedule.misfire;
    let _ =
        writeln!(out, "  {DIM}{cron} in {zone}, agent {agent}, missed: {misfire}, created by {by}{DIM:#}");
    if let Some(run) = last {
        let (style, word) = outcome(run.outcome);
        let _ =
            writeln!(out, "  last {style}{word}{style:#}, due {}", local_time(run.due_at, table.as_ref()));
    }
    let line = schedule.prompt.lines().next().unwrap_or_default();
    let _ = writeln!(out, "  {}", printable(&time::truncate(line, 100)));
    out
}

fn origin_names(schedule: &Schedule) -> String {
    if schedule.origins.is_empty() {
        return "text of other origin".to_owned();
    }
    let names: Vec<_> = schedule.origins.iter().map(|read| printable(&read.origin)).collect();
    names.join(", ")
}

fn run_text(run: &ScheduleRun, table: Option<&Timetable>) -> String {
    let (style, word) = outcome(run.outcome);
    let mut out = format!("{HEAD}due {}{HEAD:#}  {style}{word}{style:#}", local_time(run.due_at, table));
    if let Some(end) = run.finished_at.filter(|_| run.outcome != Some(RunOutcome::Unknown)) {
        let _ = write!(out, " after {} s", end.saturating_sub(run.started_at) / 1_000_000);
    }
    out.push('\n');
    for line in run.output.as_deref().unwrap_or_default().lines() {
        let _ = writeln!(out, "  {}", printable(line));
    }
    out
}

fn local_time(at: i64, table: Option<&Timetable>) -> String {
    table.map_or_else(|| time::display(at), |table| table.local(at))
}

fn outcome(outcome: Option<RunOutcome>) -> (Style, &'static str) {
    match outcome {
        None => (DIM, "running"),
        Some(RunOutcome::Done) => (Style::new(), "done"),
        Some(RunOutcome::Failed) => (BAD, "failed"),
        Some(RunOutcome::Unknown) => (BAD, "unknown"),
    }
}

pub(super) fn as_json(schedule: &Schedule, last: Option<&ScheduleRun>) -> Value {
    let next = table(schedule).map(|table| next_times(schedule, &table)).unwrap_or_default();
    json!({
        "id": schedule.id,
        "agent": schedule.agent,
        "cron": schedule.cron,
        "timezone": schedule.timezone,
        "channel": schedule.channel,
        "misfire": schedule.misfire,
        "text": schedule.prompt,
        "enabled": schedule.enabled,
        "origin": schedule.origin.name(),
        "origins": schedule.origins.iter().map(origin_json).collect::<Vec<_>>(),
        "quarantined": schedule.quarantined,
        "next_at": schedule.next_at.map(time::rfc3339),
        "next": next.into_iter().map(time::rfc3339).collect::<Vec<_>>(),
        "last": last.map(run_json),
    })
}

fn origin_json(read: &ReadOrigin) -> Value {
    json!({"origin": read.origin, "at": time::rfc3339(read.at)})
}

pub(super) fn run_json(run: &ScheduleRun) -> Value {
    json!({
        "due_at": time::rfc3339(run.due_at),
        "started_at": time::rfc3339(run.started_at),
        "finished_at": run.finished_at.map(time::rfc3339),
        "outcome": outcome(run.outcome).1,
        "output": run.output,
    })
}
