//! Text made visible for a person who decides by it: what hides, steers or poses as something else is shown as what it is.
//!
//! Pure, and without loss: two texts that differ are shown differently. Letters of every script stay as they are; a
//! character that nobody sees, that turns the direction of others or breaks the line is shown as its code, `⟨U+200B⟩`. It
//! judges nothing: what is shown may still be a lie.

use std::borrow::Cow;
use std::fmt::Write;

use crate::invisible::{Invisible, kind};

/// The longest run of spaces that is shown as it is: more could push what follows to where a terminal wraps the line.
const LONGEST_GAP: usize = 8;
/// The most marks on one letter that are shown as they are: a pile of them covers the lines above and below.
const HIGHEST_PILE: usize = 4;
const BREAK: char = '⏎';
const TAB: char = '⇥';

/// The text in one line: a line break is a `⏎`, a tab a `⇥`.
#[must_use]
pub fn line(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(show(text, Style::Line))
}

/// The text over several lines: each break is a `⏎` at the end of its line, and the next line starts with `lead`, so that
/// no line of it can pass for a line of something else.
#[must_use]
pub fn lines(text: &str, lead: &str) -> String {
    show(text, Style::Lines(lead))
}

/// The text as it may stand on a terminal: line breaks, tabs and spaces are as they are, and so are the marks that emoji and
/// scripts need; what would steer the terminal, turn the text or hide in it is shown as its code.
#[must_use]
pub fn on_terminal(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\n' | b'\t')) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(show(text, Style::Terminal))
}

/// Whether a person sees nothing where this character stands, or sees something else than is there: controls, zero-width
/// and direction marks, tags, variation selectors, blanks that are not the plain one, fillers, private use, non-characters.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    kind(c).is_some()
}

#[derive(Clone, Copy)]
enum Style<'a> {
    Line,
    /// Over several lines, with this before each but the first.
    Lines(&'a str),
    Terminal,
}

impl Style<'_> {
    fn is_coded(self, c: char) -> bool {
        match self {
            Self::Line | Self::Lines(_) => is_hidden(c) || is_ours(c),
            Self::Terminal => steers(c),
        }
    }
}

/// Whether a character would steer a terminal, turn its text or hide in it; line breaks and tabs among them.
#[must_use]
pub fn steers(c: char) -> bool {
    use Invisible::{Joiner, Layout, Private, Selector, Space};
    kind(c).is_some_and(|kind| !matches!(kind, Joiner | Layout | Private | Selector | Space))
}

fn show(text: &str, style: Style<'_>) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text.chars().peekable();
    // Marks on the letter before; a mark without a letter would sit on what we wrote ourselves.
    let mut pile = HIGHEST_PILE;
    let mut is_after_blank = true;
    while let Some(c) = rest.next() {
        let is_mark = stacks(c);
        match (c, style) {
            ('\n' | '\t' | ' ' | '\u{3000}', Style::Terminal) => out.push(c),
            ('\n', Style::Lines(lead)) => {
                out.push(BREAK);
                out.push('\n');
                out.push_str(lead);
            }
            ('\n', _) => out.push(BREAK),
            ('\t', _) => out.push(TAB),
            (' ', _) => {
                let mut gap = 1;
                while rest.next_if_eq(&' ').is_some() {
                    gap += 1;
                }
                push_gap(gap, &mut out);
            }
            // The blank of Chinese and Japanese: one is ordinary, more are a gap.
            ('\u{3000}', _) if is_after_blank => push_code(c, &mut out),
            _ if style.is_coded(c) || is_mark && pile >= HIGHEST_PILE => push_code(c, &mut out),
            _ => out.push(c),
        }
        is_after_blank = matches!(c, ' ' | '\u{3000}' | '\n' | '\t') || is_hidden(c);
        pile = match () {
            () if is_mark => pile.saturating_add(1),
            () if is_after_blank || is_ours(c) => HIGHEST_PILE,
            () => 0,
        };
    }
    out
}

