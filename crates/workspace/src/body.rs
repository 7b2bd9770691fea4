//! The body file. Missing: no body, never an error.

use std::path::Path;

use embody_prompt::{Body, Note, NoteKind, Source};

use crate::include::{Missing, expand};
use crate::read::{Absent, Folder};

/// What became of the body file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BodyOutcome {
    /// What it is called.
    pub name: String,
    /// Whether it was there, could be read and says something.
    pub loaded: bool,
    /// Why a body that is there does not count.
    pub reason: Option<String>,
    /// How many files it includes.
    pub included: usize,
    /// How many of its includes are missing or refused.
    pub missing: usize,
    /// How many bytes it has, includes expanded.
    pub bytes: usize,
}

/// Reads the body at `path` (relative to the workspace, or absolute where the operator says so).
pub(crate) fn load(workspace: &Path, path: &Path, notes: &mut Vec<Note>) -> (Option<Body>, BodyOutcome) {
    let path = path.strip_prefix(workspace).unwrap_or(path);
    let shown = path.to_string_lossy().into_owned();
    let mut outcome = BodyOutcome { name: shown.clone(), ..BodyOutcome::default() };
    let (text, folder) = match locate(workspace, path) {
        Some((root, file, folder)) => (root.read(&file), folder),
        None => (Err(Absent::Missing), Folder::new(workspace, "")),
    };
    let text = match text {
        Ok(text) => text,
        Err(Absent::Missing) => return (None, outcome),
        Err(Absent::Refused(reason)) => {
            let message = format!("the body was not read: {reason}");
            notes.push(Note::new(NoteKind::RefusedPath, message.clone(), Source::named(&shown)));
            outcome.reason = Some(message);
            return (None, outcome);
        }
    };
    let expanded = expand(&text, &Source::file(&shown), |include| match folder.read(include) {
        Ok(text) => Ok((text, folder.source(include))),
        Err(Absent::Missing) => Err(Missing::NotThere),
        Err(Absent::Refused(reason)) => Err(Missing::Refused(reason)),
    });
    outcome.loaded = expanded.parts.iter().any(|part| !part.text.trim().is_empty());
    outcome.reason = (!outcome.loaded).then(|| "the body is empty".to_owned());
    outcome.included = expanded.included;
    outcome.missing = expanded.missing;
    outcome.bytes = expanded.parts.iter().map(|part| part.text.len()).sum();
    notes.extend(expanded.notes);
    (Some(Body { parts: expanded.parts }), outcome)
}

/// The folder that the body must stay in, its path there, and the folder that its includes must stay in.
fn locate(workspace: &Path, path: &Path) -> Option<(Folder, String, Folder)> {
    let parent = path.parent()?;
    let label = parent.to_string_lossy().into_owned();
    let includes = Folder::new(&workspace.join(parent), label);
    if path.is_absolute() {
        let file = path.file_name()?.to_str()?.to_owned();
        Some((includes.clone(), file, includes))
    } else {
        Some((Folder::new(workspace, ""), path.to_str()?.to_owned(), includes))
    }
}
