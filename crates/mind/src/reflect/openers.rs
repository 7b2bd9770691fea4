//! Where people take something upon themselves or ask for it: the lists of openers in `words.txt`, and verbs that need none.

use embody_text::tokenize::Token;

use super::sentences::{has, is_after_break, lower, phrase_of};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Party {
    Speaker,
    Listener,
    Both,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Force {
    /// `I promise`: it binds, with a time or without one.
    Promise,
    /// `remind me`: it binds the listener.
    Reminder,
    /// `I'll`, which is said of everything: it binds with a time, with a deed that others wait for, with a certain thing.
    Plan,
    /// `I have to`, `let's`, `can you`: it is talk until there is a time.
    Dated,
    /// `I can`, `I want to`: it is talk until there is a limit.
    Limited,
}

/// The lists of openers in `words.txt`, by who takes it upon themselves and how far it binds.
const OPENERS: [(&str, Party, Force); 8] = [
    ("speaker plan", Party::Speaker, Force::Plan),
    ("speaker promise", Party::Speaker, Force::Promise),
    ("speaker limited", Party::Speaker, Force::Limited),
    ("speaker dated", Party::Speaker, Force::Dated),
    ("both dated", Party::Both, Force::Dated),
    ("listener reminder", Party::Listener, Force::Reminder),
    ("listener dated", Party::Listener, Force::Dated),
    ("listener limited", Party::Listener, Force::Limited),
];

#[derive(Clone, Copy, Debug)]
pub(super) struct OpenerMatch {
    pub(super) start: usize,
    pub(super) content_start: usize,
    /// How many of the opener's words belong to the matter.
    pub(super) kept: usize,
    pub(super) who: Party,
    pub(super) force: Force,
}

/// The openings of a sentence, from left to right.
pub(super) fn find_openers(words: &[Token<'_>]) -> Vec<OpenerMatch> {
    let mut found: Vec<OpenerMatch> = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let opening = by_words(words, at).or_else(|| by_verb(words, at));
        match opening.filter(|opening| opening.who == Party::Speaker || begins_clause(words, opening.start)) {
            // `I'd like you to please send`: the first opener of a clause is the one.
            Some(opening) if found.last().is_none_or(|last| opening.start > last.content_start) => {
                at = opening.content_start.max(at + 1);
                found.push(opening);
            }
            _ => at += 1,
        }
    }
    found
}

fn by_words(words: &[Token<'_>], at: usize) -> Option<OpenerMatch> {
    let kind = |name: &str| OPENERS.iter().find(|(list, ..)| *list == name);
    let opener = phrase_of(words, at, |name| kind(name).is_some())?;
    let &(_, who, force) = kind(&opener.name)?;
    Some(OpenerMatch { start: at, content_start: at + opener.words.len(), kept: opener.kept, who, force })
}

/// Verbs that open by themselves: an order, and the forms of other languages that need no little words.
fn by_verb(words: &[Token<'_>], at: usize) -> Option<OpenerMatch> {
    let word = lower(words, at);
    let opening =
        |verb: usize, who, force| OpenerMatch { start: at, content_start: verb, kept: 0, who, force };
    let begins = begins_clause(words, at);
    if begins && has("DEEDS", word) && !matches!(lower(words, at + 1), "is" | "was" | "from" | "") {
        return Some(opening(at, Party::Listener, Force::Dated));
    }
    if at == 0 && ((word.len() > 5 && word.ends_with("ons")) || word.ends_with("emos")) {
        return Some(opening(at, Party::Both, Force::Dated));
    }
    if word == "ich" {
        return german(words, at);
    }
    let is_clitic = begins && matches!(word, "te" | "se" | "lo" | "la" | "le" | "les" | "os");
    if is_clitic || matches!(word, "je" | "j") {
        let verb = (at + 1..at + 4).find(|place| !has("PRONOUNS", lower(words, *place)))?;
        return by_ending(words.get(verb)?).map(|force| opening(verb, Party::Speaker, force));
    }
    if begins && word.ends_with('o') && has("PRESENT_FOR_FUTURE", word) {
        return Some(opening(at, Party::Speaker, Force::Dated));
    }
    let is_spanish_future =
        words.get(at).is_some_and(|word| word.text.len() > 5 && word.text.ends_with("ré"));
    is_spanish_future.then(|| opening(at, Party::Speaker, Force::Plan))
}

/// `Ich schicke es morgen`, `morgen schicke ich es`: the present, which a time makes the future.
fn german(words: &[Token<'_>], at: usize) -> Option<OpenerMatch> {
    let is_deed = |verb: &str| verb.len() > 3 && verb.ends_with('e') && !has("GERMAN_IDLE", verb);
    let opening = |start, content_start| OpenerMatch {
        start,
        content_start,
        kept: 0,
        who: Party::Speaker,
        force: Force::Dated,
    };
    if is_deed(lower(words, at + 1)) {
        return Some(opening(at, at + 1));
    }
    let before = at.checked_sub(1)?;
    (before > 0 && is_deed(lower(words, before))).then(|| opening(before, before))
}

/// The future of French and Spanish, by its ending.
fn by_ending(word: &Token<'_>) -> Option<Force> {
    if (word.word.ends_with("rai") && word.word.len() > 4) || word.text.ends_with("ré") {
        return Some(Force::Promise);
    }
    has("PRESENT_FOR_FUTURE", &word.word).then_some(Force::Dated)
}

/// Whether only small talk and times stand between the last break and here.
fn begins_clause(words: &[Token<'_>], at: usize) -> bool {
    for place in (0..at).rev() {
        if words.get(place + 1).is_some_and(is_after_break) {
            return true;
        }
        if !has("SMALL_TALK", lower(words, place)) {
            return false;
        }
    }
    true
}
