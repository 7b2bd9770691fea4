//! Words written so that a person reads them and a filter does not: digits for letters, look-alikes, spelled-out letters,
//! glued, split or misspelled words. Owns the way back to a word that a lexicon knows, and leaves all others alone.

use crate::lexicon::{Classes, Lexicon};
use crate::look_alike::look_alike;
use crate::tokenize::{Document, Gap, Token};

const MIN_SPELLED: usize = 4;
const MIN_GLUED: usize = 14;
const MAX_PIECE: usize = 14;

/// Which words of a lexicon are worth restoring.
#[derive(Debug, Default)]
pub(crate) struct Spelling {
    /// A glued word is taken apart when its pieces are of each of these.
    pub(crate) glued: Vec<Classes>,
    /// Two halves are put together when the whole is of one of these.
    pub(crate) split: Classes,
    /// What the first half may be on its own.
    pub(crate) half: Classes,
    /// Words whose misspelling is seen through.
    pub(crate) misspelled: Vec<String>,
}

impl Spelling {
    /// Looks up all words of a document, restored where needed.
    pub(crate) fn restore<'t>(&self, lexicon: &Lexicon, doc: &mut Document<'t>) {
        let mut plain: Vec<Token<'t>> = Vec::with_capacity(doc.tokens.len());
        let mut letters: Vec<Token<'t>> = Vec::new();
        for mut token in doc.tokens.drain(..) {
            (token.word, token.classes) = self.normalize(lexicon, std::mem::take(&mut token.word));
            let is_letter = token.word.chars().nth(1).is_none();
            if is_letter && letters.last().is_none_or(|last| last.sentence == token.sentence) {
                letters.push(token);
                continue;
            }
            self.spell_out(lexicon, &mut letters, &mut plain);
            if is_glued(&token) {
                let pieces = pieces(lexicon, &token.word);
                let means = pieces.iter().fold(Classes::NONE, |all, (_, classes)| all.with(*classes));
                if pieces.len() >= 3 && self.glued.iter().all(|wanted| means.has(*wanted)) {
                    plain.extend(apart(&token, pieces));
                    continue;
                }
            }
            if !self.rejoin(lexicon, &mut plain, &token) {
                plain.push(token);
            }
        }
        self.spell_out(lexicon, &mut letters, &mut plain);
        doc.set_tokens(plain);
    }

    /// The plain form of one written word and what it means.
    fn normalize(&self, lexicon: &Lexicon, word: String) -> (String, Classes) {
        let is_mixed = word.contains(|c: char| c.is_ascii_alphabetic())
            && word.contains(|c: char| look_alike(c).is_some());
        let word = if is_mixed { to_latin(&word) } else { word };
        let classes = lexicon.lookup(&word);
        if !classes.is_empty() {
            return (word, classes);
        }
        for candidate in [to_latin(&word), without_digits(&word, 'i'), without_digits(&word, 'l')] {
            let classes = lexicon.lookup(&candidate);
            if candidate != word && !classes.is_empty() {
                return (candidate, classes);
            }
        }
        match self.misspelled.iter().find(|meant| is_misspelled(&word, meant)) {
            Some(meant) => (meant.clone(), lexicon.lookup(meant)),
            None => (word, classes),
        }
    }

    /// `i g n o r e  a l l` to two words; without wide gaps, to the words that can be made out.
    fn spell_out<'t>(&self, lexicon: &Lexicon, letters: &mut Vec<Token<'t>>, plain: &mut Vec<Token<'t>>) {
        if letters.len() < MIN_SPELLED {
            plain.append(letters);
            return;
        }
        let mut words: Vec<(Token<'t>, String)> = Vec::new();
        for token in letters.drain(..) {
            match words.last_mut() {
                Some((_, word)) if !token.wide => word.push_str(&token.word),
                _ => words.push((token.clone(), token.word)),
            }
        }
        for (first, word) in words {
            let (word, classes) = self.normalize(lexicon, word);
            let pieces =
                if classes.is_empty() { pieces(lexicon, &without_digits(&word, 'i')) } else { Vec::new() };
            if pieces.is_empty() {
                plain.push(Token { word, classes, ..first.clone() });
            }
            plain.extend(apart(&first, pieces));
        }
    }

    /// `over ride` and `dis-regard`: two halves that make one word.
    fn rejoin(&self, lexicon: &Lexicon, plain: &mut [Token<'_>], token: &Token<'_>) -> bool {
        let Some(before) = plain.last_mut() else { return false };
        if before.sentence != token.sentence
            || !token.classes.is_empty()
            || token.wide
            || before.word.len() > 8
        {
            return false;
        }
        let whole = format!("{}{}", before.word, token.word);
        let classes = lexicon.lookup(&whole);
        if !classes.has(self.split) || !before.classes.without(self.half).is_empty() {
            return false;
        }
        (before.word, before.classes) = (whole, classes);
        true
    }
}

/// Whether `word` has the letters of `meant` between the same ends, shuffled or with one missing.
fn is_misspelled(word: &str, meant: &str) -> bool {
    let (word, meant) = (word.as_bytes(), meant.as_bytes());
    let missing = meant.len().saturating_sub(word.len());
    if !(5..=12).contains(&word.len())
        || word.len() > meant.len()
        || missing > 1
        || word.first() != meant.first()
        || word.last() != meant.last()
    {
        return false;
    }
    let count = |text: &[u8], letter: u8| text.iter().filter(|&&b| b == letter).count();
    word.iter().all(u8::is_ascii_lowercase)
        && word.iter().all(|&letter| count(word, letter) <= count(meant, letter))
}

fn is_glued(token: &Token<'_>) -> bool {
    token.word.len() >= MIN_GLUED
        && token.classes.is_empty()
        && token.word.bytes().all(|b| b.is_ascii_lowercase())
}

/// Several words where one was written; only the first keeps what stood before it.
fn apart<'t>(written: &Token<'t>, pieces: Vec<(String, Classes)>) -> impl Iterator<Item = Token<'t>> {
    let written = written.clone();
    pieces.into_iter().enumerate().map(move |(n, (word, classes))| {
        let gap = if n == 0 { written.gap } else { Gap::Space };
        Token { word, classes, gap, ..written.clone() }
    })
}

/// The known words in a run of letters, longest first at each place; unknown letters are passed over.
fn pieces(lexicon: &Lexicon, run: &str) -> Vec<(String, Classes)> {
    let mut found = Vec::new();
    let mut rest = run;
    while let Some(first) = rest.chars().next() {
        let ends = rest.char_indices().map(|(at, c)| at + c.len_utf8()).take(MAX_PIECE);
        let known =
            ends.skip(2).filter_map(|end| rest.get(..end)).filter(|piece| lexicon.knows(piece)).last();
        let step = known.map_or(first.len_utf8(), str::len);
        if let Some(piece) = known {
            found.push((piece.to_owned(), lexicon.lookup(piece)));
        }
        rest = rest.get(step..).unwrap_or_default();
    }
    found
}

fn to_latin(word: &str) -> String {
    if word.is_ascii() {
        return word.to_owned();
    }
    word.chars().map(|c| look_alike(c).unwrap_or(c)).collect()
}

/// `1gn0r3` to `ignore`; `one` says what the digit 1 stands for.
#[must_use]
pub fn without_digits(word: &str, one: char) -> String {
    if !word.contains(char::is_alphabetic) {
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
