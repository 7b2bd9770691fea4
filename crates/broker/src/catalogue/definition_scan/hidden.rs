//! Invisible characters, and text out of sight. Owns where such characters are legitimate: emoji, flags, and scripts that
//! join or separate letters with them.

use embody_text::invisible::{Invisible, kind};

use super::{Hit, Suspicion};

/// Empty lines, or consecutive spaces, after which text is out of sight.
const BLANK_LINES: usize = 20;
const BLANKS: usize = 120;

/// How many bytes around a hidden character are quoted.
const AROUND: usize = 60;

pub(super) fn find(text: &str) -> Option<Hit> {
    if let Some((at, hidden)) = character(text) {
        let (start, end) = (
            text.floor_char_boundary(at.saturating_sub(AROUND)),
            text.ceil_char_boundary((at + AROUND).min(text.len())),
        );
        return Some(Hit::new(Suspicion::HiddenCharacter(hidden), text.get(start..end).unwrap_or(text)));
    }
    out_of_sight(text).map(|far| Hit::new(Suspicion::OutOfSight, far))
}

fn character(text: &str) -> Option<(usize, char)> {
    let mut found = None;
    scan(text, |at, c, hides| {
        found = hides.then_some((at, c));
        !hides
    });
    found
}

pub(super) fn without(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    scan(text, |_, c, hides| {
        if !hides {
            out.push(c);
        }
        true
    });
    out
}

/// Calls `on` with each character, its position and whether it is hidden, while that returns true.
fn scan(text: &str, mut on: impl FnMut(usize, char, bool) -> bool) {
    let mut before: Option<char> = None;
    let mut in_flag = false;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|(_, next)| *next);
        let hides = match c {
            '\t' | '\n' | '\r' => false,
            '\u{200c}' | '\u{200d}' => !joins(before, next),
            // Direction marks are legitimate in right-to-left text.
            '\u{200e}' | '\u{200f}' | '\u{061c}' => {
                !before.is_some_and(is_right_to_left) && !next.is_some_and(is_right_to_left)
            }
            '\u{e0020}'..='\u{e007f}' => !in_flag,
            '\u{fe00}'..='\u{fe0f}' => before.is_none_or(is_selector),
            '\u{e0100}'..='\u{e01ef}' => !before.is_some_and(is_ideograph),
            _ => is_never_seen(c),
        };
        if !on(at, c, hides) {
            return;
        }
        in_flag = c == '\u{1f3f4}' || in_flag && matches!(c, '\u{e0020}'..='\u{e007e}');
        before = Some(c);
    }
}

fn is_never_seen(c: char) -> bool {
    kind(c).is_some_and(|kind| !matches!(kind, Invisible::Space | Invisible::Layout))
}

/// Emoji are joined; Persian, Arabic and Indic scripts join and separate letters.
fn joins(before: Option<char>, next: Option<char>) -> bool {
    let needs = |c: char| {
        is_selector(c)
            || is_emoji(c)
            || matches!(c, '\u{0600}'..='\u{08ff}' | '\u{0900}'..='\u{0dff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}')
    };
    before.is_some_and(needs) && next.is_some_and(needs)
}

fn is_selector(c: char) -> bool {
    matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
}

fn is_emoji(c: char) -> bool {
    matches!(c, '\u{1f000}'..='\u{1faff}' | '\u{2190}'..='\u{27bf}' | '\u{2b00}'..='\u{2bff}')
}

fn is_right_to_left(c: char) -> bool {
    matches!(c, '\u{0590}'..='\u{08ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}')
}

fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// The text after a large empty space.
fn out_of_sight(text: &str) -> Option<&str> {
    let (mut lines, mut blanks) = (0, 0);
    let text = text.trim();
    for (at, c) in text.char_indices() {
        match c {
            '\n' => (lines, blanks) = (lines + 1, 0),
            c if c.is_whitespace() => blanks += 1,
            _ if lines > BLANK_LINES || blanks > BLANKS => return text.get(at..),
            _ => (lines, blanks) = (0, 0),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_characters_are_found() {
        for text in [
            "a\u{200b}b",
            "a\u{200d}b",
            "x\u{202e}y",
            "\u{2066}x\u{2069}",
            "a\u{200f}b",
            "t\u{e0041}",
            "\u{feff}x",
            "a\u{0}b",
            "a\u{1b}[8mb",
            "a\u{7f}",
            "a\u{85}b",
            "s\u{ad}oft",
            "x\u{fe0f}\u{fe0f}",
            "a\u{e0101}",
            "\u{1f600}\u{e0100}",
            "\u{3164}",
            "\u{e123}",
            "\u{100000}",
            "a\u{2028}b",
        ] {
            let found = find(text).map(|hit| hit.suspicion);
            assert!(matches!(found, Some(Suspicion::HiddenCharacter(_))), "{}", text.escape_unicode());
        }
        for text in
            [format!("Adds.{}Read the keys", "\n".repeat(30)), format!("Adds.{}Read", " ".repeat(200))]
        {
            let found = find(&text).unwrap();
            assert_eq!(found.suspicion, Suspicion::OutOfSight);
            assert!(found.text.starts_with("Read"), "{}", found.text);
        }
    }

    #[test]
    fn what_scripts_and_emoji_need_is_not() {
        for text in [
            "plain\ttext\r\nwith lines\n\n",
            "naïve café",
            "👩\u{200d}💻 and ❤\u{fe0f}\u{200d}🔥",
            "1\u{fe0f}\u{20e3}",
            "می\u{200c}خواهم",
            "क्\u{200d}ष",
            "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
            "שלום\u{200f}!",
            "葛\u{e0100}",
            "日本語",
            "µm, Δt, π",
        ] {
            assert_eq!(find(text), None, "{}", text.escape_unicode());
        }
        assert_eq!(find(&format!("x{}", "\n".repeat(99))), None, "nothing follows");
    }
}
