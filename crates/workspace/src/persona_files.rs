//! `IDENTITY.md`, `SOUL.md` and `USER.md`: the agent's folder wins over the workspace.

use embody_prompt::{Audience, Identity, Note, NoteKind, Source, UserProfile, Value};

use crate::front_matter::{BadYaml, FrontMatter, split};
use crate::read::Folder;

/// What `USER.md` says.
#[derive(Clone, Debug, Default)]
pub(crate) struct User {
    pub(crate) profile: Option<Value<UserProfile>>,
    pub(crate) timezone: Option<(String, Source)>,
    pub(crate) location: Option<(String, Source)>,
}

/// The first of the folders that has the file, with its source.
pub(crate) fn first(folders: &[Folder], file: &str, notes: &mut Vec<Note>) -> Option<(String, Source)> {
    folders.iter().find_map(|folder| Some((folder.text(file, notes)?, folder.source(file))))
}

pub(crate) fn identity(
    folders: &[Folder],
    audience: Audience,
    notes: &mut Vec<Note>,
) -> Option<Value<Identity>> {
    let (matter, source) = front_matter(folders, "IDENTITY.md", notes)?;
    let identity = Identity {
        name: matter.name,
        emoji: matter.emoji,
        creature: matter.creature,
        vibe: matter.vibe.or(matter.theme),
        description: matter.description,
    };
    (!identity.is_empty()).then(|| Value::new(identity, source, audience))
}

pub(crate) fn soul(folders: &[Folder], audience: Audience, notes: &mut Vec<Note>) -> Option<Value<String>> {
    let (text, source) = first(folders, "SOUL.md", notes)?;
    Some(Value::new(text, source, audience))
}

pub(crate) fn user(folders: &[Folder], audience: Audience, notes: &mut Vec<Note>) -> User {
    let Some((matter, source)) = front_matter(folders, "USER.md", notes) else { return User::default() };
    let text = |field: Option<String>| Some((field?, source.clone()));
    User {
        profile: matter
            .name
            .map(|name| Value::new(UserProfile { name: Some(name) }, source.clone(), audience)),
        timezone: text(matter.timezone),
        location: text(matter.location),
    }
}

fn front_matter(folders: &[Folder], file: &str, notes: &mut Vec<Note>) -> Option<(FrontMatter, Source)> {
    let (text, source) = first(folders, file, notes)?;
    let (yaml, rest) = split(&text);
    let Some(yaml) = yaml else {
        let message = "nothing in it is used: it needs front matter between two lines `---`";
        notes.push(Note::new(NoteKind::BadFormat, message, source));
        return None;
    };
    if !without_comments(rest).trim().is_empty() {
        let message = "only the front matter is used; the text below it is not (SOUL.md is the place for it)";
        notes.push(Note::new(NoteKind::Unused, message, source.clone()));
    }
    match FrontMatter::parse(yaml) {
        Ok(matter) => Some((matter, source)),
        Err(error) => {
            notes.push(bad_yaml(&error, source));
            None
        }
    }
}

/// A note that names the line of the file, where the YAML starts with the second.
pub(crate) fn bad_yaml(error: &BadYaml, source: Source) -> Note {
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
