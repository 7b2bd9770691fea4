//! Project instructions from the project folder up to the root: `CLAUDE.md`, `CLAUDE.local.md`, `.claude/rules/*.md`,
//! `AGENTS.md`; outermost first.

use std::path::{Path, PathBuf};

use embody_prompt::{Audience, Note, NoteKind, ProjectFile, Source, Value};

use crate::read::{FILE_LIMIT, Folder};

const DEPTH_LIMIT: usize = 64;
const RULES_LIMIT: usize = 64;
const BYTES_LIMIT: usize = 4 * FILE_LIMIT as usize;

/// Reads the files of the project at `project`, an absolute path.
pub(crate) fn load(project: &Path, audience: Audience, notes: &mut Vec<Note>) -> Vec<Value<ProjectFile>> {
    let mut folders: Vec<&Path> = project.ancestors().take(DEPTH_LIMIT).collect();
    folders.reverse();
    let mut files = Vec::new();
    let mut seen: Vec<PathBuf> = Vec::new();
    let mut bytes = 0;
    for path in folders {
        let folder = Folder::new(path, path.to_string_lossy().trim_end_matches('/'));
        for name in names(&folder, notes) {
            let Some(text) = folder.text(&name, notes) else { continue };
            let source = folder.source(&name);
            if let Ok(real) = folder.resolve(&name) {
                if seen.contains(&real) {
                    let message = "left out: the same file is already there under another name";
                    notes.push(Note::new(NoteKind::Duplicate, message, source));
                    continue;
                }
                seen.push(real);
            }
            bytes += text.len();
            if bytes > BYTES_LIMIT {
                let message = format!(
                    "left out with all further project files: together they exceed {BYTES_LIMIT} bytes"
                );
                notes.push(Note::new(NoteKind::TooMany, message, source));
                return files;
            }
            let path = folder.name_of(&name);
            files.push(Value::new(ProjectFile { path, text }, source, audience));
        }
    }
    files
}

fn names(folder: &Folder, notes: &mut Vec<Note>) -> Vec<String> {
    let mut names: Vec<String> = vec!["CLAUDE.md".into(), "CLAUDE.local.md".into()];
    if let Some(rules) = folder.folder(".claude/rules", notes) {
        let (found, more) = rules.names(RULES_LIMIT, |name| name.ends_with(".md"));
        if more {
            let message = format!("only the first {RULES_LIMIT} rule files are read");
            notes.push(Note::new(
                NoteKind::TooMany,
                message,
                Source::named(&folder.name_of(".claude/rules")),
            ));
        }
        names.extend(found.iter().map(|name| format!(".claude/rules/{name}")));
    }
    names.push("AGENTS.md".into());
    names
}
