//! The words with which people take something upon themselves or ask for it, in four languages, and where they stand in a
//! sentence.

use std::collections::HashMap;
use std::sync::LazyLock;

use Force::{Dated, Limited, Plan, Promise, Reminder};
use Party::{Both, Listener, Speaker};

use super::sentences::has;
use super::sentences::{Word, lower, reads_at};

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

#[derive(Clone, Copy, Debug)]
pub(crate) struct Opener {
    pub(crate) words: &'static str,
    pub(crate) who: Party,
    pub(crate) force: Force,
    /// How many of its last words belong to the matter.
    pub(crate) kept: usize,
}

const fn opener(words: &'static str, who: Party, force: Force, kept: usize) -> Opener {
    Opener { words, who, force, kept }
}

/// All of them. Where two fit, the longer one counts.
const OPENERS: &[Opener] = &[
    opener("i'll", Speaker, Plan, 0),
    opener("i will", Speaker, Plan, 0),
    opener("i shall", Speaker, Plan, 0),
    opener("i promise", Speaker, Promise, 0),
    opener("i promise to", Speaker, Promise, 0),
    opener("i promise i'll", Speaker, Promise, 0),
    opener("i promise i will", Speaker, Promise, 0),
    opener("i promise you i'll", Speaker, Promise, 0),
    opener("i swear i'll", Speaker, Promise, 0),
    opener("i commit to", Speaker, Promise, 0),
    opener("i won't forget to", Speaker, Promise, 0),
    opener("i will not forget to", Speaker, Promise, 0),
    opener("you'll hear back from me", Speaker, Promise, 4),
    opener("you'll hear from me", Speaker, Promise, 3),
    opener("you will hear from me", Speaker, Promise, 3),
    opener("you'll have", Speaker, Limited, 1),
    opener("you will have", Speaker, Limited, 1),
    opener("you'll get", Speaker, Limited, 1),
    opener("you will get", Speaker, Limited, 1),
    opener("let me", Speaker, Dated, 0),
    opener("let me get back to you", Speaker, Promise, 4),
    opener("i'm going to", Speaker, Plan, 0),
    opener("i am going to", Speaker, Plan, 0),
    opener("i'm gonna", Speaker, Plan, 0),
    opener("i plan to", Speaker, Plan, 0),
    opener("i'm planning to", Speaker, Plan, 0),
    opener("i intend to", Speaker, Plan, 0),
    opener("i need to", Speaker, Dated, 0),
    opener("i need to remember to", Speaker, Dated, 0),
    opener("i have to", Speaker, Dated, 0),
    opener("i have to remember to", Speaker, Dated, 0),
    opener("i must remember to", Speaker, Dated, 0),
    opener("i agreed to", Speaker, Dated, 0),
    opener("i promised to", Speaker, Dated, 0),
    opener("i must", Speaker, Dated, 0),
    opener("i've got to", Speaker, Dated, 0),
    opener("i gotta", Speaker, Dated, 0),
    opener("i should", Speaker, Dated, 0),
    opener("i ought to", Speaker, Dated, 0),
    opener("i'm supposed to", Speaker, Dated, 0),
    opener("i am supposed to", Speaker, Dated, 0),
    opener("i can", Speaker, Limited, 0),
    opener("i want to", Speaker, Limited, 0),
    opener("i'd like to", Speaker, Limited, 0),
    opener("let's", Both, Dated, 0),
    opener("let us", Both, Dated, 0),
    opener("we'll", Both, Dated, 0),
    opener("we will", Both, Dated, 0),
    opener("we're going to", Both, Dated, 0),
    opener("we are going to", Both, Dated, 0),
    opener("we need to", Both, Dated, 0),
    opener("we have to", Both, Dated, 0),
    opener("we must", Both, Dated, 0),
    opener("we should", Both, Dated, 0),
    opener("we've got to", Both, Dated, 0),
    opener("remind me", Listener, Reminder, 2),
    opener("set a reminder", Listener, Reminder, 3),
    opener("set an alarm", Listener, Reminder, 3),
    opener("let me know", Listener, Dated, 3),
    opener("don't let me forget", Listener, Reminder, 0),
    opener("do not let me forget", Listener, Reminder, 0),
    opener("wake me", Listener, Reminder, 2),
    opener("ping me", Listener, Reminder, 2),
    opener("don't forget to", Listener, Dated, 0),
    opener("do not forget to", Listener, Dated, 0),
    opener("make sure to", Listener, Dated, 0),
    opener("make sure you", Listener, Dated, 0),
    opener("make sure that you", Listener, Dated, 0),
    opener("be sure to", Listener, Dated, 0),
    opener("can you", Listener, Dated, 0),
    opener("can you please", Listener, Dated, 0),
    opener("could you", Listener, Dated, 0),
    opener("could you please", Listener, Dated, 0),
    opener("would you", Listener, Dated, 0),
    opener("will you", Listener, Dated, 0),
    opener("i need you to", Listener, Dated, 0),
    opener("you need to", Listener, Limited, 0),
    opener("you have to", Listener, Limited, 0),
    opener("you must", Listener, Limited, 0),
    opener("i want you to", Listener, Dated, 0),
    opener("i'd like you to", Listener, Dated, 0),
    opener("please", Listener, Dated, 0),
    opener("please remind me", Listener, Reminder, 2),
    opener("ich werde", Speaker, Plan, 0),
    opener("ich verspreche", Speaker, Promise, 0),
    opener("ich muss", Speaker, Dated, 0),
    opener("ich soll", Speaker, Dated, 0),
    opener("ich sollte", Speaker, Dated, 0),
    opener("ich will", Speaker, Limited, 0),
    opener("ich mochte", Speaker, Limited, 0),
    opener("ich kann", Speaker, Limited, 0),
    opener("wir mussen", Both, Dated, 0),
    opener("wir sollten", Both, Dated, 0),
    opener("wir werden", Both, Dated, 0),
    opener("lass uns", Both, Dated, 0),
    opener("lasst uns", Both, Dated, 0),
    opener("erinnere mich", Listener, Reminder, 2),
    opener("erinner mich", Listener, Reminder, 2),
    opener("vergiss nicht", Listener, Dated, 0),
    opener("kannst du", Listener, Dated, 0),
    opener("konntest du", Listener, Dated, 0),
    opener("konnen sie", Listener, Dated, 0),
    opener("bitte", Listener, Dated, 0),
    opener("je vais", Speaker, Plan, 0),
    opener("je promets de", Speaker, Promise, 0),
    opener("je te promets de", Speaker, Promise, 0),
    opener("je dois", Speaker, Dated, 0),
    opener("il faut que je", Speaker, Dated, 0),
    opener("je peux", Speaker, Limited, 0),
    opener("nous devons", Both, Dated, 0),
    opener("nous allons", Both, Dated, 0),
    opener("on doit", Both, Dated, 0),
    opener("il faut", Both, Dated, 0),
    opener("rappelle moi", Listener, Reminder, 2),
    opener("rappelez moi", Listener, Reminder, 2),
    opener("n oublie pas de", Listener, Dated, 0),
    opener("peux tu", Listener, Dated, 0),
    opener("pourrais tu", Listener, Dated, 0),
    opener("pouvez vous", Listener, Dated, 0),
    opener("voy a", Speaker, Plan, 0),
    opener("prometo", Speaker, Promise, 0),
    opener("te prometo", Speaker, Promise, 0),
    opener("tengo que", Speaker, Dated, 0),
    opener("debo", Speaker, Dated, 0),
    opener("puedo", Speaker, Limited, 0),
    opener("tenemos que", Both, Dated, 0),
    opener("debemos", Both, Dated, 0),
    opener("vamos a", Both, Dated, 0),
    opener("recuerdame", Listener, Reminder, 1),
    opener("no olvides", Listener, Dated, 0),
    opener("puedes", Listener, Dated, 0),
    opener("podrias", Listener, Dated, 0),
];

pub(crate) fn beginning_with(word: &str) -> &'static [&'static Opener] {
    static BY_FIRST: LazyLock<HashMap<&str, Vec<&Opener>>> = LazyLock::new(|| {
        let mut by_first: HashMap<&str, Vec<&Opener>> = HashMap::new();
        for opener in OPENERS {
            let first = opener.words.split(' ').next().unwrap_or_default();
            by_first.entry(first).or_default().push(opener);
        }
        by_first
    });
    BY_FIRST.get(word).map_or(&[], Vec::as_slice)
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
    let standing = beginning_with(lower(words, at)).iter().filter(|opener| reads_at(words, at, opener.words));
    standing.max_by_key(|opener| opener.words.len()).map(|opener| OpenerMatch {
        start: at,
        content_start: at + opener.words.split(' ').count(),
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
