//! Rules 2 to 5: lines and marks that would open, close or imitate a frame; the names that frames use, and how their
//! look-alikes are recognised.

use std::borrow::Cow;

use embody_text::look_alike::{look_alike, plain_letter};

use super::{EscapeReport, TextPosition, scan_lines, scan_marks};
use crate::layout::Dialect;

const DEEPEST_HEADING: usize = 6;

/// A text of several lines, already free of hidden characters.
pub(super) fn escape<'a>(text: &'a str, position: TextPosition, report: &mut EscapeReport) -> Cow<'a, str> {
    let survey = survey(text, position.depth);
    if !survey.needs_work {
        return escape_marks(text, position.dialect, report);
    }
    let mut out = String::with_capacity(text.len() + 64);
    let mut fence = None;
    let mut above = "";
    let mut lines = scan_lines(text).peekable();
    while let Some(line) = lines.next() {
        let below = lines.peek().copied().unwrap_or("");
        let in_code = fence.is_some();
        fence = next_fence(fence, line);
        write_line(&mut out, Line { text: line, above, below, in_code }, position, survey.shift, report);
        if lines.peek().is_some() {
            out.push('\n');
        }
        above = line;
    }
    if let Some(fence) = fence {
        out.push('\n');
        out.extend(std::iter::repeat_n(fence.sign, fence.length));
    }
    match escape_marks(&out, position.dialect, report) {
        Cow::Borrowed(_) => Cow::Owned(out),
        Cow::Owned(escaped) => Cow::Owned(escaped),
    }
}

#[derive(Default)]
struct Survey {
    needs_work: bool,
    shift: usize,
}

fn survey(text: &str, depth: usize) -> Survey {
    let mut found = Survey::default();
    let mut fence = None;
    for line in scan_lines(text) {
        let start = line.trim_start();
        match start.bytes().next() {
            Some(b'`' | b'~') => {
                fence = next_fence(fence, line);
                continue;
            }
            Some(byte) if may_be_frame(byte) => {
                found.needs_work |= is_rule(start.trim());
                let Some(heading) = heading(line) else { continue };
                if fence.is_some() {
                    found.needs_work |= heading.level <= depth;
                } else if heading.level <= depth {
                    found.needs_work = true;
                    found.shift = found.shift.max(depth + 1 - heading.level);
                } else {
                    // A look-alike sign is rewritten even where its level would be harmless.
                    found.needs_work |= depth > 0 && !start.starts_with('#');
                }
            }
            _ => {}
        }
    }
    found.needs_work |= fence.is_some();
    found
}

#[derive(Clone, Copy)]
struct Line<'a> {
    text: &'a str,
    above: &'a str,
    below: &'a str,
    in_code: bool,
}

fn write_line(
    out: &mut String,
    line: Line<'_>,
    position: TextPosition,
    shift: usize,
    report: &mut EscapeReport,
) {
    let bare = line.text.trim();
    if !bare.bytes().next().is_some_and(may_be_frame) {
        return out.push_str(line.text);
    }
    if is_rule(bare) {
        let between_blanks = line.above.trim().is_empty() && line.below.trim().is_empty();
        let separator = between_blanks && !bare.starts_with('=') && bare.chars().nth(2).is_some();
        let underline =
            position.depth > 0 && !line.in_code && !line.above.trim().is_empty() && bare.is_ascii();
        if separator || underline {
            report.frames += usize::from(separator);
            return write_spaced(out, bare);
        }
    } else if position.depth > 0
        && let Some(heading) = heading(line.text)
    {
        let named = heading.level <= position.depth && is_frame_heading(heading.rest);
        report.frames += usize::from(named);
        if !line.in_code || named {
            let level =
                if line.in_code { position.depth + 1 } else { (heading.level + shift).min(DEEPEST_HEADING) };
            out.push_str(heading.indent);
            out.extend(std::iter::repeat_n('#', level));
            out.push_str(heading.rest);
            return;
        }
    }
    out.push_str(line.text);
}

/// Whether a line that starts with this byte needs a closer look. Signs that pass for `#` or `-` start with one of the
/// last two.
fn may_be_frame(byte: u8) -> bool {
    matches!(byte, b'-' | b'=' | b'#' | 0xE2 | 0xEF)
}

/// A line of only dashes, or what passes for them, or only equals signs.
fn is_rule(bare: &str) -> bool {
    !bare.is_empty() && (bare.chars().all(is_dash) || bare.bytes().all(|byte| byte == b'='))
}

fn is_dash(c: char) -> bool {
    matches!(c, '-' | '‐'..='―' | '−' | '﹘' | '﹣' | '－')
}

