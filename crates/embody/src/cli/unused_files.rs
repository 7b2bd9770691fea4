//! The files of a workspace that have no effect on an agent's prompt: which, why, and what to do. For `doctor` and `prompt lint`.

use std::collections::BTreeSet;
use std::path::Path;

use embody_prompt::{Kind, Layout, Note, NoteKind, RenderedPrompt, Source};
use embody_workspace::{FrontMatter, split_front_matter};
use serde::Serialize;

use super::Context;
use super::prompt::PromptArgs;
use crate::prompt_service::LoadedPrompt;

const BLANK: &str = "it has no content";
/// The most entries that are read; a workspace has fewer.
const ENTRIES_MAX: usize = 2_000;

#[derive(Debug, Serialize)]
pub(crate) struct UnusedFile {
    pub(crate) file: String,
    pub(crate) reason: String,
    pub(crate) hint: String,
    /// It contains nothing that could have an effect.
    #[serde(skip)]
    pub(crate) is_blank: bool,
}

pub(crate) fn find(
    args: &PromptArgs,
    context: &Context,
    loaded: &LoadedPrompt,
    (rendered, notes): (&RenderedPrompt, &[Note]),
) -> Vec<UnusedFile> {
    let shown = rendered.spans.iter().flat_map(|span| &span.parts).map(|part| part.source.name()).collect();
    let own = format!("agents/{}/", args.scope.agent());
    let search = Search { workspace: &context.workspace, loaded, notes, shown, own };
    list_files(&context.workspace, &search.own).iter().filter_map(|file| search.check(file)).collect()
}

struct Search<'a> {
    workspace: &'a Path,
    loaded: &'a LoadedPrompt,
    notes: &'a [Note],
    /// The sources of text in the prompt.
    shown: BTreeSet<&'a str>,
    /// The folder of the agent, with a slash at its end.
    own: String,
}

