//! Characters that a person does not see: which ones go, and where a script or an emoji needs one of them.

use std::borrow::Cow;
use std::iter::Peekable;
use std::str::Chars;

use embody_text::invisible::{Invisible, kind};

use super::scan_marks;

const BYTE_ORDER_MARK: char = '\u{FEFF}';

/// How many invisible characters a text holds that would be taken out of a lower layer.
pub fn hidden_characters(text: &str) -> usize {
    let mut removed = 0;
    strip(text, &mut removed);
    removed
}

/// The text without what hides in it, for a file: its line ends and its byte order mark stay as they are. Borrowed when
/// there is nothing to do.
pub fn without_hidden(text: &str) -> Cow<'_, str> {
    remove(text, LineEnds::AsTheyAre, &mut 0)
}

/// JSON text in which no tag and no invisible character can stand; programs read the same values from it.
pub fn escaped_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        // Both only occur inside strings, where JSON has this other way to write them.
        if c == '<' || is_hidden(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            out.push(c);
        }
    }
    out
}

fn is_hidden(c: char) -> bool {
    !c.is_ascii() && is_suspect(c)
}

/// The text without what hides in it, and with plain line ends.
pub(super) fn strip<'a>(text: &'a str, removed: &mut usize) -> Cow<'a, str> {
    remove(text, LineEnds::Plain, removed)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LineEnds {
    Plain,
    AsTheyAre,
}

fn remove<'a>(text: &'a str, line_ends: LineEnds, removed: &mut usize) -> Cow<'a, str> {
    let Some(first) = first_suspect(text) else { return Cow::Borrowed(text) };
    let (clean, rest) = text.split_at_checked(first).unwrap_or(("", text));
    let mut out = String::with_capacity(text.len());
    out.push_str(clean);
    let mut last = clean.chars().next_back();
    let mut chars = rest.chars().peekable();
    while let Some(c) = chars.next() {
        match verdict(c, last, &mut chars) {
            Verdict::NewLine | Verdict::DropQuietly
                if line_ends == LineEnds::AsTheyAre && (c != BYTE_ORDER_MARK || text.starts_with(c)) =>
            {
                out.push(c);
                last = Some(c);
            }
            Verdict::Keep => {
                out.push(c);
                last = Some(c);
            }
            Verdict::KeepFlag(tags) => {
                out.push_str(tags);
                for _ in 1..tags.chars().count() {
                    chars.next();
                }
                last = Some('\u{E007F}');
            }
            Verdict::NewLine => {
                out.push('\n');
                last = Some('\n');
            }
            Verdict::Space => {
                *removed += 1;
                out.push(' ');
                last = Some(' ');
            }
            Verdict::Drop => *removed += 1,
            Verdict::DropQuietly => {}
        }
    }
    if out == text { Cow::Borrowed(text) } else { Cow::Owned(out) }
}

