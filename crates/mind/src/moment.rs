//! When something happens, for the owner: a point in time and their time zone.

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// A point in time, seen from a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    at: Timestamp,
    zone: TimeZone,
}

impl Moment {
    /// This time in this zone.
    #[must_use]
    pub fn new(at: Timestamp, zone: TimeZone) -> Self {
        Self { at, zone }
    }

    /// Microseconds since 1970, as the store counts.
    #[must_use]
    pub fn micros(&self) -> i64 {
        self.at.as_microsecond()
    }

    /// The owner's date and wall clock.
    #[must_use]
    pub fn local(&self) -> Zoned {
        self.at.to_zoned(self.zone.clone())
    }

    /// The owner's zone.
    #[must_use]
    pub fn zone(&self) -> &TimeZone {
        &self.zone
    }
}
