//! Parses and formats times for people and programs.

use embody_text::dates;
use embody_text::fold::fold;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};

/// As long as requests of models are kept.
const LONGEST_AGO: SignedDuration = SignedDuration::from_hours(24 * 400);
/// How to write a time in the past.
pub(crate) const WHEN_HINT: &str = "write a duration such as 2h or 3d, a day such as yesterday, monday or 2026-11-15, \
                                    or a time such as 2026-11-15 21:30 or 2026-11-15T21:30:00Z";

/// RFC 3339 with microseconds, for programs.
pub(crate) fn rfc3339(micros: i64) -> String {
    Timestamp::from_microsecond(micros).map_or_else(|_| micros.to_string(), |at| format!("{at:.6}"))
}

/// To the second in UTC, for people.
pub(crate) fn display(micros: i64) -> String {
    Timestamp::from_microsecond(micros).map_or_else(|_| micros.to_string(), |at| format!("{at:.0}"))
}

pub(crate) fn parse_timestamp(text: &str) -> Result<Timestamp, &'static str> {
    text.parse().map_err(|_| "write it like 2026-11-15T21:30:00Z or 2026-11-15T22:30:00+01:00")
}

pub(crate) fn parse_zone(text: &str) -> Result<String, &'static str> {
    match jiff::tz::TimeZone::get(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(_) => Err("unknown time zone; write a name such as Europe/Berlin, America/New_York or UTC"),
    }
}

/// To the second in this machine's time zone, for people.
pub(crate) fn local(micros: i64) -> String {
    Timestamp::from_microsecond(micros).map_or_else(
        |_| micros.to_string(),
        |at| at.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string(),
    )
}

/// What a person wrote about the past: a day, or a time, which starts and ends at the same moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Period {
    pub(crate) start: Timestamp,
    /// Of a day, the start of the next one.
    pub(crate) end: Timestamp,
}

impl Period {
    /// Parses a duration ago up to 400 days, a day, or a time. Days are those of the time zone of `now`.
    pub(crate) fn parse(text: &str, now: &Zoned) -> Result<Self, &'static str> {
        let text = text.trim();
        let moment = |at: Timestamp| Self { start: at, end: at };
        if let Some(span) = embody_agent::schedule::span_up_to(text, LONGEST_AGO) {
            return now.timestamp().checked_sub(span).map(moment).map_err(|_| WHEN_HINT);
        }
        if let Ok(at) = text.parse() {
            return Ok(moment(at));
        }
        let zone = now.time_zone();
        let Some(day) = day(&fold(text), now.date()) else {
            let local = text.parse::<DateTime>().and_then(|local| local.to_zoned(zone.clone()));
            return local.map(|at| moment(at.timestamp())).map_err(|_| WHEN_HINT);
        };
        let midnight = |day: Date| day.to_zoned(zone.clone()).map(|at| at.timestamp());
        let end = day.tomorrow().and_then(midnight);
        Ok(Self { start: midnight(day).map_err(|_| WHEN_HINT)?, end: end.map_err(|_| WHEN_HINT)? })
    }
}

/// Parses `--since`: a day is included.
pub(crate) fn parse_since(text: &str) -> Result<Timestamp, &'static str> {
    Period::parse(text, &Zoned::now()).map(|period| period.start)
}

/// Parses `--until`: a day is included.
pub(crate) fn parse_until(text: &str) -> Result<Timestamp, &'static str> {
    Period::parse(text, &Zoned::now()).map(|period| period.end)
}

/// A day as a person writes it: today, yesterday, a weekday, or a date.
pub(crate) fn parse_day(text: &str) -> Result<Date, &'static str> {
    day(&fold(text.trim()), Zoned::now().date())
        .ok_or("write today, yesterday, a weekday, or a date such as 2026-11-15")
}

/// A weekday is the last one before today.
fn day(text: &str, today: Date) -> Option<Date> {
    match text {
        "today" => Some(today),
        "yesterday" => today.yesterday().ok(),
        // Not with a time of day.
        date if date.len() == 10 => date.parse().ok(),
        name => today.nth_weekday(-1, dates::weekday(name, true)?).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_microseconds_for_programs_and_seconds_for_people() {
        assert_eq!(rfc3339(1_763_251_200_000_001), "2025-11-16T00:00:00.000001Z");
        assert_eq!(display(1_763_251_200_900_000), "2025-11-16T00:00:00Z");
    }

    #[test]
    fn times_are_read_as_people_write_them() {
        let now: Zoned = "2026-11-18T12:00:00+01:00[Europe/Berlin]".parse().unwrap();
        for (text, at) in [
            ("2h", "2026-11-18T09:00:00Z"),
            ("3d", "2026-11-15T11:00:00Z"),
            ("today", "2026-11-17T23:00:00Z"),
            ("Yesterday", "2026-11-16T23:00:00Z"),
            ("monday", "2026-11-15T23:00:00Z"),
            ("wednesday", "2026-11-10T23:00:00Z"),
            ("2026-07-01", "2026-06-30T22:00:00Z"),
            ("2026-11-15 09:30", "2026-11-15T08:30:00Z"),
            ("2026-11-15T09:30:00Z", "2026-11-15T09:30:00Z"),
        ] {
            let start = Period::parse(text, &now).map(|period| period.start.to_string());
            assert_eq!(start, Ok(at.to_owned()), "{text}");
        }
        for text in ["", "soon", "-2h", "2026-13-01", "25:00", "2", "401d"] {
            assert!(Period::parse(text, &now).is_err(), "{text}");
        }
    }

    #[test]
    fn a_day_ends_when_the_next_one_starts_and_a_time_at_once() {
        let now: Zoned = "2026-11-18T12:00:00+01:00[Europe/Berlin]".parse().unwrap();
        for (text, end) in [
            ("today", "2026-11-18T23:00:00Z"),
            ("monday", "2026-11-16T23:00:00Z"),
            // A day of 25 hours.
            ("2026-10-25", "2026-10-25T23:00:00Z"),
            ("400d", "2025-10-14T11:00:00Z"),
            ("2026-11-15 09:30", "2026-11-15T08:30:00Z"),
            ("2026-11-15T09:30:00Z", "2026-11-15T09:30:00Z"),
        ] {
            let found = Period::parse(text, &now).map(|period| period.end.to_string());
            assert_eq!(found, Ok(end.to_owned()), "{text}");
        }
    }
}
