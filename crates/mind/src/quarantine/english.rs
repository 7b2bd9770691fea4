//! Orders in English: an act that the reader is told to do, who is spoken to, and whether it matters. Lets pass what
//! restricts, what somebody else does, and what the speaker only wants for themselves.

use super::address::{self, Address};
use super::clause::Sentence;
use super::harm::Harm;
use super::lexicon::{ALL, ANY_ACT, DECEIVE, DESTROY, EXECUTE, GRANT, POWER, REVEAL, SPEND, TRANSMIT};

pub(super) fn commands(sentences: &[Sentence]) -> bool {
    let mut addressed = Address::None;
    let mut reading = false;
    for sentence in sentences {
        let (address, from) = address::address(sentence);
        let view = SentenceAnalysis::new(sentence, address.max(addressed), from, reading);
        if view.commands() {
            return true;
        }
        let only_calls = from >= sentence.words.len() && address == Address::Call;
        addressed = if only_calls { Address::Call } else { Address::None };
        reading = view.reading && view.told.is_empty();
    }
    false
}

struct SentenceAnalysis<'a> {
    sentence: &'a Sentence,
    harm: Harm<'a>,
    address: Address,
    standing: bool,
    reading: bool,
    /// Places of the acts that the reader is told to do.
    told: Vec<usize>,
    /// Places of the acts that are the reader's duty.
    duty: Vec<usize>,
}

impl<'a> SentenceAnalysis<'a> {
    fn new(sentence: &'a Sentence, address: Address, from: usize, reading: bool) -> Self {
        let imperatives = address::imperatives(sentence);
        let is_told = |at: &usize| imperatives.contains(at) || is_free_do(sentence, *at);
        let acts = sentence.all(ANY_ACT).filter(|at| *at >= from && is_meant(sentence, *at));
        let told: Vec<usize> = acts.filter(is_told).collect();
        let duty = address::your_duty(sentence).map_or(Vec::new(), |start| acts_of_duty(sentence, start));
        let standing = address::is_standing(sentence);
        Self {
            sentence,
            harm: Harm { sentence, standing },
            address,
            standing,
            reading: reading || address::on_reading(sentence),
            told,
            duty,
        }
    }

    fn commands(&self) -> bool {
        let (sentence, harm) = (self.sentence, &self.harm);
        let ordered =
            address::your_orders(sentence).is_some_and(|start| !acts_of_duty(sentence, start).is_empty());
        let swept = |at: usize| sentence.has_from(at + 1, ALL);
        let granted = |at: usize| sentence.is(at, GRANT) && sentence.has_from(at + 1, POWER) && swept(at);
        let bared = |at: usize| {
            sentence.is(at, "reveal disclose divulge expose leak") && harm.exposes(at) && swept(at)
        };
        self.is_spoken_to()
            || ordered
            || self.is_agents_duty()
            || self.reading && self.acts().any(|at| acts_on_world(sentence, at))
            || self.standing && self.acts().any(|at| harm.matters(at) && !harm.is_for_speaker(at))
            || self.duty.iter().any(|at| harm.matters(*at) && (harm.names_address() || harm.exposes(*at)))
            || self.acts().any(|at| {
                harm.obeys(at) || harm.hands_over(at) || harm.deceives(at) || granted(at) || bared(at)
            })
            || self.acts().any(|at| acts_on_world(sentence, at))
                && (harm.keeps_quiet() || harm.in_your_answer())
            || self.acts().any(|at| harm.approves_all(at) || harm.acts_alone(at) || harm.puts_words(at))
            || self.acts().any(|at| harm.takes_place_of_owner(at))
            || self.acts().any(|at| harm.changes_itself(at))
            || harm.gives_purpose()
            || harm.waives()
            || harm.is_done_by_you()
            || harm.is_seen_to()
            || harm.hushes()
            || harm.marks_your_answers()
    }

    fn acts(&self) -> impl Iterator<Item = usize> + '_ {
        self.told.iter().chain(&self.duty).copied()
    }

    /// The agent by name, and something that it is told to do.
    fn is_spoken_to(&self) -> bool {
        match self.address {
            Address::None => false,
            Address::Call => self.acts().next().is_some(),
            Address::Label => self.acts().any(|at| {
                let harm = &self.harm;
                self.standing
                    || harm.names_address()
                    || harm.exposes(at)
                    || harm.hands_over(at)
                    || harm.changes_itself(at)
                    || self.sentence.is(at, "disregard ignore override")
            }),
        }
    }

    /// "The assistant must …": a contract with an estate agent says so too, so it has to be without exception or go far.
    fn is_agents_duty(&self) -> bool {
        let acts = address::duty_of_agent(self.sentence)
            .map_or(Vec::new(), |start| acts_of_duty(self.sentence, start));
        let harm = &self.harm;
        let swept = self.sentence.has_from(0, ALL);
        acts.into_iter().any(|at| {
            self.standing
                || harm.names_address()
                || harm.matters(at) && swept
                || self.sentence.is(at, DECEIVE)
        })
    }
}

/// Some verbs are orders only with what follows them.
fn is_meant(sentence: &Sentence, at: usize) -> bool {
    let next = |list: &str| sentence.is(at + 1, list);
    match sentence.word(at) {
        "do" => next("whatever what everything anything exactly as"),
        "turn" => next("off"),
        "keep" => next("sending forwarding sharing posting copying"),
        "let" => next("anyone everyone anybody"),
        "stop" => {
            next("asking telling informing reporting logging checking waiting following obeying refusing")
        }
        "start" | "begin" => next("acting sending forwarding obeying following using sharing"),
        _ => true,
    }
}

/// "In case of doubt do what he says": a `do` for which nobody is named.
fn is_free_do(sentence: &Sentence, at: usize) -> bool {
    const SUBJECTS: &str =
        "i we they he she it to you people who can could would will not don't doesn't didn't should must";
    sentence.is(at, "do") && at.checked_sub(1).is_none_or(|before| !sentence.is(before, SUBJECTS))
}

/// The acts that a duty is about: the first verb after it, if it comes soon, and what is joined to it.
fn acts_of_duty(sentence: &Sentence, start: usize) -> Vec<usize> {
    let soon = (start..start + 6).find(|at| sentence.is(*at, ANY_ACT));
    let Some(first) = soon.filter(|at| !(start..*at).any(|near| sentence.is(near, "not never ask"))) else {
        return Vec::new();
    };
    let joined = sentence.all(ANY_ACT).filter(|at| *at > first && sentence.is(at - 1, "and or then"));
    std::iter::once(first).chain(joined).collect()
}

fn acts_on_world(sentence: &Sentence, at: usize) -> bool {
    [TRANSMIT, EXECUTE, DESTROY, SPEND, REVEAL, DECEIVE].iter().any(|list| sentence.is(at, list))
        || sentence.is(at, "grant call update change obey book read include append approve say turn keep add cancel unsubscribe")
}
