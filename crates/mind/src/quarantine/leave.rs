//! What only the owner may do: change the agent's rules and purpose, waive their own approval, name another master, keep
//! themselves in the dark. A text that does it for them is an order, whatever else it says.

use super::clause::Gap;
use super::harm::Harm;
use super::words::{ALL, DEMANDS, TOOLS, TRANSMIT};

impl Harm<'_> {
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

    /// The agent's own tools and rules.
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
