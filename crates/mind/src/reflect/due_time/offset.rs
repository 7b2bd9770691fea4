//! Times counted from now: `in two hours`, `a week from now`, `dans trois jours`.

use jiff::{ToSpan, Zoned};

use super::TimeExpr;
use super::calendar::{Unit, number, unit};
use crate::reflect::sentences::{Word, lower, reads_at};

/// The expression that begins here, and how many words it has.
pub(super) fn read(words: &[Word<'_>], at: usize, now: &Zoned) -> Option<(TimeExpr, usize)> {
    if reads_at(words, at, "within the hour") {
        return Some((TimeExpr::Offset(60), 3));
    }
    let leads = match lower(words, at) {
        "in" | "within" | "dans" | "en" => 1,
        "dentro" if lower(words, at + 1) == "de" => 2,
        _ => 0,
    };
    let first = Amount::read(words, at + leads)?;
    let mut end = at + leads + first.length;
    let mut minutes = first.minutes();
    // In two hours and a quarter: hours and minutes add up, longer stretches stand alone.
    while let Some(sum) = minutes
        && matches!(lower(words, end), "and" | "und" | "et" | "y")
    {
        let Some(next) = Amount::read(words, end + 1) else { break };
        let Some(more) = next.minutes() else { break };
        minutes = Some(sum + more);
        end += 1 + next.length;
    }
    let from_now =
        ["from now", "from today", "ab heute", "ab jetzt"].iter().any(|tail| reads_at(words, end, tail));
    if from_now {
        end += 2;
    } else if matches!(lower(words, end), "ago" | "earlier") {
        return Some((TimeExpr::Past, end + 1 - at));
    } else if leads == 0 {
        return None;
    }
    let piece = match minutes {
        Some(minutes) => TimeExpr::Offset(minutes),
        None => {
            let date = match first.unit {
                Unit::Week => now.date().checked_add(first.count.weeks()),
                Unit::Month => now.date().checked_add(first.count.months()),
                Unit::Year => now.date().checked_add(first.count.years()),
                _ => now.date().checked_add(first.count.days()),
            };
            TimeExpr::Day { date: date.ok()?, exact: true }
        }
    };
    Some((piece, end - at))
}

struct Amount {
    count: i64,
    unit: Unit,
    half: bool,
    length: usize,
}

impl Amount {
    /// `two weeks`, `a couple of days`, `half an hour`, `the next 3 days`.
    fn read(words: &[Word<'_>], at: usize) -> Option<Self> {
        if ["half an hour", "half a day", "une demi heure"].iter().any(|half| reads_at(words, at, half)) {
            return Some(Self { count: 0, unit: unit(lower(words, at + 2))?, half: true, length: 3 });
        }
        if reads_at(words, at, "media hora") || reads_at(words, at, "halben stunde") {
            return Some(Self { count: 0, unit: Unit::Hour, half: true, length: 2 });
        }
        let mut here = at;
        if matches!(lower(words, here), "the" | "next")
            || (lower(words, here) == "a" && number(lower(words, here + 1)).is_some())
        {
            here += 1;
        }
        if lower(words, here) == "next" {
            here += 1;
        }
        let count = number(lower(words, here))?;
        here += 1;
        if lower(words, here) == "of" {
            here += 1;
        }
        if matches!(lower(words, here), "fortnight") {
            return Some(Self { count: 2 * count, unit: Unit::Week, half: false, length: here + 1 - at });
        }
        let unit = unit(lower(words, here))?;
        Some(Self { count, unit, half: false, length: here + 1 - at })
    }

    /// As minutes, if it is counted in hours or minutes.
    fn minutes(&self) -> Option<i64> {
        let each = match self.unit {
            Unit::Minute => 1,
            Unit::Hour => 60,
            _ => return None,
        };
        Some(self.count * each + if self.half { each / 2 } else { 0 })
    }
}
