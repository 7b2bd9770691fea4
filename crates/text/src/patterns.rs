//! Short phrases over words and word classes. Owns their notation and matching, which is linear: each step moves a set of
//! reachable positions (one bit each) instead of trying ways one after another.
//!
//! Notation, one element per blank: `word`, `CLASS` (in capitals), `a|B` (either), `A&B` (both), `a!B` (the first and not the
//! second), `x?` (may be absent), `~3` (up to three words), `~3!B` (up to three words, none of them B), `$` (the clause ends here),
//! and `^` at the beginning (the clause starts here).

use std::collections::HashMap;

use crate::lexicon::{Classes, Lexicon};
use crate::tokenize::{Document, Gap};

/// How many words after its start a phrase can reach.
const REACH: usize = 59;

/// A word as a number; all words that no pattern contains share one.
pub(crate) type WordId = u32;

const UNKNOWN: WordId = 0;

#[derive(Debug, Default)]
pub(crate) struct Vocabulary {
    ids: HashMap<String, WordId>,
    /// Whether a word of a pattern also stands for its form with `-s`.
    pub(crate) plural: bool,
}

/// The words of one document as numbers: as it stands, and without `-s`.
pub(crate) struct WordIds(Vec<(WordId, WordId)>);

impl Vocabulary {
    fn intern(&mut self, word: &str) -> WordId {
        let next = WordId::try_from(self.ids.len() + 1).unwrap_or(UNKNOWN);
        *self.ids.entry(crate::fold::fold(word)).or_insert(next)
    }

    fn id(&self, word: &str) -> WordId {
        self.ids.get(word).copied().unwrap_or(UNKNOWN)
    }

    pub(crate) fn ids(&self, doc: &Document<'_>) -> WordIds {
        let pair = |word: &str| {
            let base = word.strip_suffix('s').filter(|base| self.plural && base.len() > 2);
            (self.id(word), base.map_or(UNKNOWN, |base| self.id(base)))
        };
        WordIds(doc.tokens.iter().map(|token| pair(&token.word)).collect())
    }
}

/// Where phrases may reach and end, by what stands between words.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// A phrase does not cross this or a stronger gap.
    pub(crate) stop: Gap,
    /// `$` and `^` stand for this or a stronger gap.
    pub(crate) edge: Gap,
}

/// What one word may be.
#[derive(Debug, Clone, Default)]
pub(crate) struct Choice {
    words: Vec<WordId>,
    classes: Classes,
    and: Option<Box<Choice>>,
    not: Option<Box<Choice>>,
    /// The edge of a clause will do.
    pub(crate) edge: bool,
}

impl Choice {
    /// Reads `a|B&C!d`; the error is a class that does not exist.
    pub(crate) fn parse(part: &str, lexicon: &Lexicon, vocabulary: &mut Vocabulary) -> Result<Self, String> {
        let (wanted, unwanted) = part.split_once('!').map_or((part, None), |(a, b)| (a, Some(b)));
        let (wanted, also) = wanted.split_once('&').map_or((wanted, None), |(a, b)| (a, Some(b)));
        let mut choice = Self::default();
        for one in wanted.split(['|', ' ']).filter(|one| !one.is_empty()) {
            if matches!(one, "$" | "^") {
                choice.edge = true;
            } else if one.chars().any(char::is_uppercase) {
                let class = lexicon.class(one);
                if class.is_empty() {
                    return Err(format!("no class `{one}`"));
                }
                choice.classes = choice.classes.with(class);
            } else {
                choice.words.push(vocabulary.intern(one));
            }
        }
        choice.words.sort_unstable();
        choice.and = also.map(|list| Self::parse(list, lexicon, vocabulary).map(Box::new)).transpose()?;
        choice.not = unwanted.map(|list| Self::parse(list, lexicon, vocabulary).map(Box::new)).transpose()?;
        Ok(choice)
    }

    pub(crate) fn fits(&self, doc: &Document<'_>, ids: &WordIds, i: usize) -> bool {
        let Some(&(id, base)) = ids.0.get(i) else { return false };
        let is = |id| id != UNKNOWN && self.words.binary_search(&id).is_ok();
        (doc.is(i, self.classes) || is(id) || is(base))
            && self.and.as_ref().is_none_or(|and| and.fits(doc, ids, i))
            && !self.not.as_ref().is_some_and(|not| not.fits(doc, ids, i))
    }
}

#[derive(Debug)]
enum Element {
    One(Choice),
    Maybe(Choice),
    /// Up to so many words, none of which is of the choice.
    Skip(usize, Option<Choice>),
}