/// The signs that this file writes: in the text itself they are shown as codes, or nobody could tell which is which.
fn is_ours(c: char) -> bool {
    matches!(c, '⟨' | '⟩' | BREAK | TAB)
}

pub fn push_code(c: char, out: &mut String) {
    let _ = write!(out, "⟨U+{:04X}⟩", u32::from(c));
}

fn push_gap(length: usize, out: &mut String) {
    if length <= LONGEST_GAP {
        out.extend(std::iter::repeat_n(' ', length));
    } else {
        let _ = write!(out, "⟨{length} spaces⟩");
    }
}

/// Marks that fonts pile onto one letter without end.
fn stacks(c: char) -> bool {
    matches!(u32::from(c),
        0x300..=0x36F | 0x483..=0x489 | 0x591..=0x5BD | 0x610..=0x61A | 0x64B..=0x65F | 0x6D6..=0x6DC
        | 0xE31 | 0xE34..=0xE3A | 0xE47..=0xE4E | 0x1AB0..=0x1AFF | 0x1DC0..=0x1DFF | 0x20D0..=0x20FF
        | 0x302A..=0x302F | 0x3099..=0x309A | 0xFE20..=0xFE2F)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    // spec: N-10
    #[test]
    fn what_hides_is_shown() {
        for (text, seen) in [
            ("", ""),
            ("Hi Bob, 2 < 3 & \"x\"", "Hi Bob, 2 < 3 & \"x\""),
            ("one\ntwo", "one⏎two"),
            ("one\r\ntwo", "one⟨U+000D⟩⏎two"),
            ("a\tb", "a⇥b"),
            ("a\u{b}b\u{c}c\u{85}d\u{2028}e\u{2029}f", "a⟨U+000B⟩b⟨U+000C⟩c⟨U+0085⟩d⟨U+2028⟩e⟨U+2029⟩f"),
            ("\u{1b}[2Jx\u{7}\u{0}\u{7f}", "⟨U+001B⟩[2Jx⟨U+0007⟩⟨U+0000⟩⟨U+007F⟩"),
            ("moc.live\u{202e}@bob\u{202c}", "moc.live⟨U+202E⟩@bob⟨U+202C⟩"),
            ("\u{2066}a\u{2067}b\u{2068}c\u{2069}", "⟨U+2066⟩a⟨U+2067⟩b⟨U+2068⟩c⟨U+2069⟩"),
            ("\u{200e}\u{200f}\u{61c}", "⟨U+200E⟩⟨U+200F⟩⟨U+061C⟩"),
            ("pass\u{200b}word\u{feff}\u{2060}", "pass⟨U+200B⟩word⟨U+FEFF⟩⟨U+2060⟩"),
            ("a\u{200c}b\u{200d}c\u{ad}d\u{34f}e", "a⟨U+200C⟩b⟨U+200D⟩c⟨U+00AD⟩d⟨U+034F⟩e"),
            ("hi\u{e0001}\u{e0041}\u{e007f}", "hi⟨U+E0001⟩⟨U+E0041⟩⟨U+E007F⟩"),
            ("a\u{fe0f}b\u{fe00}c\u{e0100}\u{e01ef}", "a⟨U+FE0F⟩b⟨U+FE00⟩c⟨U+E0100⟩⟨U+E01EF⟩"),
            ("a\u{a0}b\u{2003}c\u{202f}d", "a⟨U+00A0⟩b⟨U+2003⟩c⟨U+202F⟩d"),
            ("\u{2800}\u{3164}\u{115f}\u{ffa0}", "⟨U+2800⟩⟨U+3164⟩⟨U+115F⟩⟨U+FFA0⟩"),
            ("\u{e000}\u{f8ff}\u{fffe}\u{10ffff}", "⟨U+E000⟩⟨U+F8FF⟩⟨U+FFFE⟩⟨U+10FFFF⟩"),
            ("a        b", "a        b"),
            ("a         b", "a⟨9 spaces⟩b"),
            ("全角\u{3000}文字\u{3000}\u{3000}x", "全角\u{3000}文字\u{3000}⟨U+3000⟩x"),
            ("⟨U+200B⟩ ⏎ ⇥", "⟨U+27E8⟩U+200B⟨U+27E9⟩ ⟨U+23CE⟩ ⟨U+21E5⟩"),
            ("\u{301}x", "⟨U+0301⟩x"),
            ("e\u{301}\u{302}\u{303}\u{304}\u{305}", "e\u{301}\u{302}\u{303}\u{304}⟨U+0305⟩"),
            ("a\n\u{301}", "a⏎⟨U+0301⟩"),
            ("\u{200b}\u{301}", "⟨U+200B⟩⟨U+0301⟩"),
        ] {
            assert_eq!(line(text), seen, "{text:?}");
        }
    }

    #[test]
    fn letters_of_every_script_stay_as_they_are() {
        for text in [
            "Grüße aus Köln, señor, façade, Łódź, Việt Nam",
            "Привет, мир; Добрый день",
            "Γειά σου Κόσμε",
            "שלום עולם, בְּרֵאשִׁית",
            "مرحبا بالعالم، بِسْمِ",
            "नमस्ते दुनिया, বাংলা, தமிழ், తెలుగు",
            "สวัสดีครับ ผู้ใหญ่",
            "你好，世界。 日本語のテキスト、한국어 문장",
            "ქართული, Հայերեն, አማርኛ, ខ្មែរ",
            "🎉 👍🏽 ✓ € ½ – — “quoted” … №",
            "e\u{301}te\u{301}",
        ] {
            assert_eq!(line(text), text);
            assert_eq!(lines(text, "> "), text);
        }
    }

    #[test]
    fn nothing_steers_a_terminal() {
        for (text, seen) in [
            ("a\u{1b}[31mb\u{7}\u{202e}c\r", "a⟨U+001B⟩[31mb⟨U+0007⟩⟨U+202E⟩c⟨U+000D⟩"),
            ("\u{9b}2J\u{7f}\u{85}\u{2028}", "⟨U+009B⟩2J⟨U+007F⟩⟨U+0085⟩⟨U+2028⟩"),
            ("two\nlines\tand שלום", "two\nlines\tand שלום"),
            ("pass\u{200b}word\u{2800}\u{e0041}", "pass⟨U+200B⟩word⟨U+2800⟩⟨U+E0041⟩"),
            (
                "❤\u{fe0f} 👩\u{200d}💻 a\u{a0}b می\u{200c}خواهم",
                "❤\u{fe0f} 👩\u{200d}💻 a\u{a0}b می\u{200c}خواهم",
            ),
            ("a          b", "a          b"),
        ] {
            assert_eq!(on_terminal(text), seen, "{text:?}");
        }
    }

    #[test]
    fn no_line_of_a_text_stands_without_its_lead() {
        assert_eq!(lines("Hi,\n\ntool: whoami\r\n", "  │ "), "Hi,⏎\n  │ ⏎\n  │ tool: whoami⟨U+000D⟩⏎\n  │ ");
    }

    proptest! {
        #[test]
        fn different_texts_are_shown_differently(texts in prop::collection::vec("[ \t\n⟨⟩⏎Us\u{200b}\u{301}\u{3000}+0-9]{0,12}", 1..60)) {
            let mut known: HashMap<String, String> = HashMap::new();
            for text in texts {
                let seen = line(&text).into_owned();
                let before = known.insert(seen, text.clone());
                prop_assert!(before.is_none_or(|before| before == text));
            }
        }

        #[test]
        fn nothing_hidden_is_left(text in any::<String>()) {
            prop_assert!(!line(&text).chars().any(is_hidden));
            prop_assert!(on_terminal(&text).chars().all(|c| matches!(c, '\n' | '\t') || !c.is_control()));
            prop_assert!(lines(&text, "│").chars().all(|c| c == '\n' || !is_hidden(c)));
            for shown in lines(&text, "│").lines().skip(1) {
                prop_assert!(shown.starts_with('│'));
            }
        }
    }
}
