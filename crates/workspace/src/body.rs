//! The body file and its `@include` lines: one level, replaced by the file's content, or by a comment if the file is missing.
//! A missing body is not an error.

use std::path::Path;

use embody_prompt::{Body, BodyPart, Note, NoteKind, Source};

use crate::read::{Folder, ReadError};

/// How many `@include` lines of one body are followed.
const INCLUDE_LIMIT: usize = 64;
/// How many bytes a body may have with its includes.
const BODY_LIMIT: usize = 1024 * 1024;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BodyOutcome {
    pub name: String,
    /// Whether it exists, is readable and is not empty.
    pub loaded: bool,
    /// Why an existing body is not used.
    pub reason: Option<String>,
    pub included: usize,
    /// How many of its includes are missing or refused.
    pub missing: usize,
    pub bytes: usize,
}

/// `path` is relative to the workspace, or absolute.
pub(crate) fn load(workspace: &Path, path: &Path, notes: &mut Vec<Note>) -> (Option<Body>, BodyOutcome) {
    let path = path.strip_prefix(workspace).unwrap_or(path);
    let shown = path.to_string_lossy().into_owned();
    let mut outcome = BodyOutcome { name: shown.clone(), ..BodyOutcome::default() };
    let (text, folder) = match locate(workspace, path) {
        Some((root, file, folder)) => (root.read(&file), folder),
        None => (Err(ReadError::NotFound), Folder::new(workspace, "")),
    };
    let text = match text {
        Ok(text) => text,
        Err(ReadError::NotFound) => return (None, outcome),
        Err(ReadError::Refused(reason)) => {
            let message = format!("the body was not read: {reason}");
            notes.push(Note::new(NoteKind::RefusedPath, message.clone(), Source::named(&shown)));
            outcome.reason = Some(message);
            return (None, outcome);
        }
    };
    let expanded = expand(&text, &Source::file(&shown), |include| {
        folder.read(include).map(|text| (text, folder.source(include)))
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

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExpandedBody {
    pub parts: Vec<BodyPart>,
    pub notes: Vec<Note>,
    pub included: usize,
    pub missing: usize,
}

/// Replaces each line whose first word is `@include` by the file that the second word names, as `read` returns it. Included text is
/// not expanded again.
pub fn expand(
    text: &str,
    source: &Source,
    mut read: impl FnMut(&str) -> Result<(String, Source), ReadError>,
) -> ExpandedBody {
    let mut out = ExpandedBody::default();
    let mut plain = String::new();
    let mut plain_line = 1;
    let (mut directives, mut bytes) = (0, text.len());
    for (index, line) in (1..).zip(text.split_inclusive('\n')) {
        let (words, end) = line.strip_suffix('\n').map_or((line, ""), |words| (words, "\n"));
        let Some(path) = directive(words) else {
            plain.push_str(line);
            continue;
        };
        directives += 1;
        let found = match read_within(directives, path, &mut read) {
            Ok((content, _)) if bytes + content.len() > BODY_LIMIT => {
                Err(ReadError::Refused(format!("with it the body would exceed {BODY_LIMIT} bytes")))
            }
            found => found,
        };
        match found {
            Ok((content, from)) => {
                bytes += content.len();
                out.push(std::mem::take(&mut plain), source.clone().at_line(plain_line));
                out.push(content, from);
                out.included += 1;
                plain_line = index;
            }
            Err(missing) => {
                plain.push_str(&format!("<!-- missing @include {} -->", path.replace("-->", "--&gt;")));
                out.missing += 1;
                // One note about too many includes is enough.
                if directives <= INCLUDE_LIMIT + 1 {
                    out.notes.push(note(path, missing, source.clone().at_line(index)));
                }
            }
        }
        plain.push_str(end);
    }
    out.push(plain, source.clone().at_line(plain_line));
    out
}

fn read_within(
    directives: usize,
    path: &str,
    read: &mut impl FnMut(&str) -> Result<(String, Source), ReadError>,
) -> Result<(String, Source), ReadError> {
    if directives <= INCLUDE_LIMIT {
        return read(path);
    }
    Err(ReadError::Refused(format!("only the first {INCLUDE_LIMIT} includes are followed")))
}

impl ExpandedBody {
    fn push(&mut self, text: String, source: Source) {
        if !text.is_empty() {
            self.parts.push(BodyPart { text, source });
        }
    }
}

/// The path of an include line: the word or the quoted text after `@include`.
fn directive(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("@include")?;
    if !rest.starts_with(char::is_whitespace) {
        return None;
    }
    let rest = rest.trim();
    let quoted = rest.strip_prefix('"').and_then(|rest| rest.split_once('"')).map(|(path, _)| path);
    quoted.or_else(|| rest.split_whitespace().next()).filter(|path| !path.is_empty())
}

fn note(path: &str, missing: ReadError, source: Source) -> Note {
    match missing {
        ReadError::NotFound => {
            Note::new(NoteKind::MissingInclude, format!("`@include {path}`: the file does not exist"), source)
        }
        ReadError::Refused(reason) => Note::new(
            NoteKind::RefusedPath,
            format!("`@include {path}` is treated as missing: {reason}"),
            source,
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(body: &str) -> String {
        let read = |path: &str| match path {
            "a.md" => Ok(("AAA\n@include b.md".to_owned(), Source::file("a.md"))),
            "with space.md" => Ok(("SPACE".to_owned(), Source::file("s"))),
            "no" => Err(ReadError::Refused("it is large".into())),
            _ => Err(ReadError::NotFound),
        };
        let expanded = expand(body, &Source::file("body.md"), read);
        expanded.parts.iter().map(|part| part.text.as_str()).collect()
    }

    // spec: B-02, B-03, B-04
    #[test]
    fn lines_are_replaced_once_and_only_by_their_first_word() {
        for (body, expected) in [
            ("x\n@include a.md\ny", "x\nAAA\n@include b.md\ny"),
            ("  \t@include a.md # note\n", "AAA\n@include b.md\n"),
            ("@include", "@include"),
            ("@include   \nx", "@include   \nx"),
            ("@included a.md", "@included a.md"),
            ("say @include a.md", "say @include a.md"),
            ("@include gone.md\nz", "<!-- missing @include gone.md -->\nz"),
            ("@include \"with space.md\"", "SPACE"),
            ("@include \"\"", "@include \"\""),
            ("@include x-->y", "<!-- missing @include x--&gt;y -->"),
        ] {
            assert_eq!(text(body), expected, "{body:?}");
        }
    }

    // spec: B-05
    #[test]
    fn a_refused_include_is_noted_with_reason_and_line() {
        let expanded = expand("one\n@include no\n", &Source::file("body.md"), |_| {
            Err(ReadError::Refused("it is large".into()))
        });
        let note = expanded.notes.first().unwrap();
        assert_eq!(note.kind, NoteKind::RefusedPath);
        assert_eq!(note.source.to_string(), "body.md:2");
        assert!(note.message.contains("it is large"), "{}", note.message);
    }

    #[test]
    fn parts_know_their_lines() {
        let expanded = expand("one\n@include a.md\ntwo\n", &Source::file("body.md"), |_| {
            Ok(("AAA".into(), Source::file("a.md")))
        });
        let sources: Vec<String> = expanded.parts.iter().map(|part| part.source.to_string()).collect();
        assert_eq!(sources, ["body.md:1", "a.md:1", "body.md:2"]);
    }
}
