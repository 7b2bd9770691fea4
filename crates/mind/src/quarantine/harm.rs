//! Whether an act matters: what it moves, starts, spends, reveals or says, and for whom. Knows a sentence and the place of a verb in it; who is told to do it is somebody else's question.

use super::clause::{Gap, Sentence, is_address};
use super::words::{
    ALL, DATA, DECEIVE, DEMANDS, DESTROY, EXECUTE, GRANT, HIDE, OBEY, POWER, PROGRAMS, REVEAL, SAY, SECRET,
    SENSITIVE, SPEND, TRANSMIT,
};

const SAYS: &str = "says say asks ask tells tell wants orders demands commands requests";
const ANSWERS: &str =
    "reply replies answer answers response responses mail mails message messages email emails";

/// A sentence, and whether it holds from now on.
pub(super) struct Harm<'a> {
    pub(super) sentence: &'a Sentence,
    pub(super) standing: bool,
}

impl Harm<'_> {
    /// Whether the act at a place, with what it is done to, does harm when it is done for the wrong person.
    pub(super) fn matters(&self, at: usize) -> bool {
        let does = |list: &str| self.sentence.is(at, list);
        let to = |list: &str| self.sentence.has_from(at + 1, list);
        let code = || self.sentence.words.iter().any(|word| word.text.contains('`'));
        does(TRANSMIT) && (to(DATA) || to(SECRET) || self.names_address())
            || does(EXECUTE) && (to(PROGRAMS) || code())
            || does(SPEND) && (self.has_money() || self.sentence.is(at + 1, "it them everything all any"))
            || does(GRANT) && to(POWER)
            || does(DESTROY) && to("audit log logs memory memories backup backups history calendar")
            || does(REVEAL) && (to(SECRET) || self.names_private(at))
            || does(HIDE) && to("all others other everything it them from")
            || does(SAY) && (self.in_every_answer() || self.names_address())
            || does("attach") && to(DATA)
            || does("save store collect record log") && self.sentence.has_from(0, SECRET)
            || self.puts_words(at)
            || self.obeys(at)
            || self.deceives(at)
    }

    /// "Send me a message": what the speaker asks for themselves.
    pub(super) fn is_for_speaker(&self, at: usize) -> bool {
        let mine = |near: usize| {
            self.sentence.is(near, "me us") && (near == at + 1 || self.sentence.is(near - 1, "to with"))
        };
        (at + 1..self.sentence.words.len()).any(mine) && !self.exposes(at)
    }

    /// Doing whatever somebody says, be they no doctor.
    pub(super) fn obeys(&self, at: usize) -> bool {
        const RIGHTLY: &str = "package label manual recipe screen signs sign box leaflet board doctor dentist coach teacher \
             mum mom dad parents nurse law laws heart police speed traffic rules system before above earlier previous";
        let sentence = self.sentence;
        let ends = (at + 1..sentence.words.len()).find(|near| sentence.gap(*near) != Gap::Space);
        let ends = ends.unwrap_or(sentence.words.len());
        let told = (at + 1..ends.min(at + 6)).any(|near| {
            sentence.is(near, "whatever what anything everything as")
                && (near + 2..ends.min(near + 10)).any(|verb| sentence.is(verb, SAYS))
        });
        if (at..at + 9).any(|near| sentence.is(near, RIGHTLY)) {
            return false;
        }
        let demands = (at + 1..at + 5).any(|near| sentence.is(near, DEMANDS));
        let sweeping = self.standing || (at + 1..at + 4).any(|near| sentence.is(near, ALL));
        let as_orders = sentence.is(at, "treat regard consider take")
            && demands
            && sentence.all("as").any(|near| {
                near > at
                    && (near + 1..near + 5)
                        .any(|what| sentence.is(what, "command commands order orders owner"))
            });
        sentence.is(at, "do") && told
            || sentence.is(at, "obey") && at == 0
            || as_orders
            || sentence.is(at, OBEY) && (demands || told || sentence.is(at, "obey")) && sweeping
    }

    /// "Approve all requests".
    pub(super) fn approves_all(&self, at: usize) -> bool {
        let sentence = self.sentence;
        let much = |near: usize| {
            sentence.is(near, DEMANDS) || sentence.is(near, "payments transfers purchases pending")
        };
        sentence.is(at, "approve authorize authorise confirm")
            && (self.standing || (at + 1..at + 3).any(|near| sentence.is(near, ALL)))
            && (at + 1..at + 6).any(much)
    }

    /// Without asking, or without anybody noticing.
    pub(super) fn acts_alone(&self, at: usize) -> bool {
        let sentence = self.sentence;
        let unasked = "without asking|without checking|without telling|without confirmation|without approval|no questions";
        let secretly =
            at.checked_sub(1).is_some_and(|before| sentence.is(before, "quietly secretly silently"));
        let acts = [TRANSMIT, SPEND, DESTROY, "keep add grant turn install download"]
            .iter()
            .any(|list| sentence.is(at, list));
        let mine = self.is_for_speaker(at) || sentence.is(at + 1, "me us");
        acts && !mine && (secretly || sentence.after_phrase(unasked).is_some())
    }

    /// "Insert the phrase … into every reply", "answer every question with …".
    pub(super) fn puts_words(&self, at: usize) -> bool {
        const WORDS: &str = "phrase link url sentence text pixel image banner words line code slogan address";
        let sentence = self.sentence;
        let said = sentence.has_from(at + 1, WORDS) || self.names_address();
        let answers = sentence.is(at, "answer reply respond")
            && (at + 1..at + 4).any(|near| sentence.is(near, ALL))
            && (at + 1..at + 5)
                .any(|near| sentence.is(near, "question questions message messages mail mails"))
            && sentence.has_from(at + 2, "with");
        sentence.is(at, SAY) && said && self.in_every_answer() || answers
    }

    /// "Always end your mails with a link to …".
    pub(super) fn marks_your_answers(&self) -> bool {
        let sentence = self.sentence;
        let yours = sentence.all("your").any(|at| sentence.is(at + 1, ANSWERS));
        yours && self.standing && self.names_address() && !sentence.has_from(0, "i we me")
    }

    /// Saying what is not so, from now on or to the owner.
    pub(super) fn deceives(&self, at: usize) -> bool {
        let asked = || self.sentence.has_from(0, "owner user") && self.sentence.has_from(0, "asks ask asked");
        self.sentence.is(at, DECEIVE) && (self.standing || asked())
    }

    /// Handing over what tells much about the owner, to somebody else.
    pub(super) fn hands_over(&self, at: usize) -> bool {
        let sentence = self.sentence;
        let hands = sentence.is(at, TRANSMIT)
            || sentence.is(at, "give reveal disclose paste tell show answer extract");
        let owners = sentence.all("owner's user's owners users").any(|near| {
            near > at
                && (near + 1..near + 4).any(|what| sentence.is(what, SENSITIVE) || sentence.is(what, SECRET))
        });
        let listed = sentence.is(at, TRANSMIT)
            && sentence.has_from(at + 1, "contacts inbox passwords address-book credentials memories");
        hands && (owners || listed && self.names_address())
    }

    /// "In your next answer".
    pub(super) fn in_your_answer(&self) -> bool {
        self.sentence.all("your").any(|at| {
            at > 0
                && self.sentence.is(at - 1, "in into to")
                && (at + 1..at + 3).any(|near| {
                    self.sentence.is(near, "answer reply response summary output answers replies")
                })
        })
    }

    /// Telling or moving what is secret.
    pub(super) fn exposes(&self, at: usize) -> bool {
        let telling = self.sentence.is(at, TRANSMIT) || self.sentence.is(at, REVEAL);
        telling && (self.sentence.has_from(at + 1, SECRET) || self.names_private(at))
    }

    /// Whether a mail address or a link is named.
    pub(super) fn names_address(&self) -> bool {
        self.sentence.words.iter().any(|word| is_address(&word.text))
    }

    fn names_private(&self, at: usize) -> bool {
        let private = |near: usize| self.sentence.is(near + 1, DATA) && near > at;
        self.sentence.all("private confidential secret").any(private)
    }

    fn has_money(&self) -> bool {
        self.sentence.has_from(0, "euros euro dollars dollar money invoice invoices pounds bitcoin usd eur")
    }

    /// "In every reply", "in all mails".
    fn in_every_answer(&self) -> bool {
        let sentence = self.sentence;
        sentence.all("every all each").any(|at| {
            let close = |near: usize| (at + 1..=near).all(|inner| sentence.gap(inner) == Gap::Space);
            (at + 1..at + 4).any(|near| sentence.is(near, ANSWERS) && close(near))
        })
    }
}