impl Element {
    fn parse(part: &str, lexicon: &Lexicon, vocabulary: &mut Vocabulary) -> Result<Self, String> {
        if let Some(gap) = part.strip_prefix('~') {
            let (count, not) = gap.split_once('!').map_or((gap, None), |(count, not)| (count, Some(not)));
            let not = not.map(|not| Choice::parse(not, lexicon, vocabulary)).transpose()?;
            let count = count.parse().map_err(|_| format!("`{part}` has no number"))?;
            return Ok(Self::Skip(count, not));
        }
        match part.strip_suffix('?') {
            Some(optional) => Choice::parse(optional, lexicon, vocabulary).map(Self::Maybe),
            None => Choice::parse(part, lexicon, vocabulary).map(Self::One),
        }
    }

    /// Bit n of `reached`: the phrase so far covers the words up to and including `i + n`.
    fn step(&self, doc: &Document<'_>, ids: &WordIds, i: usize, reached: u64, span: Span) -> u64 {
        let within = (1_u64 << span.length) - 1;
        let advance = |choice: &Choice| {
            let next = reached << 1 & within;
            let words = (1..span.length).filter(|n| next >> n & 1 == 1 && choice.fits(doc, ids, i + n));
            let at_edge = (0..span.length)
                .filter(|n| choice.edge && reached >> n & 1 == 1 && doc.gap(i + n + 1) >= span.edge);
            words.chain(at_edge).fold(0, |set, n| set | 1 << n)
        };
        match self {
            Self::One(choice) => advance(choice),
            Self::Maybe(choice) => reached | advance(choice),
            Self::Skip(count, not) => {
                let fits = |n: &usize| !not.as_ref().is_some_and(|not| not.fits(doc, ids, i + n));
                let open = match not {
                    Some(_) => (1..span.length).filter(fits).fold(0, |set, n| set | 1 << n),
                    None => within,
                };
                (0..*count).fold(reached, |set, _| set | set << 1 & open)
            }
        }
    }
}

#[derive(Clone, Copy)]
struct Span {
    length: usize,
    edge: Gap,
}

#[derive(Debug)]
pub(crate) struct Pattern {
    first: Choice,
    at_start: bool,
    rest: Vec<Element>,
}

impl Pattern {
    pub(crate) fn parse(
        notation: &str,
        lexicon: &Lexicon,
        vocabulary: &mut Vocabulary,
    ) -> Result<Self, String> {
        let bare = notation.strip_prefix("^ ");
        let mut parts = bare.unwrap_or(notation).split_whitespace();
        let first = parts.next().unwrap_or_default();
        if first.is_empty() || first.starts_with('~') || first.ends_with('?') {
            return Err(format!("`{notation}` does not begin with a word"));
        }
        let first = Choice::parse(first, lexicon, vocabulary)?;
        let rest: Result<Vec<Element>, String> =
            parts.map(|part| Element::parse(part, lexicon, vocabulary)).collect();
        Ok(Self { first, at_start: bare.is_some(), rest: rest? })
    }

    /// The last word of the longest match that starts at word `i`.
    pub(crate) fn end_at(
        &self,
        doc: &Document<'_>,
        ids: &WordIds,
        i: usize,
        bounds: Bounds,
    ) -> Option<usize> {
        if self.at_start && doc.gap(i) < bounds.edge || !self.first.fits(doc, ids, i) {
            return None;
        }
        let length = 1 + doc.ahead(i, REACH).take_while(|&j| doc.gap(j) < bounds.stop).count();
        let span = Span { length, edge: bounds.edge };
        let mut reached: u64 = 1;
        for element in &self.rest {
            reached = element.step(doc, ids, i, reached, span);
            if reached == 0 {
                return None;
            }
        }
        Some(i + reached.ilog2() as usize)
    }
}

/// Patterns by how they start, so that most words start none.
#[derive(Debug, Default)]
pub(crate) struct Index {
    by_word: HashMap<WordId, Vec<usize>>,
    by_class: Vec<Vec<usize>>,
    classes: Classes,
}

impl Index {
    pub(crate) fn add(&mut self, number: usize, pattern: &Pattern) {
        for &word in &pattern.first.words {
            self.by_word.entry(word).or_default().push(number);
        }
        self.classes = self.classes.with(pattern.first.classes);
        for bit in pattern.first.classes.bits() {
            if self.by_class.len() <= bit {
                self.by_class.resize_with(bit + 1, Default::default);
            }
            if let Some(numbers) = self.by_class.get_mut(bit) {
                numbers.push(number);
            }
        }
    }

    /// The patterns that may start at word `i`.
    pub(crate) fn starting_at(&self, doc: &Document<'_>, ids: &WordIds, i: usize) -> Vec<usize> {
        let Some(&(id, base)) = ids.0.get(i) else { return Vec::new() };
        let mut numbers: Vec<usize> = Vec::new();
        for id in [id, base].into_iter().filter(|id| *id != UNKNOWN) {
            numbers.extend(self.by_word.get(&id).into_iter().flatten());
        }
        if doc.is(i, self.classes) {
            let bits = doc.classes(i).bits();
            numbers.extend(bits.filter_map(|bit| self.by_class.get(bit)).flatten());
        }
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }
}
