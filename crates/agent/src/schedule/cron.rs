//! Cron expressions with five fields, as in Vixie cron, and the local times that they match. Independent of time zones.

use jiff::ToSpan;
use jiff::civil::{Date, DateTime, Weekday};

use super::TimetableError;

/// The longest time between two 29ths of February, plus a few days.
const HORIZON_DAYS: i32 = 3000;

/// A field of an expression: its name, its range, and the names of its values.
struct Field {
    name: &'static str,
    first: u32,
    last: u32,
    names: &'static [&'static str],
    allowed: &'static str,
}

const MINUTE: Field =
    Field { name: "minute", first: 0, last: 59, names: &[], allowed: "0 to 59, `*`, `1-5`, `*/15`, `1,2`" };
const HOUR: Field =
    Field { name: "hour", first: 0, last: 23, names: &[], allowed: "0 to 23, `*`, `9-17`, `*/2`, `8,20`" };
const DAY: Field = Field {
    name: "day of the month",
    first: 1,
    last: 31,
    names: &[],
    allowed: "1 to 31, `L` for the last, `*`, `1-7`, `*/2`, `1,15`",
};
const MONTH: Field = Field {
    name: "month",
    first: 1,
    last: 12,
    names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
    allowed: "1 to 12, `jan` to `dec`, `*`, `jan-mar`, `*/3`, `1,7`",
};
const WEEKDAY: Field = Field {
    name: "day of the week",
    first: 0,
    last: 7,
    names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
    allowed: "0 to 7 (0 and 7 are Sunday), `sun` to `sat`, `*`, `mon-fri`, `1,3,5`",
};

/// A cron expression that matches at least one date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cron {
    minutes: u64,
    hours: u64,
    days: u64,
    last_day: bool,
    months: u64,
    weekdays: u64,
    /// Whether a day must match both day fields, because one of them starts with a star. Otherwise one match is enough.
    both_days: bool,
}

impl Cron {
    pub(super) fn parse(text: &str) -> Result<Self, TimetableError> {
        let fields: Vec<&str> = text.split_ascii_whitespace().collect();
        let &[minute, hour, day, month, weekday] = fields.as_slice() else {
            return Err(TimetableError::Fields { text: text.to_owned(), found: fields.len() });
        };
        let (days, last_day) = days(day)?;
        let weekdays = WEEKDAY.read(weekday)?;
        let cron = Self {
            minutes: MINUTE.read(minute)?,
            hours: HOUR.read(hour)?,
            days,
            last_day,
            months: MONTH.read(month)?,
            // Sunday has two numbers.
            weekdays: (weekdays | weekdays >> 7) & 0x7f,
            both_days: day.starts_with('*') || weekday.starts_with('*'),
        };
        // From a leap year on, every existing date comes within the horizon.
        match cron.at_or_after(DateTime::constant(2000, 1, 1, 0, 0, 0, 0)) {
            Some(_) => Ok(cron),
            None => Err(TimetableError::Never { text: text.to_owned() }),
        }
    }

    pub(super) fn is_every_hour(&self) -> bool {
        self.hours == HOUR.all()
    }

    /// The first matching local time at or after `from`, which is a whole minute.
    pub(super) fn at_or_after(&self, from: DateTime) -> Option<DateTime> {
        let last = from.date().checked_add(HORIZON_DAYS.days()).ok()?;
        let mut date = from.date();
        while date <= last {
            if !has(self.months, date.month()) {
                date = date.last_of_month().tomorrow().ok()?;
                continue;
            }
            let since = if date == from.date() { (from.hour(), from.minute()) } else { (0, 0) };
            if self.has_day(date)
                && let Some((hour, minute)) = self.time_from(since)
            {
                return Some(date.at(hour, minute, 0, 0));
            }
            date = date.tomorrow().ok()?;
        }
        None
    }

    fn has_day(&self, date: Date) -> bool {
        let by_day = has(self.days, date.day()) || (self.last_day && date.day() == date.days_in_month());
        let by_weekday = has(self.weekdays, weekday(date.weekday()));
        if self.both_days { by_day && by_weekday } else { by_day || by_weekday }
    }

