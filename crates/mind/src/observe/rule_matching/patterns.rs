//! The shapes in which people forbid: each function knows one, and looks at the clause that begins at a token.

use std::ops::Range;

use embody_text::lexicon::Classes;
use embody_text::tokenize::Token;

use super::rule::{Kind, PatternMatch};
use super::words::{Actions, Meaning, Tag, is_mark};

/// Words that may stand between `never` and its verb.
const BETWEEN: [&str; 12] =
    ["let", "dare", "try", "to", "ever", "go", "anyone", "anybody", "attempt", "zu", "be", "allowed"];

/// The first pattern that fits here.
pub(super) fn find(tokens: &[Token<'_>], start: usize) -> Option<PatternMatch> {
    let clause = Clause { tokens, start };
    clause
        .ask_first()
        .or_else(|| clause.imperative())
        .or_else(|| clause.german())
        .or_else(|| clause.no_thing())
        .or_else(|| clause.nothing())
        .or_else(|| clause.stop_doing())
        .or_else(|| clause.only())
        .or_else(|| clause.leave_alone())
        .or_else(|| clause.quiet_hours())
        .or_else(|| clause.secret())
        .or_else(|| clause.subject())
        .or_else(|| clause.wish())
        .or_else(|| clause.forbidden())
        .or_else(|| clause.needs_approval())
}

/// A sentence, seen from where a clause of it may begin.
pub(super) struct Clause<'a> {
    pub(super) tokens: &'a [Token<'a>],
    pub(super) start: usize,
}

