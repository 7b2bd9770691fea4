//! The time of a call in the owner's zone, and times as hosts write and read them: RFC 3339, or a local date or time.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZonedNow {
    at: Timestamp,
    zone: TimeZone,
}

impl ZonedNow {
    pub fn new(at: Timestamp, zone: TimeZone) -> Self {
        Self { at, zone }
    }

    /// Microseconds since 1970, as the store counts.
    pub fn micros(&self) -> i64 {
        self.at.as_microsecond()
    }

    pub fn local(&self) -> Zoned {
        self.at.to_zoned(self.zone.clone())
    }

    pub fn zone(&self) -> &TimeZone {
        &self.zone
    }
}

/// Parses a time into microseconds since 1970; a date is its midnight in the owner's zone.
pub(crate) fn parse_micros(name: &str, text: &str, now: &ZonedNow) -> Result<i64, String> {
    let text = text.trim();
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(at.as_microsecond());
    }
    let local = text.parse::<DateTime>().ok().and_then(|local| local.to_zoned(now.zone().clone()).ok());
    local.map(|at| at.timestamp().as_microsecond()).ok_or_else(|| {
        let shown: String = text.chars().take(60).collect();
        format!("`{name}` is `{shown}`; write a time like 2026-11-15T21:30:00Z or a date like 2026-11-15")
    })
}

/// RFC 3339 in UTC.
pub(crate) fn format_micros(micros: i64) -> String {
    Timestamp::from_microsecond(micros).map_or_else(|_| micros.to_string(), |at| format!("{at:.6}"))
}

/// The local time of the owner, with its offset.
pub(crate) fn format_local(now: &ZonedNow, at: i64) -> Option<String> {
    let at = jiff::Timestamp::from_microsecond(at).ok()?;
    Some(at.to_zoned(now.zone().clone()).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::tz::TimeZone;

    #[test]
    fn times_and_dates_are_understood_where_the_owner_is() {
        let now =
            ZonedNow::new("2026-11-16T04:00:00Z".parse().unwrap(), TimeZone::get("Europe/Berlin").unwrap());
        let read = |text: &str| parse_micros("since", text, &now).map(format_micros);
        assert_eq!(read("2026-11-15T21:30:00Z").unwrap(), "2026-11-15T21:30:00.000000Z");
        assert_eq!(read("2026-11-15T21:30:00+02:00").unwrap(), "2026-11-15T19:30:00.000000Z");
        assert_eq!(read("2026-11-15").unwrap(), "2026-11-14T23:00:00.000000Z");
        assert_eq!(read(" 2026-07-15T09:00 ").unwrap(), "2026-07-15T07:00:00.000000Z");
        assert!(read("yesterday").unwrap_err().contains("`since` is `yesterday`"));
        assert!(read("").is_err() && read("2026-13-01").is_err());
    }
}
