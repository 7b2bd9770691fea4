//! Which memories answer a question, best first. Pure arithmetic over postings and a few facts about each memory: no
//! database, no clock, and no dependence on the order in which rows arrive.
//!
//! A question is read ([`Draft`]), told who the actors are ([`Question`]), matched against the postings ([`Base`]), and
//! the best of those are weighed with their neighbours, session, speaker and date ([`order`]).

mod base;
mod dates;
mod question;
mod rescore;
#[cfg(test)]
mod tests;

pub(crate) use base::{Base, Statistics};
pub(crate) use question::{Actor, Draft, Question};
pub(crate) use rescore::{Candidate, order};

/// A memory's number in its scope, and what it is worth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ranked {
    pub(crate) seq: u32,
    pub(crate) score: f64,
}

impl Ranked {
    fn compare(&self, other: &Self) -> std::cmp::Ordering {
        other.score.total_cmp(&self.score).then(other.seq.cmp(&self.seq))
    }
}
