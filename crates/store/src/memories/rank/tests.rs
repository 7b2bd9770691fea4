//! Ranking against a plain restatement of the formula, and the cases that each weight is for.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::dates::Dates;
use super::*;
use crate::memories::analyze::{self, Term};
use crate::memories::postings::Posting;

/// A scope in memory, as the tables would hold it.
#[derive(Default)]
struct Fixture {
    statistics: Statistics,
    lists: BTreeMap<Term, Vec<Posting>>,
    candidates: Vec<Candidate>,
}

impl Fixture {
    fn add(&mut self, session: u32, actor: &str, text: &str) -> u32 {
        self.add_at(session, actor, text, 0)
    }

    fn add_at(&mut self, session: u32, actor: &str, text: &str, occurred_at: i64) -> u32 {
        let document = analyze::document(text);
        let seq = u32::try_from(self.candidates.len()).unwrap() + 1;
        for (number, chunk) in (0..).zip(&document.chunks) {
            for (term, count) in &chunk.counts {
                let posting = Posting { seq, session, chunk: number, count: *count, length: chunk.length };
                self.lists.entry(*term).or_default().push(posting);
            }
        }
        self.statistics.memories += 1;
        self.statistics.chunks += document.chunks.len() as u64;
        self.statistics.terms += document.length();
        let previous = self.candidates.iter_mut().rev().find(|other| session > 0 && other.session == session);
        let previous = previous.map(|previous| {
            previous.next = Some(seq);
            previous.seq
        });
        let (asks, ends_asking) = (document.asks, document.ends_asking);
        let actor = actor.into();
        self.candidates.push(Candidate {
            seq,
            session,
            actor,
            asks,
            ends_asking,
            occurred_at,
            previous,
            next: None,
        });
        seq
    }

    fn question(&self, text: &str) -> Question {
        let parsed = ParsedQuestion::read(text);
        let names = parsed.names();
        let actors: BTreeSet<&str> = self.candidates.iter().map(|candidate| &*candidate.actor).collect();
        let known: Vec<Actor> = actors
            .iter()
            .flat_map(|actor| {
                analyze::name(actor).into_iter().map(|name| Actor { name, actor: (*actor).to_owned() })
            })
            .filter(|actor| names.contains(&actor.name))
            .collect();
        parsed.resolve(&known, actors.len() as u64)
    }

    fn base(&self, question: &Question) -> Base {
        let lists =
            question.terms.iter().map(|term| self.lists.get(term).cloned().unwrap_or_default()).collect();
        Base::new(self.statistics, lists)
    }

    fn best(&self, text: &str) -> u32 {
        let question = self.question(text);
        order(&question, &self.base(&question), &self.candidates)[0].seq
    }
}

#[test]
fn rare_words_count_more_than_common_ones() {
    let mut fixture = Fixture::default();
    for day in 0..20 {
        fixture.add(0, "", &format!("we had lunch on day {day}"));
    }
    let wanted = fixture.add(0, "", "the violin needs new strings");
    fixture.add(0, "", "lunch lunch lunch");
    assert_eq!(fixture.best("violin lunch"), wanted);
}

#[test]
fn an_answer_is_found_by_its_question() {
    let mut fixture = Fixture::default();
    fixture.add(1, "Ann", "Nice weather");
    fixture.add(1, "Bob", "What is the name of your sister's dog?");
    let answer = fixture.add(1, "Ann", "Rex!");
    fixture.add(1, "Bob", "Lovely");
    assert_eq!(fixture.best("name of the dog of Ann's sister"), answer);
}

#[test]
fn the_speaker_that_is_named_wins_and_the_name_is_no_search_word() {
    let mut fixture = Fixture::default();
    fixture.add(1, "Ann", "I love swimming, Bob");
    let wanted = fixture.add(2, "Bob", "I love swimming too");
    fixture.add(3, "Cid", "Bob Bob Bob");
    assert_eq!(fixture.best("Does Bob love swimming?"), wanted);
    assert_eq!(fixture.question("Bob").terms.len(), 1, "a name alone is searched for");
    assert!(fixture.question("Do Ann, Bob and Cid swim?").speakers.is_empty(), "all of them means anybody");
}

#[test]
fn i_am_the_user_in_a_talk_with_an_assistant() {
    let mut fixture = Fixture::default();
    fixture.add(1, "assistant", "My favourite tea is sencha");
    let mine = fixture.add(2, "user", "My favourite tea is matcha");
    fixture.add(3, "assistant", "Your favourite tea is oolong");
    assert_eq!(fixture.best("What is my favourite tea?"), mine);
    let question = fixture.question("assistant for my user manual");
    assert_eq!(question.terms.len(), 3, "a role is no name");
}

