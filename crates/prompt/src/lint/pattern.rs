//! Short phrases over words and meanings. Owns their notation and matching, which is linear: each step moves a set
//! of reachable positions (one bit each) instead of trying ways one after another.
//!
//! Notation, one element per blank: `word` (also with `-s`), `a|b`, `KIND` (a meaning in capitals), `x?` (may be absent),
//! `~3` (up to three words of any kind), `$` (the clause ends here), `^` (the clause starts here).

use std::collections::HashMap;

use super::document::{Document, Gap};
use super::lexicon::Kinds;

/// How many words after its start a phrase can reach.
const REACH: usize = 39;

/// A list of phrases, indexed by how they start.
pub(super) struct Phrases {
    by_word: HashMap<String, Vec<Phrase>>,
    by_kind: Vec<Phrase>,
    first_kinds: Kinds,
}

struct Phrase {
    first: Choice,
    at_start: bool,
    rest: Vec<Element>,
}

#[derive(Clone)]
struct Choice {
    words: Vec<&'static str>,
    kinds: Kinds,
}

enum Element {
    One(Choice),
    Maybe(Choice),
    Skip(usize),
    End,
}

impl Phrases {
    pub(super) fn new(notations: &[&'static str]) -> Self {
        let mut phrases = Self { by_word: HashMap::new(), by_kind: Vec::new(), first_kinds: Kinds::none() };
        for notation in notations {
            phrases.add(notation);
        }
        phrases
    }

    fn add(&mut self, notation: &'static str) {
        let bare = notation.trim_start_matches("^ ");
        let mut parts = bare.split_whitespace();
        let Some(first) = parts.next().map(Choice::new) else { return };
        let phrase = || Phrase {
            first: first.clone(),
            at_start: bare.len() < notation.len(),
            rest: parts.clone().map(Element::new).collect(),
        };
        if !first.kinds.is_empty() {
            self.first_kinds = self.first_kinds | first.kinds;
            self.by_kind.push(phrase());
        }
        for word in &first.words {
            self.by_word.entry((*word).to_owned()).or_default().push(phrase());
            self.by_word.entry(format!("{word}s")).or_default().push(phrase());
        }
    }

    /// The last word of the longest phrase that starts at word `i`.
    pub(super) fn end_at(&self, doc: &Document, i: usize) -> Option<usize> {
        let by_word = self.by_word.get(doc.word(i));
        if by_word.is_none() && !doc.is(i, self.first_kinds) {
            return None;
        }
        let clause = doc.ahead(i, REACH).take_while(|&j| doc.gap(j) < Gap::Clause).count();
        let by_kind = self.by_kind.iter().filter(|phrase| doc.is(i, phrase.first.kinds));
        by_word
            .into_iter()
            .flatten()
            .chain(by_kind)
            .filter_map(|phrase| phrase.end_at(doc, i, clause + 1))
            .max()
    }

    pub(super) fn can_start_at(&self, doc: &Document, i: usize) -> bool {
        doc.is(i, self.first_kinds) || self.by_word.contains_key(doc.word(i))
    }
}

impl Phrase {
    /// Bit n of the set: the phrase so far covers the words up to and including `i + n`.
    fn end_at(&self, doc: &Document, i: usize, length: usize) -> Option<usize> {
        if self.at_start && !doc.ends_before(i) {
            return None;
        }
        let mut reached: u64 = 1;
        for element in &self.rest {
            reached = element.step(doc, i, reached, length);
            if reached == 0 {
                return None;
            }
        }
        Some(i + reached.ilog2() as usize)
    }
}

impl Element {
    fn new(part: &'static str) -> Self {
        if part == "$" {
            return Self::End;
        }
        if let Some(count) = part.strip_prefix('~') {
            return Self::Skip(count.parse().unwrap_or(0));
        }
        match part.strip_suffix('?') {
            Some(optional) => Self::Maybe(Choice::new(optional)),
            None => Self::One(Choice::new(part)),
        }
    }

    fn step(&self, doc: &Document, i: usize, reached: u64, length: usize) -> u64 {
        let within = (1_u64 << length) - 1;
        let advance = |choice: &Choice| {
            let next = reached << 1 & within;
            (1..length)
                .filter(|n| next >> n & 1 == 1 && choice.fits(doc, i + n))
                .fold(0, |set, n| set | 1 << n)
        };
        match self {
            Self::One(choice) => advance(choice),
            Self::Maybe(choice) => reached | advance(choice),
            Self::Skip(count) => (0..=*count).fold(0, |set, by| set | reached << by) & within,
            Self::End => (0..length)
                .filter(|n| reached >> n & 1 == 1 && doc.gap(i + n + 1) >= Gap::Soft)
                .fold(0, |set, n| set | 1 << n),
        }
    }
}

impl Choice {
    fn new(part: &'static str) -> Self {
        let mut choice = Self { words: Vec::new(), kinds: Kinds::none() };
        for one in part.split('|') {
            match Kinds::named(one) {
                Some(kinds) => choice.kinds = choice.kinds | kinds,
                None => choice.words.push(one),
            }
        }
        choice
    }

    fn fits(&self, doc: &Document, i: usize) -> bool {
        let word = doc.word(i);
        let base = word.strip_suffix('s').filter(|base| base.len() > 2).unwrap_or(word);
        doc.is(i, self.kinds) || self.words.iter().any(|&one| one == word || one == base)
    }
}

/// Elements in capitals that name no meaning and would match nothing.
#[cfg(test)]
pub(super) fn misnamed<'a>(notations: &[&'a str]) -> Vec<&'a str> {
    let elements = notations.iter().flat_map(|notation| notation.split_whitespace());
    let choices = elements.flat_map(|element| element.trim_end_matches('?').split('|'));
    choices
        .filter(|one| one.chars().all(char::is_uppercase) && Kinds::named(one).is_none())
        .filter(|one| !one.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(notation: &'static str, text: &str) -> Option<usize> {
        Phrases::new(&[notation]).end_at(&Document::read(text), 0)
    }

    #[test]
    fn words_choices_and_meanings_match_in_order() {
        assert_eq!(ends("send mail|letters", "send letters"), Some(1));
        assert_eq!(ends("send mail", "sends mail"), Some(1));
        assert_eq!(ends("send mail", "send no mail"), None);
        assert_eq!(ends("the RULE", "the guidelines"), Some(1));
    }

    #[test]
    fn gaps_are_bounded_and_optional_elements_may_be_absent() {
        assert_eq!(ends("one ~2 four", "one two three four"), Some(3));
        assert_eq!(ends("one ~1 four", "one two three four"), None);
        assert_eq!(ends("one two? three", "one three"), Some(1));
    }

    #[test]
    fn phrases_stay_inside_their_clause() {
        assert_eq!(ends("one two", "one. Two"), None);
        assert_eq!(ends("one ~3 two", "one; and two"), None);
        assert_eq!(ends("one two $", "one two, three"), Some(1));
        assert_eq!(ends("one two $", "one two three"), None);
    }
}
