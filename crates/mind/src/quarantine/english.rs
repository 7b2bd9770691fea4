//! Orders in English: an act that the reader is told to do, and what makes it matter. Refuses nothing that restricts, that
//! somebody else does, or that only the speaker wants for themselves.

use super::address::{self, Address};
use super::clause::{Gap, Sentence, is_address};
use super::words::{
    ALL, ANY_ACT, DATA, DEMANDS, DESTROY, EXECUTE, GRANT, HIDE, OBEY, POWER, PROGRAMS, REVEAL, SAY, SECRET,
    SENSITIVE, SPEND, TOOLS, TRANSMIT,
};

/// Whether any of the sentences tells the agent to do something.
pub(super) fn commands(sentences: &[Sentence]) -> bool {
    let mut addressed = Address::None;
    let mut reading = false;
    for sentence in sentences {
        let (address, from) = address::address(sentence);
        let view = View::new(sentence, address.max(addressed), from, reading);
        if view.commands() {
            return true;
        }
        let ends_there = from >= sentence.words.len() && address == Address::Call;
        addressed = if ends_there { Address::Call } else { Address::None };
        reading = view.reading && view.told.is_empty();
    }
    false
}

/// A sentence with what was found out about it.
struct View<'a> {
    sentence: &'a Sentence,
    address: Address,
    standing: bool,
    reading: bool,
    /// Places of the acts that the reader is told to do.
    told: Vec<usize>,
    /// Places of the acts that are the reader's duty.
    duty: Vec<usize>,
}

impl<'a> View<'a> {
    fn new(sentence: &'a Sentence, address: Address, from: usize, reading: bool) -> Self {
        let meant =
            |at: &usize| !sentence.is(*at, "do") || sentence.is(at + 1, "whatever what everything anything");
        let acts = sentence.all(ANY_ACT).filter(|at| *at >= from).filter(meant);
        let told: Vec<usize> = acts.filter(|at| address::is_imperative(sentence, *at)).collect();
        let duty = address::your_duty(sentence).map_or(Vec::new(), |start| first_act(sentence, start));
        Self {
            sentence,
            address,
            standing: address::is_standing(sentence),
            reading: reading || address::on_reading(sentence),
            told,
            duty,
        }
    }

    fn commands(&self) -> bool {
        let agents_duty = address::duty_of_agent(self.sentence)
            .map_or(Vec::new(), |start| first_act(self.sentence, start))
            .into_iter()
            .any(|at| self.standing || self.names_address() || self.matters(at) && self.sweeps());
        self.is_spoken_to()
            || agents_duty
            || self.reading && self.acts().any(|at| self.sentence.is(at, &acts_on_world()))
            || self.standing && self.acts().any(|at| self.matters(at) && !self.is_for_speaker(at))
            || self.duty.iter().any(|at| self.matters(*at) && (self.names_address() || self.exposes(*at)))
            || self.acts().any(|at| self.obeys(at) || self.hands_over(at))
            || self.changes_itself()
    }

