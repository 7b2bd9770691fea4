//! What must hold when `@include` lines are expanded, whatever the bytes.
//!
//! The bytes are fields, separated by NUL: the body first, then the files. A file is its path, the byte 0x1F, its text;
//! a path alone is a file that is refused; a path that no field names is not there.

use std::collections::HashMap;

use embody_prompt::{NoteKind, Source};
use embody_workspace::{ExpandedBody, ReadError, expand};

const BODY: &str = "body.md";
const MOST_INCLUDES: usize = 64;

/// Panics when something does not hold.
pub(crate) fn check(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut fields = text.split('\0');
    let body = fields.next().unwrap_or("");
    let files: HashMap<&str, Option<&str>> = fields
        .map(|field| field.split_once('\u{1F}').map_or((field, None), |(path, text)| (path, Some(text))))
        .collect();
    let run = Run::new(body, |path| files.get(path).copied());
    check_account(body, &run);
    check_lines(body, &run);
    check_text(body, &run);
    // What was included is not looked at again: other contents ask for the same files.
    let blank = Run::new(body, |path| files.get(path).map(|text| text.map(|_| "@include never.md\n")));
    assert_eq!(run.answers, blank.answers, "what is included has no say in what is read");
    let again = Run::new(body, |path| files.get(path).copied());
    assert_eq!(run.expanded, again.expanded, "expanded twice, the same twice");
}

struct Run {
    expanded: ExpandedBody,
    /// The paths that were asked for, and whether there was a text.
    answers: Vec<(String, bool)>,
}

impl Run {
    fn new<'a>(body: &str, file: impl Fn(&str) -> Option<Option<&'a str>>) -> Self {
        let mut answers = Vec::new();
        let expanded = expand(body, &Source::file(BODY), |path| {
            let found = file(path);
            answers.push((path.to_owned(), matches!(found, Some(Some(_)))));
            match found {
                Some(Some(text)) => Ok((text.to_owned(), Source::file(path))),
                Some(None) => Err(ReadError::Refused("it is refused".to_owned())),
                None => Err(ReadError::NotFound),
            }
        });
        Self { expanded, answers }
    }
}

fn check_account(body: &str, run: &Run) {
    let Run { expanded, answers } = run;
    let found = answers.iter().filter(|(_, found)| *found).count();
    assert_eq!(expanded.included, found, "every text that was read is included");
    assert!(found <= MOST_INCLUDES, "{found} includes");
    let failed = answers.len() - found;
    assert!(answers.len() <= MOST_INCLUDES, "no more are asked for");
    assert!(expanded.missing >= failed, "every file that is not there is counted");
    if answers.len() < MOST_INCLUDES {
        assert_eq!(expanded.missing, failed, "and nothing else is");
    }
    assert_eq!(
        expanded.notes.len(),
        expanded.missing.min(failed + 1),
        "one note stands for all that are too many"
    );
    for (path, _) in answers {
        assert!(!path.is_empty() && !path.contains('\n') && body.contains(path.as_str()), "{path:?}");
    }
    for note in &expanded.notes {
        assert!(matches!(note.kind, NoteKind::MissingInclude | NoteKind::RefusedPath), "{note:?}");
    }
}

fn check_lines(body: &str, run: &Run) {
    let lines: Vec<&str> = body.split('\n').collect();
    let at = |source: &Source| lines[source.line() as usize - 1];
    for note in &run.expanded.notes {
        assert!(at(&note.source).trim_start().starts_with("@include"), "a note names its line: {note:?}");
    }
    for part in run.expanded.parts.iter().filter(|part| part.source.name() == BODY) {
        at(&part.source);
    }
}

fn check_text(body: &str, run: &Run) {
    let Run { expanded, answers } = run;
    assert!(expanded.parts.iter().all(|part| !part.text.is_empty()), "no part is empty");
    let text: String = expanded.parts.iter().map(|part| part.text.as_str()).collect();
    if expanded.included == 0 && expanded.notes.is_empty() {
        assert_eq!(text, body, "a body without includes stays as it is");
    }
    // A line is a directive or it stays.
    let stays = |line: &&str| !line.trim_start().starts_with("@include");
    let mut rest = text.as_str();
    for line in body.split('\n').filter(stays) {
        let Some(at) = rest.find(line) else { panic!("{line:?} is lost from {text:?}") };
        rest = &rest[at + line.len()..];
    }
    let marks = text.matches("<!-- missing @include ").count();
    assert!(marks >= expanded.notes.len(), "every file that is not there leaves its mark");
    if answers.is_empty() {
        assert_eq!(marks, body.matches("<!-- missing @include ").count() + expanded.notes.len());
    }
}
