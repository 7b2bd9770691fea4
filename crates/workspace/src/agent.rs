//! `agents/NAME/agent.toml`: the configuration of an agent.

use std::path::{Component, Path, PathBuf};

use embody_prompt::{Agent, Audience, Directories, Note, NoteKind, Responsibility, Source, Value};
use serde::Deserialize;

use crate::load::Error;
use crate::read::{Folder, ReadError};

/// The name of an agent, which is also the name of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentName(String);

impl AgentName {
    /// Letters, digits, `-`, `_` and `.`, not starting with a dot, at most 64 bytes.
    pub fn new(name: &str) -> Result<Self, Error> {
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
        let valid = !name.is_empty() && name.len() <= 64 && !name.starts_with('.') && name.chars().all(plain);
        if valid { Ok(Self(name.to_owned())) } else { Err(Error::AgentName { name: name.to_owned() }) }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct AgentFile {
    identity: Option<String>,
    instructions: Option<String>,
    role: Option<String>,
    directories: Vec<String>,
    persists: Option<bool>,
    file_access: Option<bool>,
    layout: Option<String>,
    responsibility: Vec<ResponsibilityEntry>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ResponsibilityEntry {
    title: String,
    content: String,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct AgentConfig {
    pub(crate) agent: Agent,
    pub(crate) directories: Option<Directories>,
    pub(crate) directories_source: Option<Source>,
    pub(crate) layout: Option<String>,
    pub(crate) files: Option<PathBuf>,
}

/// The working directory in an agent's folder, beside the files that define the agent.
const FILES: &str = "files";

/// `folder` is the agent's own folder, if it exists.
pub(crate) fn load(
    folder: Option<&Folder>,
    project: Option<&Path>,
    audience: Audience,
    notes: &mut Vec<Note>,
) -> AgentConfig {
    let mut found = AgentConfig::default();
    let file = folder.and_then(|folder| read(folder, notes));
    let files = folder.filter(|_| project.is_none()).map(|folder| folder.path().join(FILES));
    let cwd = project.or(files.as_deref()).map(|path| path.to_string_lossy().into_owned());
    let source = match (&file, project, folder) {
        (_, Some(_), _) | (_, None, None) => Source::fixed("--project"),
        (_, None, Some(folder)) => folder.source("agent.toml"),
    };
    let Some((file, from)) = file else {
        found.directories = cwd.map(|cwd| Directories { cwd, extra: Vec::new() });
        found.directories_source = Some(source);
        found.files = files;
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
            .map(|ResponsibilityEntry { title, content }| {
                Value::new(Responsibility { title, content }, from.clone(), audience)
            })
            .collect(),
        persists: file.persists.unwrap_or(true),
    };
    if file.file_access.unwrap_or(true) {
        let base = folder.map_or(Path::new(""), Folder::path);
        let extra = file.directories.iter().map(|path| expand(path, base).to_string_lossy().into_owned());
        let extra = extra.collect();
        found.directories = cwd.map(|cwd| Directories { cwd, extra });
        found.files = files;
        found.directories_source = Some(if project.is_some() { source } else { from });
    }
    found.layout = file.layout;
    found
}

/// The content of the file, if it exists. An unusable file may have restricted the agent, so nothing that it could have denied is
/// granted.
fn read(folder: &Folder, notes: &mut Vec<Note>) -> Option<(AgentFile, Source)> {
    let source = folder.source("agent.toml");
    let (kind, line, reason) = match folder.read("agent.toml") {
        Err(ReadError::NotFound) => return None,
        Err(ReadError::Refused(reason)) => (NoteKind::RefusedPath, 0, reason),
        Ok(text) if text.trim().is_empty() => return None,
        Ok(text) => match toml::from_str::<AgentFile>(&text) {
            Ok(file) => return Some((file, source)),
            Err(error) => (NoteKind::BadFormat, line_of(&error, &text), error.message().to_owned()),
        },
    };
    let message = format!("not used, and no files and no storage are offered to this agent: {reason}");
    notes.push(Note::new(kind, message, source.clone().at_line(line)));
    Some((AgentFile { persists: Some(false), file_access: Some(false), ..AgentFile::default() }, source))
}

fn line_of(error: &toml::de::Error, text: &str) -> u32 {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or("");
    u32::try_from(before.matches('\n').count() + 1).unwrap_or(1)
}

fn expand(path: &str, base: &Path) -> PathBuf {
    match (path.strip_prefix("~/"), std::env::home_dir()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => base.join(path),
    }
}

/// The directories that agents list and that contain files of the workspace itself, each with its agent. An agent that writes
/// there can change itself, its rules or the store.
#[must_use]
pub fn exposed_directories(workspace: &Path) -> Vec<(String, PathBuf)> {
    let mut notes = Vec::new();
    let root = Folder::new(workspace, "");
    let agents = std::fs::read_dir(workspace.join("agents")).into_iter().flatten().flatten();
    let mut names: Vec<String> = agents.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    let mut exposed = Vec::new();
    for name in names {
        let Some(folder) = root.folder(&format!("agents/{name}"), &mut notes) else { continue };
        let Some((file, _)) = read(&folder, &mut notes) else { continue };
        let listed = file.directories.iter().map(|path| expand(path, folder.path()));
        exposed
            .extend(listed.filter(|path| holds_own_files(workspace, path)).map(|path| (name.clone(), path)));
    }
    exposed
}

/// Whether a directory contains the workspace, or is one of its own folders.
fn holds_own_files(workspace: &Path, directory: &Path) -> bool {
    let (workspace, directory) = (real(workspace), real(directory));
    if workspace.starts_with(&directory) {
        return true;
    }
    let Ok(inside) = directory.strip_prefix(&workspace) else { return false };
    let mut parts = inside.iter().map(|part| part.to_string_lossy());
    match parts.next().as_deref() {
        Some("prompts" | "skills" | "logs" | "keys") => true,
        // An agent may use the other folders in its folder.
        Some("agents") => {
            !matches!((parts.next(), parts.next().as_deref()), (Some(_), Some(part)) if part != "skills")
        }
        _ => false,
    }
}

/// The path without links and dots, as far as it exists.
fn real(path: &Path) -> PathBuf {
    if let Ok(real) = std::fs::canonicalize(path) {
        return real;
    }
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    let existing = |ancestor: &Path| {
        Some(std::fs::canonicalize(ancestor).ok()?.join(plain.strip_prefix(ancestor).ok()?))
    };
    plain.ancestors().find_map(existing).unwrap_or_else(|| plain.clone())
}
