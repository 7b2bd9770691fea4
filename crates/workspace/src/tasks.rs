//! `tasks.json`: the task that a run is bound to.

use embody_prompt::{Audience, Source, Step, StepState, Task, Value};
use serde::Deserialize;

use crate::load::Error;
use crate::read::{Folder, ReadError};

#[derive(Deserialize)]
struct Entry {
    id: Id,
    #[serde(default)]
    title: String,
    description: Option<String>,
    status: Option<String>,
    #[serde(default)]
    steps: Vec<StepEntry>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Id {
    Text(String),
    Number(serde_json::Number),
}

impl Id {
    fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Number(number) => number.to_string(),
        }
    }
}

#[derive(Deserialize)]
struct StepEntry {
    text: String,
    #[serde(default, with = "State")]
    state: StepState,
}

#[derive(Deserialize)]
#[serde(remote = "StepState", rename_all = "lowercase")]
enum State {
    Open,
    Current,
    Done,
}

/// An unknown id is an error of the caller.
pub(crate) fn find(workspace: &Folder, id: &str, audience: Audience) -> Result<Value<Task>, Error> {
    let missing = |known: Vec<String>| Error::NoSuchTask { id: id.to_owned(), known };
    let text = match workspace.read("tasks.json") {
        Ok(text) if !text.trim().is_empty() => text,
        Ok(_) | Err(ReadError::NotFound) => return Err(missing(Vec::new())),
        Err(ReadError::Refused(reason)) => return Err(Error::TasksRefused { reason }),
    };
    let entries: Vec<Entry> = serde_json::from_str(&text).map_err(Error::Tasks)?;
    let mut known = Vec::new();
    for entry in entries {
        let entry_id = entry.id.text();
        if entry_id == id {
            let source = workspace.source("tasks.json");
            return Ok(Value::new(task(entry_id, entry), at_id(&text, id, source), audience));
        }
        known.push(entry_id);
    }
    Err(missing(known))
}

fn task(id: String, entry: Entry) -> Task {
    let steps = entry.steps.into_iter().map(|StepEntry { text, state }| Step { text, state });
    Task {
        id,
        title: entry.title,
        description: entry.description,
        status: entry.status,
        steps: steps.collect(),
    }
}

/// The line of the id, by a text search.
fn at_id(text: &str, id: &str, source: Source) -> Source {
    let names = |line: &str| {
        let value = line.split("\"id\"").nth(1).and_then(|rest| rest.trim_start().strip_prefix(':'));
        value.is_some_and(|value| value.split([',', '}']).next().unwrap_or("").trim().trim_matches('"') == id)
    };
    let line = text.lines().position(names).map_or(1, |index| index + 1);
    source.at_line(u32::try_from(line).unwrap_or(1))
}
