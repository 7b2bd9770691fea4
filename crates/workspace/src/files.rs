//! `AGENTS.md`, `TOOLS.md` and `memories.json`.

use embody_prompt::{Audience, Note, NoteKind, Value, WorkspaceFile};

use crate::persona_files::first;
use crate::read::Folder;

const MEMORIES_LIMIT: usize = 10_000;

pub(crate) fn workspace_files(
    folders: &[Folder],
    audience: Audience,
    notes: &mut Vec<Note>,
) -> Vec<Value<WorkspaceFile>> {
    let mut read = |name: &str| {
        let (text, source) = first(folders, name, notes)?;
        Some(Value::new(WorkspaceFile { name: name.to_owned(), text }, source, audience))
    };
    ["AGENTS.md", "TOOLS.md"].into_iter().filter_map(&mut read).collect()
}

pub(crate) fn memories(
    workspace: &Folder,
    audience: Audience,
    notes: &mut Vec<Note>,
) -> Option<Value<Vec<String>>> {
    let text = workspace.text("memories.json", notes)?;
    let source = workspace.source("memories.json");
    let mut bad = |line: usize, message: String| {
        let source = source.clone().at_line(u32::try_from(line).unwrap_or(1).max(1));
        notes.push(Note::new(NoteKind::BadFormat, message, source));
    };
    let entries = match serde_json::from_str::<serde_json::Value>(&text) {
        Ok(serde_json::Value::Array(entries)) => entries,
        Ok(_) => {
            bad(1, "no memories: it must be an array of strings".into());
            return None;
        }
        Err(error) => {
            bad(error.line(), format!("no memories: it is not valid JSON: {error}"));
            return None;
        }
    };
    let count = entries.len();
    let memories: Vec<String> = entries
        .into_iter()
        .take(MEMORIES_LIMIT)
        .filter_map(|entry| if let serde_json::Value::String(text) = entry { Some(text) } else { None })
        .collect();
    if memories.len() < count {
        let left_out = count - memories.len();
        bad(
            1,
            format!(
                "{left_out} of its {count} entries are left out: only strings are used, at most {MEMORIES_LIMIT}"
            ),
        );
    }
    Some(Value::new(memories, source, audience))
}
