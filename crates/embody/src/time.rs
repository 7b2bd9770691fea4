//! Times as people and programs read and write them, and texts cut to a table's width.

use jiff::Timestamp;

/// For programs: RFC 3339 with microseconds.
pub(crate) fn rfc3339(micros: i64) -> String {
    Timestamp::from_microsecond(micros).map_or_else(|_| micros.to_string(), |at| format!("{at:.6}"))
}

/// For people: to the second, in UTC.
pub(crate) fn shown(micros: i64) -> String {
    Timestamp::from_microsecond(micros).map_or_else(|_| micros.to_string(), |at| format!("{at:.0}"))
}

/// A moment as somebody writes it on the command line.
pub(crate) fn moment(text: &str) -> Result<Timestamp, &'static str> {
    text.parse().map_err(|_| "write it like 2026-11-15T21:30:00Z or 2026-11-15T22:30:00+01:00")
}

/// The name of a time zone as somebody writes it on the command line.
pub(crate) fn zone(text: &str) -> Result<String, &'static str> {
    match jiff::tz::TimeZone::get(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(_) => {
            Err("there is no such time zone; write its name like Europe/Berlin, America/New_York or UTC")
        }
    }
}

/// A line for a table: at most so many characters.
pub(crate) fn clipped(line: &str, limit: usize) -> String {
    match line.char_indices().nth(limit) {
        None => line.to_owned(),
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or(line)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_lines_are_short() {
        assert_eq!(rfc3339(1_763_251_200_000_001), "2025-11-16T00:00:00.000001Z");
        assert_eq!(shown(1_763_251_200_900_000), "2025-11-16T00:00:00Z");
        assert_eq!((clipped("añb", 2), clipped("añ", 2)), ("añ…".into(), "añ".into()));
    }
}
