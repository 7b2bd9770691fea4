//! `embody schedule …`: the scheduled runs of an agent.

mod add;
mod list;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use embody_agent::schedule::{Scheduler, SchedulerSettings, Timetable, agent_job};
use embody_store::Store;
use embody_store::schedules::{ClaimNowOutcome, RunOutcome, Schedule, ScheduleRun};
use serde_json::json;

use super::{Context, ScopeArgs};
use crate::app::{self, App};
use crate::error::CliError;
use crate::{output, serve, store};

const EXAMPLES: &str = "Examples:
  embody schedule add --cron '0 8 * * mon-fri' 'Write the digest.'
  embody schedule add --cron '@every 2h' 'Look at the inbox.'
  embody schedule add --at '2027-01-31 09:00' 'Remind me of the invoice.'
  embody schedule add --in 20m 'Remind me of the tea.'
  embody schedule list
  embody schedule runs 019a8b3e-…           how its runs ended, and what they said
  embody schedule run 019a8b3e-…            runs it now, whenever it is due";

#[derive(Subcommand, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) enum ScheduleCommand {
    /// Plans a run, once or again and again, and says when it is due
    Add(add::AddArgs),
    /// Lists schedules: when each is due next, how its last run ended
    List(list::ListArgs),
    /// Shows the runs of a schedule, the newest first
    Runs(list::RunsArgs),
    /// Runs a schedule now and prints what it says; it stays due when it is
    Run(OneArgs),
    /// Lets a schedule rest
    Pause(OneArgs),
    /// Lets it go on, from now
    Resume(OneArgs),
    /// Removes a schedule; a run that goes on may end
    Remove(OneArgs),
}

#[derive(Args, Debug)]
pub(crate) struct OneArgs {
    /// Its id, as `schedule list` shows it
    id: String,
    #[command(flatten)]
    scope: ScopeArgs,
}

pub(crate) fn run(command: &ScheduleCommand, context: Context) -> Result<ExitCode, CliError> {
    match command {
        ScheduleCommand::Add(args) => add::run(args, context),
        ScheduleCommand::List(args) => list::list(args, &context),
        ScheduleCommand::Runs(args) => list::runs(args, &context),
        ScheduleCommand::Run(args) => run_now(args, context),
        ScheduleCommand::Pause(args) => pause(args, &context),
        ScheduleCommand::Resume(args) => resume(args, &context),
        ScheduleCommand::Remove(args) => remove(args, &context),
    }
}

fn pause(args: &OneArgs, context: &Context) -> Result<ExitCode, CliError> {
    let user = args.scope.user();
    let paused = store::with_existing(context, async |store| {
        Ok(store.schedules().enable(&user, &args.id, None).await?)
    })?;
    if paused != Some(true) {
        return Err(not_found(&args.id, &user));
    }
    print_state(context, &args.id, "paused")
}

fn resume(args: &OneArgs, context: &Context) -> Result<ExitCode, CliError> {
    let user = args.scope.user();
    let resumed = store::with_existing(context, async |store| {
        let schedule = find(store, &user, &args.id).await?;
        let next = table(&schedule)?.next_after(store.clock().await?);
        let Some(next) = next else {
            return Err(CliError::new(format!("`{}` is over: it is not due any more", schedule.cron))
                .hint("`embody schedule run` runs it now, `embody schedule add` makes another"));
        };
        store.schedules().enable(&user, &args.id, Some(next)).await?;
        Ok(Schedule { enabled: true, quarantined: false, next_at: Some(next), ..schedule })
    })?;
    let schedule = resumed.ok_or_else(|| not_found(&args.id, &user))?;
    let due = if context.json { String::new() } else { list::due(&schedule)? };
    context.print_plain(&list::as_json(&schedule, None), || format!("{} goes on\n{due}", args.id))
}

fn remove(args: &OneArgs, context: &Context) -> Result<ExitCode, CliError> {
    let user = args.scope.user();
    let removed =
        store::with_existing(context, async |store| Ok(store.schedules().remove(&user, &args.id).await?))?;
    if removed != Some(true) {
        return Err(not_found(&args.id, &user));
    }
    print_state(context, &args.id, "removed")
}

fn print_state(context: &Context, id: &str, state: &str) -> Result<ExitCode, CliError> {
    context.print_plain(&json!({ "id": id, "state": state }), || format!("{state} {id}\n"))
}

async fn find(store: &Store, user: &str, id: &str) -> Result<Schedule, CliError> {
    store.schedules().get(user, id).await?.ok_or_else(|| not_found(id, user))
}

/// Fails if another version stored the schedule.
fn table(schedule: &Schedule) -> Result<Timetable, CliError> {
    Timetable::parse(&schedule.cron, &schedule.timezone).map_err(|error| {
        CliError::new(format!("the schedule `{}` cannot be read", schedule.id))
            .caused_by(&error)
            .hint("remove it and add it anew")
    })
}

fn not_found(id: &str, user: &str) -> CliError {
    CliError::new(format!("user `{user}` has no schedule `{id}`"))
        .hint("`embody schedule list` shows the ids; `--user` says whose")
}

/// How many runs are searched for the new one.
const NEWEST: u32 = 10;

fn run_now(args: &OneArgs, context: Context) -> Result<ExitCode, CliError> {
    let user = args.scope.user();
    let json = context.json;
    let url = store::database_url(&context);
    let run = store::block_on_multi_thread(async {
        // An unknown id must not create a store or start bodies.
        let store =
            embody_store::Store::open_existing(url).await?.ok_or_else(|| not_found(&args.id, &user))?;
        let schedule = find(&store, &user, &args.id).await;
        store.close().await;
        // `--user` is the user of the run. The owner is the operator, as in `up`.
        let times = app::terminal_timeouts();
        let app = App::open(context, &ScopeArgs::owner(), &schedule?.agent, times).await?;
        let ran = run_in(&app, &user, &args.id).await;
        app.close().await;
        ran
    })?;
    let is_done = run.outcome == Some(RunOutcome::Done);
    if json {
        output::json(&list::run_json(&run))?;
        return Ok(if is_done { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let said = run.output.unwrap_or_default();
    if !is_done {
        return Err(CliError::new(if said.is_empty() { "nobody knows how the run ended" } else { &said }));
    }
    match said.trim_end() {
        "" => output::stderr_line("the agent has nothing to say"),
        said => output::plain(&format!("{said}\n"))?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn run_in(app: &App, user: &str, id: &str) -> Result<ScheduleRun, CliError> {
    if !app.agent.has_model() {
        return Err(app::no_model_error(&app.prompts.context().config));
    }
    let scheduler = Scheduler::new(app.store.clone(), agent_job(&app.agent), SchedulerSettings::default());
    let claim = match scheduler.run_now(user, id, serve::shutdown_signal()?).await? {
        ClaimNowOutcome::Claimed(claim) => claim,
        ClaimNowOutcome::Missing => return Err(not_found(id, user)),
        ClaimNowOutcome::Busy => {
            return Err(CliError::new(format!("the schedule `{id}` runs at this moment"))
                .hint("`embody schedule runs` shows how it ends"));
        }
        ClaimNowOutcome::Disabled => {
            return Err(CliError::new(format!("the schedule `{id}` is paused"))
                .hint("`embody schedule resume` lets it go on"));
        }
    };
    let runs = app.store.schedules().runs(user, id, NEWEST).await?;
    runs.into_iter().find(|run| run.due_at == claim.due_at).ok_or_else(|| {
        CliError::new("it was not run: it was stopped, or the schedule was changed, at that moment")
            .hint("try again")
    })
}
