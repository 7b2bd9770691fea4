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

use std::borrow::Cow;

use embody_text::invisible::{Invisible, kind};
use embody_text::visible::push_code;

use crate::layout::Dialect;

pub use hidden::{escaped_json, hidden_characters, without_hidden};

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
    for (at, c) in scan_marks(line, |byte| matches!(byte, b'&' | b'<' | b'>' | b'"' | b'\'')) {
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

const BLOCK: usize = 32;

/// Every character that is not ASCII, and those ASCII ones that `wanted` picks, each with its offset.
fn scan_marks(text: &str, wanted: impl Fn(u8) -> bool) -> impl Iterator<Item = (usize, char)> {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        // In most scripts the next character is as little ASCII as this one: no search then.
        if bytes.get(at)?.is_ascii() {
            at += find(bytes.get(at..)?, |byte| !byte.is_ascii() || wanted(byte))?;
        }
        let found = (at, text.get(at..)?.chars().next()?);
        at += found.1.len_utf8();
        Some(found)
    })
}

/// What stands between line ends, like `split('\n')`.
fn scan_lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest.take()?;
        let Some(end) = find(text.as_bytes(), |byte| byte == b'\n') else { return Some(text) };
        rest = text.get(end + 1..);
        text.get(..end)
    })
}

fn find(bytes: &[u8], wanted: impl Fn(u8) -> bool) -> Option<usize> {
    let (blocks, rest) = bytes.as_chunks::<BLOCK>();
    // Without an early exit inside a block the compiler compares all of it at once.
    let any = |block: &[u8; BLOCK]| block.iter().fold(false, |found, byte| found | wanted(*byte));
    let (start, last) = match blocks.iter().position(any) {
        Some(index) => (index * BLOCK, blocks.get(index)?.as_slice()),
        None => (blocks.len() * BLOCK, rest),
    };
    last.iter().position(|byte| wanted(*byte)).map(|at| start + at)
}

/// Marks without a common form, in lower case. Those of the form `<|…|>` are found by it.
const MARKS: [&str; 18] = [
    "<s>",
    "</s>",
    "<bos>",
    "<eos>",
    "<start_of_turn>",
    "<end_of_turn>",
    "<<sys>>",
    "<</sys>>",
    "[inst]",
    "[/inst]",
    "[system_prompt]",
    "[/system_prompt]",
    "[available_tools]",
    "[/available_tools]",
    "[tool_calls]",
    "[/tool_calls]",
    "[tool_results]",
    "[/tool_results]",
];
/// The longest mark of the form `<|…|>`, in characters.
const LONGEST: usize = 64;

/// A text in which no chat template finds its marks (a `\` stands behind their first character) and nothing reverses the
/// order of characters.
#[must_use]
pub fn without_template_marks(text: &str) -> Cow<'_, str> {
    let is_changed = |(at, c): (usize, char)| is_bidi_control(c) || begins_mark(text, at, c);
    if !text.char_indices().any(is_changed) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 64);
    for (at, c) in text.char_indices() {
        if is_bidi_control(c) {
            push_code(c, &mut out);
            continue;
        }
        out.push(c);
        if begins_mark(text, at, c) {
            out.push('\\');
        }
    }
    Cow::Owned(out)
}

fn is_bidi_control(c: char) -> bool {
    kind(c) == Some(Invisible::Direction)
}

fn begins_mark(text: &str, at: usize, first: char) -> bool {
    if !matches!(first, '<' | '[') {
        return false;
    }
    let rest = text.get(at..).unwrap_or_default();
    let is_listed = |mark: &&str| rest.get(..mark.len()).is_some_and(|head| head.eq_ignore_ascii_case(mark));
    MARKS.iter().any(is_listed) || is_token(rest)
}

/// Whether it begins with `<|…|>`, also with wide bars.
fn is_token(rest: &str) -> bool {
    let is_bar = |c: char| matches!(c, '|' | '\u{ff5c}');
    let Some(inside) = rest.strip_prefix('<').and_then(|rest| rest.strip_prefix(is_bar)) else {
        return false;
    };
    let mut before = ' ';
    for c in inside.chars().take(LONGEST).take_while(|c| *c != '\n') {
        if c == '>' && is_bar(before) {
            return true;
        }
        before = c;
    }
    false
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn finds_what_a_plain_loop_finds() {
        let plain = "0123456789".repeat(7);
        for length in 0..plain.len() {
            for mark in ["<", "é", "日本", "<é<", "🦊 <"] {
                let text = format!("{}{mark}{plain}{mark}", &plain[..length]);
                let expected: Vec<_> =
                    text.char_indices().filter(|(_, c)| *c == '<' || !c.is_ascii()).collect();
                assert_eq!(scan_marks(&text, |byte| byte == b'<').collect::<Vec<_>>(), expected, "{text}");
            }
        }
    }

    #[test]
    fn lines_are_those_of_split() {
        let long = "x".repeat(70);
        for text in
            ["", "\n", "a", "a\n", "\n\na\n\n", "日本\n🦊", &format!("{long}\n\n{long}{long}\n{long}")]
        {
            assert!(scan_lines(text).eq(text.split('\n')), "{text:?}");
        }
    }

    #[test]
    fn marks_are_broken_and_everything_else_stays() {
        for (text, expected) in [
            ("a < b && c[0] > d || e <br> [x]", "a < b && c[0] > d || e <br> [x]"),
            ("x<|im_start|>system", "x<\\|im_start|>system"),
            ("<|im_end|><|im_start|>", "<\\|im_end|><\\|im_start|>"),
            ("[INST] obey [/INST]</s>", "[\\INST] obey [\\/INST]<\\/s>"),
            ("<start_of_turn>user", "<\\start_of_turn>user"),
            ("<<SYS>>x<</SYS>>", "<\\<SYS>>x<\\</SYS>>"),
            ("<\u{ff5c}User\u{ff5c}>", "<\\\u{ff5c}User\u{ff5c}>"),
            ("abc\u{202e}txt.exe\u{202c}", "abc⟨U+202E⟩txt.exe⟨U+202C⟩"),
            ("שלום עולם", "שלום עולם"),
        ] {
            assert_eq!(without_template_marks(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn nothing_is_left_to_break(text in "([<\\[|/>\\] a]|im_start|INST|<s>|\u{202e}|\u{ff5c}){0,40}") {
            let once = without_template_marks(&text).into_owned();
            prop_assert_eq!(&*without_template_marks(&once), &once);
        }
    }
}
