//! What the store adds to a prompt: standing instructions, the agent's soul and identity, the task.

use embody_prompt::{Source, Step, StepState, Task};
use embody_store::{self as store_room, Agent, Instructions, Scope, Store, ToolPin};
use embody_workspace::{Request, Stored};

use crate::cli::Context;
use crate::compose::PromptArgs;
use crate::failure::Failure;
use crate::store;

/// Tasks named when the one that was asked for is not there.
const KNOWN_TASKS: u32 = 10;
/// Pinned tools that are read, and how many at once.
const PINS: usize = 2000;
const PAGE: u32 = 200;

/// Reads what the prompt needs, and gives the definitions that are pinned. A workspace without a store has nothing to add;
/// a store that fails is a failure, since a prompt without the user's rules must not pass for one with them.
pub(crate) fn fill(
    request: &mut Request,
    context: &Context,
    args: &PromptArgs,
) -> Result<Vec<ToolPin>, Failure> {
    let scope = args.who.scope()?;
    let found = store::read(context, async |store| {
        Ok((find(store, &scope, args.task.as_deref()).await?, pins(store).await?))
    })?;
    let Some((found, pins)) = found else { return Ok(Vec::new()) };
    add(request, &scope, found);
    Ok(pins)
}

/// The same from a store that is open, for a model. A task whose writer had read text that the owner did not write marks it.
pub(crate) async fn fill_from(
    request: &mut Request,
    store: &Store,
    scope: &Scope,
    task: Option<&str>,
) -> Result<(), Failure> {
    let found = find(store, scope, task).await?;
    if let Some((task, _)) = found.task.as_ref().filter(|_| found.is_task_exposed) {
        let origin = format!("task:{}", task.id);
        store.record_untrusted_read(scope, &scope.writer(), &[&origin], store.clock().await?).await?;
    }
    add(request, scope, found);
    Ok(())
}

/// The definitions that hold, as many as are ever listed.
async fn pins(store: &Store) -> Result<Vec<ToolPin>, Failure> {
    let mut pins: Vec<ToolPin> = Vec::new();
    while pins.len() < PINS {
        let after = pins.last().map_or(("", ""), |last| (&*last.body, &*last.tool));
        let page = store.pins(after, PAGE).await?;
        if page.is_empty() {
            break;
        }
        pins.extend(page);
    }
    Ok(pins)
}

struct Found {
    instructions: Instructions,
    agent: Option<Agent>,
    task: Option<(Task, Source)>,
    is_task_exposed: bool,
}

async fn find(store: &Store, scope: &Scope, task_id: Option<&str>) -> Result<Found, Failure> {
    let instructions = store.instructions(scope).await?;
    let agent = store.agent(scope.agent()).await?;
    let task = match task_id {
        Some(id) => task(store, scope.user(), id).await?,
        None => None,
    };
    let (task, trust) = task.unzip();
    let is_task_exposed = trust.is_some_and(|trust| trust == store_room::EXPOSED);
    Ok(Found { instructions, agent, task, is_task_exposed })
}

fn add(request: &mut Request, scope: &Scope, found: Found) {
    let Found { instructions, agent, task, is_task_exposed: _ } = found;
    if request.instructions.is_none() && !instructions.text.trim().is_empty() {
        let source = format!("store: instructions of {}, version {}", scope.user(), instructions.version);
        request.instructions = Some((instructions.text, Source::named(&source)));
    }
    let source = Source::named(&format!("store: agent {}", scope.agent()));
    let (soul, identity) = agent.map_or((None, None), |agent| (agent.soul, agent.identity));
    request.stored = Stored {
        soul: soul.map(|soul| (soul, source.clone())),
        identity: identity.map(|identity| (identity, source)),
        task,
    };
}

/// The task in the store, and its trust; `None` if the user keeps none there, so that `tasks.json` is asked.
async fn task(store: &Store, user: &str, id: &str) -> Result<Option<((Task, Source), String)>, Failure> {
    let known = store.tasks(user, 0, KNOWN_TASKS).await?;
    if known.is_empty() {
        return Ok(None);
    }
    let found = match id.parse() {
        Ok(number) => store.task(user, number).await?,
        Err(_) => None,
    };
    let Some(found) = found else {
        let known: Vec<String> = known.iter().map(|task| task.number.to_string()).collect();
        return Err(Failure::new(format!("there is no task `{id}`: the store has {}", known.join(", "))));
    };
    let content = found.content;
    let steps = content.steps.into_iter().map(|step| Step {
        text: step.text,
        state: match step.state {
            store_room::StepState::Open => StepState::Open,
            store_room::StepState::Current => StepState::Current,
            store_room::StepState::Done => StepState::Done,
        },
    });
    let task = Task {
        id: found.number.to_string(),
        title: content.title,
        description: Some(content.description).filter(|text| !text.is_empty()),
        status: Some(content.status),
        steps: steps.collect(),
    };
    let source = Source::named(&format!("store: task {} of {user}", found.number));
    Ok(Some(((task, source), content.trust)))
}
