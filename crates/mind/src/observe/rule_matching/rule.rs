//! A rule: what a sentence forbids or restricts, and how it is parsed from a sentence. `matcher` applies it. Every pattern
//! looks at one clause from its beginning, so that the subject decides: "never mail Bob" is a rule, "Bob never mails" is
//! not.

use std::ops::Range;

use embody_text::tokenize::Token;
use jiff::ToSpan;
use jiff::civil::DateTime;

use super::objects::objects;
use super::patterns;
use super::times::times;
use super::words::{Actions, Meaning, Tag, is_mark, read};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) kind: Kind,
    pub(super) actions: Actions,
    /// A verb that the lexicon does not know; a tool with this word in its name does it.
    pub(super) verb: Option<String>,
    /// All of them must be in the call.
    pub(super) groups: Vec<Group>,
    pub(super) except: Vec<Object>,
    pub(super) when: TimeWindow,
    /// Only amounts beyond this.
    pub(super) over: Option<u32>,
    /// It is about what reaches the owner, not others.
    pub(super) to_owner: bool,
}

impl Rule {
    /// Whether it counts when it stands in a memory. Conversations are full of "don't overwork" and "never saw": there, only
    /// verbs that the lexicon knows are orders.
    pub(super) fn is_sure(&self) -> bool {
        self.verb.is_none()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Forbid,
    /// Not without being asked.
    Ask,
    Only,
    Secret,
    Away,
}

/// One of these must be in the call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) any: Vec<Object>,
    pub(super) who: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Object {
    Words(Vec<String>),
    Address(String),
    Domain(String),
}

pub(super) const DAY: u16 = 24 * 60;
/// What is called work: Monday to Friday, eight to six.
const WORK: (u8, (u16, u16)) = (0b001_1111, (8 * 60, 18 * 60));

/// When a rule applies. Empty: always.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TimeWindow {
    /// Days of the week, Monday is the lowest bit; 0 is every day.
    pub(super) days: u8,
    /// From one minute of the day until before another, perhaps over midnight.
    pub(super) hours: Option<(u16, u16)>,
    /// It is the time outside of these that counts.
    pub(super) outside: bool,
    pub(super) from: Option<DateTime>,
    pub(super) until: Option<DateTime>,
}

impl TimeWindow {
    pub(super) fn work(outside: bool) -> Self {
        let (days, hours) = WORK;
        Self { days, hours: Some(hours), outside, ..Self::default() }
    }

    pub(super) fn has_hours(&self) -> bool {
        self.days != 0 || self.hours.is_some()
    }

    pub(super) fn has_dates(&self) -> bool {
        self.from.is_some() || self.until.is_some()
    }

    pub(super) fn is_over(&self, now: DateTime) -> bool {
        self.until.is_some_and(|until| until <= now) || self.from.is_some_and(|from| from > now)
    }

    pub(super) fn applies(&self, now: DateTime) -> bool {
        !self.is_over(now) && (!self.has_hours() || self.is_within(now) != self.outside)
    }

    fn is_within(&self, now: DateTime) -> bool {
        let minute = u16::try_from(i32::from(now.hour()) * 60 + i32::from(now.minute())).unwrap_or(0);
        // The small hours belong to the evening before.
        let eve = now.checked_sub(1.day()).unwrap_or(now);
        match self.hours {
            None => self.has_day(now),
            Some((from, to)) if from < to => (from..to).contains(&minute) && self.has_day(now),
            Some((from, _)) if minute >= from => self.has_day(now),
            Some((_, to)) => minute < to && self.has_day(eve),
        }
    }

    fn has_day(&self, day: DateTime) -> bool {
        let bit = day.weekday().to_monday_zero_offset();
        self.days == 0 || self.days & (1 << bit) != 0
    }

    /// Like `from 22:00 to 06:00, until 2026-12-03`; for reasons.
    pub(super) fn describe(&self) -> String {
        let mut parts = Vec::new();
        if self.outside {
            parts.push("outside of".to_owned());
        }
        if let Some((from, to)) = self.hours {
            let clock = |minute: u16| format!("{:02}:{:02}", minute / 60, minute % 60);
            parts.push(format!("from {} to {}", clock(from), clock(to)));
        }
        if self.days != 0 {
            let names = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
            let days = names.iter().enumerate().filter(|(bit, _)| self.days & (1 << bit) != 0);
            let days: Vec<&str> = days.map(|(_, name)| *name).collect();
            parts.push(format!("on {}", days.join(", ")));
        }
        if let Some(until) = self.until {
            parts.push(format!("until {} {:02}:{:02}", until.date(), until.hour(), until.minute()));
        }
        parts.join(" ")
    }
}

