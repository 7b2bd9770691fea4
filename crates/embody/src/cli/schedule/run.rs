//! `embody schedule run`: one run at once, as the scheduler would do it.

use std::process::ExitCode;

use embody_agent::schedule::{Scheduler, SchedulerSettings, turns};
use embody_store::{ClaimNow, RunOutcome, ScheduleRun};

use super::super::{Context, Who};
use super::{OneArgs, missing, one, shown};
use crate::failure::Failure;
use crate::house::{self, House};
use crate::{output, serve, store};

/// Runs that are looked through for the one that was made.
const NEWEST: u32 = 10;

pub(super) fn run(args: &OneArgs, context: Context) -> Result<ExitCode, Failure> {
    let user = args.who.user();
    let json = context.json;
    let place = store::place(&context);
    let run = store::block_on_all(async {
        // An unknown id must not make a store, nor start bodies.
        let store =
            embody_store::Store::open_existing(place).await?.ok_or_else(|| missing(&args.id, &user))?;
        let schedule = one(&store, &user, &args.id).await;
        store.close().await;
        // `--user` names whose run it is. The house is the operator's, as that of `up`: what is theirs is not for guests.
        let times = house::patient_for_a_terminal();
        let house = House::open(context, &Who::owner(), &schedule?.agent, times).await?;
        let ran = run_in(&house, &user, &args.id).await;
        house.close().await;
        ran
    })?;
    let is_done = run.outcome == Some(RunOutcome::Done);
    if json {
        output::json(&shown::run_json(&run))?;
        return Ok(if is_done { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let said = run.output.unwrap_or_default();
    if !is_done {
        return Err(Failure::new(if said.is_empty() { "nobody knows how the run ended" } else { &said }));
    }
    match said.trim_end() {
        "" => output::aside("the agent has nothing to say"),
        said => output::plain(&format!("{said}\n"))?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn run_in(house: &House, user: &str, id: &str) -> Result<ScheduleRun, Failure> {
    if !house.agent.has_model() {
        return Err(house::no_model(&house.voice.context().config));
    }
    let scheduler = Scheduler::new(house.store.clone(), turns(&house.agent), SchedulerSettings::default());
    let claim = match scheduler.run_now(user, id, serve::ending()?).await? {
        ClaimNow::Claimed(claim) => claim,
        ClaimNow::Missing => return Err(missing(id, user)),
        ClaimNow::Busy => {
            return Err(Failure::new(format!("the schedule `{id}` runs at this moment"))
                .hint("`embody schedule runs` shows how it ends"));
        }
        ClaimNow::Disabled => {
            return Err(Failure::new(format!("the schedule `{id}` is paused"))
                .hint("`embody schedule resume` lets it go on"));
        }
    };
    let runs = house.store.schedule_runs(user, id, NEWEST).await?;
    runs.into_iter().find(|run| run.due_at == claim.due_at).ok_or_else(|| {
        Failure::new("it was not run: it was stopped, or the schedule was changed, at that moment")
            .hint("try again")
    })
}
