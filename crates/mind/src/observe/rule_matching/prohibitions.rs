//! Patterns without a negated verb: short bans (no messages, nothing before nine, only this) and statements (somebody is away,
//! something is secret or needs approval).

use std::ops::Range;

use embody_text::lexicon::Classes;

use super::patterns::Clause;
use super::rule::{Kind, PatternMatch};
use super::words::{Actions, Meaning, Tag};

impl Clause<'_> {
    /// "no messages after 22:00", "keine Nachrichten nach 22 Uhr", "pas de messages …", "no more mails to Bob"
    pub(super) fn no_thing(&self) -> Option<PatternMatch> {
        let at = self.skip(self.start, &[Tag::Filler]);
        if !self.at(at).any(&[Tag::No, Tag::NoOf]) {
            return None;
        }
        let skipped = self.skip(at + 1, &[Tag::Generic, Tag::Filler, Tag::Det]);
        let thing = (skipped..skipped + 2)
            .find(|index| self.at(*index).is(Tag::Thing) || self.at(*index).is(Tag::Doing))?;
        let end = self.end(thing);
        let next = self.at(thing + 1);
        let bound = [
            Tag::To,
            Tag::After,
            Tag::Before,
            Tag::Between,
            Tag::Without,
            Tag::Until,
            Tag::About,
            Tag::Outside,
        ];
        let more = self.at(at + 1).is(Tag::Generic);
        let bound =
            next.any(&bound) || next.any(&[Tag::Except, Tag::Unless, Tag::Weekend, Tag::Night]) || more;
        let timed = |known: Classes| {
            known.any(&[Tag::Weekend, Tag::Night, Tag::Workday, Tag::After, Tag::Before])
                || known.has(Classes::WEEKDAY)
        };
        let bound = bound || self.first(thing + 1..end, timed).or(self.first(0..at, timed)).is_some();
        let bound = bound || self.at(thing).is(Tag::Doing) || self.at(thing + 1).is(Tag::Command);
        (bound && !next.is(Tag::From)).then(|| PatternMatch {
            to_people: false,
            needs_more: !next.any(&[Tag::Without]),
            ..self.forbid(thing, thing + 1..end)
        })
    }

    /// "nothing before 9 on weekdays", "nichts nach 22 Uhr", "nothing to the press"
    pub(super) fn nothing(&self) -> Option<PatternMatch> {
        let at = self.skip(self.start, &[Tag::Filler]);
        if !self.at(at).is(Tag::Nothing) {
            return None;
        }
        let next = self.at(at + 1);
        let someone =
            self.at(at + 2).is(Tag::Det) || self.tokens.get(at + 2).is_some_and(|token| token.capital);
        let timed = next.any(&[
            Tag::After,
            Tag::Before,
            Tag::Between,
            Tag::Outside,
            Tag::Weekend,
            Tag::Night,
            Tag::About,
        ]);
        let told = next.is(Tag::To) && someone;
        let held = self.first(at + 1..self.end(at), |known| known.is(Tag::Without));
        let actions = if told { Actions::OUT } else { Actions::ANY };
        let region = held.filter(|_| !told && !timed).unwrap_or(at + 1)..self.end(at);
        let is_rule = timed || told || held.is_some();
        is_rule.then(|| PatternMatch { actions, needs_more: held.is_none(), ..self.forbid(at, region) })
    }

    /// "stop sending …", "avoid calling …", "hold off on … until Friday"
    pub(super) fn stop_doing(&self) -> Option<PatternMatch> {
        let at = self.skip(self.start, &[Tag::Filler, Tag::You, Tag::Modal]);
        if !self.at(at).is(Tag::Stop) {
            return None;
        }
        let end = self.end(at + 1);
        let small = [Tag::From, Tag::About, Tag::To, Tag::Det, Tag::Me, Tag::Filler];
        let next = self.skip(at + 1, &small);
        let known = self.at(next);
        let doing =
            known.is(Tag::Doing) || known.is(Tag::Command) && !["stop", "quit"].contains(&self.word(at));
        if doing || known.is(Tag::Thing) && self.at(next + 1).any(&[Tag::To, Tag::Until, Tag::About]) {
            return Some(self.forbid(next, next + 1..end));
        }
        // `hör auf, Bob Mails zu schicken`
        let last = self.tokens.len().checked_sub(1)?;
        let german = self.at(last).is(Tag::Command) && self.word(last.saturating_sub(1)) == "zu";
        german.then(|| self.forbid(last, at + 1..self.tokens.len()))
    }

    /// "only write to people at example.com", "mail only Bob", "messages only between 9 and 17"
    pub(super) fn only(&self) -> Option<PatternMatch> {
        let at = self.skip(self.start, &[Tag::Filler, Tag::You, Tag::Modal]);
        let acts = |index: usize| self.at(index).is(Tag::Command) || self.at(index).is(Tag::Thing);
        let end = self.end(at);
        let (only, verb) = if self.at(at).is(Tag::Only) {
            let near = (at + 1..at + 3).find(|index| acts(*index));
            let last = end.checked_sub(1).filter(|last| self.at(*last).is(Tag::Command));
            (at, near.or(last)?)
        } else if acts(at) {
            ((at + 1..at + 4).find(|index| self.at(*index).is(Tag::Only))?, at)
        } else {
            return None;
        };
        let asks = (only..end).any(|index| matches!(self.word(index), "asking" | "approval" | "permission"));
        let kind = if asks { Kind::Ask } else { Kind::Only };
        let from = if asks { verb + 1..only } else { only + 1..end };
        Some(PatternMatch { kind, needs_more: !asks, ..self.forbid(verb, from) })
    }

    /// "leave Bob alone", "lass Bob in Ruhe"
    pub(super) fn leave_alone(&self) -> Option<PatternMatch> {
        let at = self.skip(self.start, &[Tag::Filler]);
        let ends = ["alone", "out", "ruhe", "tranquille", "paz"];
        if !["leave", "lass", "laisse", "deja"].contains(&self.word(at)) {
            return None;
        }
        let last = (at + 2..self.end(at)).find(|index| ends.contains(&self.word(*index)))?;
        Some(PatternMatch {
            actions: Actions::CONTACT,
            to_people: true,
            needs_more: true,
            ..self.forbid(at, at + 1..last)
        })
    }

    /// "quiet hours: 22:00 to 7:00"
    pub(super) fn quiet_hours(&self) -> Option<PatternMatch> {
        let at = self.skip(self.start, &[Tag::Filler, Tag::Det]);
        self.at(at).is(Tag::Quiet).then(|| PatternMatch {
            actions: Actions::OUT,
            needs_more: true,
            ..self.forbid(at, self.tokens.len()..self.tokens.len())
        })
    }

    /// "keep the merger confidential"
    pub(super) fn secret(&self) -> Option<PatternMatch> {
        let at = self.skip(self.start, &[Tag::Filler]);
        if !self.at(at).is(Tag::Keep) {
            return None;
        }
        let end = self.end(at);
        let secret = self.first(at + 1..end.min(at + 8), |known| known.any(&[Tag::Secret, Tag::Or]))?;
        if !self.at(secret).is(Tag::Secret) {
            return None;
        }
        Some(PatternMatch {
            kind: Kind::Secret,
            actions: Actions::OUT,
            needs_more: true,
            ..self.forbid(at, at + 1..secret)
        })
    }

    /// "Carol must not get the budget", "Alice is on leave until …", "Bob is off limits", "the merger is confidential"
    pub(super) fn subject(&self) -> Option<PatternMatch> {
        let from = self.skip(self.start, &[Tag::Filler]);
        let end = self.end(from + 1);
        let verb = (from + 1..end.min(from + 7))
            .find(|index| self.at(*index).any(&[Tag::Be, Tag::Strict]) || self.word(*index) == "can")?;
        let subject = from..verb;
        let person = self
            .tokens
            .get(from)
            .is_some_and(|token| token.capital || token.classes.is(Tag::Det) || token.word.contains('@'));
        let nobody =
            self.at(from).any(&[Tag::Pronoun, Tag::I, Tag::You, Tag::Keep]) && !self.at(from).is(Tag::Det);
        if nobody || !person && from != 0 {
            return None;
        }
        let found = |kind, actions, region: Range<usize>| PatternMatch {
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
            let acts = |known: Classes| known.is(Tag::Get) || known.is(Tag::Done) || known.is(Tag::Command);
            let near = verb.max(not) + 4;
            let done = self.first(verb.min(not) + 1..end, acts).filter(|_| strict)?;
            if done >= near && !(done + 1 == end && self.at(not).is(Tag::Gneg)) {
                return None;
            }
            let passive = self.at(done).is(Tag::Done) || self.at(done).is(Tag::Command);
            let actions =
                if passive && !self.at(done).is(Tag::Get) { self.at(done).actions() } else { Actions::OUT };
            let who = self.at(done).is(Tag::Get) || self.at(done).is_to_people();
            let subject = from..verb.min(not);
            return Some(PatternMatch {
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
            let stays = matches!(self.word(verb), "stays" | "stay" | "remains" | "remain" | "bleibt");
            let owned = self.word(at) == "private" && self.word(from) != "my" && !stays;
            !owned && (self.is_mark(at + 1) || !self.at(at + 1).is_plain())
        };
        if has(Tag::Secret).is_some_and(|at| at <= verb + 3 && ends(at)) {
            return Some(found(Kind::Secret, Actions::OUT, nothing));
        }
        if has(Tag::Taboo).is_some() {
            return Some(PatternMatch {
                subject_is_who: false,
                ..found(Kind::Forbid, Actions::ANY, nothing)
            });
        }
        has(Tag::Away).map(|_| found(Kind::Away, Actions::CONTACT, nothing))
    }

    /// "I do not want you to mail Bob", "Bob asked not to be contacted", "she told me never to call Carol"
    pub(super) fn wish(&self) -> Option<PatternMatch> {
        let end = self.end(self.start + 1);
        let wants = |known: Classes| known.any(&[Tag::Want, Tag::Asked]);
        let wish = self.first(self.start + 1..end.min(self.start + 6), wants)?;
        let negated =
            |known: Classes| known.any(&[Tag::Not, Tag::Never, Tag::No, Tag::NoOf, Tag::Gneg, Tag::Ne]);
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
            return Some(PatternMatch {
                actions: Actions::OUT,
                to_people: false,
                subject,
                subject_is_who: true,
                needs_more: true,
                ..found
            });
        }
        let acts = |known: Classes| known.actions() != Actions::NONE && !wants(known) && !known.is(Tag::Get);
        let verb = self.first(wish + 1..end.min(wish + 8), acts)?;
        // "not to worry about the mail"
        if self.word(not + 1) == "to" && verb > not + 3 {
            return None;
        }
        let passive = self.at(verb).is(Tag::Done) && self.at(verb - 1).is(Tag::Be);
        let owner = self.at(self.start).is(Tag::I);
        let told = ["to", "you", "que", "tu", "du"].contains(&self.word(verb - 1));
        let subject = (!owner && (passive || !told)).then_some(self.start..wish);
        let action = self.at(verb).is(Tag::Command) || self.at(verb).is(Tag::Thing) || passive;
        action.then(|| PatternMatch {
            subject,
            subject_is_who: true,
            needs_more: true,
            ..self.forbid(verb, wish + 1..end)
        })
    }

    /// "mailing Bob is forbidden", "it is not allowed to contact the press"
    pub(super) fn forbidden(&self) -> Option<PatternMatch> {
        let end = self.end(self.start);
        let not =
            self.first(self.start..end, |known| known.any(&[Tag::Not, Tag::Never, Tag::Gneg, Tag::Pas]));
        let permitted =
            |known: Classes| known.is(Tag::Forbidden) || not.is_some() && known.is(Tag::Permitted);
        let judged = self.first(self.start..end, permitted)?;
        let acts = |known: Classes| known.actions() != Actions::NONE && !known.any(&[Tag::Be, Tag::Get]);
        if let Some(verb) = self.first(self.start..judged, acts) {
            let is = self.first(verb + 1..judged, |known| known.is(Tag::Be))?;
            return Some(PatternMatch { needs_more: true, ..self.forbid(verb, verb + 1..is) });
        }
        let verb = self.first(judged + 1..end.min(judged + 4), |known| known.is(Tag::Command))?;
        Some(PatternMatch {
            needs_more: self.at(verb).actions() == Actions::ANY,
            ..self.forbid(verb, verb + 1..end)
        })
    }

    /// "payments over 500 need my approval"
    pub(super) fn needs_approval(&self) -> Option<PatternMatch> {
        let (verb, end) = (self.skip(self.start, &[Tag::Filler, Tag::Det]), self.end(self.start));
        let acts = self.at(verb).is(Tag::Thing) || self.at(verb).is(Tag::Doing);
        let needs = (verb + 1..end)
            .find(|index| matches!(self.word(*index), "need" | "needs" | "require" | "requires"))?;
        let approval = ["approval", "ok", "okay", "permission", "consent", "confirmation"];
        let mine = (needs..end).any(|index| approval.contains(&self.word(index)));
        (acts && mine).then(|| PatternMatch { kind: Kind::Ask, ..self.forbid(verb, verb + 1..needs) })
    }
}
