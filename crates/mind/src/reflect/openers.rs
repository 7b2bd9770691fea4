//! The words with which people take something upon themselves or ask for it, in four languages. Only words, no rules.

use std::collections::HashMap;
use std::sync::LazyLock;

use Force::{Dated, Limited, Plan, Promise, Reminder};
use Who::{Both, Listener, Speaker};

/// Whose matter it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// Whoever speaks.
    Speaker,
    /// Whoever is spoken to.
    Listener,
    /// Both.
    Both,
}

/// How much the words bind by themselves.
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

/// Words that open a commitment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opener {
    /// In small letters without accents, separated by spaces.
    pub(crate) words: &'static str,
    /// Whose matter it is.
    pub(crate) who: Who,
    /// How much it binds.
    pub(crate) force: Force,
    /// How many of its last words belong to the matter.
    pub(crate) kept: usize,
}

const fn opener(words: &'static str, who: Who, force: Force, kept: usize) -> Opener {
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

/// Those that begin with this word.
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
