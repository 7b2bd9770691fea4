//! `@include` lines: one level, replaced by the file's content, or by a mark when there is none. Pure: the caller reads.

use embody_prompt::{BodyPart, Note, NoteKind, Source};

/// How many `@include` lines of one body are followed.
const INCLUDE_LIMIT: usize = 64;
/// How many bytes a body may have with its includes.
const BODY_LIMIT: usize = 1024 * 1024;

/// A body with its includes in place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expanded {
    /// The text, part by part.
    pub parts: Vec<BodyPart>,
    /// What could not be included.
    pub notes: Vec<Note>,
    /// How many files were included.
    pub included: usize,
    /// How many were not.
    pub missing: usize,
}

/// Why a file cannot be included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// There is none.
    NotThere,
    /// It is refused, and why.
    Refused(String),
}

/// Replaces each line whose first word is `@include` by the file that the second word names, as `read` gives it.
/// What was included is not looked at again.
pub fn expand(
    text: &str,
    source: &Source,
    mut read: impl FnMut(&str) -> Result<(String, Source), Missing>,
) -> Expanded {
    let mut out = Expanded::default();
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
                Err(Missing::Refused(format!("with it the body would exceed {BODY_LIMIT} bytes")))
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
                // One note says that there are too many; thousands would say nothing more.
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
    read: &mut impl FnMut(&str) -> Result<(String, Source), Missing>,
) -> Result<(String, Source), Missing> {
    if directives <= INCLUDE_LIMIT {
        return read(path);
    }
    Err(Missing::Refused(format!("only the first {INCLUDE_LIMIT} includes are followed")))
}

impl Expanded {
    fn push(&mut self, text: String, source: Source) {
        if !text.is_empty() {
            self.parts.push(BodyPart { text, source });
        }
    }
}

/// The path of an include line: the word after `@include`, or what stands in quotes there.
fn directive(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("@include")?;
    if !rest.starts_with(char::is_whitespace) {
        return None;
    }
    let rest = rest.trim();
    let quoted = rest.strip_prefix('"').and_then(|rest| rest.split_once('"')).map(|(path, _)| path);
    quoted.or_else(|| rest.split_whitespace().next()).filter(|path| !path.is_empty())
}

fn note(path: &str, missing: Missing, source: Source) -> Note {
    match missing {
        Missing::NotThere => {
            Note::new(NoteKind::MissingInclude, format!("`@include {path}`: there is no such file"), source)
        }
        Missing::Refused(reason) => Note::new(
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
            "no" => Err(Missing::Refused("it is large".into())),
            _ => Err(Missing::NotThere),
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
    fn a_refusal_says_why_and_where() {
        let expanded = expand("one\n@include no\n", &Source::file("body.md"), |_| {
            Err(Missing::Refused("it is large".into()))
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
