//! Characters that people cannot see, except where a script or an emoji needs them.

use embody_text::fold::is_unseen;
use embody_text::invisible::{Invisible, kind};

use super::finding::{Findings, Rule};

pub(super) fn find(text: &str, findings: &mut Findings<'_>) {
    let mut line = LineState::default();
    let mut selectors = 0;
    let mut before = None;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|&(_, next)| next);
        if c == '\n' {
            line.end(findings);
            line = LineState::default();
        }
        line.right_to_left |= is_right_to_left(c);
        match kind(c) {
            Some(Invisible::ZeroWidth | Invisible::Joiner | Invisible::Direction)
                if !is_soft_hyphen(c) && splits_word(before, next) =>
            {
                findings.add(Rule::HiddenText, at);
            }
            Some(Invisible::Direction) if matches!(c, '\u{202d}' | '\u{202e}') => {
                findings.add(Rule::HiddenText, at);
            }
            Some(Invisible::Direction)
                if matches!(c, '\u{202a}' | '\u{202b}' | '\u{2066}' | '\u{2067}' | '\u{2068}') =>
            {
                line.embedding.get_or_insert(at);
            }
            Some(Invisible::Tag) if !line.flag => findings.add(Rule::HiddenText, at),
            _ => {}
        }
        selectors = if kind(c) == Some(Invisible::Selector) { selectors + 1 } else { 0 };
        if selectors == 3 {
            findings.add(Rule::HiddenText, at);
        }
        line.flag = c == '\u{1f3f4}' || line.flag && matches!(c, '\u{e0020}'..='\u{e007f}');
        if !is_unseen(c) {
            before = Some(c);
        }
    }
    line.end(findings);
}

#[derive(Default)]
struct LineState {
    right_to_left: bool,
    /// A direction embedding that needs right-to-left text to make sense.
    embedding: Option<usize>,
    /// Inside a flag emoji, which is spelled with tag characters.
    flag: bool,
}

impl LineState {
    fn end(&self, findings: &mut Findings<'_>) {
        if let Some(at) = self.embedding
            && !self.right_to_left
        {
            findings.add(Rule::HiddenText, at);
        }
    }
}

/// Where a word may be broken at the end of a line; texts from the web are full of them.
fn is_soft_hyphen(c: char) -> bool {
    c == '\u{ad}'
}

/// Between two letters of a script that never needs it there.
fn splits_word(before: Option<char>, next: Option<char>) -> bool {
    let plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '\u{c0}'..='\u{24f}' | '\u{370}'..='\u{52f}');
    before.is_some_and(plain) && next.is_some_and(|c| plain(c) || is_unseen(c))
}

fn is_right_to_left(c: char) -> bool {
    matches!(c, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}')
}
