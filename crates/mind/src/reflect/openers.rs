//! Where people take something upon themselves or ask for it: the phrases of `openers.txt`, and verbs that need none.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::sentences::has;
use super::sentences::{Word, lower};

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

#[derive(Debug)]
struct Opener {
    words: Vec<&'static str>,
    who: Party,
    force: Force,
    /// How many of its last words belong to the matter.
    kept: usize,
}

static OPENERS: LazyLock<HashMap<&str, Vec<Opener>>> = LazyLock::new(|| {
    let mut by_first: HashMap<&str, Vec<Opener>> = HashMap::new();
    for line in include_str!("openers.txt").lines().filter(|line| !line.starts_with('#')) {
        let Some((heading, phrases)) = line.split_once(':') else { continue };
        for phrase in phrases.split(',') {
            let Some(opener) = Opener::parse(heading, phrase.trim()) else { continue };
            by_first.entry(opener.words.first().copied().unwrap_or_default()).or_default().push(opener);
        }
    }
    by_first
});

impl Opener {
    fn parse(heading: &str, phrase: &'static str) -> Option<Self> {
        let (who, force) = heading.split_once(' ')?;
        let who = match who {
            "speaker" => Party::Speaker,
            "listener" => Party::Listener,
            "both" => Party::Both,
            _ => return None,
        };
        let force = match force {
            "promise" => Force::Promise,
            "reminder" => Force::Reminder,
            "plan" => Force::Plan,
            "dated" => Force::Dated,
            "limited" => Force::Limited,
            _ => return None,
        };
        let kept = phrase.split_once("| ").map_or(0, |(_, kept)| kept.split(' ').count());
        let words: Vec<&str> = phrase.split(' ').filter(|word| *word != "|").collect();
        Some(Self { words, who, force, kept })
    }
}

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
pub(super) fn find_openers(words: &[Word<'_>]) -> Vec<OpenerMatch> {
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

fn by_words(words: &[Word<'_>], at: usize) -> Option<OpenerMatch> {
    let stands = |opener: &&Opener| {
        opener.words.iter().enumerate().all(|(offset, word)| lower(words, at + offset) == *word)
    };
    let standing = OPENERS.get(lower(words, at))?.iter().filter(stands);
    standing.max_by_key(|opener| opener.words.len()).map(|opener| OpenerMatch {
        start: at,
        content_start: at + opener.words.len(),
        kept: opener.kept,
        who: opener.who,
        force: opener.force,
    })
}

/// Verbs that open by themselves: an order, and the forms of other languages that need no little words.
fn by_verb(words: &[Word<'_>], at: usize) -> Option<OpenerMatch> {
    let word = lower(words, at);
    let opening =
        |verb: usize, who, force| OpenerMatch { start: at, content_start: verb, kept: 0, who, force };
    let begins = begins_clause(words, at);
    if begins && has("deeds", word) && !matches!(lower(words, at + 1), "is" | "was" | "from" | "") {
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
        let verb = (at + 1..at + 4).find(|place| !has("pronouns", lower(words, *place)))?;
        return by_ending(words.get(verb)?).map(|force| opening(verb, Party::Speaker, force));
    }
    if begins && word.ends_with('o') && has("present for future", word) {
        return Some(opening(at, Party::Speaker, Force::Dated));
    }
    let is_spanish_future =
        words.get(at).is_some_and(|word| word.text.len() > 5 && word.text.ends_with("ré"));
    is_spanish_future.then(|| opening(at, Party::Speaker, Force::Plan))
}

/// `Ich schicke es morgen`, `morgen schicke ich es`: the present, which a time makes the future.
fn german(words: &[Word<'_>], at: usize) -> Option<OpenerMatch> {
    let is_deed = |verb: &str| verb.len() > 3 && verb.ends_with('e') && !has("german idle", verb);
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
fn by_ending(word: &Word<'_>) -> Option<Force> {
    if (word.lower.ends_with("rai") && word.lower.len() > 4) || word.text.ends_with("ré") {
        return Some(Force::Promise);
    }
    has("present for future", &word.lower).then_some(Force::Dated)
}

/// Whether only small talk and times stand between the last break and here.
fn begins_clause(words: &[Word<'_>], at: usize) -> bool {
    for place in (0..at).rev() {
        if words.get(place + 1).is_some_and(|word| word.after_break) {
            return true;
        }
        if !has("small talk", lower(words, place)) {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::OPENERS;

    #[test]
    fn every_phrase_of_the_table_is_read() {
        let lines = include_str!("openers.txt").lines().filter(|line| !line.starts_with('#'));
        let phrases: usize = lines.map(|line| line.split(',').count()).sum();
        assert_eq!(OPENERS.values().map(Vec::len).sum::<usize>(), phrases);
    }
}
