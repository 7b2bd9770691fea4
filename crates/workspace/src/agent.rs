//! `agents/NAME/agent.toml`: what an agent's own file says.

use std::path::Path;

use embody_prompt::{Agent, Audience, Directories, Note, NoteKind, Responsibility, Source, Value};
use serde::Deserialize;

use crate::load::Error;
use crate::read::{Absent, Folder};

/// The name of an agent: also the name of a folder, so it can be nothing but a plain name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentName(String);

impl AgentName {
    /// Letters, digits, `-`, `_` and `.`, not starting with a dot, at most 64 bytes.
    pub fn new(name: &str) -> Result<Self, Error> {
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
        let valid = !name.is_empty() && name.len() <= 64 && !name.starts_with('.') && name.chars().all(plain);
        if valid { Ok(Self(name.to_owned())) } else { Err(Error::AgentName { name: name.to_owned() }) }
    }

    /// The name itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    identity: Option<String>,
    instructions: Option<String>,
    role: Option<String>,
    directories: Vec<String>,
    persists: Option<bool>,
    file_access: Option<bool>,
    layout: Option<String>,
    responsibility: Vec<Duty>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Duty {
    title: String,
    content: String,
}

/// What was found out about an agent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    pub(crate) agent: Agent,
    pub(crate) directories: Option<Directories>,
    pub(crate) directories_source: Option<Source>,
    pub(crate) layout: Option<String>,
}

/// Reads the agent's file. `folder` is the agent's own folder, if there is one.
pub(crate) fn load(
    folder: Option<&Folder>,
    project: Option<&Path>,
    audience: Audience,
    notes: &mut Vec<Note>,
) -> Found {
    let mut found = Found::default();
    let file = folder.and_then(|folder| read(folder, notes));
    let cwd = project.or(folder.map(Folder::path)).map(|path| path.to_string_lossy().into_owned());
    let source = match (&file, project, folder) {
        (_, Some(_), _) | (_, None, None) => Source::fixed("--project"),
        (_, None, Some(folder)) => folder.source("agent.toml"),
    };
    let Some((file, from)) = file else {
        found.directories = cwd.map(|cwd| Directories { cwd, extra: Vec::new() });
        found.directories_source = Some(source);
        return found;
    };
    let value = |text: Option<String>| text.map(|text| Value::new(text, from.clone(), audience));
    found.agent = Agent {
        configured: true,
        identity: value(file.identity),
        instructions: value(file.instructions),
        role: value(file.role),
        responsibilities: file
            .responsibility
            .into_iter()
            .map(|Duty { title, content }| {
                Value::new(Responsibility { title, content }, from.clone(), audience)
            })
            .collect(),
        persists: file.persists.unwrap_or(true),
    };
    if file.file_access.unwrap_or(true) {
        let base = folder.map_or(Path::new(""), Folder::path);
        let extra = file.directories.iter().map(|path| expand(path, base)).collect();
        found.directories = cwd.map(|cwd| Directories { cwd, extra });
        found.directories_source = Some(if project.is_some() { source } else { from });
    }
    found.layout = file.layout;
    found
}

/// What the file says, if there is one. One that cannot be used still says that somebody has set limits here, so
/// nothing that they might have taken away is granted.
fn read(folder: &Folder, notes: &mut Vec<Note>) -> Option<(File, Source)> {
    let source = folder.source("agent.toml");
    let (kind, line, reason) = match folder.read("agent.toml") {
        Err(Absent::Missing) => return None,
        Err(Absent::Refused(reason)) => (NoteKind::RefusedPath, 0, reason),
        Ok(text) if text.trim().is_empty() => return None,
        Ok(text) => match toml::from_str::<File>(&text) {
            Ok(file) => return Some((file, source)),
            Err(error) => (NoteKind::BadFormat, line_of(&error, &text), error.message().to_owned()),
        },
    };
    let message = format!("not used, and no files and no storage are offered to this agent: {reason}");
    notes.push(Note::new(kind, message, source.clone().at_line(line)));
    Some((File { persists: Some(false), file_access: Some(false), ..File::default() }, source))
}

fn line_of(error: &toml::de::Error, text: &str) -> u32 {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or("");
    u32::try_from(before.matches('\n').count() + 1).unwrap_or(1)
}

fn expand(path: &str, base: &Path) -> String {
    let home = std::env::home_dir();
    let expanded = match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => base.join(path),
    };
    expanded.to_string_lossy().into_owned()
}