impl Clause<'_> {
    pub(super) fn at(&self, index: usize) -> Classes {
        self.tokens.get(index).map(|token| token.classes).unwrap_or_default()
    }

    pub(super) fn word(&self, index: usize) -> &str {
        self.tokens.get(index).map(|token| token.word.as_str()).unwrap_or_default()
    }

    pub(super) fn is_mark(&self, index: usize) -> bool {
        self.tokens.get(index).is_none_or(is_mark)
    }

    /// Past what only introduces.
    pub(super) fn skip(&self, from: usize, tags: &[Tag]) -> usize {
        (from..self.tokens.len()).find(|index| !self.at(*index).any(tags)).unwrap_or(self.tokens.len())
    }

    pub(super) fn first(&self, range: Range<usize>, fits: impl Fn(Classes) -> bool) -> Option<usize> {
        range.into_iter().find(|index| fits(self.at(*index)))
    }

    fn is_cue(&self, index: usize) -> bool {
        let known = self.at(index);
        known.is(Tag::Do) && self.at(index + 1).is(Tag::Not)
            || known.any(&[Tag::Never, Tag::Stop, Tag::Only, Tag::Ask])
            || known.is(Tag::No) && self.at(index + 1).is(Tag::Thing)
    }

    pub(super) fn end(&self, from: usize) -> usize {
        let ends = |index: usize| {
            let Some(token) = self.tokens.get(index) else { return true };
            let next = self.at(index + 1);
            match token.word.as_str() {
                "," => {
                    let told = next.is(Tag::Command) && !next.is(Tag::Thing);
                    let told = told && self.tokens.get(index + 1).is_some_and(|token| !token.capital);
                    let other = [Tag::Pronoun, Tag::I, Tag::You, Tag::Because];
                    told || next.any(&other) || self.is_cue(index + 1)
                }
                ";" => true,
                _ => {
                    token.classes.is(Tag::Because)
                        || token.classes.any(&[Tag::Or, Tag::Filler]) && self.is_cue(index + 1)
                }
            }
        };
        (from..self.tokens.len()).find(|index| ends(*index)).unwrap_or(self.tokens.len())
    }

    /// The verb at the end of the clause, before a mark or `without`.
    fn last(&self, from: usize, end: usize) -> Option<usize> {
        let stops = |index: &usize| self.is_mark(*index) || self.at(*index).is(Tag::Without);
        let end = (from..end).find(stops).unwrap_or(end);
        end.checked_sub(1).filter(|last| self.at(*last).is(Tag::Command))
    }

    pub(super) fn forbid(&self, verb_at: usize, region: Range<usize>) -> PatternMatch {
        let known = self.at(verb_at);
        PatternMatch {
            kind: Kind::Forbid,
            actions: known.actions(),
            verb: None,
            verb_at,
            to_people: known.is_to_people(),
            subject: None,
            subject_is_who: false,
            region,
            needs_more: false,
        }
    }

    /// "ask me before you delete anything"
    fn ask_first(&self) -> Option<PatternMatch> {
        let from = self.skip(self.start, &[Tag::Filler, Tag::You, Tag::Modal]);
        let waits = ["wait", "warte", "attends", "espera"].contains(&self.word(from))
            && (from..self.tokens.len()).any(|index| self.at(index).is(Tag::Until));
        let asks = self.at(from).is(Tag::Ask) || waits;
        let later = || (from..self.tokens.len()).any(|index| self.at(index).is(Tag::Ask));
        if !(asks || self.at(from).is(Tag::Before) && later()) {
            return None;
        }
        let before = self.first(from..self.tokens.len(), |known| known.is(Tag::Before))?;
        let verb = self.first(before + 1..before + 9, |known| known.actions() != Actions::NONE)?;
        let end = self.end(verb + 1);
        let ask = self.first(verb + 1..end, |known| known.is(Tag::Ask)).unwrap_or(end);
        let kind = if waits { Kind::Forbid } else { Kind::Ask };
        Some(PatternMatch { kind, ..self.forbid(verb, before + 1..ask) })
    }

    /// "never mail Bob", "you must not mail Bob", "n'envoie jamais …", "no envíes …", "nobody may …"
    fn imperative(&self) -> Option<PatternMatch> {
        let mut at = self.skip(self.start, &[Tag::Filler]);
        let nobody = self.at(at).is(Tag::Nobody) && self.at(at + 1).is(Tag::Modal);
        let we =
            ["we", "wir", "nous", "nosotros"].contains(&self.word(at)) && self.at(at + 1).is(Tag::Strict);
        if nobody || we || self.at(at).is(Tag::You) {
            at = self.skip(at + 1, &[Tag::Modal, Tag::Filler]);
        }
        let negated = self.negation(at);
        // "don't you love it"
        let asks = self.at(at).is(Tag::Do) && self.at(at + 2).is(Tag::You) && self.word(at + 3) != "dare";
        if negated == at && !nobody || asks {
            return None;
        }
        let verb = (negated..negated + 4)
            .find(|index| self.at(*index).is(Tag::Command) || !self.may_skip(*index))?;
        let end = self.end(verb);
        let known = self.at(verb);
        let passive = known.is(Tag::Done) && self.word(verb.saturating_sub(1)) == "be";
        if known.is(Tag::Command) && !known.is(Tag::Idiom) || passive {
            // `n'écris qu'à …` is what alone is allowed.
            let only = (verb + 1..verb + 3).find(|index| matches!(self.word(*index), "qu" | "que"));
            if let Some(only) = only.filter(|_| self.at(at).is(Tag::Ne)) {
                let found = self.forbid(verb, only + 1..end);
                return Some(PatternMatch { kind: Kind::Only, needs_more: true, ..found });
            }
            let needs_more = known.actions() == Actions::ANY;
            return Some(PatternMatch { needs_more, ..self.forbid(verb, verb + 1..end) });
        }
        // The verb comes last: `nie an Bob schreiben`.
        let last = self.last(verb, end).filter(|last| *last > verb);
        if let Some(last) = last.filter(|_| self.at(at).is(Tag::Gneg)) {
            return Some(self.forbid(last, negated..end));
        }
        let token = self.tokens.get(verb)?;
        let strange =
            known.is_plain() && !token.capital && !token.word.ends_with("ed") && token.word.len() > 2;
        let strange = strange && !self.is_mark(verb + 1) && token.word.chars().all(char::is_alphabetic);
        let english = self.at(at).is(Tag::Do) || self.word(at) == "never";
        (strange && english)
            .then(|| PatternMatch { verb: Some(token.word.clone()), ..self.forbid(verb, verb + 1..end) })
    }

    /// Past the words that negate, if there are any.
    fn negation(&self, from: usize) -> usize {
        let mut at = from;
        loop {
            let (known, next) = (self.at(at), self.at(at + 1));
            at += match () {
                () if known.is(Tag::Do) && next.is(Tag::Not) => 2,
                () if known.any(&[Tag::Not, Tag::Never, Tag::Ne]) => 1,
                () if known.is(Tag::No) && next.is(Tag::Command) && !next.is(Tag::Thing) => 1,
                () if known.any(&[Tag::No, Tag::Ne]) && next.is(Tag::Modal) => 2,
                () if known.is(Tag::Gneg) && !known.is(Tag::NoOf) && at == from => 1,
                () if at > from && known.any(&[Tag::Filler, Tag::You, Tag::Modal, Tag::Pas]) => 1,
                () if at > from && self.is_mark(at) && (next.is(Tag::Filler) || next.is(Tag::Command)) => 1,
                () => return at,
            };
        }
    }

    fn may_skip(&self, index: usize) -> bool {
        let known = self.at(index);
        BETWEEN.contains(&self.word(index))
            || known.any(&[Tag::Filler, Tag::Me, Tag::Pas])
            || known.any(&[Tag::Pronoun, Tag::Gneg, Tag::Generic])
    }

    /// "schreib Bob nie", "du darfst Bob keine Mails schicken"; "send nothing to Bob"
    fn german(&self) -> Option<PatternMatch> {
        let at = self.skip(self.start, &[Tag::Filler]);
        let end = self.end(at);
        let negated = |from: usize| self.first(from..end, |known| known.is(Tag::Gneg));
        if self.at(at).is(Tag::Command) {
            let nothing = self.at(at + 1).any(&[Tag::Nothing, Tag::Nobody]);
            let spared = self.at(at + 2).any(&[Tag::But, Tag::Except]);
            if nothing && spared {
                return Some(PatternMatch {
                    kind: Kind::Only,
                    needs_more: true,
                    ..self.forbid(at, at + 3..end)
                });
            }
            return (nothing || negated(at + 1).is_some()).then(|| self.forbid(at, at + 1..end));
        }
        let modal = self.at(at).is(Tag::You) && self.at(at + 1).is(Tag::Modal);
        if modal && negated(at + 2).is_some() {
            let verb = self.first(at + 2..end, |known| known.is(Tag::Command))?;
            return Some(self.forbid(verb, at + 2..end));
        }
        // "Bob bitte nicht anrufen"
        let told = self
            .tokens
            .get(at)
            .is_some_and(|token| token.capital && (token.classes.is_plain() || token.classes.is(Tag::Det)));
        let not = negated(at + 1).filter(|not| told && *not <= at + 4)?;
        let acts = [Tag::Be, Tag::Modal, Tag::I, Tag::Want];
        if (at..not).any(|index| self.at(index).any(&acts)) {
            return None;
        }
        self.last(not, end).map(|last| self.forbid(last, at..end))
    }
}
