//! A user's tasks, with steps. A change never overwrites a concurrent one. A task that was written after an untrusted read counts as
//! an untrusted read for its readers, as such a memory does.

use embody_store::tasks::{Step, StepState as StoredState, Task, TaskContent, TaskOutcome};
use embody_store::untrusted_reads::EXPOSED;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::{Body, Caller, Error, Result, Tool, format_timestamp};

const DEFAULT_LIMIT: u32 = 50;
const MAX_LIMIT: u32 = 200;
/// Tasks per page, and the maximum number of pages, when a status filters them.
const PAGE: u32 = 200;
const PAGES: usize = 50;
/// How often a change is tried while others change the same task.
const MAX_ATTEMPTS: usize = 5;
const OPEN: &str = "open";
/// The trust of an agent without untrusted reads.
const AGENT: &str = "agent";

/// The arguments of `list_tasks`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListTasks {
    /// Such as open or done.
    #[serde(default)]
    pub status: Option<String>,
    /// Only tasks after this id.
    #[serde(default, deserialize_with = "maybe_id")]
    #[schemars(with = "Option<String>")]
    pub after: Option<String>,
    /// Default 50, at most 200.
    #[serde(default)]
    pub limit: Option<u32>,
}

/// The arguments of `create_task`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateTask {
    /// In one line.
    #[schemars(description = "")]
    pub title: String,
    /// At length.
    #[serde(default)]
    #[schemars(description = "")]
    pub description: Option<String>,
    /// In order.
    #[serde(default)]
    pub steps: Option<Vec<String>>,
}

/// The arguments of `update_task`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateTask {
    /// The task's id.
    #[serde(deserialize_with = "id")]
    #[schemars(with = "String", description = "")]
    pub id: String,
    /// In one line.
    #[serde(default)]
    #[schemars(description = "")]
    pub title: Option<String>,
    /// At length.
    #[serde(default)]
    #[schemars(description = "")]
    pub description: Option<String>,
    /// One word, such as open, waiting or done.
    #[serde(default)]
    pub status: Option<String>,
    /// All steps; replaces the present ones.
    #[serde(default)]
    pub steps: Option<Vec<StepEntry>>,
    /// Only if this is still the version.
    #[serde(default)]
    pub expected_version: Option<i64>,
}

/// How far a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline, description = "")]
pub enum StepState {
    /// Not begun.
    Open,
    /// Being worked on.
    Current,
    /// Done.
    Done,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, description = "")]
pub struct StepEntry {
    /// What to do.
    #[schemars(description = "")]
    pub text: String,
    /// How far it is.
    #[schemars(description = "")]
    pub state: StepState,
}

/// A task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TaskEntry {
    /// Its id.
    pub id: String,
    /// In one line.
    pub title: String,
    /// At length.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// In a word.
    pub status: String,
    /// In order.
    pub steps: Vec<StepEntry>,
    /// Which agent works on it.
    pub agent: String,
    /// Counts the changes.
    pub version: i64,
    /// When it was last changed.
    pub changed_at: String,
}

/// Tasks, in the order in which they were made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TaskList {
    /// Those that were asked for.
    pub tasks: Vec<TaskEntry>,
    /// There are more: pass this as `after`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_after: Option<String>,
}

