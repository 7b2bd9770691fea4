//! A rule: what a sentence forbids or restricts. Plain data; `parse` makes it, `matcher` applies it. A [`TimeWindow`] says when it applies.

use jiff::ToSpan;
use jiff::civil::DateTime;

use super::lexicon::Actions;

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
