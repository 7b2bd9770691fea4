//! `embody schedule …`: the scheduled runs of an agent: when they are due, and how they ended.

use std::fmt::Write;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use clap::{ArgGroup, Args, Subcommand};
use embody_agent::model::FailureLog;
use embody_agent::schedule::{self, Misfire, Scheduler, SchedulerSettings, Timetable, agent_job};
use embody_store::schedules::{
    AddScheduleOutcome, ClaimNowOutcome, NewSchedule, RunOutcome, Schedule, ScheduleOrigin, ScheduleRun,
};
use embody_store::untrusted_reads::ReadOrigin;
use embody_store::{IdSet, Scope, Store};
use embody_text::truncate;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::args::read_text;
use super::{Context, ScopeArgs, ids};
use crate::app::{self, App};
use crate::error::CliError;
use crate::output::{self, printable};
use crate::prompt_service::PromptService;
use crate::{serve, store, time};

const EXAMPLES: &str = "Examples:
  embody schedule add --cron '0 8 * * mon-fri' 'Write the digest.'
  embody schedule add --cron '@every 2h' 'Look at the inbox.'
  embody schedule add --at '2027-01-31 09:00' 'Remind me of the invoice.'
  embody schedule add --in 20m 'Remind me of the tea.'
  embody schedule list
  embody schedule runs 019a8b3e             how its runs ended, and their output
  embody schedule run 019a8b3e              run it now";

const HEAD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const BAD: Style = AnsiColor::Yellow.on_default();
/// More than a user may have.
const ALL: u32 = 1000;
const NEXT_TIMES: usize = 3;

#[derive(Subcommand, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) enum ScheduleCommand {
    /// Add a schedule and print its next times
    #[command(
        after_help = "Examples:\n  embody schedule add --cron '0 8 * * mon-fri' 'Write the digest.'\n  embody schedule add --in 20m 'Remind me of the tea.'"
    )]
    Add(AddArgs),
    /// List schedules with the next due time and the outcome of the last run
    #[command(after_help = "Examples:\n  embody schedule list\n  embody schedule list --json")]
    List(ListArgs),
    /// List the runs of a schedule, newest first
    #[command(after_help = "Examples:\n  embody schedule runs 8f21c0de")]
    Runs(RunsArgs),
    /// Run a schedule now and print its output; its due times do not change
    #[command(after_help = "Examples:\n  embody schedule run 8f21c0de")]
    Run(OneArgs),
    /// Pause a schedule
    #[command(after_help = "Examples:\n  embody schedule pause 8f21c0de")]
    Pause(OneArgs),
    /// Resume a paused or quarantined schedule from now on
    #[command(after_help = "Examples:\n  embody schedule resume 8f21c0de")]
    Resume(OneArgs),
    /// Remove a schedule; a run in progress may finish
    #[command(after_help = "Examples:\n  embody schedule remove 8f21c0de")]
    Remove(OneArgs),
}

#[derive(Args, Debug)]
pub(crate) struct OneArgs {
    /// The schedule's id, or its end, see `schedule list`
    id: String,
    #[command(flatten)]
    scope: ScopeArgs,
}

#[derive(Args, Debug)]
#[command(group = ArgGroup::new("when").required(true).args(["cron", "at", "within"]))]
pub(crate) struct AddArgs {
    /// The message to the agent; `-` reads it from stdin
    text: String,
    /// Recurring: minute, hour, day of the month, month, day of the week; or @hourly, @daily, @weekly,
    /// @monthly, @yearly, `@every 15m`
    #[arg(long, value_name = "EXPR")]
    cron: Option<String>,
    /// Once, at this time: 2027-01-31T09:00:00Z, or `2027-01-31 09:00` in the schedule's time zone
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
    /// Once, after this duration: 20m, 2h, 3d
    #[arg(long = "in", value_name = "SPAN", value_parser = span)]
    within: Option<SignedDuration>,
    /// The time zone, such as Europe/Berlin [default: the user's, else this machine's]
    #[arg(long, value_name = "TZ")]
    timezone: Option<String>,
    /// The channel that the run is treated as
    #[arg(long, default_value = "scheduled")]
    channel: String,
    /// Missed runs: skip them, run once for all of them, or run them all
    #[arg(long, value_parser = ["skip", "once", "all"], default_value = Misfire::Once.name())]
    misfire: String,
    #[command(flatten)]
    scope: ScopeArgs,
}