impl Body {
    pub async fn list_tasks(&self, caller: &Caller, args: ListTasks) -> Result<TaskList> {
        caller.require_private(Tool::ListTasks)?;
        let limit = args.limit.unwrap_or(DEFAULT_LIMIT).min(MAX_LIMIT);
        if limit == 0 {
            return Err(Error::arguments(Tool::ListTasks, "`limit` is `0`; the minimum is 1"));
        }
        let mut after = args.after.as_deref().map_or(Ok(0), number)?;
        let is_wanted =
            |task: &Task| args.status.as_ref().is_none_or(|status| *status == task.content.status);
        let mut found: Vec<Task> = Vec::new();
        for _ in 0..PAGES {
            let page = self.store.tasks().list(caller.scope.user(), after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = last.number;
            found.extend(page.into_iter().filter(is_wanted));
            // One more than shown, to know whether there are more.
            if found.len() > limit as usize {
                break;
            }
        }
        let is_more = found.len() > limit as usize;
        found.truncate(limit as usize);
        self.record_trust(caller, &found).await?;
        let tasks: Vec<TaskEntry> = found.into_iter().map(entry).collect();
        let next_after = tasks.last().filter(|_| is_more).map(|task| task.id.clone());
        Ok(TaskList { tasks, next_after })
    }

    pub async fn create_task(&self, caller: &Caller, args: CreateTask) -> Result<TaskEntry> {
        let title = check_title(Tool::CreateTask, &args.title)?;
        let steps = args.steps.unwrap_or_default().into_iter();
        let content = TaskContent {
            agent: caller.scope.agent().to_owned(),
            title,
            description: args.description.unwrap_or_default(),
            status: OPEN.to_owned(),
            steps: steps.map(|text| Step { text, state: StoredState::Open }).collect(),
            trust: self.trust_of(caller).await?.to_owned(),
        };
        Ok(entry(self.store.tasks().add(caller.scope.user(), content).await?))
    }

    pub async fn update_task(&self, caller: &Caller, args: UpdateTask) -> Result<TaskEntry> {
        caller.require_private(Tool::UpdateTask)?;
        let (user, number) = (caller.scope.user(), number(&args.id)?);
        let title = args.title.as_deref().map(|text| check_title(Tool::UpdateTask, text)).transpose()?;
        let mut task = self.task(caller, &args.id).await?;
        let trust = self.trust_of(caller).await?;
        for _ in 0..MAX_ATTEMPTS {
            if args.expected_version.is_some_and(|version| version != task.version) {
                break;
            }
            let mut content = task.content.clone();
            content.title = title.clone().unwrap_or(content.title);
            content.description = args.description.clone().unwrap_or(content.description);
            content.status = args.status.clone().unwrap_or(content.status);
            if let Some(steps) = &args.steps {
                content.steps = steps.iter().map(stored_step).collect();
            }
            if trust == EXPOSED {
                content.trust = trust.to_owned();
            }
            match self.store.tasks().update(user, number, task.version, content).await? {
                TaskOutcome::Written(task) => {
                    // The result contains text that others wrote.
                    self.record_trust(caller, std::slice::from_ref(&task)).await?;
                    return Ok(entry(task));
                }
                TaskOutcome::Stale(now) => task = now,
            }
        }
        Err(Error::Stale { id: args.id, version: task.version })
    }

    pub(crate) async fn task(&self, caller: &Caller, id: &str) -> Result<Task> {
        let found = self.store.tasks().get(caller.scope.user(), number(id)?).await?;
        found.ok_or_else(|| Error::NoTask { id: id.to_owned() })
    }

    async fn trust_of(&self, caller: &Caller) -> Result<&'static str> {
        let now = (self.config.clock)();
        let is_exposed =
            self.store.untrusted_reads().has_recent(&caller.scope, &caller.scope.writer(), now).await?;
        Ok(if is_exposed { EXPOSED } else { AGENT })
    }

    /// Records an untrusted read of the caller if any of these tasks was written after one.
    async fn record_trust(&self, caller: &Caller, tasks: &[Task]) -> Result<()> {
        let exposed = tasks.iter().filter(|task| task.content.trust == EXPOSED);
        let origins: Vec<String> = exposed.map(|task| format!("task:{}", task.number)).collect();
        if origins.is_empty() {
            return Ok(());
        }
        let (scope, now) = (&caller.scope, (self.config.clock)());
        let origins: Vec<&str> = origins.iter().map(String::as_str).collect();
        Ok(self.store.untrusted_reads().record(scope, &scope.writer(), &origins, now).await?)
    }
}

pub(crate) fn check_title(tool: Tool, text: &str) -> Result<String> {
    let title = text.trim();
    if title.is_empty() || title.contains(['\n', '\r']) {
        return Err(Error::arguments(tool, "`title` must be one non-empty line"));
    }
    Ok(title.to_owned())
}

fn number(id: &str) -> Result<i64> {
    let digits = id.trim().trim_start_matches('#');
    digits
        .parse()
        .map_err(|_| Error::NoTask { id: id.chars().filter(|c| !c.is_control()).take(40).collect() })
}

fn entry(task: Task) -> TaskEntry {
    let TaskContent { agent, title, description, status, steps, trust: _ } = task.content;
    let step = |step: Step| StepEntry {
        text: step.text,
        state: match step.state {
            StoredState::Open => StepState::Open,
            StoredState::Current => StepState::Current,
            StoredState::Done => StepState::Done,
        },
    };
    TaskEntry {
        id: task.number.to_string(),
        title,
        description,
        status,
        steps: steps.into_iter().map(step).collect(),
        agent,
        version: task.version,
        changed_at: format_timestamp(task.changed_at),
    }
}

fn stored_step(step: &StepEntry) -> Step {
    let state = match step.state {
        StepState::Open => StoredState::Open,
        StepState::Current => StoredState::Current,
        StepState::Done => StoredState::Done,
    };
    Step { text: step.text.clone(), state }
}

/// An id is text, but models may write it as a number.
fn id<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<String, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Id {
        Text(String),
        Number(i64),
    }
    Ok(match Id::deserialize(from)? {
        Id::Text(text) => text,
        Id::Number(number) => number.to_string(),
    })
}

fn maybe_id<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    struct Id(#[serde(deserialize_with = "id")] String);
    Ok(Option::<Id>::deserialize(from)?.map(|Id(id)| id))
}
