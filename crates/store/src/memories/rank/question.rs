//! What a question asks for besides its words: who is meant, and when.

use super::dates::Dates;
use crate::memories::analyze::{self, QueryTerm, Term};

/// Of a longer question only the beginning is searched for.
const MOST_TERMS: usize = 64;
const USERS: [&str; 3] = ["user", "human", "owner"];
const ASSISTANTS: [&str; 3] = ["assistant", "ai", "agent"];

/// A parsed question, before its names are resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ParsedQuestion {
    words: Vec<QueryTerm>,
    first_person: bool,
    dates: Dates,
}

/// An actor of the scope, by one of the words of their name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Actor {
    pub(crate) name: Term,
    pub(crate) actor: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    /// In the order of the question.
    pub(crate) terms: Vec<Term>,
    /// Who must have said it; empty for anyone.
    pub(super) speakers: Vec<String>,
    /// Whether a user talks with an assistant, who asks and answers differently than two people do.
    pub(super) is_dialogue_of_roles: bool,
    pub(super) dates: Dates,
}

impl ParsedQuestion {
    pub(crate) fn read(text: &str) -> Self {
        let first_person = text.split(|c: char| !c.is_alphanumeric()).any(|word| {
            ["i", "my", "me", "mine", "we", "our", "us"].iter().any(|own| word.eq_ignore_ascii_case(own))
        });
        Self { words: analyze::question(text, MOST_TERMS), first_person, dates: Dates::read(text) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// To look up among the scope's actors.
    pub(crate) fn names(&self) -> Vec<Term> {
        let roles = USERS.iter().chain(&ASSISTANTS).flat_map(|role| analyze::name(role));
        let mut names: Vec<Term> = self.words.iter().map(|word| word.name).chain(roles).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The question, given those of [`ParsedQuestion::names`] that are actors, and the number of actors of the scope.
    pub(crate) fn resolve(&self, known: &[Actor], actors: u64) -> Question {
        let has = |roles: &[&str]| known.iter().any(|actor| is_role(&actor.actor, roles));
        let is_dialogue_of_roles = has(&USERS) && has(&ASSISTANTS);
        // "user" and "assistant" are words, not names.
        let is_called = |actor: &&Actor| {
            let role = is_role(&actor.actor, &USERS) || is_role(&actor.actor, &ASSISTANTS);
            !(role && is_dialogue_of_roles) && self.words.iter().any(|word| word.name == actor.name)
        };
        let called: Vec<&Actor> = known.iter().filter(is_called).collect();
        let asker = known
            .iter()
            .filter(|actor| is_dialogue_of_roles && self.first_person && is_role(&actor.actor, &USERS));
        let mut speakers: Vec<String> =
            called.iter().copied().chain(asker).map(|actor| actor.actor.clone()).collect();
        speakers.sort_unstable();
        speakers.dedup();
        // A question that names all actors names none.
        if speakers.len() as u64 >= actors {
            speakers.clear();
        }
        let is_name = |word: &QueryTerm| called.iter().any(|actor| actor.name == word.name);
        let mut terms: Vec<Term> =
            self.words.iter().filter(|word| !is_name(word)).map(|word| word.term).collect();
        if terms.is_empty() {
            terms = self.terms();
        }
        Question { terms, speakers, is_dialogue_of_roles, dates: self.dates.clone() }
    }

    /// The same question with the names as terms, if no other term is known.
    pub(crate) fn with_names(&self, question: Question) -> Question {
        Question { terms: self.terms(), ..question }
    }

    pub(crate) fn terms(&self) -> Vec<Term> {
        self.words.iter().map(|word| word.term).collect()
    }
}

fn is_role(actor: &str, roles: &[&str]) -> bool {
    roles.iter().any(|role| actor.eq_ignore_ascii_case(role))
}