fn write_spaced(out: &mut String, rule: &str) {
    if rule.len() == 1 {
        out.push('\\');
    }
    for (index, c) in rule.chars().enumerate() {
        if index > 0 {
            out.push(' ');
        }
        out.push(c);
    }
}

struct Heading<'a> {
    indent: &'a str,
    level: usize,
    rest: &'a str,
}

fn heading(line: &str) -> Option<Heading<'_>> {
    let start = line.trim_start();
    let rest = start.trim_start_matches(['#', '＃', '﹟']);
    let level = start.get(..start.len() - rest.len()).map_or(0, |signs| signs.chars().count());
    let ends = rest.chars().next().is_none_or(char::is_whitespace);
    let indent = line.get(..line.len() - start.len()).unwrap_or("");
    ((1..=DEEPEST_HEADING).contains(&level) && ends).then_some(Heading { indent, level, rest })
}

fn is_frame_heading(rest: &str) -> bool {
    let rest = rest.trim().trim_end_matches('#').trim_end();
    let length = rest.chars().count();
    HEADINGS.iter().any(|name| length == name.len() && starts_with_name(rest, name))
}

#[derive(Clone, Copy)]
struct Fence {
    sign: char,
    length: usize,
}

/// The fence that is open after this line, as CommonMark counts them.
fn next_fence(open: Option<Fence>, line: &str) -> Option<Fence> {
    let start = line.trim_start_matches(' ');
    if line.len() - start.len() > 3 {
        return open;
    }
    let Some(sign) = start.chars().next().filter(|c| matches!(c, '`' | '~')) else { return open };
    let rest = start.trim_start_matches(sign);
    let length = start.len() - rest.len();
    match open {
        _ if length < 3 => open,
        Some(fence) if fence.sign == sign && length >= fence.length && rest.trim().is_empty() => None,
        Some(_) => open,
        None if sign == '`' && rest.contains('`') => None,
        None => Some(Fence { sign, length }),
    }
}

/// Rule 2, for texts of any number of lines.
pub(super) fn escape_marks<'a>(text: &'a str, dialect: Dialect, report: &mut EscapeReport) -> Cow<'a, str> {
    let mut out = String::new();
    let mut copied = 0;
    let mut last_comment_end = None;
    for (at, c) in scan_marks(text, |byte| byte == b'<').filter(|(_, c)| is_angle(*c)) {
        let after = text.get(at + c.len_utf8()..).unwrap_or("");
        // `<!-->` ends itself for some readers and swallows what follows for others: it counts as open.
        let comment_ends = || {
            let last = *last_comment_end.get_or_insert_with(|| text.rfind("-->").unwrap_or(0));
            at + c.len_utf8() + "!--".len() <= last
        };
        if opens_frame(after, dialect, comment_ends) {
            out.push_str(text.get(copied..at).unwrap_or(""));
            out.push_str("&lt;");
            copied = at + c.len_utf8();
            report.frames += 1;
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(text.get(copied..).unwrap_or(""));
    Cow::Owned(out)
}

/// Whether a look-alike of `<` would open or close a frame in front of `after`.
pub(super) fn imitates_frame(c: char, after: &str, dialect: Dialect) -> bool {
    !c.is_ascii() && is_angle(c) && opens_frame(after, dialect, || true)
}

/// Whether a line would be more than text: a heading, a rule, the start of a code block.
pub(super) fn starts_block(line: &str) -> bool {
    heading(line).is_some() || is_rule(line.trim()) || starts_code(line)
}

pub(super) fn starts_code(line: &str) -> bool {
    next_fence(None, line).is_some()
}

/// Whether what follows a `<` would make it one of our frames, one of our marks, or an unclosed comment.
fn opens_frame(after: &str, dialect: Dialect, comment_ends: impl FnOnce() -> bool) -> bool {
    if let Some(comment) = strip_folded(after, "!--") {
        let word = comment.trim_start_matches(|c: char| c.is_whitespace() || fold(c) == '-');
        return COMMENTS.iter().any(|mark| strip_folded(word, mark).is_some()) || !comment_ends();
    }
    let tag = after.trim_start_matches(|c: char| c.is_whitespace() || fold(c) == '/');
    let led_by_blank = after.starts_with(char::is_whitespace);
    if tag.starts_with(|c| fold(c) == '|') {
        return is_template_mark(tag);
    }
    // The value that follows this one may bring the name.
    if tag.is_empty() {
        return true;
    }
    let names = match dialect {
        Dialect::Tagged => TAGS,
        Dialect::Markdown => MARKDOWN_TAGS,
    };
    // `a < task` is arithmetic; `< task >` is a frame.
    names.iter().any(|name| starts_with_name(tag, name) && (!led_by_blank || closes_after(tag, name)))
}

/// Whether the name is followed by what makes it a tag: its end, or a quoted attribute.
fn closes_after(tag: &str, name: &str) -> bool {
    let Some(rest) = strip_folded(tag, name).map(str::trim_start) else { return false };
    let value = rest.trim_start_matches(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | ':'));
    let attribute = value.len() < rest.len()
        && strip_folded(value.trim_start(), "=")
            .is_some_and(|value| value.trim_start().starts_with(['"', '\'']));
    // The value that follows this one may bring the end.
    rest.is_empty() || strip_folded(rest, ">").is_some() || strip_folded(rest, "/>").is_some() || attribute
}

