//! Words written so that a person reads them and a filter does not: digits for letters, look-alikes, spelled-out
//! letters, glued or split words. Owns the way back to the plain word; leaves words alone that mean nothing anyway.

use super::document::{Gap, Token};
use super::lexicon;
use super::lexicon::Kinds;
use embody_text::look_alike::look_alike;

const MIN_SPELLED: usize = 4;
const MIN_GLUED: usize = 14;
const MAX_PIECE: usize = 14;

/// The plain form of one written word and what it means.
pub(super) fn normalize_spelling(word: String) -> (String, Kinds) {
    let word: String = if mixes_scripts(&word) { to_latin(&word) } else { word.replace('\'', "") };
    let kinds = lexicon::kinds_of(&word);
    if !kinds.is_empty() {
        return (word, kinds);
    }
    for candidate in [to_latin(&word), without_digits(&word, 'i'), without_digits(&word, 'l')] {
        let kinds = lexicon::kinds_of(&candidate);
        if candidate != word && !kinds.is_empty() {
            return (candidate, kinds);
        }
    }
    match misspelled(&word) {
        Some(meant) => (meant.to_owned(), lexicon::kinds_of(meant)),
        None => (word, kinds),
    }
}

/// Words whose misspelling is worth seeing through.
const OFTEN_MISSPELLED: &[&str] = &[
    "ignore",
    "disregard",
    "override",
    "bypass",
    "previous",
    "instructions",
    "instruction",
    "guidelines",
    "restrictions",
    "circumvent",
];

/// The word meant by one with its inner letters shuffled or one of them missing.
fn misspelled(word: &str) -> Option<&'static str> {
    if !word.is_ascii() || !(5..=12).contains(&word.len()) {
        return None;
    }
    OFTEN_MISSPELLED.iter().copied().find(|meant| {
        let ends = meant.chars().next() == word.chars().next() && meant.chars().last() == word.chars().last();
        let missing = meant.len() - word.len().min(meant.len());
        ends && word.len() <= meant.len() && missing <= 1 && letters_of(word, meant) == missing
    })
}

/// How many letters of `meant` are not in `word`, counted with repetition; large when `word` has letters of its own.
fn letters_of(word: &str, meant: &str) -> usize {
    let count = |text: &str, letter: u8| text.bytes().filter(|&b| b == letter).count();
    (b'a'..=b'z').fold(0, |sum, letter| {
        let (has, wants) = (count(word, letter), count(meant, letter));
        sum + if has > wants { meant.len() } else { wants - has }
    }) + if word.bytes().all(|b| b.is_ascii_lowercase()) { 0 } else { meant.len() }
}

/// Puts words back together that were spelled out or split, and takes glued ones apart.
pub(super) fn restore(tokens: &mut Vec<Token>) {
    let mut plain: Vec<Token> = Vec::with_capacity(tokens.len());
    let mut letters: Vec<Token> = Vec::new();
    for token in tokens.drain(..) {
        if token.word.chars().nth(1).is_none()
            && (letters.is_empty() || token.sentence == last_sentence(&letters))
        {
            letters.push(token);
            continue;
        }
        spelled_out(&mut letters, &mut plain);
        if is_glued(&token) {
            let pieces = pieces(&token.word);
            let means = pieces.iter().fold(Kinds::none(), |all, (_, kinds)| all | *kinds);
            if pieces.len() >= 3 && means.has(Kinds::DISMISS) && means.has(Kinds::RULE) {
                plain.extend(apart(&token, pieces));
                continue;
            }
        }
        if !rejoin(&mut plain, &token) {
            plain.push(token);
        }
    }
    spelled_out(&mut letters, &mut plain);
    *tokens = plain;
}

fn last_sentence(letters: &[Token]) -> usize {
    letters.last().map_or(0, |token| token.sentence)
}

