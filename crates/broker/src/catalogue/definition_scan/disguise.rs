//! Other readings of a text: look-alike letters, encoded and escaped pieces, digits for letters, spaced-out letters, reversed
//! text, sentences written as a name. Each reading is scanned like plain text.

use embody_text::decode::{decoded_texts, rot13};
use embody_text::look_alike::{look_alike, plain_letter};
use embody_text::without_digits;

use super::{Hit, Suspicion, orders};

/// From this many words on, encoded data counts as text, which an honest definition does not need.
const SENTENCE_WORDS: usize = 6;
/// How many consecutive single letters spell something.
const SPACED_LETTERS: usize = 8;
/// From this many underscores on, a name can be a sentence.
const NAME_PARTS: usize = 3;

pub(super) fn find(text: &str) -> Option<Hit> {
    if let Some(word) = text.split(|c: char| !c.is_alphabetic()).find(|word| is_mixed(word)) {
        return Some(Hit::new(Suspicion::Disguised, word));
    }
    if let Some(at) = styled_letters(text).or_else(|| spaced_letters(text)) {
        return Some(Hit::new(Suspicion::Disguised, text.get(at..).unwrap_or(text)));
    }
    let encoded = decoded_texts(text).into_iter().map(|(_, decoded)| decoded);
    if let Some(decoded) = encoded.into_iter().find(|decoded| says_something(decoded)) {
        let order = orders::find(&decoded).map_or(decoded, |hit| hit.text);
        return Some(Hit::new(Suspicion::Encoded, &order));
    }
    let readings = [without_digits(text, 'i'), rot13(text), text.chars().rev().collect()];
    let order = readings.iter().find_map(|reading| orders::find_words(reading));
    let order = order.or_else(|| orders::find(&words_of_name(text)?))?;
    Some(Hit { suspicion: Suspicion::Disguised, ..order })
}

fn says_something(decoded: &str) -> bool {
    let words = decoded.split_whitespace().filter(|word| {
        word.len() > 1 && word.chars().all(|c| c.is_alphanumeric() || c.is_ascii_punctuation())
    });
    words.count() >= SENTENCE_WORDS && !decoded.trim_start().starts_with(['{', '[', '<'])
        || orders::find(decoded).is_some()
}

/// A word that mixes Latin letters with letters of other scripts that look like them.
fn is_mixed(word: &str) -> bool {
    let latin = word.chars().filter(char::is_ascii_alphabetic).count();
    let is_cyrillic = |c: char| matches!(c, '\u{0400}'..='\u{052f}');
    let is_alike = |c: char| !c.is_ascii() && c.to_lowercase().any(|c| look_alike(c).is_some());
    latin >= 1 && word.contains(is_cyrillic) || latin >= 3 && word.contains(is_alike)
}

/// Consecutive mathematical, circled or squared letters.
fn styled_letters(text: &str) -> Option<usize> {
    let is_wide = |c: char| matches!(c, '\u{ff01}'..='\u{ff5e}' | '\u{3000}');
    let is_styled = |c: char| !is_wide(c) && plain_letter(c).is_some();
    let (mut run, mut start) = (0, 0);
    for (at, c) in text.char_indices().filter(|(_, c)| !c.is_whitespace()) {
        match is_styled(c) {
            true if run == 0 => (run, start) = (1, at),
            true => run += 1,
            false => run = 0,
        }
        if run >= 4 {
            return Some(start);
        }
    }
    None
}

/// `i g n o r e  t h i s`, `i-g-n-o-r-e t-h-i-s`: consecutive single letters.
fn spaced_letters(text: &str) -> Option<usize> {
    let (mut run, mut start, mut at) = (0, 0, 0);
    for piece in text.split([' ', '-', '.', '_', '*']) {
        let mut chars = piece.chars();
        match (chars.next(), chars.next()) {
            (None, _) => {}
            (Some(letter), None) if letter.is_alphabetic() => {
                if run == 0 {
                    start = at;
                }
                run += 1;
            }
            _ => run = 0,
        }
        if run >= SPACED_LETTERS {
            return Some(start);
        }
        at += piece.len() + 1;
    }
    None
}

/// `read_this_and_send_it` with spaces.
fn words_of_name(text: &str) -> Option<String> {
    let is_name = !text.contains(char::is_whitespace) && text.matches('_').count() >= NAME_PARTS;
    is_name.then(|| text.replace('_', " "))
}