    fn time_from(&self, (hour, minute): (i8, i8)) -> Option<(i8, i8)> {
        let first = self.minutes.trailing_zeros();
        if has(self.hours, hour)
            && let Some(minute) = next(self.minutes, minute)
        {
            return Some((hour, minute));
        }
        Some((next(self.hours, hour.checked_add(1)?)?, i8::try_from(first).ok()?))
    }
}

fn weekday(day: Weekday) -> i8 {
    day.to_sunday_zero_offset()
}

fn has(set: u64, value: i8) -> bool {
    u32::try_from(value).is_ok_and(|value| set.checked_shr(value).unwrap_or(0) & 1 == 1)
}

/// The first member at or after `value`.
fn next(set: u64, value: i8) -> Option<i8> {
    let rest = set & u64::MAX.checked_shl(u32::try_from(value).ok()?)?;
    if rest == 0 { None } else { i8::try_from(rest.trailing_zeros()).ok() }
}

/// The days of the month, and whether the last one is among them.
fn days(text: &str) -> Result<(u64, bool), TimetableError> {
    let (last, numbers): (Vec<&str>, Vec<&str>) =
        text.split(',').partition(|part| part.eq_ignore_ascii_case("L"));
    let set = if numbers.is_empty() { 0 } else { DAY.read(&numbers.join(","))? };
    Ok((set, !last.is_empty()))
}

impl Field {
    fn all(&self) -> u64 {
        span(self.first, self.last, 1)
    }

    /// Parses a list of values, ranges and steps into a bit set.
    fn read(&self, text: &str) -> Result<u64, TimetableError> {
        text.split(',').try_fold(0, |set, part| Ok(set | self.part(part)?))
    }

    fn part(&self, part: &str) -> Result<u64, TimetableError> {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, Some(self.step(step, part)?)),
            None => (part, None),
        };
        let (first, last) = match range.split_once('-') {
            _ if range == "*" => (self.first, self.last),
            Some((first, last)) => self.range(first, last, part)?,
            // `5/15` starts at 5 and continues to the end of the range.
            None if step.is_some() => (self.value(range, part)?, self.last),
            None => (self.value(range, part)?, self.value(range, part)?),
        };
        Ok(span(first, last, step.unwrap_or(1)))
    }

    fn range(&self, first: &str, last: &str, part: &str) -> Result<(u32, u32), TimetableError> {
        let (from, mut to) = (self.value(first, part)?, self.value(last, part)?);
        // People write `sat-sun` and `fri-sun`: at the end of a range Sunday is the seventh day.
        if self.last == 7 && to == 0 && from > 0 {
            to = 7;
        }
        if from > to {
            return Err(TimetableError::Backwards { field: self.name, range: format!("{first}-{last}") });
        }
        Ok((from, to))
    }

    fn step(&self, step: &str, part: &str) -> Result<u32, TimetableError> {
        let number = number(step).filter(|step| (1..=self.last).contains(step));
        number.ok_or_else(|| self.wrong(part))
    }

    fn value(&self, text: &str, part: &str) -> Result<u32, TimetableError> {
        let named = self.names.iter().position(|name| text.eq_ignore_ascii_case(name));
        let value = match named {
            Some(place) => u32::try_from(place).ok().map(|place| place.saturating_add(self.first)),
            None => number(text),
        };
        value.filter(|value| (self.first..=self.last).contains(value)).ok_or_else(|| self.wrong(part))
    }

    fn wrong(&self, part: &str) -> TimetableError {
        TimetableError::Value { field: self.name, value: part.to_owned(), allowed: self.allowed }
    }
}

/// Digits only: `+5` would also parse as a number.
fn number(text: &str) -> Option<u32> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

fn span(first: u32, last: u32, step: u32) -> u64 {
    let step = usize::try_from(step.max(1)).unwrap_or(usize::MAX);
    (first..=last).step_by(step).fold(0, |set, value| set | 1_u64.checked_shl(value).unwrap_or(0))
}