/// `<|word|>`: what chat templates use between turns.
fn is_template_mark(tag: &str) -> bool {
    let word = tag.chars().skip(1).take(40).map(fold);
    let mut letters = 0;
    for c in word {
        match c {
            '|' => return letters > 0,
            c if c.is_alphanumeric() || matches!(c, '_' | '-' | '▁' | ' ') => letters += 1,
            _ => return false,
        }
    }
    false
}

pub(super) const TAGS: &[&str] = &[
    "identity",
    "role",
    "instructions",
    "responsibilities",
    "responsibility",
    "directories",
    "storage",
    "formatting",
    "context",
    "memories",
    "task",
    "background",
];

/// Tags that the Markdown dialect uses inside its sections.
pub(super) const MARKDOWN_TAGS: &[&str] = &["available_skills", "skill"];

pub(super) const HEADINGS: &[&str] = &[
    "identity",
    "soul",
    "user",
    "project context",
    "runtime",
    "available skills",
    "workspace files",
    "agents.md",
    "tools.md",
    "memory",
    "available tools",
    "tool calls",
    "guidelines",
    "channel",
    "current time",
    "user instructions",
    "tools",
];

/// First words of comments that the builder itself writes.
pub(super) const COMMENTS: &[&str] = &["missing", "embody:"];

/// The plain small letter or sign that a character passes for.
pub(super) fn fold(c: char) -> char {
    if c.is_ascii() {
        return c.to_ascii_lowercase();
    }
    match c {
        c if is_angle(c) => '<',
        '∕' | '⁄' | '⧸' | '╱' => '/',
        '﹟' => '#',
        '│' | '∣' | 'ǀ' => '|',
        c => {
            let small = || c.to_lowercase().next().and_then(look_alike);
            plain_letter(c).or_else(small).unwrap_or(c).to_ascii_lowercase()
        }
    }
}

pub(super) fn is_angle(c: char) -> bool {
    matches!(c, '<' | '＜' | '﹤' | '‹' | '〈' | '⟨' | '˂' | 'ᐸ')
}

/// Whether `text` starts with `prefix` after folding, and what follows.
pub(super) fn strip_folded<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let mut chars = text.chars();
    prefix.chars().all(|expected| chars.next().map(fold) == Some(expected)).then_some(chars.as_str())
}

/// How much of `text` reads as `name` after folding, if it does and the name ends there.
pub(super) fn starts_with_name(text: &str, name: &str) -> bool {
    let mut chars = text.chars().map(fold);
    name.chars().all(|expected| chars.next() == Some(expected))
        && chars.next().is_none_or(|next| !(next.is_alphanumeric() || next == '_' || next == '-'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Frame, Layout};

    #[test]
    fn every_frame_of_every_layout_is_protected() {
        for layout in Layout::ALL {
            for section in layout.sections {
                match section.frame {
                    Frame::Bare => {}
                    Frame::Tag(tag) => assert!(TAGS.contains(&tag.to_lowercase().as_str()), "{tag}"),
                    Frame::Heading(heading) => {
                        assert!(HEADINGS.contains(&heading.to_lowercase().as_str()), "{heading}");
                    }
                }
            }
        }
    }

    #[test]
    fn look_alikes_fold_to_the_name() {
        for text in
            ["Identity>", "IDENTITY", "Іdеntіtу >", "Ｉｄｅｎｔｉｔｙ", "𝐈𝐝𝐞𝐧𝐭𝐢𝐭𝐲", "𝓘𝓭𝓮𝓷𝓽𝓲𝓽𝔂", "Ⓘⓓⓔⓝⓣⓘⓣⓨ"]
        {
            assert!(starts_with_name(text, "identity"), "{text}");
        }
        for text in ["Identity2", "Identities", "Ident", "identity-card"] {
            assert!(!starts_with_name(text, "identity"), "{text}");
        }
    }
}
