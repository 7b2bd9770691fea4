//! Files that are read whole: `AGENTS.md`, `TOOLS.md`, `memories.json`, skills, and project instructions from the project folder up to
//! the root.

use std::path::{Path, PathBuf};

use embody_prompt::{Audience, Note, NoteKind, ProjectFile, Skill, Source, Value, WorkspaceFile};

use crate::front_matter::{FrontMatter, split};
use crate::persona_files::{first, yaml_error_note};
use crate::read::{FILE_LIMIT, Folder};

const MEMORIES_LIMIT: usize = 10_000;
const SKILLS_LIMIT: usize = 256;
const PROJECT_DEPTH_LIMIT: usize = 64;
const PROJECT_RULES_LIMIT: usize = 64;
const PROJECT_BYTES_LIMIT: usize = 4 * FILE_LIMIT as usize;

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

/// Reads `CLAUDE.md`, `CLAUDE.local.md`, `.claude/rules/*.md` and `AGENTS.md` of the project at the absolute path `project` and of
/// the folders above it, outermost first.
pub(crate) fn project(project: &Path, audience: Audience, notes: &mut Vec<Note>) -> Vec<Value<ProjectFile>> {
    let mut folders: Vec<&Path> = project.ancestors().take(PROJECT_DEPTH_LIMIT).collect();
    folders.reverse();
    let mut files = Vec::new();
    let mut seen: Vec<PathBuf> = Vec::new();
    let mut bytes = 0;
    for path in folders {
        let folder = Folder::new(path, path.to_string_lossy().trim_end_matches('/'));
        for name in project_names(&folder, notes) {
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
            if bytes > PROJECT_BYTES_LIMIT {
                let message = format!(
                    "left out with all further project files: together they exceed {PROJECT_BYTES_LIMIT} bytes"
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

fn project_names(folder: &Folder, notes: &mut Vec<Note>) -> Vec<String> {
    let mut names: Vec<String> = vec!["CLAUDE.md".into(), "CLAUDE.local.md".into()];
    if let Some(rules) = folder.folder(".claude/rules", notes) {
        let (found, more) = rules.names(PROJECT_RULES_LIMIT, |name| name.ends_with(".md"));
        if more {
            let message = format!("only the first {PROJECT_RULES_LIMIT} rule files are read");
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

/// A skill with its text, which no prompt contains.
pub(crate) struct FoundSkill {
    pub(crate) skill: Skill,
    /// Without the front matter.
    pub(crate) text: String,
    pub(crate) source: Source,
    /// Its folder, and the folder of all skills that it must stay in.
    pub(crate) name: String,
    pub(crate) parent: Folder,
}

/// Reads `skills/*/SKILL.md` of the folders; the first skill of a name wins.
pub(crate) fn skills(folders: &[(Folder, &'static str)], notes: &mut Vec<Note>) -> Vec<FoundSkill> {
    let mut skills: Vec<FoundSkill> = Vec::new();
    for (folder, origin) in folders {
        let Some(all) = folder.folder("skills", notes) else { continue };
        let (names, more) = all.names(SKILLS_LIMIT, |name| all.has(&format!("{name}/SKILL.md")));
        if more {
            let message = format!("only the first {SKILLS_LIMIT} skills are read");
            notes.push(Note::new(NoteKind::TooMany, message, Source::named(&folder.name_of("skills"))));
        }
        for name in names {
            let file = format!("{name}/SKILL.md");
            let Some(text) = all.text(&file, notes) else { continue };
            let source = all.source(&file);
            let (skill, text) = parse_skill(&name, all.name_of(&name), origin, &text, &source, notes);
            if skills.iter().any(|found| found.skill.name == skill.name) {
                let message = format!("left out: there is already a skill called `{}`", skill.name);
                notes.push(Note::new(NoteKind::Duplicate, message, source));
                continue;
            }
            skills.push(FoundSkill { skill, text, source, name, parent: all.clone() });
        }
    }
    skills
}

fn parse_skill(
    folder: &str,
    path: String,
    origin: &str,
    text: &str,
    source: &Source,
    notes: &mut Vec<Note>,
) -> (Skill, String) {
    let (yaml, rest) = split(text);
    let matter = FrontMatter::parse(yaml.unwrap_or("")).unwrap_or_else(|error| {
        notes.push(yaml_error_note(&error, source.clone()));
        FrontMatter::default()
    });
    let name = matter.name.unwrap_or_else(|| folder.to_owned());
    let description = matter.description.unwrap_or_else(|| first_sentence(rest));
    (Skill { name, source: origin.to_owned(), path, description }, rest.to_owned())
}

/// The description of a skill that has none: its first line that is not a heading.
fn first_sentence(text: &str) -> String {
    let line =
        text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#')).unwrap_or("");
    line.chars().take(200).collect()
}
