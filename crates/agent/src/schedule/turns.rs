//! A run is one turn that nobody watches, in the thread that all runs of its schedule share.

use embody_prompt::Audience;
use embody_store::{NewThread, Result, Schedule, ScheduleClaim, Scope, Store, Thread};

use super::Work;
use crate::title;
use crate::turn::{Agent, Facts, TurnError, TurnInput};

/// Turns of this agent. What is said is kept with the run; a run that fails says why and what to do.
pub fn turns(agent: &Agent) -> Work {
    let agent = agent.clone();
    Work::new(move |claim: ScheduleClaim| {
        let agent = agent.clone();
        async move {
            match turn(&agent, &claim.schedule).await {
                Ok(reply) => Ok(reply.unwrap_or_default()),
                Err(error) => Err(words(&error)),
            }
        }
    })
}

async fn turn(agent: &Agent, schedule: &Schedule) -> std::result::Result<Option<String>, TurnError> {
    // Without a model no thread is begun.
    if !agent.has_model() {
        return Err(TurnError::NoModel);
    }
    let thread = thread_of(agent.store(), schedule).await?;
    let input = TurnInput {
        scope: Scope::new(&schedule.user, &schedule.agent)?,
        channel: schedule.channel.clone(),
        thread: thread.id,
        text: schedule.prompt.clone(),
        facts: Facts::default(),
        audience: Audience::Owner,
        background: true,
        task: None,
    };
    Ok(agent.turn(input, &mut |_| {}).await?.reply)
}

fn words(error: &TurnError) -> String {
    let mut words = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        words += &format!("\ncaused by: {error}");
        cause = error.source();
    }
    match error.hint() {
        Some(hint) => format!("{words}\nhint: {hint}"),
        None => words,
    }
}

/// The thread that the runs of a schedule share.
pub async fn thread_of(store: &Store, schedule: &Schedule) -> Result<Thread> {
    let scope = Scope::new(&schedule.user, &schedule.agent)?;
    let title = title::of(&schedule.prompt);
    let new = NewThread { channel: schedule.channel.clone(), external: Some(schedule.id.clone()), title };
    store.open_thread(&scope, new).await
}
