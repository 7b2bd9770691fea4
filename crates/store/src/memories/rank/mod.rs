//! Which memories answer a question, best first. Pure arithmetic over postings and a few facts about each memory,
//! independent of the order of rows.
//!
//! A question is parsed ([`ParsedQuestion`]), resolved with the actors ([`Question`]) and matched against the postings
//! ([`Base`]); the best of those are weighed with their neighbours, session, speaker and date ([`order`]).

mod dates;
mod question;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub(crate) use self::question::{Actor, ParsedQuestion, Question};
use crate::memories::postings::Posting;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ScoredMemory {
    pub(crate) seq: u32,
    pub(crate) score: f64,
}

impl ScoredMemory {
    fn compare(&self, other: &Self) -> std::cmp::Ordering {
        other.score.total_cmp(&self.score).then(other.seq.cmp(&self.seq))
    }
}

const K1: f64 = 0.6;
const B: f64 = 0.3;
/// Memories that are summed up together: their sums stay in the processor's cache.
const WINDOW: u32 = 4096;

/// Statistics of a scope, for the weight of rare and common words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Statistics {
    pub(crate) memories: u64,
    pub(crate) chunks: u64,
    /// Terms of all chunks together.
    pub(crate) terms: u64,
}

/// The weighed postings of a question's terms.
#[derive(Debug)]
pub(crate) struct Base {
    lists: Vec<List>,
    saturation: Saturation,
    /// By session, the summed weights of its terms.
    sessions: Vec<f64>,
}

#[derive(Debug)]
struct List {
    /// All weights of a question add up to 1.
    weight: f64,
    /// Ordered by memory and chunk.
    postings: Vec<Posting>,
}

impl Base {
    /// One list per term, each ordered by memory and chunk.
    pub(crate) fn new(statistics: Statistics, lists: Vec<Vec<Posting>>) -> Self {
        let mut lists: Vec<List> = lists
            .into_iter()
            .filter(|postings| !postings.is_empty())
            .map(|postings| List { weight: rarity(statistics.memories, &postings), postings })
            .collect();
        let saturation = Saturation::new(statistics.terms.max(1) as f64 / statistics.chunks.max(1) as f64);
        let whole: f64 = lists.iter().map(|list| list.weight).sum();
        lists.iter_mut().for_each(|list| list.weight /= whole);
        let sessions = sessions(&lists);
        Self { lists, saturation, sessions }
    }

    pub(crate) fn best(&self, size: usize) -> Vec<ScoredMemory> {
        let mut best = Best::new(size);
        let mut rests: Vec<&[Posting]> = self.lists.iter().map(|list| list.postings.as_slice()).collect();
        let mut window = Window::default();
        while let Some(start) = rests.iter().filter_map(|rest| rest.first()).map(|posting| posting.seq).min()
        {
            window.clear(start);
            for (list, rest) in self.lists.iter().zip(&mut rests) {
                let inside = rest.partition_point(|posting| posting.seq - start < WINDOW);
                let (now, later) = rest.split_at(inside);
                for posting in now {
                    window.add(posting, self.worth(list, posting));
                }
                *rest = later;
            }
            for (seq, score) in window.sums() {
                best.offer(ScoredMemory { seq, score });
            }
        }
        best.finish()
    }

    pub(crate) fn best_of(&self, seqs: &[u32], size: usize) -> Vec<ScoredMemory> {
        let mut best = Best::new(size);
        let ranked = seqs.iter().map(|seq| ScoredMemory { seq: *seq, score: self.of(*seq) });
        ranked.for_each(|ranked| best.offer(ranked));
        best.finish()
    }

    /// From 0 to 1.
    pub(crate) fn of(&self, seq: u32) -> f64 {
        let mut parts: Vec<(u16, f64)> = Vec::new();
        for list in &self.lists {
            for posting in list.of(seq) {
                let worth = self.worth(list, posting);
                match parts.iter_mut().find(|(chunk, _)| *chunk == posting.chunk) {
                    Some((_, sum)) => *sum += worth,
                    None => parts.push((posting.chunk, worth)),
                }
            }
        }
        parts.iter().map(|(_, sum)| *sum).fold(0.0, f64::max)
    }

    /// The share of the question, by weight, that the memory's session covers; without a session, the memory itself.
    pub(crate) fn coverage(&self, seq: u32, session: u32) -> f64 {
        match session {
            0 => self.lists.iter().filter(|list| !list.of(seq).is_empty()).map(|list| list.weight).sum(),
            _ => self.sessions.get(session as usize).copied().unwrap_or_default(),
        }
    }

    #[inline]
    fn worth(&self, list: &List, posting: &Posting) -> f64 {
        list.weight * self.saturation.of(posting.count, posting.length)
    }
}

/// The share of a term's weight that a chunk gets by its count and length (BM25). Nearly every posting is in the
/// table, which saves a division.
#[derive(Debug)]
struct Saturation {
    average_length: f64,
    table: Vec<f64>,
}

impl Saturation {
    const COUNTS: u16 = 8;
    const LENGTHS: u16 = 64;

    fn new(average_length: f64) -> Self {
        let mut saturation = Self { average_length, table: Vec::new() };
        let cells = (0..Self::LENGTHS).flat_map(|length| (0..Self::COUNTS).map(move |count| (count, length)));
        saturation.table = cells.map(|(count, length)| saturation.compute(count, length)).collect();
        saturation
    }

    #[inline]
    fn of(&self, count: u16, length: u16) -> f64 {
        let cell = usize::from(length) * usize::from(Self::COUNTS) + usize::from(count);
        match self.table.get(cell) {
            Some(known) if count < Self::COUNTS => *known,
            _ => self.compute(count, length),
        }
    }

