//! Cuts a text into words: runs of letters and digits of one kind of script. Knows no language but for the endings
//! that English joins with an apostrophe.

use super::fold;
use super::script::Script;

/// Longer words keep their beginning; nobody types the rest.
const LONGEST_WORD: usize = 64;

/// A run of letters and digits, folded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) text: String,
    pub(super) script: Script,
    /// A negation such as `won't`, whose first half would be another word.
    pub(super) negates: bool,
}

/// Calls `take` with each word of the text, in order.
pub(super) fn each(text: &str, mut take: impl FnMut(Word)) {
    let text = fold::compose(text);
    let mut rest = text.as_ref();
    while let Some(start) = rest.find(char::is_alphanumeric) {
        rest = rest.get(start..).unwrap_or_default();
        let (letters, script, length) = run(rest);
        rest = rest.get(length..).unwrap_or_default();
        let ending = if script == Script::Latin { apostrophe_ending(rest) } else { "" };
        rest = rest.strip_prefix(ending).unwrap_or(rest);
        take(Word { text: fold::fold(&letters, script), script, negates: ending.ends_with(['t', 'T']) });
    }
}

/// The letters that the text begins with and that belong together, their script, and how many bytes they take.
fn run(text: &str) -> (String, Script, usize) {
    let mut letters = String::new();
    let mut count = 0;
    let mut script = Script::Digit;
    for (position, c) in text.char_indices() {
        if fold::is_invisible(c) {
            continue;
        }
        let mark = fold::is_mark(c);
        let own = Script::of(c);
        let belongs = mark || (c.is_alphanumeric() && joins(script, own));
        if !belongs && position > 0 {
            return (letters, script, position);
        }
        if script == Script::Digit && !mark {
            script = own;
        }
        if script.is_paired() || count < LONGEST_WORD {
            letters.push(c);
            count += 1;
        }
    }
    (letters, script, text.len())
}

fn joins(before: Script, next: Script) -> bool {
    if before.is_paired() { before == next } else { !next.is_paired() }
}

/// The `'s`, `'t`, `'ll` … that a text begins with, or nothing.
fn apostrophe_ending(text: &str) -> &str {
    let Some(after) = text.strip_prefix(['\'', '\u{2019}']) else { return "" };
    let letters = after.find(|c: char| !c.is_alphanumeric()).unwrap_or(after.len());
    let ending = after.get(..letters).unwrap_or_default();
    let known = ["s", "t", "d", "ll", "re", "ve", "m"].iter().any(|known| ending.eq_ignore_ascii_case(known));
    if known { text.get(..text.len() - after.len() + letters).unwrap_or_default() } else { "" }
}
