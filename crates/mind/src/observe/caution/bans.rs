//! Short bans without a negated verb: no messages, nothing before nine, stop doing, only this, leave somebody alone.

use super::lexicon::{Actions, Form, Known, Tag};
use super::parse::Found;
use super::patterns::Clause;
use super::rule::Kind;

impl Clause<'_> {
    /// "no messages after 22:00", "keine Nachrichten nach 22 Uhr", "pas de messages …", "no more mails to Bob"
    pub(super) fn no_thing(&self) -> Option<Found> {
        let at = self.skip(self.start, &[Tag::Filler]);
        if !self.at(at).any(&[Tag::No, Tag::NoOf]) {
            return None;
        }
        let skipped = self.skip(at + 1, &[Tag::Generic, Tag::Filler, Tag::Det]);
        let thing = (skipped..skipped + 2)
            .find(|index| self.at(*index).form(Form::Thing) || self.at(*index).form(Form::Doing))?;
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
        let timed = |known: Known| {
            known.any(&[Tag::Weekend, Tag::Night, Tag::Workday, Tag::After, Tag::Before])
                || known.day.is_some()
        };
        let bound = bound || self.first(thing + 1..end, timed).or(self.first(0..at, timed)).is_some();
        let bound = bound || self.at(thing).form(Form::Doing) || self.at(thing + 1).form(Form::Command);
        (bound && !next.is(Tag::From)).then(|| Found {
            to_people: false,
            needs_more: !next.any(&[Tag::Without]),
            ..self.forbid(thing, thing + 1..end)
        })
    }

    /// "nothing before 9 on weekdays", "nichts nach 22 Uhr", "nothing to the press"
    pub(super) fn nothing(&self) -> Option<Found> {
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
        is_rule.then(|| Found { actions, needs_more: held.is_none(), ..self.forbid(at, region) })
    }

    /// "stop sending …", "avoid calling …", "hold off on … until Friday"
    pub(super) fn stop_doing(&self) -> Option<Found> {
        let at = self.skip(self.start, &[Tag::Filler, Tag::You, Tag::Modal]);
        if !self.at(at).is(Tag::Stop) {
            return None;
        }
        let end = self.end(at + 1);
        let small = [Tag::From, Tag::About, Tag::To, Tag::Det, Tag::Me, Tag::Filler];
        let next = self.skip(at + 1, &small);
        let known = self.at(next);
        let doing = known.form(Form::Doing)
            || known.form(Form::Command) && !["stop", "quit"].contains(&self.word(at));
        if doing || known.form(Form::Thing) && self.at(next + 1).any(&[Tag::To, Tag::Until, Tag::About]) {
            return Some(self.forbid(next, next + 1..end));
        }
        // `hör auf, Bob Mails zu schicken`
        let last = self.tokens.len().checked_sub(1)?;
        let german = self.at(last).form(Form::Command) && self.word(last.saturating_sub(1)) == "zu";
        german.then(|| self.forbid(last, at + 1..self.tokens.len()))
    }

    /// "only write to people at example.com", "mail only Bob", "messages only between 9 and 17"
    pub(super) fn only(&self) -> Option<Found> {
        let at = self.skip(self.start, &[Tag::Filler, Tag::You, Tag::Modal]);
        let acts = |index: usize| self.at(index).form(Form::Command) || self.at(index).form(Form::Thing);
        let end = self.end(at);
        let (only, verb) = if self.at(at).is(Tag::Only) {
            let near = (at + 1..at + 3).find(|index| acts(*index));
            let last = end.checked_sub(1).filter(|last| self.at(*last).form(Form::Command));
            (at, near.or(last)?)
        } else if acts(at) {
            ((at + 1..at + 4).find(|index| self.at(*index).is(Tag::Only))?, at)
        } else {
            return None;
        };
        let asks = (only..end).any(|index| matches!(self.word(index), "asking" | "approval" | "permission"));
        let kind = if asks { Kind::Ask } else { Kind::Only };
        let from = if asks { verb + 1..only } else { only + 1..end };
        Some(Found { kind, needs_more: !asks, ..self.forbid(verb, from) })
    }

    /// "leave Bob alone", "lass Bob in Ruhe"
    pub(super) fn leave_alone(&self) -> Option<Found> {
        let at = self.skip(self.start, &[Tag::Filler]);
        let ends = ["alone", "out", "ruhe", "tranquille", "paz"];
        if !["leave", "lass", "laisse", "deja"].contains(&self.word(at)) {
            return None;
        }
        let last = (at + 2..self.end(at)).find(|index| ends.contains(&self.word(*index)))?;
        Some(Found {
            actions: Actions::CONTACT,
            to_people: true,
            needs_more: true,
            ..self.forbid(at, at + 1..last)
        })
    }

    /// "quiet hours: 22:00 to 7:00"
    pub(super) fn quiet_hours(&self) -> Option<Found> {
        let at = self.skip(self.start, &[Tag::Filler, Tag::Det]);
        self.at(at).is(Tag::Quiet).then(|| Found {
            actions: Actions::OUT,
            needs_more: true,
            ..self.forbid(at, self.tokens.len()..self.tokens.len())
        })
    }
}
