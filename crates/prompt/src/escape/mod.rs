//! The rules that keep a lower layer inside its frame, mildest first. Ordinary text passes unchanged.
//!
//! 1. **Nothing hides.** Invisible characters go (see `hidden`): zero-width, bidirectional controls, tag characters,
//!    terminal escapes. Joiners and selectors stay where an emoji or a script needs them. Other line ends become `\n`.
//! 2. **No frame opens or closes.** A `<` that would open or close one of the layout's own tags, a comment that
//!    imitates the builder's marks, or a chat-template mark (`<|…|>`) becomes `&lt;`. Every other `<` stays.
//! 3. **No heading rises to the frame's level.** Under a heading frame, headings move down together so that the
//!    highest is one below the frame; under-lined headings lose their line (`---` becomes `- - -`). A single value
//!    that is a line of its own gets Markdown's escape instead (`\## Tools`).
//! 4. **No separator.** A line `---` between blank lines becomes `- - -`, which is the same rule in Markdown.
//! 5. **Nothing swallows what follows.** An unclosed code fence is closed; the `<` of an unclosed comment is escaped.
//!
//! Code in fences is left alone but for its own tags, a heading that repeats a frame's name, and the separator.

mod frames;
mod hidden;
mod names;
mod scan;
mod template_marks;

use std::borrow::Cow;

use crate::layout::Dialect;

pub(crate) use hidden::is_suspect;
pub use hidden::{escaped_json, hidden_characters, without_hidden};
pub use template_marks::without_template_marks;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EscapeReport {
    pub(crate) hidden: usize,
    pub(crate) frames: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TextPosition {
    pub(crate) dialect: Dialect,
    /// The level of the heading above it; 0 where headings are no frames.
    pub(crate) depth: usize,
}

/// A text of several lines, without blank lines at its ends.
pub(crate) fn text<'a>(text: &'a str, position: TextPosition, report: &mut EscapeReport) -> Cow<'a, str> {
    match hidden::strip(text, &mut report.hidden) {
        Cow::Borrowed(clean) => frames::escape(trim(clean), position, report),
        Cow::Owned(clean) => Cow::Owned(frames::escape(trim(&clean), position, report).into_owned()),
    }
}

/// A text that stands inside a line: line ends and tabs become single blanks.
pub(crate) fn inline<'a>(text: &'a str, dialect: Dialect, report: &mut EscapeReport) -> Cow<'a, str> {
    let clean = hidden::strip(text, &mut report.hidden);
    let line = match single_line(&clean) {
        Some(line) => Cow::Owned(line),
        None => clean,
    };
    match line {
        Cow::Borrowed(line) => frames::escape_marks(line.trim(), dialect, report),
        Cow::Owned(line) => Cow::Owned(frames::escape_marks(line.trim(), dialect, report).into_owned()),
    }
}

/// A text that is a line of its own: a line that would be a heading, a rule or a fence gets Markdown's own escape.
pub(crate) fn line<'a>(text: &'a str, dialect: Dialect, report: &mut EscapeReport) -> Cow<'a, str> {
    as_line(inline(text, dialect, report), report)
}

/// Whether the first line that says something opens a code block.
pub(crate) fn starts_code(text: &str) -> bool {
    let clean = hidden::strip(text, &mut 0);
    trim(&clean).lines().next().is_some_and(frames::starts_code)
}

/// Whether there is nothing for a person to see.
pub(crate) fn is_blank(text: &str) -> bool {
    let start = text.trim_start();
    !start.starts_with(|c: char| c.is_ascii_graphic()) && hidden::strip(start, &mut 0).trim().is_empty()
}

/// A text inside an attribute or element of the builder's own markup: the five characters of XML, and what would pass
/// for one of them in front of a frame's name.
pub(crate) fn markup(text: &str, dialect: Dialect, report: &mut EscapeReport) -> String {
    let clean = hidden::strip(text, &mut report.hidden);
    let line = single_line(&clean).map_or(clean, Cow::Owned);
    let line = line.trim();
    let mut out = String::with_capacity(line.len() + 8);
    let mut copied = 0;
    for (at, c) in scan::marks(line, |byte| matches!(byte, b'&' | b'<' | b'>' | b'"' | b'\'')) {
        let end = at + c.len_utf8();
        let entity = match c {
            '&' => "&amp;",
            '<' => "&lt;",
            '>' => "&gt;",
            '"' => "&quot;",
            '\'' => "&#39;",
            c if frames::imitates_frame(c, line.get(end..).unwrap_or(""), dialect) => {
                report.frames += 1;
                "&lt;"
            }
            _ => continue,
        };
        out.push_str(line.get(copied..at).unwrap_or(""));
        out.push_str(entity);
        copied = end;
    }
    out.push_str(line.get(copied..).unwrap_or(""));
    out
}

pub(crate) fn markup_line(text: &str, dialect: Dialect, report: &mut EscapeReport) -> String {
    as_line(Cow::Owned(markup(text, dialect, report)), report).into_owned()
}

fn as_line<'a>(line: Cow<'a, str>, report: &mut EscapeReport) -> Cow<'a, str> {
    if !frames::starts_block(&line) {
        return line;
    }
    report.frames += 1;
    Cow::Owned(format!("\\{line}"))
}

fn trim(text: &str) -> &str {
    let text = text.trim_end();
    let indent = text.len() - text.trim_start().len();
    // Leading blank lines go, but not the indentation of the first line that says something.
    text.get(..indent).and_then(|blank| blank.rfind('\n')).and_then(|end| text.get(end + 1..)).unwrap_or(text)
}

fn single_line(text: &str) -> Option<String> {
    text.contains(['\n', '\t']).then(|| text.split_whitespace().collect::<Vec<_>>().join(" "))
}
