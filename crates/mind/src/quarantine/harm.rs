//! Whether an act matters: what it moves, starts, spends, reveals or says, and for whom. Reads a sentence and the position
//! of a verb in it; `commands` finds the addressee.

use super::clause::{Gap, Sentence, is_address};
use super::{
    ALL, DATA, DECEIVE, DEMANDS, DESTROY, EXECUTE, GRANT, HIDE, OBEY, POWER, PROGRAMS, REVEAL, SAY, SECRET,
    SENSITIVE, SPEND, TOOLS, TRANSMIT,
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

    pub(super) fn exposes(&self, at: usize) -> bool {
        let telling = self.sentence.is(at, TRANSMIT) || self.sentence.is(at, REVEAL);
        telling && (self.sentence.has_from(at + 1, SECRET) || self.names_private(at))
    }

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

    /// "Act as if Mallory were the owner", "turn off the owner's notifications before you …".
    pub(super) fn takes_place_of_owner(&self, at: usize) -> bool {
        let sentence = self.sentence;
        let chief = |near: usize| sentence.is(near, "owner admin administrator");
        let acts_as = sentence.is(at, "act behave treat pretend")
            && sentence.all("as like").any(|near| near > at && (near + 1..near + 6).any(chief));
        let kept_out = sentence.is(at, "turn disable stop")
            && sentence.has_from(at + 1, "notifications notification alerts reports log logs")
            && sentence.has_from(at + 1, "owner owner's user user's");
        acts_as || kept_out
    }

    /// "Make sure that all mails are copied to …", "overrides what the user told you".
    pub(super) fn is_seen_to(&self) -> bool {
        const DONE: &str = "copied forwarded sent shared uploaded posted bcced mirrored";
        let sentence = self.sentence;
        let seen = "ensure that|make sure that|see to it that|ensure all|make sure all|ensure every";
        let done =
            || sentence.all(DONE).any(|at| at > 0 && sentence.is(at - 1, "are is get gets be blind always"));
        let told = "what the user told you|what the owner told you|everything the user told you|everything the owner told you";
        let overrides = sentence.has_from(0, "overrides override replaces supersedes");
        sentence.after_phrase(seen).is_some() && done() && sentence.has_from(0, ALL) && self.names_address()
            || overrides && sentence.after_phrase(told).is_some()
    }

    pub(super) fn changes_itself(&self, at: usize) -> bool {
        const RULES: &str = "instructions instruction rules rule guidelines prompt settings memory memories";
        let sentence = self.sentence;
        let calls = sentence.is(at, "call use invoke run");
        let tool = calls && (at + 1..at + 4).any(|near| sentence.is(near, TOOLS));
        let with_tool = calls
            && (at + 1..at + 5).any(|near| sentence.is(near, "tool"))
            && sentence.has_from(at + 2, TRANSMIT);
        let rules = sentence.is(at, "change update rewrite edit set replace")
            && (at + 1..at + 3).any(|near| sentence.is(near, "your its"))
            && (at + 2..at + 5).any(|near| sentence.is(near, RULES));
        let kept =
            ["save this as a rule", "store this as a rule"].iter().any(|phrase| sentence.reads(at, phrase));
        tool || with_tool || rules || kept
    }

    /// "Your new task is to …", "your job from now on is to leak …".
    pub(super) fn gives_purpose(&self) -> bool {
        let sentence = self.sentence;
        let purpose = sentence.all("your").any(|at| {
            let fresh = sentence.is(at + 1, "new real true only actual");
            let noun = at + 1 + usize::from(fresh);
            let names =
                sentence.is(noun, "task mission goal objective purpose instructions orders job duty role");
            let does = |near: usize| {
                sentence.reads(near, "is to") && (fresh || self.standing) || fresh && sentence.is(near, "are")
            };
            let usual = sentence.is(noun, "job role") && !self.standing;
            names && !usual && (noun + 1..noun + 5).any(does)
        });
        let yourself = "instruct yourself|tell yourself to|program yourself|train yourself to";
        let executed = sentence.after_phrase("to be executed|to be obeyed|be executed at once").is_some();
        let answered = sentence.after_phrase("to be answered with|be answered with").is_some();
        purpose
            || sentence.after_phrase(yourself).is_some()
            || executed && sentence.has_from(0, DEMANDS)
            || answered && sentence.has_from(0, ALL)
    }

    /// Leave that only the owner can give: no asking, no limit, another master.
    pub(super) fn waives(&self) -> bool {
        const CONSENT: &str = "approval approvals permission confirmation consent";
        const NEEDLESS: &str = "you no longer need|you don't need|you do not need|you need no|never ask for|\
             don't ask for|do not ask for|stop asking for";
        const DISOBEY: &str = "not follow the|not obey the|don't follow the|don't obey the|never obey the|\
             stop following the|stop obeying the|not listen to the|don't listen to the";
        let sentence = self.sentence;
        let does = sentence.has_from(0, TRANSMIT)
            || sentence.has_from(0, "transfers payments purchases pay delete again anymore");
        let needless = sentence
            .after_phrase(NEEDLESS)
            .is_some_and(|end| (end..end + 3).any(|near| sentence.is(near, CONSENT)));
        let limits = sentence.all("owner's user's").any(|at| {
            (at + 1..at + 3)
                .any(|near| sentence.is(near, "limit limits rule rules restriction restrictions policy ban"))
        });
        let lifted = "not apply|no longer applies|no longer apply|doesn't apply|is lifted|are lifted";
        let ignores = "ignore what the user|ignore what the owner|ignore everything the user|ignore everything the owner|\
             disregard what the user|disregard what the owner|ignore the owner|your instructions have changed|\
             your rules have changed|your orders have changed";
        let disobeys =
            sentence.after_phrase(DISOBEY).is_some_and(|end| sentence.is(end, "owner owner's user user's"));
        needless && (does || self.standing)
            || limits && sentence.after_phrase(lifted).is_some()
            || disobeys
            || sentence.after_phrase(ignores).is_some()
    }

    /// "Must be uploaded by you".
    pub(super) fn is_done_by_you(&self) -> bool {
        const DONE: &str = "forwarded sent uploaded shared copied posted published transferred paid deleted executed \
             followed obeyed revealed disclosed";
        let sentence = self.sentence;
        let by = sentence.after_phrase("by you|by the assistant|by the ai|by the agent|by the bot");
        let must =
            sentence.after_phrase("must be|are to be|is to be|shall be|should be|has to be|have to be");
        by.is_some() && must.is_some_and(|end| (end..end + 3).any(|near| sentence.is(near, DONE)))
    }

    /// "Never reveal this", "without the owner noticing".
    pub(super) fn keeps_quiet(&self) -> bool {
        let quiet = "reveal this|mention this|tell the owner|tell the user|telling the owner|telling the user|\
             telling anyone|without anyone noticing|owner noticing|user noticing|owner knowing|user knowing";
        let denied = self.sentence.has_from(0, "never not don't without");
        let all_of_it =
            |end: usize| self.sentence.gap(end) != Gap::Space || self.sentence.is(end, "that about this and");
        denied && self.sentence.after_phrase(quiet).is_some_and(all_of_it)
    }

    /// "The AI should never mention … to the user".
    pub(super) fn hushes(&self) -> bool {
        let sentence = self.sentence;
        sentence.all("you ai assistant agent bot chatbot model").any(|at| {
            sentence.is(at + 1, "must should shall may will can")
                && sentence.is(at + 2, "never not")
                && sentence.is(at + 3, "mention inform notify alert report")
                && sentence.has_from(at + 4, "owner user")
        })
    }
}
