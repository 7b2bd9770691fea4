//! Text to terms, the same way for a memory and for a question. Pure and bounded: time grows with the length of the
//! text, and words have a maximum length.

#[cfg(test)]
mod tests;
mod words;

use std::collections::{BTreeMap, HashSet};

use words::Word;

/// Terms of a chunk: long memories are scored by their best part.
const CHUNK_TERMS: usize = 40;

/// The indexed form of a word: the first eight bytes of its hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Term(pub(crate) i64);

impl Term {
    fn of(text: &str) -> Self {
        let [a, b, c, d, e, f, g, h, ..] = *blake3::hash(text.as_bytes()).as_bytes();
        Self(i64::from_le_bytes([a, b, c, d, e, f, g, h]))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Document {
    /// At least one, even if empty.
    pub(crate) chunks: Vec<Chunk>,
    /// Whether it contains a question.
    pub(crate) asks: bool,
    pub(crate) ends_asking: bool,
}

impl Document {
    /// Number of terms, with repeats.
    pub(crate) fn length(&self) -> u64 {
        self.chunks.iter().map(|chunk| u64::from(chunk.length)).sum()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// Number of terms with repeats.
    pub(crate) length: u16,
    pub(crate) counts: BTreeMap<Term, u16>,
}

impl Chunk {
    fn of(terms: &[Term]) -> Self {
        let mut counts = BTreeMap::new();
        for term in terms {
            *counts.entry(*term).or_default() += 1;
        }
        // A chunk has fewer than twice CHUNK_TERMS.
        Self { length: u16::try_from(terms.len()).unwrap_or(u16::MAX), counts }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueryTerm {
    /// The unstemmed word, which names are compared with.
    pub(crate) name: Term,
    pub(crate) term: Term,
}

pub(crate) fn document(text: &str) -> Document {
    let terms = meaningful(text, |word| {
        let mut terms = terms(word);
        if word.script.has_words_of_one_letter() && !terms.is_empty() {
            let letters = letters(&word.text);
            terms.extend(letters.iter().filter(|_| letters.len() > 1).map(|letter| Term::of(letter)));
        }
        terms
    });
    let asks = text.char_indices().any(|(at, c)| is_question_mark(c) && ends_there(text, at + c.len_utf8()));
    let ends_asking = text.trim_end_matches(is_closing).ends_with(is_question_mark);
    Document { chunks: chunks(&terms), asks, ends_asking }
}

/// Without repeats, in order; at most `limit`.
pub(crate) fn question(text: &str, limit: usize) -> Vec<QueryTerm> {
    let all = meaningful(text, |word| {
        let name = Term::of(&word.text);
        let paired = word.script.is_paired();
        terms(word)
            .into_iter()
            .map(|term| QueryTerm { name: if paired { term } else { name }, term })
            .collect()
    });
    let mut seen = HashSet::new();
    all.into_iter().filter(|word| seen.insert(word.term)).take(limit).collect()
}

/// The words of a name, to be compared with those of a question, without initials and particles, which are too
/// frequent.
pub(crate) fn name(text: &str) -> Vec<Term> {
    let mut names = Vec::new();
    words::each(text, |word| match word.script.is_paired() {
        true => names.extend(terms(&word)),
        false if word.text.chars().nth(2).is_some() => names.push(Term::of(&word.text)),
        false => {}
    });
    names.sort_unstable();
    names.dedup();
    names
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextTerm {
    /// Equal for words that match each other.
    pub term: i64,
    /// Whether it is a stop word.
    pub is_filler: bool,
}

/// The terms of any text, in order and with repeats, made like those of memories: folded, stemmed, runs without
/// spaces in pairs of letters.
#[must_use]
pub fn text_terms(text: &str) -> Vec<TextTerm> {
    let mut found = Vec::new();
    words::each(text, |word| {
        let is_filler = words::is_stop(&word);
        found.extend(terms(&word).into_iter().map(|Term(term)| TextTerm { term, is_filler }));
    });
    found
}

/// The results of `each` for every word but the stop words; for those too, if there is nothing else.
fn meaningful<T>(text: &str, each: impl Fn(&Word) -> Vec<T>) -> Vec<T> {
    let mut found = Vec::new();
    let mut stopped = Vec::new();
    words::each(text, |word| {
        let into = if words::is_stop(&word) { &mut stopped } else { &mut found };
        into.extend(each(&word));
    });
    if found.is_empty() { stopped } else { found }
}

/// A word is one term; a run without spaces has one for each pair of neighbouring letters.
fn terms(word: &Word) -> Vec<Term> {
    if !word.script.is_paired() {
        return vec![Term::of(&words::stem(word))];
    }
    let letters = letters(&word.text);
    match letters.as_slice() {
        [only] => vec![Term::of(only)],
        many => many.windows(2).map(|pair| Term::of(&pair.concat())).collect(),
    }
}

/// The letters of a word, each with its marks.
fn letters(text: &str) -> Vec<&str> {
    let mut letters = Vec::new();
    let mut start = 0;
    for (at, _) in text.char_indices().filter(|(at, c)| *at > 0 && !words::is_mark(*c)) {
        letters.extend(text.get(start..at));
        start = at;
    }
    letters.extend(text.get(start..));
    letters
}

/// Chunks of about [`CHUNK_TERMS`]; a short last one joins the one before.
fn chunks(terms: &[Term]) -> Vec<Chunk> {
    let whole = terms.len() / CHUNK_TERMS;
    let last = terms.len() % CHUNK_TERMS;
    let count = if last * 3 < CHUNK_TERMS { whole } else { whole + 1 };
    let mut rest = terms;
    let mut chunks = Vec::with_capacity(count.max(1));
    for remaining in (0..count.max(1)).rev() {
        let length = if remaining == 0 { rest.len() } else { CHUNK_TERMS };
        let (chunk, after) = rest.split_at(length.min(rest.len()));
        chunks.push(Chunk::of(chunk));
        rest = after;
    }
    chunks
}

fn is_question_mark(c: char) -> bool {
    matches!(c, '?' | '\u{ff1f}' | '\u{61f}' | '\u{37e}')
}

/// Characters that may follow the end of a sentence.
fn is_closing(c: char) -> bool {
    c.is_whitespace() || matches!(c, '"' | '\'' | ')' | ']' | '\u{201d}' | '\u{2019}' | '\u{bb}' | '\u{300d}')
}

/// Whether a question mark that ends at this byte ends a sentence; in a URL it does not.
fn ends_there(text: &str, at: usize) -> bool {
    text.get(at..)
        .and_then(|rest| rest.chars().next())
        .is_none_or(|c| !c.is_alphanumeric() && c != '=' && c != '&')
}