const MAX_RULES: usize = 4;
const CUES: [Tag; 21] = [
    Tag::Forbidden,
    Tag::Not,
    Tag::Never,
    Tag::No,
    Tag::NoOf,
    Tag::Ne,
    Tag::Gneg,
    Tag::Nobody,
    Tag::Stop,
    Tag::Ask,
    Tag::Only,
    Tag::Secret,
    Tag::Away,
    Tag::Taboo,
    Tag::Nothing,
    Tag::Quiet,
    Tag::Outside,
    Tag::Before,
    Tag::Without,
    Tag::Keep,
    Tag::Pas,
];

const WORDS: [&str; 6] = ["leave", "lass", "laisse", "need", "needs", "requires"];

#[derive(Clone, Debug)]
pub(super) struct PatternMatch {
    pub(super) kind: Kind,
    pub(super) actions: Actions,
    pub(super) verb: Option<String>,
    pub(super) verb_at: usize,
    pub(super) to_people: bool,
    pub(super) subject: Option<Range<usize>>,
    pub(super) subject_is_who: bool,
    pub(super) region: Range<usize>,
    /// It says nothing without an object or a time.
    pub(super) needs_more: bool,
}

pub(super) fn parse_rules(sentence: &str, said: DateTime) -> Vec<Rule> {
    let tokens = read(sentence).tokens;
    let cue = |token: &Token<'_>| token.classes.any(&CUES) || WORDS.contains(&token.word.as_str());
    if !tokens.iter().any(cue) {
        return Vec::new();
    }
    let mut found: Vec<(usize, PatternMatch)> = Vec::new();
    let mut end = 0;
    for start in starts(&tokens, said) {
        if start < end || found.len() >= MAX_RULES {
            continue;
        }
        if let Some(one) = patterns::find(&tokens, start) {
            end = one.region.end.max(start + 1);
            found.push((start, one));
        }
    }
    let bounds: Vec<usize> = found.iter().skip(1).map(|(start, _)| *start).chain([tokens.len()]).collect();
    let mut from = 0;
    let mut rules = Vec::new();
    for ((_, one), to) in found.into_iter().zip(bounds) {
        rules.extend(rule(&tokens, one, from..to, said));
        from = to;
    }
    rules
}

/// Where a clause may begin: at the beginning, after a mark or a small word, and after a time.
fn starts(tokens: &[Token<'_>], said: DateTime) -> Vec<usize> {
    let opens = |token: &Token<'_>| {
        is_mark(token)
            || token.classes.any(&[Tag::Or, Tag::Filler, Tag::Because])
            || ["that", "dass", "que", "to"].contains(&token.word.as_str())
    };
    let timed = times(tokens, said, false).used;
    let after = tokens.iter().zip(timed).enumerate().filter(|(_, (token, timed))| *timed || opens(token));
    std::iter::once(0).chain(after.map(|(index, _)| index + 1)).collect()
}

/// Adds whom and when. A pattern that needs more than it has is no rule.
fn rule(tokens: &[Token<'_>], found: PatternMatch, span: Range<usize>, said: DateTime) -> Option<Rule> {
    let part = tokens.get(span.clone())?;
    let absent = part.iter().any(|token| token.classes.is(Tag::Away));
    let times = times(part, said, absent);
    let mut used = vec![false; span.start];
    used.extend(times.used);
    let objects = objects(tokens, &found, &used);
    let mut when = times.when;
    let empty = objects.groups.is_empty() && objects.except.is_empty() && objects.over.is_none();
    let bare = empty && !when.has_hours();
    let aimless = bare && (objects.to_owner || objects.pronoun || found.needs_more && !when.has_dates());
    // Somebody who is away comes back; a memory that does not say when is of no use later.
    let endless = found.kind == Kind::Away && (when.until.is_none() || objects.groups.is_empty());
    if aimless || endless {
        return None;
    }
    let mut kind = if objects.asks && found.kind == Kind::Forbid { Kind::Ask } else { found.kind };
    if kind == Kind::Only && empty {
        // `only between 9 and 17` is a rule about the rest of the day.
        if !when.has_hours() {
            return None;
        }
        (kind, when.outside) = (Kind::Forbid, !when.outside);
    }
    let actions = objects.actions.filter(|_| found.actions != Actions::NONE).unwrap_or(found.actions);
    let (mut groups, mut except) = (objects.groups, objects.except);
    if kind == Kind::Only {
        except.extend(std::mem::take(&mut groups).into_iter().flat_map(|group| group.any));
    }
    if kind == Kind::Secret {
        groups.iter_mut().for_each(|group| group.who = false);
    }
    let (over, to_owner) = (objects.over, objects.to_owner);
    Some(Rule { kind, actions, verb: found.verb, groups, except, when, over, to_owner })
}
