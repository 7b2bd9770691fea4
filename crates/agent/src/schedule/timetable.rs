//! Timetables: when a schedule is due, in its time zone, across clock changes. Pure: the time is a parameter. A local time
//! that the clocks skip is due at the first_instant of the change; one that they show twice is due the first time. A schedule that
//! matches every hour follows the running clock: skipped times are not made up, and a repeated hour counts twice.

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use jiff::{SignedDuration, Timestamp, ToSpan};

use super::cron::Cron;

/// The limit of the store.
const LONGEST_TEXT: usize = 256;
const SHORTEST_EVERY: SignedDuration = SignedDuration::from_mins(1);
const LONGEST_SPAN: SignedDuration = SignedDuration::from_hours(24 * 366);
/// More clock changes than any zone has between two days that an expression can match.
const PERIODS: usize = 200;

/// Each error names the value and says what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimetableError {
    #[error(
        "`{text}` has {found} fields; a cron expression has five: minute, hour, day of the month, month, day of the week"
    )]
    Fields { text: String, found: usize },
    #[error("invalid {field} `{value}`; allowed: {allowed}")]
    Value { field: &'static str, value: String, allowed: &'static str },
    #[error("the {field} range `{range}` is reversed; write two ranges: `22-23,0-2` for 22 to 2")]
    Backwards { field: &'static str, range: String },
    #[error("`{text}` never occurs: none of these months has such a day")]
    Never { text: String },
    #[error(
        "unknown schedule `{text}`; use @hourly, @daily, @weekly, @monthly, @yearly, `@every 15m` and `@once 2027-01-31T09:00:00Z`"
    )]
    Alias { text: String },
    #[error("invalid duration `{text}`; write one from a minute to a year, such as 15m, 2h, 1h30m or 3d")]
    Every { text: String },
    #[error("invalid date or time `{text}`; write 2027-01-31T09:00:00Z or 2027-01-31T09:00:00+01:00")]
    Once { text: String },
    #[error("unknown time zone `{name}`; write a name such as Europe/Berlin, America/New_York or UTC")]
    Zone { name: String },
    #[error("the expression has {len} bytes; {LONGEST_TEXT} are allowed")]
    TooLong { len: usize },
}

#[derive(Clone, Debug)]
pub struct Timetable {
    rule: Rule,
    zone: TimeZone,
}

#[derive(Clone, Copy, Debug)]
enum Rule {
    Cron(Cron),
    Every(SignedDuration),
    Once(Timestamp),
}

impl Timetable {
    /// Parses a cron expression of five fields, `@hourly` and the like, `@every 15m` or `@once` with an RFC 3339 time.
    pub fn parse(text: &str, zone: &str) -> Result<Self, TimetableError> {
        if text.len() > LONGEST_TEXT {
            return Err(TimetableError::TooLong { len: text.len() });
        }
        let zone =
            TimeZone::get(zone.trim()).map_err(|_| TimetableError::Zone { name: zone.trim().to_owned() })?;
        Ok(Self { rule: Rule::parse(text.trim())?, zone })
    }

    /// The first due time after this one, both in microseconds since 1970. `@every` counts from the given time.
    pub fn next_after(&self, micros: i64) -> Option<i64> {
        let after = Timestamp::from_microsecond(micros).ok()?;
        let next = match self.rule {
            Rule::Every(span) => after.checked_add(span).ok()?,
            Rule::Once(at) => Some(at).filter(|at| *at > after)?,
            Rule::Cron(cron) if cron.is_every_hour() => next_by_clock(&cron, &self.zone, after)?,
            Rule::Cron(cron) => next_by_day(&cron, &self.zone, after)?,
        };
        Some(next.as_microsecond())
    }

    /// The first due time after `now`, in the series that follows `due`.
    pub fn next_of(&self, due: i64, now: i64) -> Option<i64> {
        if now <= due {
            return self.next_after(due);
        }
        let Rule::Every(span) = self.rule else { return self.next_after(now) };
        let span = i64::try_from(span.as_micros()).ok()?;
        let passed = now.checked_sub(due)?.checked_div(span)?;
        due.checked_add(passed.checked_add(1)?.checked_mul(span)?)
    }

    /// The zone's name in the time zone database.
    pub fn zone_name(&self) -> &str {
        self.zone.iana_name().unwrap_or("UTC")
    }

