//! Weighs the best matches with what surrounds them: who spoke, what was asked before, what came after, the session,
//! the date. The weights lie between those that suit either half of a benchmark's conversations best.

use std::sync::Arc;

use super::{Base, Question, Ranked};

/// The one that the question names spoke.
const SPEAKER: f64 = 1.0;
/// The memory before asks, and matches: this is the answer.
const ANSWER: f64 = 1.3;
const NEXT: f64 = 0.5;
/// In a talk of two, the next and the last words of the same person.
const AFTER_NEXT: f64 = 0.2;
const BEFORE_PREVIOUS: f64 = 0.3;
const SESSION: f64 = 0.4;
const DATE: f64 = 0.6;
const ASKS_ITSELF: f64 = 0.15;

/// A memory that may answer, without its text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) seq: u32,
    /// 0 for none.
    pub(crate) session: u32,
    pub(crate) actor: Arc<str>,
    pub(crate) asks: bool,
    pub(crate) ends_asking: bool,
    pub(crate) occurred_at: i64,
    /// The neighbours in its session.
    pub(crate) previous: Option<u32>,
    pub(crate) next: Option<u32>,
}

pub(crate) fn order(question: &Question, base: &Base, candidates: &[Candidate]) -> Vec<Ranked> {
    let surroundings = Surroundings::new(candidates);
    let rank = |candidate: &Candidate| {
        let score = score(question, base, candidate)
            + if question.is_dialogue_of_roles { 0.0 } else { surroundings.score(base, candidate) };
        Ranked { seq: candidate.seq, score }
    };
    let mut ranked: Vec<Ranked> = candidates.iter().map(rank).collect();
    ranked.sort_unstable_by(Ranked::compare);
    ranked
}

/// What counts in every kind of talk.
fn score(question: &Question, base: &Base, candidate: &Candidate) -> f64 {
    let own = base.of(candidate.seq);
    let speaker =
        if question.speakers.iter().any(|name| **name == *candidate.actor) { SPEAKER * own } else { 0.0 };
    let next = candidate.next.map_or(0.0, |next| NEXT * base.of(next));
    let session = SESSION * base.coverage(candidate.seq, candidate.session);
    own + speaker + next + session + DATE * question.dates.fit(candidate.occurred_at)
}

struct Surroundings<'a>(Vec<&'a Candidate>);

impl<'a> Surroundings<'a> {
    fn new(candidates: &'a [Candidate]) -> Self {
        let mut known: Vec<&Candidate> = candidates.iter().collect();
        known.sort_unstable_by_key(|candidate| candidate.seq);
        Self(known)
    }

    fn get(&self, seq: Option<u32>) -> Option<&'a Candidate> {
        let place = self.0.binary_search_by_key(&seq?, |candidate| candidate.seq).ok()?;
        self.0.get(place).copied()
    }

    /// What counts where people talk with each other. An assistant's questions and answers are of another kind.
    fn score(&self, base: &Base, candidate: &Candidate) -> f64 {
        let of = |seq: Option<u32>| seq.map_or(0.0, |seq| base.of(seq));
        let previous = self.get(candidate.previous);
        let answer = of(previous.filter(|previous| previous.asks).map(|previous| previous.seq));
        let before = of(previous.and_then(|previous| previous.previous));
        let after = of(self.get(candidate.next).and_then(|next| next.next));
        let asks_itself = if candidate.ends_asking { ASKS_ITSELF } else { 0.0 };
        ANSWER * answer + BEFORE_PREVIOUS * before + AFTER_NEXT * after - asks_itself
    }
}