impl Search<'_> {
    fn check(&self, file: &str) -> Option<UnusedFile> {
        let unused = |(reason, hint): (String, String)| {
            let is_blank = reason == BLANK;
            UnusedFile { file: file.to_owned(), reason, hint, is_blank }
        };
        let name = file.strip_prefix(&self.own).unwrap_or(file);
        if name == "USER.md" {
            return self.check_user(file).map(unused);
        }
        if self.is_shown(file) {
            return self.leftover(file).map(unused);
        }
        // A problem of the file itself is a finding of its own.
        if self.has_note(file, &[NoteKind::RefusedPath, NoteKind::BadFormat]) {
            return None;
        }
        let found = match (name, name.split_once('/')) {
            ("IDENTITY.md", _) => self.check_part(Kind::Identity, self.source(Kind::Identity), file),
            ("SOUL.md", _) => self.check_part(Kind::Soul, self.source(Kind::Soul), file),
            ("AGENTS.md" | "TOOLS.md", _) => {
                self.check_part(Kind::WorkspaceFiles, self.workspace_file(name), file)
            }
            ("memories.json", _) => self.check_part(Kind::Memories, self.source(Kind::Memories), file),
            // A task is in a prompt only while a run is bound to it.
            ("tasks.json", _) if self.loaded.layout.has_section(Kind::Task) => return None,
            ("tasks.json", _) => self.not_in_layout(Kind::Task),
            (_, Some(("skills", rest))) => self.check_skill(file, rest),
            (_, Some(("prompts", rest))) if file == name => self.not_included(rest),
            _ => unknown(name),
        };
        Some(unused(found))
    }

    fn is_shown(&self, file: &str) -> bool {
        self.shown.contains(file)
    }

    fn has_note(&self, file: &str, kinds: &[NoteKind]) -> bool {
        self.note(file, kinds).is_some()
    }

    fn note(&self, file: &str, kinds: &[NoteKind]) -> Option<&str> {
        let note = self.notes.iter().find(|note| note.source.name() == file && kinds.contains(&note.kind))?;
        Some(&note.message)
    }

    /// Text of a used file that is not used.
    fn leftover(&self, file: &str) -> Option<(String, String)> {
        let message = self.note(file, &[NoteKind::Unused])?;
        Some((message.to_owned(), "move the text, or delete it".to_owned()))
    }

    fn source(&self, kind: Kind) -> Option<&Source> {
        let input = &self.loaded.workspace.input;
        match kind {
            Kind::Identity => input.identity.as_ref().map(|value| value.source()),
            Kind::Soul => input.soul.as_ref().map(|value| value.source()),
            Kind::Memories => input.memories.as_ref().map(|value| value.source()),
            _ => None,
        }
    }

    fn workspace_file(&self, name: &str) -> Option<&Source> {
        let files = self.loaded.workspace.input.workspace_files.iter().map(|value| value.source());
        files.into_iter().find(|source| source.name().rsplit('/').next() == Some(name))
    }

    /// A file of which the whole is one part of the prompt. `source` is where that part comes from.
    fn check_part(&self, kind: Kind, source: Option<&Source>, file: &str) -> (String, String) {
        match source {
            None => (BLANK.to_owned(), "write something into it, or delete it".to_owned()),
            Some(source) if source.name() != file => {
                (format!("{} is used instead", source.name()), "keep one of the two".to_owned())
            }
            Some(_)
                if self.loaded.layout.name == Layout::TAGGED.name
                    && self.loaded.workspace.input.agent.configured =>
            {
                let reason = format!("{}agent.toml says who the agent is", self.own);
                (reason, "write it there, or set another `layout`".to_owned())
            }
            Some(_) if !self.loaded.layout.has_section(kind) => self.not_in_layout(kind),
            Some(_) => self.left_out(file),
        }
    }

    /// Its fields go to different sections.
    fn check_user(&self, file: &str) -> Option<(String, String)> {
        if self.has_note(file, &[NoteKind::RefusedPath, NoteKind::BadFormat, NoteKind::UnknownTimezone]) {
            return None;
        }
        let own = format!("{}USER.md", self.own);
        if file != own && self.workspace.join(&own).exists() {
            return Some((format!("{own} is used instead"), "keep one of the two".to_owned()));
        }
        let text = std::fs::read_to_string(self.workspace.join(file)).unwrap_or_default();
        let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
        let fields =
            split_front_matter(&text).0.and_then(|yaml| FrontMatter::parse(yaml).ok()).unwrap_or_default();
        let layout = &self.loaded.layout;
        let name = fields.name.as_ref().filter(|_| !layout.has_section(Kind::User)).map(|_| "`name`");
        let location = fields.location.as_ref().filter(|_| !layout.has_location()).map(|_| "`location`");
        let hidden: Vec<&str> = name.into_iter().chain(location).collect();
        if !hidden.is_empty() {
            let (_, hint) = self.not_in_layout(Kind::User);
            let reason = format!("the layout `{}` does not show its {}", layout.name, hidden.join(" and "));
            return Some((reason, hint));
        }
        if fields.name.is_some() || fields.location.is_some() || fields.timezone.is_some() {
            return self.leftover(file);
        }
        let hint = "fill in `name`, `timezone` or `location` between its two lines `---`";
        Some((BLANK.to_owned(), hint.to_owned()))
    }

    fn check_skill(&self, file: &str, rest: &str) -> (String, String) {
        let is_skill = rest.split_once('/').is_some_and(|(_, file)| file == "SKILL.md");
        if !is_skill {
            let reason = "of a skill only skills/NAME/SKILL.md is read".to_owned();
            return (reason, "move what the agent needs into the SKILL.md".to_owned());
        }
        match self.note(file, &[NoteKind::Duplicate]) {
            Some(message) => (message.to_owned(), "give it another name".to_owned()),
            None if !self.loaded.workspace.input.skills.iter().any(|skill| skill.source().name() == file) => {
                (BLANK.to_owned(), "write something into it, or delete it".to_owned())
            }
            None if !self.loaded.layout.has_section(Kind::Skills) => self.not_in_layout(Kind::Skills),
            None => self.left_out(file),
        }
    }

    fn not_included(&self, rest: &str) -> (String, String) {
        let body = &self.loaded.workspace.body.name;
        match self.loaded.layout.body {
            true => {
                let hint = format!("add the line `@include {rest}` to {body}, or delete the file");
                (format!("{body} does not include it"), hint)
            }
            false => ("this prompt is without rules".to_owned(), "leave out `--no-body`".to_owned()),
        }
    }

    fn not_in_layout(&self, kind: Kind) -> (String, String) {
        let layout = self.loaded.layout.name;
        let reason = format!("the layout `{layout}` does not show it");
        let is_extra = layout == Layout::CHANNEL.name && Layout::extra_kinds().any(|extra| extra == kind);
        let hint = if is_extra {
            format!("add \"{}\" to `extra_sections` in [prompt]", kind.name())
        } else {
            let with = Layout::ALL.iter().filter(|layout| layout.has_section(kind)).map(|layout| layout.name);
            let with: BTreeSet<&str> = with.filter(|name| Layout::from_name(name).is_some()).collect();
            let with: Vec<String> = with.into_iter().map(|name| format!("`{name}`")).collect();
            format!("set `layout` in [prompt] to {}, or delete the file", with.join(" or "))
        };
        (reason, hint)
    }

    /// The section is there without it.
    fn left_out(&self, file: &str) -> (String, String) {
        match self.note(file, &[NoteKind::Withheld]) {
            Some(message) => (message.to_owned(), "widen its audience in [audience]".to_owned()),
            None => {
                let hint = "comments at its start are not sent; `embody prompt explain` shows what was cut to fit the budget";
                ("nothing of it is in the prompt".to_owned(), hint.to_owned())
            }
        }
    }
}

