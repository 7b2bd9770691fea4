//! `embody schedule …`: what the agent does by itself, and when.

mod add;
mod run;
mod shown;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use embody_agent::schedule::Timetable;
use embody_store::{Schedule, Store};
use serde_json::json;

use super::{Context, Who};
use crate::failure::Failure;
use crate::{output, store};

const EXAMPLES: &str = "Examples:
  embody schedule add --cron '0 8 * * mon-fri' 'Write the digest.'
  embody schedule add --cron '@every 2h' 'Look at the inbox.'
  embody schedule add --at '2027-01-31 09:00' 'Remind me of the invoice.'
  embody schedule add --in 20m 'Remind me of the tea.'
  embody schedule list
  embody schedule runs 019a8b3e-…           how its runs ended, and what they said
  embody schedule run 019a8b3e-…            runs it now, whenever it is due";

/// What to do with them.
#[derive(Subcommand, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) enum ScheduleCommand {
    /// Plans a run, once or again and again, and says when it is due
    Add(add::AddArgs),
    /// Lists schedules: when each is due next, how its last run ended
    List(shown::ListArgs),
    /// Shows the runs of a schedule, the newest first
    Runs(shown::RunsArgs),
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
    who: Who,
}

pub(crate) fn run(command: &ScheduleCommand, context: Context) -> Result<ExitCode, Failure> {
    match command {
        ScheduleCommand::Add(args) => add::run(args, context),
        ScheduleCommand::List(args) => shown::list(args, &context),
        ScheduleCommand::Runs(args) => shown::runs(args, &context),
        ScheduleCommand::Run(args) => run::run(args, context),
        ScheduleCommand::Pause(args) => pause(args, &context),
        ScheduleCommand::Resume(args) => resume(args, &context),
        ScheduleCommand::Remove(args) => remove(args, &context),
    }
}

fn pause(args: &OneArgs, context: &Context) -> Result<ExitCode, Failure> {
    let user = args.who.user();
    let paused =
        store::change(context, async |store| Ok(store.enable_schedule(&user, &args.id, None).await?))?;
    if paused != Some(true) {
        return Err(missing(&args.id, &user));
    }
    said(context, &args.id, "paused")
}

fn resume(args: &OneArgs, context: &Context) -> Result<ExitCode, Failure> {
    let user = args.who.user();
    let resumed = store::change(context, async |store| {
        let schedule = one(store, &user, &args.id).await?;
        let next = table(&schedule)?.next_after(store.clock().await?);
        let Some(next) = next else {
            return Err(Failure::new(format!("`{}` is over: it is not due any more", schedule.cron))
                .hint("`embody schedule run` runs it now, `embody schedule add` makes another"));
        };
        store.enable_schedule(&user, &args.id, Some(next)).await?;
        Ok(Schedule { enabled: true, quarantined: false, next_at: Some(next), ..schedule })
    })?;
    let schedule = resumed.ok_or_else(|| missing(&args.id, &user))?;
    if context.json {
        output::json(&shown::as_json(&schedule, None))?;
    } else {
        output::plain(&format!("{} goes on\n{}", args.id, shown::due(&schedule)?))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn remove(args: &OneArgs, context: &Context) -> Result<ExitCode, Failure> {
    let user = args.who.user();
    let removed = store::change(context, async |store| Ok(store.remove_schedule(&user, &args.id).await?))?;
    if removed != Some(true) {
        return Err(missing(&args.id, &user));
    }
    said(context, &args.id, "removed")
}

fn said(context: &Context, id: &str, state: &str) -> Result<ExitCode, Failure> {
    if context.json {
        output::json(&json!({ "id": id, "state": state }))?;
    } else {
        output::plain(&format!("{state} {id}\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn one(store: &Store, user: &str, id: &str) -> Result<Schedule, Failure> {
    store.schedule(user, id).await?.ok_or_else(|| missing(id, user))
}

/// A stored schedule may be one that another version understood.
fn table(schedule: &Schedule) -> Result<Timetable, Failure> {
    Timetable::parse(&schedule.cron, &schedule.timezone).map_err(|error| {
        Failure::new(format!("the schedule `{}` cannot be read", schedule.id))
            .because(&error)
            .hint("remove it and add it anew")
    })
}

fn missing(id: &str, user: &str) -> Failure {
    Failure::new(format!("user `{user}` has no schedule `{id}`"))
        .hint("`embody schedule list` shows the ids; `--user` says whose")
}