    /// The local time of an instant in the zone, with its offset.
    pub fn local(&self, micros: i64) -> String {
        match Timestamp::from_microsecond(micros) {
            Ok(at) => at.to_zoned(self.zone.clone()).strftime("%a %Y-%m-%d %H:%M:%S %:z").to_string(),
            Err(_) => micros.to_string(),
        }
    }
}

impl Rule {
    fn parse(text: &str) -> Result<Self, TimetableError> {
        let Some(alias) = text.strip_prefix('@') else { return Cron::parse(text).map(Self::Cron) };
        let unknown = || TimetableError::Alias { text: text.to_owned() };
        if let Some((word, rest)) = alias.split_once(char::is_whitespace) {
            return match word {
                "every" => every(rest.trim()).map(Self::Every),
                "once" => once(rest.trim()).map(Self::Once),
                _ => Err(unknown()),
            };
        }
        let expression = match alias {
            "hourly" => "0 * * * *",
            "daily" | "midnight" => "0 0 * * *",
            "weekly" => "0 0 * * 0",
            "monthly" => "0 0 1 * *",
            "yearly" | "annually" => "0 0 1 1 *",
            _ => return Err(unknown()),
        };
        Cron::parse(expression).map(Self::Cron)
    }
}

/// Parses a duration up to a year, such as `15m`, `1h30m` or `3d`; a day is 24 hours.
pub fn span(text: &str) -> Option<SignedDuration> {
    span_up_to(text, LONGEST_SPAN)
}

/// The same with another limit.
pub fn span_up_to(text: &str, longest: SignedDuration) -> Option<SignedDuration> {
    let days = text.strip_suffix('d').and_then(|days| days.parse::<i64>().ok()?.checked_mul(24));
    let span = match days {
        Some(hours) => SignedDuration::try_from_hours(hours)?,
        None => text.parse().ok()?,
    };
    (span.is_positive() && span <= longest).then_some(span)
}

fn every(text: &str) -> Result<SignedDuration, TimetableError> {
    span(text)
        .filter(|span| *span >= SHORTEST_EVERY)
        .ok_or_else(|| TimetableError::Every { text: text.to_owned() })
}

fn once(text: &str) -> Result<Timestamp, TimetableError> {
    text.parse().map_err(|_| TimetableError::Once { text: text.to_owned() })
}

/// The next instant at which the clock shows a matching time.
fn next_by_clock(cron: &Cron, zone: &TimeZone, after: Timestamp) -> Option<Timestamp> {
    let mut from = after.checked_add(1.nanosecond()).ok()?;
    for _ in 0..PERIODS {
        let offset = zone.to_offset(from);
        let local = whole_minute_from(offset.to_datetime(from))?;
        let at = offset.to_timestamp(cron.at_or_after(local)?).ok()?;
        match zone.following(from).next() {
            // The clocks change first: continue with the time after the change.
            Some(change) if change.timestamp() <= at => from = change.timestamp(),
            _ => return Some(at),
        }
    }
    None
}

/// The next matching local time, each counted once.
fn next_by_day(cron: &Cron, zone: &TimeZone, after: Timestamp) -> Option<Timestamp> {
    let local = zone.to_datetime(after);
    let mut from = local.date().at(local.hour(), local.minute(), 0, 0);
    // Terminates: only local times that the clocks skip or repeat can lie in the past.
    loop {
        let time = cron.at_or_after(from)?;
        let at = first_instant(zone, time)?;
        if at > after {
            return Some(at);
        }
        from = time.checked_add(1.minute()).ok()?;
    }
}

/// The first instant at which the clocks show this time, or would have.
fn first_instant(zone: &TimeZone, time: DateTime) -> Option<Timestamp> {
    match zone.to_ambiguous_timestamp(time).offset() {
        AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(time).ok(),
        AmbiguousOffset::Fold { before, .. } => before.to_timestamp(time).ok(),
        AmbiguousOffset::Gap { before, .. } => end_of_gap(zone, time, before),
    }
}

fn end_of_gap(zone: &TimeZone, time: DateTime, before: Offset) -> Option<Timestamp> {
    let late = before.to_timestamp(time).ok()?;
    let change = zone.preceding(late.checked_add(1.nanosecond()).ok()?).next();
    Some(change.map_or(late, |change| change.timestamp()))
}

fn whole_minute_from(time: DateTime) -> Option<DateTime> {
    let floor = time.date().at(time.hour(), time.minute(), 0, 0);
    if floor == time { Some(floor) } else { floor.checked_add(1.minute()).ok() }
}