    fn compute(&self, count: u16, length: u16) -> f64 {
        let (count, length) = (f64::from(count), f64::from(length) / self.average_length);
        count / (count + K1 * (1.0 - B + B * length))
    }
}

impl List {
    fn of(&self, seq: u32) -> &[Posting] {
        let start = self.postings.partition_point(|posting| posting.seq < seq);
        let rest = self.postings.get(start..).unwrap_or_default();
        let length = rest.iter().take_while(|posting| posting.seq == seq).count();
        rest.get(..length).unwrap_or_default()
    }
}

/// The inverse document frequency of a term, never negative: a list may be newer than the statistics.
fn rarity(memories: u64, postings: &[Posting]) -> f64 {
    let with = postings.chunk_by(|a, b| a.seq == b.seq).count() as f64;
    let all = (memories as f64).max(with);
    (1.0 + (all - with + 0.5) / (with + 0.5)).ln()
}

fn sessions(lists: &[List]) -> Vec<f64> {
    let highest =
        lists.iter().flat_map(|list| &list.postings).map(|posting| posting.session).max().unwrap_or(0);
    let mut covered = vec![0.0; highest as usize + 1];
    let mut counted_for = vec![0_u32; highest as usize + 1];
    for (term, list) in (1..).zip(lists) {
        for posting in &list.postings {
            let session = posting.session as usize;
            if let (Some(covered), Some(counted)) = (covered.get_mut(session), counted_for.get_mut(session))
                && *counted != term
            {
                *counted = term;
                *covered += list.weight;
            }
        }
    }
    covered
}

/// Sums of neighbouring memories. First chunks, the only ones of most memories, are added in place; others are sorted
/// afterwards, so that every sum is made in the order of the terms.
#[derive(Default)]
struct Window {
    start: u32,
    first_chunks: Vec<f64>,
    other_chunks: Vec<Other>,
}

struct Other {
    offset: u32,
    chunk: u16,
    worth: f64,
}

impl Window {
    fn clear(&mut self, start: u32) {
        self.start = start;
        self.first_chunks.clear();
        self.first_chunks.resize(WINDOW as usize, 0.0);
        self.other_chunks.clear();
    }

    #[inline]
    fn add(&mut self, posting: &Posting, worth: f64) {
        let offset = posting.seq - self.start;
        if posting.chunk != 0 {
            self.other_chunks.push(Other { offset, chunk: posting.chunk, worth });
        } else if let Some(sum) = self.first_chunks.get_mut(offset as usize) {
            *sum += worth;
        }
    }

    /// Each memory of the window, and the sum of its best chunk.
    fn sums(&mut self) -> impl Iterator<Item = (u32, f64)> {
        // A stable sort keeps the order of the terms, and is fast on sorted runs.
        self.other_chunks.sort_by_key(|other| u64::from(other.offset) << 16 | u64::from(other.chunk));
        for chunk in self.other_chunks.chunk_by(|a, b| (a.offset, a.chunk) == (b.offset, b.chunk)) {
            let sum: f64 = chunk.iter().map(|other| other.worth).sum();
            let offset = chunk.first().map_or(0, |other| other.offset);
            if let Some(best) = self.first_chunks.get_mut(offset as usize) {
                *best = best.max(sum);
            }
        }
        (self.start..=u32::MAX).zip(self.first_chunks.iter().copied())
    }
}

/// Selects the best without sorting all.
struct Best {
    size: usize,
    kept: Vec<ScoredMemory>,
    /// Scores below are not among the best; this rejects nearly all memories with one comparison.
    bar: f64,
}

impl Best {
    fn new(size: usize) -> Self {
        Self { size, kept: Vec::new(), bar: f64::MIN_POSITIVE }
    }

    #[inline]
    fn offer(&mut self, ranked: ScoredMemory) {
        if ranked.score < self.bar {
            return;
        }
        self.kept.push(ranked);
        if self.kept.len() >= 2 * self.size.max(512) {
            self.cut();
        }
    }

    fn cut(&mut self) {
        if self.kept.len() > self.size {
            let (_, last, _) = self.kept.select_nth_unstable_by(self.size, ScoredMemory::compare);
            self.bar = last.score;
            self.kept.truncate(self.size);
        }
    }

    fn finish(mut self) -> Vec<ScoredMemory> {
        self.cut();
        self.kept.sort_unstable_by(ScoredMemory::compare);
        self.kept
    }
}

/// The speaker is named in the question.
const SPEAKER: f64 = 1.0;
/// The previous memory asks, and matches: this is the answer.
const ANSWER: f64 = 1.3;
const NEXT: f64 = 0.5;
/// In a talk of two, the next and the previous words of the same person.
const AFTER_NEXT: f64 = 0.2;
const BEFORE_PREVIOUS: f64 = 0.3;
const SESSION: f64 = 0.4;
const DATE: f64 = 0.6;
const ASKS_ITSELF: f64 = 0.15;

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

pub(crate) fn order(question: &Question, base: &Base, candidates: &[Candidate]) -> Vec<ScoredMemory> {
    let surroundings = Surroundings::new(candidates);
    let rank = |candidate: &Candidate| {
        let score = score(question, base, candidate)
            + if question.is_dialogue_of_roles { 0.0 } else { surroundings.score(base, candidate) };
        ScoredMemory { seq: candidate.seq, score }
    };
    let mut ranked: Vec<ScoredMemory> = candidates.iter().map(rank).collect();
    ranked.sort_unstable_by(ScoredMemory::compare);
    ranked
}

/// What counts in every conversation.
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

    /// What counts between people; an assistant's questions and answers differ.
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
