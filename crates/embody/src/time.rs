//! Parses and formats times for people and programs.

use jiff::Timestamp;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_microseconds_for_programs_and_seconds_for_people() {
        assert_eq!(rfc3339(1_763_251_200_000_001), "2025-11-16T00:00:00.000001Z");
        assert_eq!(display(1_763_251_200_900_000), "2025-11-16T00:00:00Z");
    }
}
