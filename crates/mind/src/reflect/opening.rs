//! Where in a sentence somebody takes something upon themselves or asks for it: by an opener, or by a verb alone.

use super::lexicon::has;
use super::openers::{Force, Who, beginning_with};
use super::sentences::{Word, low, stands};

/// Where a commitment opens, and where its matter begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Opening {
    /// The first word of the opener.
    pub(super) start: usize,
    /// Where the opener's words end.
    pub(super) matter: usize,
    /// How many of the opener's words belong to the matter.
    pub(super) kept: usize,
    pub(super) who: Who,
    pub(super) force: Force,
}

/// The openings of a sentence, from left to right.
pub(super) fn openings(words: &[Word<'_>]) -> Vec<Opening> {
    let mut found: Vec<Opening> = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let opening = by_words(words, at).or_else(|| by_verb(words, at));
        match opening.filter(|opening| opening.who == Who::Speaker || begins_clause(words, opening.start)) {
            // `I'd like you to please send`: the first opener of a clause is the one.
            Some(opening) if found.last().is_none_or(|last| opening.start > last.matter) => {
                at = opening.matter.max(at + 1);
                found.push(opening);
            }
            _ => at += 1,
        }
    }
    found
}

fn by_words(words: &[Word<'_>], at: usize) -> Option<Opening> {
    let standing = beginning_with(low(words, at)).iter().filter(|opener| stands(words, at, opener.words));
    standing.max_by_key(|opener| opener.words.len()).map(|opener| Opening {
        start: at,
        matter: at + opener.words.split(' ').count(),
        kept: opener.kept,
        who: opener.who,
        force: opener.force,
    })
}

/// Verbs that open by themselves: an order, and the forms of other languages that need no little words.
fn by_verb(words: &[Word<'_>], at: usize) -> Option<Opening> {
    let word = low(words, at);
    let opening = |verb: usize, who, force| Opening { start: at, matter: verb, kept: 0, who, force };
    let begins = begins_clause(words, at);
    if begins && has("deeds", word) && !matches!(low(words, at + 1), "is" | "was" | "from" | "") {
        return Some(opening(at, Who::Listener, Force::Dated));
    }
    if at == 0 && ((word.len() > 5 && word.ends_with("ons")) || word.ends_with("emos")) {
        return Some(opening(at, Who::Both, Force::Dated));
    }
    if word == "ich" {
        return german(words, at);
    }
    let is_clitic = begins && matches!(word, "te" | "se" | "lo" | "la" | "le" | "les" | "os");
    if is_clitic || matches!(word, "je" | "j") {
        let verb = (at + 1..at + 4).find(|place| !has("pronouns", low(words, *place)))?;
        return by_ending(words.get(verb)?).map(|force| opening(verb, Who::Speaker, force));
    }
    if begins && word.ends_with('o') && has("present for future", word) {
        return Some(opening(at, Who::Speaker, Force::Dated));
    }
    let is_spanish_future =
        words.get(at).is_some_and(|word| word.text.len() > 5 && word.text.ends_with("ré"));
    is_spanish_future.then(|| opening(at, Who::Speaker, Force::Plan))
}

/// `Ich schicke es morgen`, `morgen schicke ich es`: the present, which a time makes the future.
fn german(words: &[Word<'_>], at: usize) -> Option<Opening> {
    let is_deed = |verb: &str| verb.len() > 3 && verb.ends_with('e') && !has("german idle", verb);
    let opening = |start, matter| Opening { start, matter, kept: 0, who: Who::Speaker, force: Force::Dated };
    if is_deed(low(words, at + 1)) {
        return Some(opening(at, at + 1));
    }
    let before = at.checked_sub(1)?;
    (before > 0 && is_deed(low(words, before))).then(|| opening(before, before))
}

/// The future of French and Spanish, by its ending.
fn by_ending(word: &Word<'_>) -> Option<Force> {
    if (word.low.ends_with("rai") && word.low.len() > 4) || word.text.ends_with("ré") {
        return Some(Force::Promise);
    }
    has("present for future", &word.low).then_some(Force::Dated)
}

/// Whether only small talk and times stand between the last break and here.
fn begins_clause(words: &[Word<'_>], at: usize) -> bool {
    for place in (0..at).rev() {
        if words.get(place + 1).is_some_and(|word| word.broken) {
            return true;
        }
        if !has("small talk", low(words, place)) {
            return false;
        }
    }
    true
}