#[test]
fn dates_of_a_question_are_dates_of_the_memory() {
    let day = 86_400_000_000;
    let mut fixture = Fixture::default();
    let may = fixture.add_at(1, "Ann", "we went camping", 19_485 * day);
    let june = fixture.add_at(2, "Ann", "we went camping", 19_516 * day);
    let other_year = fixture.add_at(3, "Ann", "we went camping", (19_485 - 365) * day);
    assert_eq!(fixture.best("camping in June"), june);
    assert_eq!(fixture.best("camping on 8 May 2023"), may);
    assert_eq!(fixture.best("camping in 2022"), other_year);
    assert_eq!(fixture.best("camping 2023-05-08"), may);
    assert_eq!(fixture.best("camping on May 8th, 2023"), may);
    let undated = fixture.question("May I march to the camp on 2 legs?");
    assert_eq!(undated.dates, Dates::default());
}

#[test]
fn of_equals_the_newest_comes_first() {
    let mut fixture = Fixture::default();
    let first = fixture.add(0, "", "tea");
    let last = fixture.add(0, "", "tea");
    let question = fixture.question("tea");
    let base = fixture.base(&question);
    let seqs: Vec<u32> = base.best(10).iter().map(|ranked| ranked.seq).collect();
    assert_eq!(seqs, [last, first]);
    assert_eq!(base.best(1)[0].seq, last);
}

#[test]
fn nothing_matches_nothing() {
    let mut fixture = Fixture::default();
    fixture.add(0, "", "tea");
    for text in ["", "???", "violin"] {
        let question = fixture.question(text);
        assert!(fixture.base(&question).best(10).is_empty());
    }
    let empty = Base::new(Statistics::default(), Vec::new());
    assert_eq!((empty.of(1), empty.coverage(1, 0), empty.coverage(1, 5)), (0.0, 0.0, 0.0));
}

fn lists() -> impl Strategy<Value = Vec<Vec<Posting>>> {
    let place = (1_u32..40_000, 0_u16..3);
    let list = prop::collection::btree_map(place, (1_u16..10, 0_u16..90), 0..300).prop_map(|hits| {
        let posting = |((seq, chunk), (count, more))| Posting {
            seq,
            session: seq % 7,
            chunk,
            count,
            length: count + more,
        };
        hits.into_iter().map(posting).collect()
    });
    prop::collection::vec(list, 0..6)
}

proptest! {
    #[test]
    fn the_fast_way_and_the_plain_way_agree(lists in lists(), size in 0_usize..50) {
        let statistics = Statistics { memories: 40_000, chunks: 50_000, terms: 600_000 };
        let seqs: BTreeSet<u32> = lists.iter().flatten().map(|posting| posting.seq).collect();
        let base = Base::new(statistics, lists);
        let mut plain: Vec<ScoredMemory> = seqs.iter().map(|seq| ScoredMemory { seq: *seq, score: base.of(*seq) }).collect();
        plain.sort_by(ScoredMemory::compare);
        plain.truncate(size);
        prop_assert_eq!(base.best(size), plain);
    }

    #[test]
    fn scores_are_between_nothing_and_everything(lists in lists()) {
        // Statistics that lag behind the lists must not make a weight negative.
        let base = Base::new(Statistics { memories: 1, chunks: 1, terms: 1 }, lists);
        for ranked in base.best(1000) {
            prop_assert!(ranked.score > 0.0 && ranked.score <= 1.0, "{ranked:?}");
            let covered = base.coverage(ranked.seq, ranked.seq % 7);
            prop_assert!(covered > 0.0 && covered <= 1.0 + 1e-12, "{covered}");
        }
    }

    #[test]
    fn the_order_of_candidates_does_not_matter(
        order_of in Just((1..=30_u32).collect::<Vec<_>>()).prop_shuffle(),
        texts in prop::collection::vec("(tea|dog|violin|rain|\\?| ){0,8}", 30),
    ) {
        let mut fixture = Fixture::default();
        for (number, text) in (1..).zip(&texts) {
            fixture.add(number / 6 + 1, if number % 2 == 0 { "Ann" } else { "Bob" }, text);
        }
        let question = fixture.question("does Ann play the violin in rain with a dog");
        let base = fixture.base(&question);
        let shuffled: Vec<Candidate> =
            order_of.iter().map(|seq| fixture.candidates[*seq as usize - 1].clone()).collect();
        prop_assert_eq!(order(&question, &base, &shuffled), order(&question, &base, &fixture.candidates));
    }
}