#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// The user [env: EMBODY_USER] [default: owner]
    #[arg(long)]
    user: Option<String>,
    /// Only schedules of this agent
    #[arg(long)]
    agent: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct RunsArgs {
    /// The schedule's id, or its end; also of a removed schedule
    id: String,
    /// The maximum number of runs
    #[arg(long, short = 'n', default_value_t = 10)]
    count: u32,
    #[command(flatten)]
    scope: ScopeArgs,
}

pub(crate) fn run(command: &ScheduleCommand, context: Context) -> Result<ExitCode, CliError> {
    match command {
        ScheduleCommand::Add(args) => add(args, context),
        ScheduleCommand::List(args) => list(args, &context),
        ScheduleCommand::Runs(args) => runs(args, &context),
        ScheduleCommand::Run(args) => run_now(args, context),
        ScheduleCommand::Pause(args) => pause(args, &context),
        ScheduleCommand::Resume(args) => resume(args, &context),
        ScheduleCommand::Remove(args) => remove(args, &context),
    }
}

fn pause(args: &OneArgs, context: &Context) -> Result<ExitCode, CliError> {
    let user = args.scope.user();
    let paused = store::with_existing(context, async |store| {
        let id = full_id(store, &user, &args.id).await?;
        Ok(store.schedules().enable(&user, &id, None).await?.then_some(id))
    })?;
    let id = paused.flatten().ok_or_else(|| not_found(&args.id, &user))?;
    print_state(context, &id, "paused")
}

fn resume(args: &OneArgs, context: &Context) -> Result<ExitCode, CliError> {
    let user = args.scope.user();
    let resumed = store::with_existing(context, async |store| {
        let id = full_id(store, &user, &args.id).await?;
        let schedule = find(store, &user, &id).await?;
        let next = table(&schedule)?.next_after(store.clock().await?);
        let Some(next) = next else {
            return Err(CliError::new(format!(
                "`{}` is in the past, so the schedule has no next time",
                schedule.cron
            ))
            .hint("`embody schedule run` runs it now, `embody schedule add` adds another"));
        };
        store.schedules().enable(&user, &id, Some(next)).await?;
        Ok(Schedule { enabled: true, quarantined: false, next_at: Some(next), ..schedule })
    })?;
    let schedule = resumed.ok_or_else(|| not_found(&args.id, &user))?;
    let due = if context.json { String::new() } else { due(&schedule)? };
    context.print_plain(&as_json(&schedule, None), || format!("resumed {}\n{due}", schedule.id))
}

fn remove(args: &OneArgs, context: &Context) -> Result<ExitCode, CliError> {
    let user = args.scope.user();
    let removed = store::with_existing(context, async |store| {
        let id = full_id(store, &user, &args.id).await?;
        Ok(store.schedules().remove(&user, &id).await?.then_some(id))
    })?;
    let id = removed.flatten().ok_or_else(|| not_found(&args.id, &user))?;
    print_state(context, &id, "removed")
}

fn print_state(context: &Context, id: &str, state: &str) -> Result<ExitCode, CliError> {
    context.print_plain(&json!({ "id": id, "state": state }), || format!("{state} {id}\n"))
}

async fn full_id(store: &Store, user: &str, given: &str) -> Result<String, CliError> {
    ids::resolve(store, IdSet::Schedules(user), given, |id| not_found(id, user)).await
}

async fn find(store: &Store, user: &str, id: &str) -> Result<Schedule, CliError> {
    store.schedules().get(user, id).await?.ok_or_else(|| not_found(id, user))
}

/// Fails if another version stored the schedule.
fn table(schedule: &Schedule) -> Result<Timetable, CliError> {
    Timetable::parse(&schedule.cron, &schedule.timezone).map_err(|error| {
        CliError::new(format!("the schedule `{}` cannot be read", schedule.id))
            .caused_by(&error)
            .hint("remove it and add it again")
    })
}

fn not_found(id: &str, user: &str) -> CliError {
    CliError::new(format!("user `{user}` has no schedule `{id}`"))
        .hint("`embody schedule list` shows the ids; `--user` selects the user")
}

/// How many runs are searched for the new one.
const NEWEST: u32 = 10;