const KNOWN: [&str; 5] = ["IDENTITY.md", "SOUL.md", "USER.md", "AGENTS.md", "TOOLS.md"];

fn unknown(name: &str) -> (String, String) {
    let reason = "embody reads no file of this name".to_owned();
    let hint = match KNOWN.iter().find(|known| known.eq_ignore_ascii_case(name)) {
        Some(known) => format!("rename it to {known}"),
        None => "move what the agent should know into SOUL.md, AGENTS.md, TOOLS.md or a skill".to_owned(),
    };
    (reason, hint)
}

/// The files that could be meant for the agent, relative to the workspace. Not `README.md`, which is for people.
fn list_files(workspace: &Path, own: &str) -> Vec<String> {
    let mut files = Vec::new();
    for folder in ["", own] {
        let is_meant = |name: &str| name.ends_with(".md") || matches!(name, "memories.json" | "tasks.json");
        let names = entries(&workspace.join(folder), false).into_iter().filter(|name| is_meant(name));
        // Agents share these two.
        let names = names.filter(|name| folder.is_empty() || name.ends_with(".md"));
        files.extend(names.map(|name| format!("{folder}{name}")));
        walk(workspace, &format!("{folder}skills"), 2, &mut files);
    }
    walk(workspace, "prompts", 3, &mut files);
    files.retain(|file| file.rsplit('/').next() != Some("README.md"));
    files.sort();
    files.dedup();
    files
}

fn walk(workspace: &Path, folder: &str, depth: usize, files: &mut Vec<String>) {
    let path = workspace.join(folder);
    files.extend(entries(&path, false).into_iter().map(|name| format!("{folder}/{name}")));
    if depth > 0 && files.len() < ENTRIES_MAX {
        for name in entries(&path, true) {
            walk(workspace, &format!("{folder}/{name}"), depth - 1, files);
        }
    }
}

/// The names of the files or of the folders in a folder, without hidden ones. Links to folders are not entered.
fn entries(folder: &Path, wants_folders: bool) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().take(ENTRIES_MAX);
    let wanted = entries.filter(|entry| {
        entry.file_type().is_ok_and(|kind| if wants_folders { kind.is_dir() } else { !kind.is_dir() })
    });
    let names = wanted.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
    names.sort();
    names
}
