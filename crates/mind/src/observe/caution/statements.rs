//! Statements that forbid without a command: about a thing, about somebody, about what is wished or allowed.

use std::ops::Range;

use super::lexicon::{Actions, Form, Known, Tag};
use super::parse::Found;
use super::patterns::Clause;
use super::rule::Kind;

impl Clause<'_> {
    /// "keep the merger confidential"
    pub(super) fn secret(&self) -> Option<Found> {
        let at = self.skip(self.start, &[Tag::Filler]);
        if !self.at(at).is(Tag::Keep) {
            return None;
        }
        let end = self.end(at);
        let secret = self.first(at + 1..end.min(at + 8), |known| known.any(&[Tag::Secret, Tag::Or]))?;
        if !self.at(secret).is(Tag::Secret) {
            return None;
        }
        Some(Found {
            kind: Kind::Secret,
            actions: Actions::OUT,
            needs_more: true,
            ..self.forbid(at, at + 1..secret)
        })
    }

    /// "Carol must not get the budget", "Alice is on leave until …", "Bob is off limits", "the merger is confidential"
    pub(super) fn subject(&self) -> Option<Found> {
        let from = self.skip(self.start, &[Tag::Filler]);
        let end = self.end(from + 1);
        let verb = (from + 1..end.min(from + 7))
            .find(|index| self.at(*index).any(&[Tag::Be, Tag::Strict]) || self.word(*index) == "can")?;
        let subject = from..verb;
        let person = self
            .tokens
            .get(from)
            .is_some_and(|token| token.capital || token.known.is(Tag::Det) || token.fold.contains('@'));
        let nobody =
            self.at(from).any(&[Tag::Pronoun, Tag::I, Tag::You, Tag::Keep]) && !self.at(from).is(Tag::Det);
        if nobody || !person && from != 0 {
            return None;
        }
        let found = |kind, actions, region: Range<usize>| Found {
            kind,
            actions,
            subject: Some(subject.clone()),
            subject_is_who: kind != Kind::Secret,
            needs_more: true,
            to_people: false,
            ..self.forbid(verb, region)
        };
        let nothing = end..end;
        let negated = self
            .first(from + 1..end, |known| known.any(&[Tag::Not, Tag::Never, Tag::Gneg, Tag::Ne, Tag::No]));
        if let Some(not) = negated {
            let knows = (not..end).any(|index| self.at(index).is(Tag::Knowing));
            let strict = (from + 1..end)
                .any(|index| self.at(index).is(Tag::Strict) || knows && self.word(index) == "can");
            let acts =
                |known: Known| known.is(Tag::Get) || known.form(Form::Done) || known.form(Form::Command);
            let near = verb.max(not) + 4;
            let done = self.first(verb.min(not) + 1..end, acts).filter(|_| strict)?;
            if done >= near && !(done + 1 == end && self.at(not).is(Tag::Gneg)) {
                return None;
            }
            let passive = self.at(done).form(Form::Done) || self.at(done).form(Form::Command);
            let actions =
                if passive && !self.at(done).is(Tag::Get) { self.at(done).actions } else { Actions::OUT };
            let who = self.at(done).is(Tag::Get) || self.at(done).to_people;
            let subject = from..verb.min(not);
            return Some(Found {
                verb_at: done,
                subject: Some(subject),
                subject_is_who: who,
                ..found(Kind::Forbid, actions, verb + 1..end)
            });
        }
        if !self.at(verb).is(Tag::Be) {
            return None;
        }
        let has = |tag: Tag| self.first(verb + 1..end, |known| known.is(tag));
        // "private" alone says what something is, not that nobody may know.
        let ends = |at: usize| {
            let owned = self.word(at) == "private" && self.word(from) != "my";
            !owned && (self.is_mark(at + 1) || !self.at(at + 1).is_plain())
        };
        if has(Tag::Secret).is_some_and(|at| at <= verb + 3 && ends(at)) {
            return Some(found(Kind::Secret, Actions::OUT, nothing));
        }
        if has(Tag::Taboo).is_some() {
            return Some(Found { subject_is_who: false, ..found(Kind::Forbid, Actions::ANY, nothing) });
        }
        has(Tag::Away).map(|_| found(Kind::Away, Actions::CONTACT, nothing))
    }

    /// "I do not want you to mail Bob", "Bob asked not to be contacted", "she told me never to call Carol"
    pub(super) fn wish(&self) -> Option<Found> {
        let end = self.end(self.start + 1);
        let wants = |known: Known| known.any(&[Tag::Want, Tag::Asked]);
        let wish = self.first(self.start + 1..end.min(self.start + 6), wants)?;
        let negated =
            |known: Known| known.any(&[Tag::Not, Tag::Never, Tag::No, Tag::NoOf, Tag::Gneg, Tag::Ne]);
        let not = self.first(self.start..end.min(wish + 4), negated)?;
        // "he said he would not call" is what somebody does; "he asked not to be called" is what he wishes.
        let wished = self.at(wish).is(Tag::Want)
            || self.word(not + 1) == "to"
            || !self.at(not).any(&[Tag::Not, Tag::Never]);
        if !wished {
            return None;
        }
        // "I don't want Carol to see the draft"
        let seen = (wish + 3..end.min(wish + 8))
            .find(|index| self.at(*index).is(Tag::Get) && self.word(index - 1) == "to");
        if let Some(seen) = seen.filter(|_| self.at(wish).is(Tag::Want)) {
            let found = self.forbid(seen, seen + 1..end);
            let subject = Some(wish + 1..seen - 1);
            return Some(Found {
                actions: Actions::OUT,
                to_people: false,
                subject,
                subject_is_who: true,
                needs_more: true,
                ..found
            });
        }
        let acts = |known: Known| known.actions != Actions::NONE && !wants(known) && !known.is(Tag::Get);
        let verb = self.first(wish + 1..end.min(wish + 8), acts)?;
        // "not to worry about the mail"
        if self.word(not + 1) == "to" && verb > not + 3 {
            return None;
        }
        let passive = self.at(verb).form(Form::Done) && self.at(verb - 1).is(Tag::Be);
        let owner = self.at(self.start).is(Tag::I);
        let told = ["to", "you", "que", "tu", "du"].contains(&self.word(verb - 1));
        let subject = (!owner && (passive || !told)).then_some(self.start..wish);
        let action = self.at(verb).form(Form::Command) || self.at(verb).form(Form::Thing) || passive;
        action.then(|| Found {
            subject,
            subject_is_who: true,
            needs_more: true,
            ..self.forbid(verb, wish + 1..end)
        })
    }

    /// "mailing Bob is forbidden", "it is not allowed to contact the press"
    pub(super) fn forbidden(&self) -> Option<Found> {
        let end = self.end(self.start);
        let not =
            self.first(self.start..end, |known| known.any(&[Tag::Not, Tag::Never, Tag::Gneg, Tag::Pas]));
        let permitted = |known: Known| known.is(Tag::Forbidden) || not.is_some() && known.is(Tag::Permitted);
        let judged = self.first(self.start..end, permitted)?;
        let acts = |known: Known| known.actions != Actions::NONE && !known.any(&[Tag::Be, Tag::Get]);
        if let Some(verb) = self.first(self.start..judged, acts) {
            let is = self.first(verb + 1..judged, |known| known.is(Tag::Be))?;
            return Some(Found { needs_more: true, ..self.forbid(verb, verb + 1..is) });
        }
        let verb = self.first(judged + 1..end.min(judged + 4), |known| known.form(Form::Command))?;
        Some(Found { needs_more: self.at(verb).actions == Actions::ANY, ..self.forbid(verb, verb + 1..end) })
    }

    /// "payments over 500 need my approval"
    pub(super) fn needs_approval(&self) -> Option<Found> {
        let (verb, end) = (self.skip(self.start, &[Tag::Filler, Tag::Det]), self.end(self.start));
        let acts = self.at(verb).form(Form::Thing) || self.at(verb).form(Form::Doing);
        let needs = (verb + 1..end)
            .find(|index| matches!(self.word(*index), "need" | "needs" | "require" | "requires"))?;
        let approval = ["approval", "ok", "okay", "permission", "consent", "confirmation"];
        let mine = (needs..end).any(|index| approval.contains(&self.word(index)));
        (acts && mine).then(|| Found { kind: Kind::Ask, ..self.forbid(verb, verb + 1..needs) })
    }
}
