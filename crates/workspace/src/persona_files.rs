//! `IDENTITY.md`, `SOUL.md` and `USER.md`: the agent's folder wins over the store, and the store over the workspace.

use embody_prompt::{Audience, Identity, Note, NoteKind, Source, UserProfile, Value};

use crate::front_matter::{FrontMatter, YamlError, split};
use crate::read::Folder;

#[derive(Clone, Debug, Default)]
pub(crate) struct User {
    pub(crate) profile: Option<Value<UserProfile>>,
    pub(crate) timezone: Option<(String, Source)>,
    pub(crate) location: Option<(String, Source)>,
}

/// The file in the first folder that has it.
pub(crate) fn first(folders: &[Folder], file: &str, notes: &mut Vec<Note>) -> Option<(String, Source)> {
    folders.iter().find_map(|folder| Some((folder.text(file, notes)?, folder.source(file))))
}

pub(crate) fn identity(
    own: Option<&Folder>,
    stored: Option<&(serde_json::Value, Source)>,
    workspace: &Folder,
    audience: Audience,
    notes: &mut Vec<Note>,
) -> Option<Value<Identity>> {
    if let Some((text, source)) =
        own.and_then(|folder| first(std::slice::from_ref(folder), "IDENTITY.md", notes))
    {
        return from_file(&text, source, audience, notes);
    }
    if let Some((json, source)) = stored {
        let identity = stored_identity(json, source, notes);
        if !identity.is_empty() {
            return Some(Value::new(identity, source.clone(), audience));
        }
    }
    let (text, source) = first(std::slice::from_ref(workspace), "IDENTITY.md", notes)?;
    from_file(&text, source, audience, notes)
}

fn from_file(
    text: &str,
    source: Source,
    audience: Audience,
    notes: &mut Vec<Note>,
) -> Option<Value<Identity>> {
    let matter = parse(text, &source, notes)?;
    let identity = Identity {
        name: matter.name,
        emoji: matter.emoji,
        creature: matter.creature,
        vibe: matter.vibe.or(matter.theme),
        description: matter.description,
    };
    (!identity.is_empty()).then(|| Value::new(identity, source, audience))
}

fn stored_identity(json: &serde_json::Value, source: &Source, notes: &mut Vec<Note>) -> Identity {
    if !json.is_object() && !json.is_null() {
        let message = "the stored identity is not used: it is not a JSON object";
        notes.push(Note::new(NoteKind::BadFormat, message, source.clone()));
    }
    let mut text = |key: &str| match json.get(key) {
        None | Some(serde_json::Value::Null) => None,
        Some(serde_json::Value::String(text)) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
        Some(_) => {
            let message = format!("`{key}` is not used: it is not text");
            notes.push(Note::new(NoteKind::BadFormat, message, source.clone()));
            None
        }
    };
    Identity {
        name: text("name"),
        emoji: text("emoji"),
        creature: text("creature"),
        vibe: text("vibe").or_else(|| text("theme")),
        description: text("description"),
    }
}

pub(crate) fn soul(
    own: Option<&Folder>,
    stored: Option<&(String, Source)>,
    workspace: &Folder,
    notes: &mut Vec<Note>,
) -> Option<(String, Source)> {
    let file = |folder: &Folder, notes: &mut Vec<Note>| {
        Some((folder.text("SOUL.md", notes)?, folder.source("SOUL.md")))
    };
    let stored = || stored.filter(|(text, _)| !text.trim().is_empty()).cloned();
    own.and_then(|folder| file(folder, notes)).or_else(stored).or_else(|| file(workspace, notes))
}

pub(crate) fn user(folders: &[Folder], audience: Audience, notes: &mut Vec<Note>) -> User {
    let found = first(folders, "USER.md", notes);
    let parsed = found.and_then(|(text, source)| Some((parse(&text, &source, notes)?, source)));
    let Some((matter, source)) = parsed else { return User::default() };
    let text = |field: Option<String>| Some((field?, source.clone()));
    let profile = UserProfile { name: matter.name, location: matter.location.clone() };
    User {
        profile: (profile != UserProfile::default()).then(|| Value::new(profile, source.clone(), audience)),
        timezone: text(matter.timezone),
        location: text(matter.location),
    }
}

fn parse(text: &str, source: &Source, notes: &mut Vec<Note>) -> Option<FrontMatter> {
    let (yaml, rest) = split(text);
    let Some(yaml) = yaml else {
        let message = "nothing in it is used: it needs front matter between two lines `---`";
        notes.push(Note::new(NoteKind::BadFormat, message, source.clone()));
        return None;
    };
    if !without_comments(rest).trim().is_empty() {
        let message = "only the front matter is used; the text below it is not (SOUL.md is the place for it)";
        notes.push(Note::new(NoteKind::Unused, message, source.clone()));
    }
    match FrontMatter::parse(yaml) {
        Ok(matter) => Some(matter),
        Err(error) => {
            notes.push(yaml_error_note(&error, source.clone()));
            None
        }
    }
}

/// A note that names the line of the file, where the YAML starts with the second.
pub(crate) fn yaml_error_note(error: &YamlError, source: Source) -> Note {
    let message = format!("the front matter is not valid YAML: {}", error.message);
    Note::new(NoteKind::BadFormat, message, source.at_line(error.line.saturating_add(1)))
}

fn without_comments(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, comment)) = rest.split_once("<!--") {
        out.push_str(before);
        rest = comment.split_once("-->").map_or("", |(_, after)| after);
    }
    out + rest
}