enum Verdict {
    Keep,
    KeepFlag(&'static str),
    NewLine,
    /// A space instead: without it two words would become one.
    Space,
    Drop,
    DropQuietly,
}

fn first_suspect(text: &str) -> Option<usize> {
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t');
    let mut marks = scan_marks(text, |byte| !is_plain(byte));
    marks.find(|(_, c)| c.is_ascii() || is_suspect(*c)).map(|(at, _)| at)
}

/// What a person does not see, except blanks that only are wider or narrower, private signs and those that arrange others.
fn is_suspect(c: char) -> bool {
    kind(c).is_some_and(|kind| !matches!(kind, Invisible::Space | Invisible::Private | Invisible::Layout))
}

fn verdict(c: char, last: Option<char>, rest: &mut Peekable<Chars<'_>>) -> Verdict {
    match c {
        '\n' | '\t' => Verdict::Keep,
        '\r' if rest.peek() == Some(&'\n') => Verdict::DropQuietly,
        '\r' | '\u{B}' | '\u{C}' | '\u{1C}'..='\u{1E}' | '\u{85}' | '\u{2028}' | '\u{2029}' => {
            Verdict::NewLine
        }
        '\u{1B}' => {
            skip_terminal_sequence(rest);
            Verdict::Drop
        }
        BYTE_ORDER_MARK if last.is_none() => Verdict::DropQuietly,
        c if !is_suspect(c) => Verdict::Keep,
        '\u{E0067}' if last == Some('\u{1F3F4}') => {
            subdivision_flag(rest).map_or(Verdict::Drop, Verdict::KeepFlag)
        }
        c if is_needed(c, last, rest.peek().copied()) => Verdict::Keep,
        c if kind(c) == Some(Invisible::BrailleBlank) => Verdict::Space,
        _ => Verdict::Drop,
    }
}

/// `ESC [ … letter`: the whole sequence is noise. Other escapes lose only their control characters, so that what
/// they carried becomes visible.
fn skip_terminal_sequence(rest: &mut Peekable<Chars<'_>>) {
    let mut ahead = rest.clone();
    if ahead.next() != Some('[') {
        return;
    }
    for (length, c) in ahead.enumerate() {
        match c {
            '0'..='9' | ';' | ':' | '?' | '<'..='>' | ' '..='/' if length < 32 => {}
            '@'..='~' => {
                for _ in 0..length + 2 {
                    rest.next();
                }
                return;
            }
            _ => return,
        }
    }
}

/// The three flags that Unicode writes with tag characters: England, Scotland, Wales.
fn subdivision_flag(rest: &Peekable<Chars<'_>>) -> Option<&'static str> {
    const FLAGS: [&str; 3] = [
        "\u{E0067}\u{E0062}\u{E0065}\u{E006E}\u{E0067}\u{E007F}",
        "\u{E0067}\u{E0062}\u{E0073}\u{E0063}\u{E0074}\u{E007F}",
        "\u{E0067}\u{E0062}\u{E0077}\u{E006C}\u{E0073}\u{E007F}",
    ];
    FLAGS.into_iter().find(|flag| {
        let mut ahead = rest.clone();
        flag.chars().skip(1).all(|tag| ahead.next() == Some(tag))
    })
}

fn is_needed(c: char, last: Option<char>, next: Option<char>) -> bool {
    let Some(last) = last else { return false };
    match c {
        '\u{200D}' => {
            let emoji = is_pictograph(last) || last == '\u{FE0F}';
            (emoji && next.is_some_and(is_pictograph)) || is_virama(last) || is_between(last, next)
        }
        '\u{200C}' => is_between(last, next),
        '\u{FE0E}' | '\u{FE0F}' => {
            // A digit or sign takes one only to become a key cap: `##` must not hide behind a selector.
            is_pictograph(last) || (matches!(last, '0'..='9' | '#' | '*') && next == Some('\u{20E3}'))
        }
        '\u{180B}'..='\u{180F}' => matches!(last, '\u{1820}'..='\u{18AA}'),
        // Between words of Braille.
        c if kind(c) == Some(Invisible::BrailleBlank) => is_braille(last) && next.is_some_and(is_braille),
        _ => false,
    }
}

/// A letter on each side; one that goes itself does not justify a joiner.
fn is_between(last: char, next: Option<char>) -> bool {
    joins(last) && next.is_some_and(|next| joins(next) && !is_suspect(next))
}

/// Signs that take the vowel from a letter: a joiner behind one shows, whatever follows.
fn is_virama(c: char) -> bool {
    matches!(c as u32, 0x94D | 0x9CD | 0xA4D | 0xACD | 0xB4D | 0xBCD | 0xC4D | 0xCCD | 0xD4D | 0xDCA)
}

/// Scripts that shape letters by joiners: Arabic and its relatives, the Indic scripts and those derived from them.
fn joins(c: char) -> bool {
    matches!(c as u32, 0x620..=0x8FF | 0x900..=0xDFF | 0xE00..=0x109F | 0x1780..=0x18AF | 0x1A20..=0x1AAF | 0x1B00..=0x1C4F
        | 0xA800..=0xA97F | 0xA9E0..=0xABFF | 0xFB50..=0xFDCF | 0xFE70..=0xFEFC | 0x11000..=0x11FFF)
}

fn is_braille(c: char) -> bool {
    matches!(c as u32, 0x2801..=0x28FF)
}

fn is_pictograph(c: char) -> bool {
    matches!(c as u32, 0xA9 | 0xAE | 0x203C | 0x2049 | 0x2122 | 0x2139 | 0x2194..=0x21AA | 0x231A..=0x23FF | 0x24C2
        | 0x25AA..=0x25FE | 0x2600..=0x27BF | 0x2934..=0x2935 | 0x2B05..=0x2B55 | 0x3030 | 0x303D | 0x3297 | 0x3299
        | 0x1F000..=0x1FAFF)
}

#[cfg(test)]
mod tests {
    use super::*;
    use icu_properties::CodePointSetData;
    use icu_properties::props::{DefaultIgnorableCodePoint, ExtendedPictographic};

    #[test]
    fn every_default_ignorable_is_a_suspect() {
        let ignorable = CodePointSetData::new::<DefaultIgnorableCodePoint>();
        for c in '\0'..=char::MAX {
            if ignorable.contains(c) {
                assert!(is_suspect(c), "U+{:04X}", c as u32);
            }
        }
    }

    #[test]
    fn every_pictograph_may_be_joined() {
        let pictographs = CodePointSetData::new::<ExtendedPictographic>();
        for c in '\0'..=char::MAX {
            if pictographs.contains(c) && !is_suspect(c) {
                assert!(is_pictograph(c) || c as u32 > 0x1FAFF, "U+{:04X}", c as u32);
            }
        }
    }

    #[test]
    fn ordinary_text_is_untouched() {
        for text in [
            "plain",
            "tab\tand\nline",
            "👨‍👩‍👧 and ❤️ and 1️⃣ and 🏳️‍🌈",
            "🏴󠁧󠁢󠁳󠁣󠁴󠁿 Alba",
            "می‌خواهم",
            "שלום דניאל",
            "क्‍ष",
            "അവന്‍ വന്നു, അവള്‍",
            "naïve café — “quoted”",
        ] {
            assert!(matches!(strip(text, &mut 0), Cow::Borrowed(_)), "{text:?}");
        }
    }

    #[test]
    fn no_message_hides_in_the_forms_of_ideographs() {
        let message: String =
            (0..40_u32).flat_map(|at| ['会', char::from_u32(0xE0100 + at).unwrap()]).collect();
        assert_eq!(strip(&message, &mut 0), "会".repeat(40));
    }

    #[test]
    fn a_file_keeps_its_line_ends() {
        assert_eq!(without_hidden("a\u{2028}b\u{200B}c\r\nd\re"), "a\u{2028}bc\r\nd\re");
        assert_eq!(without_hidden("\u{FEFF}a\u{200B}"), "\u{FEFF}a");
    }

    #[test]
    fn what_hides_goes() {
        for (text, expected) in [
            ("a\u{200B}b", "ab"),
            ("a\u{202E}b\u{202C}", "ab"),
            ("a\u{E0041}\u{E0042}", "a"),
            ("🏴\u{E0067}\u{E0062}x", "🏴x"),
            ("\u{1B}[31mred\u{1B}[0m", "red"),
            ("\u{1B}]8;;http://x\u{7}y", "]8;;http://xy"),
            ("a\u{200D}b", "ab"),
            ("a\u{FE0F}\u{FE01}b", "ab"),
            ("#\u{FE0F}# Tools", "## Tools"),
            ("ک\u{200D}", "ک"),
            ("ᠠ\u{200D}\u{180E}x", "ᠠ\u{180E}x"),
            ("❤\u{FE0F}\u{FE0F}\u{E0100}", "❤\u{FE0F}"),
            ("a\r\nb\rc\u{2028}d\u{85}e", "a\nb\nc\nd\ne"),
            ("\u{FEFF}start", "start"),
            ("soft\u{AD}hyphen", "softhyphen"),
            ("nul\0", "nul"),
            ("ignore\u{2800}this", "ignore this"),
            ("#\u{2800}Tools\u{2800}", "# Tools "),
            ("⠓⠑\u{2800}⠇⠕", "⠓⠑\u{2800}⠇⠕"),
        ] {
            assert_eq!(strip(text, &mut 0), expected, "{text:?}");
        }
    }
}