    fn acts(&self) -> impl Iterator<Item = usize> + '_ {
        self.told.iter().chain(&self.duty).copied()
    }

    /// The agent by name, and something that it is told to do.
    fn is_spoken_to(&self) -> bool {
        match self.address {
            Address::None => false,
            Address::Call => self.acts().next().is_some(),
            Address::Label => self
                .acts()
                .any(|at| self.standing || self.names_address() || self.exposes(at) || self.changes_itself()),
        }
    }

    /// Whether the act at a place, with what it is done to, does harm when it is done for the wrong person.
    fn matters(&self, at: usize) -> bool {
        let does = |list: &str| self.sentence.is(at, list);
        let to = |list: &str| self.sentence.has_from(at + 1, list);
        does(TRANSMIT) && (to(DATA) || to(SECRET) || self.names_address())
            || does(EXECUTE)
                && (to(PROGRAMS) || self.sentence.words.iter().any(|word| word.text.contains('`')))
            || does(SPEND) && (self.has_money() || self.sentence.is(at + 1, "it them everything all any"))
            || does(GRANT) && to(POWER)
            || does(DESTROY) && to("audit log logs memory memories backup backups history calendar")
            || does(REVEAL) && (to(SECRET) || self.names_private(at))
            || does(HIDE) && to("all others other everything it them from")
            || does(SAY) && self.in_every_answer()
            || self.sentence.is(at, "attach") && to(DATA)
            || self.obeys(at)
    }

    /// "Send me a message": what the speaker asks for themselves.
    fn is_for_speaker(&self, at: usize) -> bool {
        let to_me = (at + 1..self.sentence.words.len()).any(|near| {
            self.sentence.is(near, "me us") && (near == at + 1 || self.sentence.is(near - 1, "to with"))
        });
        to_me && !self.exposes(at)
    }

    /// Doing whatever somebody says.
    fn obeys(&self, at: usize) -> bool {
        let sentence = self.sentence;
        let told = (at + 1..at + 6).any(|near| {
            sentence.is(near, "whatever what anything everything")
                && sentence.has_from(near + 1, "says say asks ask tells tell wants orders")
        });
        if sentence.is(at, "do") {
            return told;
        }
        let demands = (at + 1..at + 5).any(|near| sentence.is(near, DEMANDS));
        let sweeping = self.standing || (at + 1..at + 4).any(|near| sentence.is(near, ALL));
        let printed =
            sentence.has_from(at, "package label manual recipe screen signs sign box leaflet board doctor");
        sentence.is(at, OBEY) && (demands || told || sentence.is(at, "obey")) && sweeping && !printed
    }

    /// Handing over what tells much about the owner, to somebody else.
    fn hands_over(&self, at: usize) -> bool {
        let sentence = self.sentence;
        let hands = sentence.is(at, TRANSMIT) || sentence.is(at, "give reveal disclose paste tell show");
        let owners = (at + 1..sentence.words.len()).any(|near| {
            sentence.is(near, "owner's user's owners users")
                && (near + 1..near + 4).any(|what| sentence.is(what, SENSITIVE))
        });
        let listed = sentence.is(at, TRANSMIT)
            && sentence.has_from(at + 1, "contacts inbox passwords address-book credentials");
        hands && (owners || listed && self.names_address())
    }

    /// The agent's own tools, rules and purpose.
    fn changes_itself(&self) -> bool {
        const RULES: &str = "instructions instruction rules rule guidelines prompt settings memory memories";
        let sentence = self.sentence;
        let tool = |at: usize| {
            sentence.is(at, "call use invoke run") && (at + 1..at + 4).any(|near| sentence.is(near, TOOLS))
        };
        let with_tool = |at: usize| {
            sentence.is(at, "use call invoke")
                && (at + 1..at + 5).any(|near| sentence.is(near, "tool"))
                && sentence.has_from(at + 2, TRANSMIT)
        };
        let rules = |at: usize| {
            sentence.is(at, "change update rewrite edit set replace")
                && (at + 1..at + 3).any(|near| sentence.is(near, "your its"))
                && (at + 2..at + 5).any(|near| sentence.is(near, RULES))
        };
        let kept = |at: usize| {
            sentence.reads(at, "save this as a rule") || sentence.reads(at, "store this as a rule")
        };
        let purpose = sentence.all("your").any(|at| {
            sentence.is(at + 1, "new real true only actual")
                && sentence.is(at + 2, "task mission goal objective purpose instructions orders")
                && (sentence.reads(at + 3, "is to") || sentence.is(at + 3, "are"))
        });
        let yourself = sentence
            .after_phrase("instruct yourself|tell yourself to|program yourself|train yourself to")
            .is_some();
        let executed = sentence.after_phrase("to be executed|to be obeyed|be executed at once").is_some()
            && sentence.has_from(0, DEMANDS);
        self.acts().any(|at| tool(at) || with_tool(at) || rules(at) || kept(at))
            || purpose
            || yourself
            || executed
    }

    fn exposes(&self, at: usize) -> bool {
        let telling = self.sentence.is(at, TRANSMIT) || self.sentence.is(at, REVEAL);
        telling && (self.sentence.has_from(at + 1, SECRET) || self.names_private(at))
    }

    fn names_private(&self, at: usize) -> bool {
        let sentence = self.sentence;
        (at + 1..sentence.words.len())
            .any(|near| sentence.is(near, "private confidential secret") && sentence.is(near + 1, DATA))
    }

    fn names_address(&self) -> bool {
        self.sentence.words.iter().any(|word| is_address(&word.text))
    }

    fn has_money(&self) -> bool {
        self.sentence.has_from(0, "euros euro dollars dollar money invoice invoices pounds bitcoin usd eur")
    }

    fn sweeps(&self) -> bool {
        self.sentence.has_from(0, ALL)
    }

    /// "In every reply", "in all mails".
    fn in_every_answer(&self) -> bool {
        let sentence = self.sentence;
        sentence.all("every all each").any(|at| {
            (at + 1..at + 4).any(|near| {
                sentence.is(near, "reply replies answer answers response responses mail mails message messages email emails")
                    && (at + 1..=near).all(|inner| sentence.gap(inner) == Gap::Space)
            })
        })
    }
}

/// The act that a duty is about: the first verb after it, if it comes soon.
fn first_act(sentence: &Sentence, start: usize) -> Vec<usize> {
    let soon = (start..start + 6).find(|at| sentence.is(*at, ANY_ACT));
    soon.into_iter().filter(|at| !(start..*at).any(|near| sentence.is(near, "not never n't ask"))).collect()
}

fn acts_on_world() -> String {
    [TRANSMIT, EXECUTE, DESTROY, SPEND, REVEAL, "disable grant call update change reply obey book"].join(" ")
}
