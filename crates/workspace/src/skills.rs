//! Skills: `skills/*/SKILL.md` of the agent's folder and of the workspace, by their front matter.

use embody_prompt::{Audience, Note, NoteKind, Skill, Source, Value};

use crate::front_matter::{FrontMatter, split};
use crate::persona_files::yaml_error_note;
use crate::read::Folder;

const SKILLS_LIMIT: usize = 256;

/// Reads the skills of the folders; a name that was there before is not taken again.
pub(crate) fn load(
    folders: &[(Folder, &'static str)],
    audience: Audience,
    notes: &mut Vec<Note>,
) -> Vec<Value<Skill>> {
    let mut skills: Vec<Value<Skill>> = Vec::new();
    let mut taken: Vec<String> = Vec::new();
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
            let path = all.name_of(&name);
            let skill = read(&name, path, origin, &text, &source, notes);
            if taken.contains(&skill.name) {
                let message = format!("left out: there is already a skill called `{}`", skill.name);
                notes.push(Note::new(NoteKind::Duplicate, message, source));
                continue;
            }
            taken.push(skill.name.clone());
            skills.push(Value::new(skill, source, audience));
        }
    }
    skills
}

fn read(
    folder: &str,
    path: String,
    origin: &str,
    text: &str,
    source: &Source,
    notes: &mut Vec<Note>,
) -> Skill {
    let (yaml, rest) = split(text);
    let matter = FrontMatter::parse(yaml.unwrap_or("")).unwrap_or_else(|error| {
        notes.push(yaml_error_note(&error, source.clone()));
        FrontMatter::default()
    });
    let name = matter.name.unwrap_or_else(|| folder.to_owned());
    let description = matter.description.unwrap_or_else(|| first_sentence(rest));
    Skill { name, source: origin.to_owned(), path, description }
}

/// For a skill without a description: its first line that is no heading.
fn first_sentence(text: &str) -> String {
    let line =
        text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#')).unwrap_or("");
    line.chars().take(200).collect()
}