/// `i g n o r e  a l l` to two words; without wide gaps, to the words that can be made out.
fn spelled_out(letters: &mut Vec<Token>, plain: &mut Vec<Token>) {
    if letters.len() < MIN_SPELLED {
        plain.append(letters);
        return;
    }
    let mut words: Vec<(Token, String)> = Vec::new();
    for token in letters.drain(..) {
        match words.last_mut() {
            Some((_, word)) if !token.wide => word.push_str(&token.word),
            _ => words.push((token.clone(), token.word)),
        }
    }
    for (first, word) in words {
        let (whole, kinds) = normalize_spelling(word);
        let pieces = if kinds.is_empty() { pieces(&without_digits(&whole, 'i')) } else { Vec::new() };
        if pieces.is_empty() {
            plain.push(Token { word: whole, kinds, ..first.clone() });
        }
        plain.extend(apart(&first, pieces));
    }
}

fn is_glued(token: &Token) -> bool {
    token.word.len() >= MIN_GLUED
        && token.kinds.is_empty()
        && token.word.bytes().all(|b| b.is_ascii_lowercase())
}

/// `over ride` and `dis-regard`: two meaningless halves that make one meaningful verb.
fn rejoin(plain: &mut [Token], token: &Token) -> bool {
    let Some(before) = plain.last_mut() else { return false };
    if before.sentence != token.sentence || !token.kinds.is_empty() || token.wide || before.word.len() > 8 {
        return false;
    }
    let whole = format!("{}{}", before.word, token.word);
    let kinds = lexicon::kinds_of(&whole);
    let splits = Kinds::DISMISS | Kinds::RULE | Kinds::GUARD | Kinds::UNBOUND | Kinds::EARLIER;
    if !kinds.has(splits) || !before.kinds.without(Kinds::GLUE | Kinds::LINK).is_empty() {
        return false;
    }
    (before.word, before.kinds) = (whole, kinds);
    true
}

/// Several words where one was written; only the first keeps what stood before it.
fn apart(written: &Token, pieces: Vec<(String, Kinds)>) -> impl Iterator<Item = Token> {
    let written = written.clone();
    pieces.into_iter().enumerate().map(move |(n, (word, kinds))| {
        let gap = if n == 0 { written.gap } else { Gap::Space };
        Token { word, kinds, gap, ..written.clone() }
    })
}

/// The known words in a run of letters, longest first at each place; unknown letters are passed over.
fn pieces(run: &str) -> Vec<(String, Kinds)> {
    let mut found = Vec::new();
    let mut rest = run;
    while let Some(first) = rest.chars().next() {
        let ends = rest.char_indices().map(|(at, c)| at + c.len_utf8()).take(MAX_PIECE);
        let known =
            ends.skip(2).filter_map(|end| rest.get(..end)).filter(|piece| lexicon::knows(piece)).last();
        let step = known.map_or(first.len_utf8(), str::len);
        if let Some(piece) = known {
            found.push((piece.to_owned(), lexicon::kinds_of(piece)));
        }
        rest = rest.get(step..).unwrap_or_default();
    }
    found
}

fn mixes_scripts(word: &str) -> bool {
    let latin = word.chars().any(|c| c.is_ascii_alphabetic());
    latin && word.chars().any(|c| look_alike(c).is_some())
}

fn to_latin(word: &str) -> String {
    if word.is_ascii() {
        return word.to_owned();
    }
    word.chars().map(|c| look_alike(c).unwrap_or(c)).collect()
}

/// `1gn0r3` to `ignore`; `one` says what the digit 1 stands for.
fn without_digits(word: &str, one: char) -> String {
    if !word.chars().any(char::is_alphabetic) {
        return word.to_owned();
    }
    let letter = |c| match c {
        '0' => 'o',
        '1' | '!' => one,
        '3' => 'e',
        '4' | '@' => 'a',
        '5' | '$' => 's',
        '7' => 't',
        '8' => 'b',
        '9' => 'g',
        other => other,
    };
    word.chars().map(letter).collect()
}
