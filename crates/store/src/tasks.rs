//! Tasks with steps, numbered for each user. A change names the version that it was made from, so that none is lost.

use serde::{Deserialize, Serialize};

use crate::areas::Tasks;
use crate::db::{args, from_row, transaction};
use crate::error::{Error, ErrorKind, Result};
use crate::store::{check_name, check_text, now};
use crate::untrusted_reads::EXPOSED;

const TITLE_LIMIT: usize = 1024;
const DESCRIPTION_LIMIT: usize = 64 * 1024;
const STEPS_LIMIT: usize = 200;
/// The trust of a task whose writers had read no untrusted text.
const AGENT: &str = "agent";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepState {
    Open,
    Current,
    Done,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    pub text: String,
    pub state: StepState,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskContent {
    pub agent: String,
    pub title: String,
    pub description: String,
    /// Free text: `open`, `done`, `waiting` …
    pub status: String,
    pub steps: Vec<Step>,
    /// `agent`, or [`EXPOSED`] if one of its writers had read untrusted text. Any other stored value is read
    /// as [`EXPOSED`].
    pub trust: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Number among the tasks of this user.
    pub number: i64,
    pub content: TaskContent,
    /// Counts the changes.
    pub version: i64,
    pub created_at: i64,
    pub changed_at: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskOutcome {
    Written(Task),
    /// Changed concurrently; nothing is written.
    Stale(Task),
}

from_row! {
    Task {
        number as i64, agent, title, description, status, steps as String, trust as String, version, created_at,
        changed_at,
    } => {
        let steps = serde_json::from_str(&steps).map_err(|error| {
            Error::new(ErrorKind::Corrupt, format!("the steps of task `{number}` cannot be read")).because(error)
        })?;
        // Any other value is not trusted.
        let trust = if trust == AGENT { trust } else { EXPOSED.to_owned() };
        let content = TaskContent { agent, title, description, status, steps, trust };
        Ok(Self { number, content, version, created_at, changed_at })
    }
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT number, agent, title, description, status, steps, trust, version, created_at, changed_at \
             FROM tasks WHERE user_id = $1 AND ",
            $rest
        )
    };
}

const ONE: &str = select!("number = $2");
const LIST: &str = select!("number > $2 ORDER BY number LIMIT +$3");

impl Tasks<'_> {
    pub async fn add(self, user: &str, content: TaskContent) -> Result<Task> {
        check_name("user", user)?;
        check(&content)?;
        let user = user.to_owned();
        transaction!(self.store, |conn| {
            let sql = "INSERT INTO task_numbers AS this (user_id, last) VALUES ($1, 1) \
                 ON CONFLICT (user_id) DO UPDATE SET last = this.last + 1 RETURNING last";
            let (number,): (i64,) = conn.fetch_one(sql, args![&user]).await?;
            let at = now();
            let task = Task { number, content, version: 1, created_at: at, changed_at: at };
            let sql = "INSERT INTO tasks (user_id, number, agent, title, description, status, steps, trust, \
                 version, created_at, changed_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $9, 1, $8, $8)";
            let values = args![
                &user,
                number,
                &task.content.agent,
                &task.content.title,
                &task.content.description,
                &task.content.status,
                steps_text(&task.content.steps)?,
                at,
                &task.content.trust
            ];
            conn.execute(sql, values).await?;
            Ok(task)
        })
    }

    pub async fn get(self, user: &str, number: i64) -> Result<Option<Task>> {
        self.store.fetch_optional(ONE, args![user, number]).await
    }

    /// The user's tasks in the order of their numbers, from the one after `after`.
    pub async fn list(self, user: &str, after: i64, limit: u32) -> Result<Vec<Task>> {
        self.store.fetch_all(LIST, args![user, after, limit]).await
    }

    /// Replaces the content of a task, if it still has this version.
    pub async fn update(
        self,
        user: &str,
        number: i64,
        version: i64,
        content: TaskContent,
    ) -> Result<TaskOutcome> {
        check(&content)?;
        let user = user.to_owned();
        transaction!(self.store, |conn| {
            let sql = "UPDATE tasks SET agent = $4, title = $5, description = $6, status = $7, steps = $8, \
                 trust = $10, version = version + 1, changed_at = $9 \
                 WHERE user_id = $1 AND number = $2 AND version = $3";
            let values = args![
                &user,
                number,
                version,
                &content.agent,
                &content.title,
                &content.description,
                &content.status,
                steps_text(&content.steps)?,
                now(),
                &content.trust
            ];
            let changed = conn.execute(sql, values).await?;
            let task: Option<Task> = conn.fetch_optional(ONE, args![&user, number]).await?;
            let task =
                task.ok_or_else(|| Error::new(ErrorKind::NotFound, format!("unknown task `{number}`")))?;
            Ok(if changed == 0 { TaskOutcome::Stale(task) } else { TaskOutcome::Written(task) })
        })
    }
}

fn check(content: &TaskContent) -> Result<()> {
    check_name("agent", &content.agent)?;
    check_name("status", &content.status)?;
    check_name("trust", &content.trust)?;
    check_text("title", &content.title, TITLE_LIMIT)?;
    check_text("description", &content.description, DESCRIPTION_LIMIT)?;
    if content.steps.len() > STEPS_LIMIT {
        return Err(Error::invalid(format!(
            "the task has {} steps; {STEPS_LIMIT} are allowed",
            content.steps.len()
        )));
    }
    content.steps.iter().try_for_each(|step| check_text("step", &step.text, TITLE_LIMIT))
}

fn steps_text(steps: &[Step]) -> Result<String> {
    serde_json::to_string(steps).map_err(|error| Error::invalid("the steps cannot be written").because(error))
}