fn run_now(args: &OneArgs, context: Context) -> Result<ExitCode, CliError> {
    let user = args.scope.user();
    let json = context.json;
    let url = store::database_url(&context);
    let run = store::block_on_multi_thread(async {
        // An unknown id must not create a store or start bodies.
        let store = Store::open_existing(url).await?.ok_or_else(|| not_found(&args.id, &user))?;
        let schedule = match full_id(&store, &user, &args.id).await {
            Ok(id) => find(&store, &user, &id).await,
            Err(error) => Err(error),
        };
        store.close().await;
        let schedule = schedule?;
        // `--user` is the user of the run. The owner is the operator, as in `up`.
        let times = app::terminal_timeouts();
        let app = App::open(context.settings, &ScopeArgs::owner(), &schedule.agent, times, FailureLog::Debug)
            .await?;
        let ran = run_in(&app, &user, &schedule.id).await;
        app.close().await;
        ran
    })?;
    let is_done = run.outcome == Some(RunOutcome::Done);
    if json {
        output::json(&run_json(&run))?;
        return Ok(output::exit_code(is_done));
    }
    let text = run.output.unwrap_or_default();
    if !is_done {
        return Err(CliError::new(if text.is_empty() { "the outcome of the run is unknown" } else { &text }));
    }
    match text.trim_end() {
        "" => output::stderr_line("the agent did not reply"),
        text => output::plain(&format!("{text}\n"))?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn run_in(app: &App, user: &str, id: &str) -> Result<ScheduleRun, CliError> {
    if !app.agent.has_model() {
        return Err(app::no_model_error(&app.prompts.settings().config));
    }
    let scheduler = Scheduler::new(app.store.clone(), agent_job(&app.agent), SchedulerSettings::default());
    let claim = match scheduler.run_now(user, id, serve::shutdown_signal()?).await? {
        ClaimNowOutcome::Claimed(claim) => claim,
        ClaimNowOutcome::Missing => return Err(not_found(id, user)),
        ClaimNowOutcome::Busy => {
            return Err(CliError::new(format!("the schedule `{id}` is running"))
                .hint("`embody schedule runs` shows its outcome"));
        }
        ClaimNowOutcome::Disabled => {
            return Err(CliError::new(format!("the schedule `{id}` is paused"))
                .hint("`embody schedule resume` resumes it"));
        }
    };
    let runs = app.store.schedules().runs(user, id, NEWEST).await?;
    runs.into_iter().find(|run| run.due_at == claim.due_at).ok_or_else(|| {
        CliError::new("not run: the schedule was stopped or changed at the same time").hint("try again")
    })
}

fn add(args: &AddArgs, context: Context) -> Result<ExitCode, CliError> {
    let text = read_text(&args.text)?;
    if text.trim().is_empty() {
        return Err(CliError::usage("the message is empty"));
    }
    let scope = args.scope.resolve()?;
    let json = context.json;
    // Before the store is created: a wrong command leaves nothing behind.
    if let Some(zone) = &args.timezone {
        parse_cron(args.cron.as_deref().unwrap_or("@daily"), zone)?;
    } else if let Some(cron) = &args.cron {
        parse_cron(cron, "UTC")?;
    }
    let url = store::database_url(&context);
    let schedule = store::block_on(async {
        let store = Store::open(url).await?;
        let added = insert(args, context, &store, scope, text).await;
        store.close().await;
        added
    })?;
    if json {
        output::json(&as_json(&schedule, None))?;
    } else {
        output::plain(&format!("added {}\n{}", schedule.id, due(&schedule)?))?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn insert(
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
    let table = parse_cron(&cron, &zone)?;
    let Some(next) = table.next_after(now) else {
        let given = args.at.as_deref().unwrap_or(&cron);
        return Err(CliError::usage(format!("`{given}` is in the past")));
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
        AddScheduleOutcome::Full => Err(CliError::new("the user has the maximum number of schedules")
            .hint("`embody schedule list` shows them, `embody schedule remove` removes one")),
    }
}

fn parse_cron(cron: &str, zone: &str) -> Result<Timetable, CliError> {
    Timetable::parse(cron, zone).map_err(|error| CliError::usage(&error))
}

fn expression(args: &AddArgs, zone: &str, now: i64) -> Result<String, CliError> {
    if let Some(cron) = &args.cron {
        return Ok(cron.trim().to_owned());
    }
    let far = || CliError::usage("the time is too far in the future");
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
        CliError::usage(format!("invalid date or time `{text}`")).hint(
            "write 2027-01-31T09:00:00Z, or 2027-01-31 09:00 for a local time in the schedule's time zone",
        )
    };
    let local: DateTime = text.trim().parse().map_err(|_| wrong())?;
    let zone = TimeZone::get(zone).map_err(|_| CliError::usage(format!("unknown time zone `{zone}`")))?;
    Ok(local.to_zoned(zone).map_err(|_| wrong())?.timestamp())
}

fn span(text: &str) -> Result<SignedDuration, &'static str> {
    schedule::span(text).ok_or("write a duration of up to a year, such as 20m, 1h30m or 3d")
}

async fn prompt_zone(context: Context, store: &Store, scope: &Scope) -> Result<String, CliError> {
    let prompts = PromptService::new(context.settings, Some(store.clone()), scope.user().to_owned());
    prompts.load_zone(scope.agent()).await?;
    prompts.scheduling_zone(scope).map_err(|reason| {
        CliError::usage(reason)
            .hint("write a name such as Europe/Berlin, America/New_York or UTC there, or pass `--timezone`")
    })
}

fn list(args: &ListArgs, context: &Context) -> Result<ExitCode, CliError> {
    let user = args.user.clone().unwrap_or_else(ScopeArgs::owner);
    let found = store::with_existing(context, async |store| {
        let mut found = Vec::new();
        for schedule in store.schedules().list(&user, "", ALL).await? {
            if args.agent.as_ref().is_none_or(|agent| *agent == schedule.agent) {
                let last = store.schedules().runs(&user, &schedule.id, 1).await?.pop();
                found.push((schedule, last));
            }
        }
        let ids = found.iter().map(|(schedule, _)| &schedule.id);
        Ok((ids::shorten(context, store, IdSet::Schedules(&user), ids).await?, found))
    })?;
    let (short, found) = found.unwrap_or_default();
    let json = |(schedule, last): &(Schedule, Option<ScheduleRun>)| as_json(schedule, last.as_ref());
    context.print_list("schedules", &found, json, |found| match found {
        [] => "No schedules.\n".to_owned(),
        found => found
            .iter()
            .map(|(schedule, last)| as_text(schedule, short.of(&schedule.id), last.as_ref()))
            .collect(),
    })
}

fn runs(args: &RunsArgs, context: &Context) -> Result<ExitCode, CliError> {
    let user = args.scope.user();
    let found = store::with_existing(context, async |store| {
        // Runs outlive their schedule.
        let set = IdSet::ScheduleRuns(&user);
        let id = ids::resolve(store, set, &args.id, |id| not_found(id, &user)).await?;
        let schedule = store.schedules().get(&user, &id).await?;
        Ok((schedule, store.schedules().runs(&user, &id, args.count).await?))
    })?;
    let (schedule, runs) = found.unwrap_or_default();
    if schedule.is_none() && runs.is_empty() {
        return Err(not_found(&args.id, &user));
    }
    let table = schedule.and_then(|schedule| table(&schedule).ok());
    context.print_list("runs", &runs, run_json, |runs| match runs {
        [] => "No runs yet.\n".to_owned(),
        runs => runs.iter().map(|run| run_text(run, table.as_ref())).collect(),
    })
}

/// The next times, in the time zone of the schedule.
fn due(schedule: &Schedule) -> Result<String, CliError> {
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

fn as_text(schedule: &Schedule, id: &str, last: Option<&ScheduleRun>) -> String {
    let mut out = String::new();
    let table = table(schedule).ok();
    let next = match (schedule.enabled, schedule.next_at) {
        (false, _) if schedule.quarantined => "quarantined: its text gives orders".to_owned(),
        (false, _) => "paused".to_owned(),
        (true, None) => "finished".to_owned(),
        (true, Some(at)) => format!("due {}", local_time(at, table.as_ref())),
    };
    let _ = writeln!(out, "{HEAD}{id}{HEAD:#}  {next}");
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
    let _ = writeln!(out, "  {}", printable(&truncate(line, 100)));
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
        Some(RunOutcome::Skipped) => (BAD, "skipped"),
        Some(RunOutcome::Unknown) => (BAD, "unknown"),
    }
}

fn as_json(schedule: &Schedule, last: Option<&ScheduleRun>) -> Value {
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

fn run_json(run: &ScheduleRun) -> Value {
    json!({
        "due_at": time::rfc3339(run.due_at),
        "started_at": time::rfc3339(run.started_at),
        "finished_at": run.finished_at.map(time::rfc3339),
        "outcome": outcome(run.outcome).1,
        "output": run.output,
    })
}
