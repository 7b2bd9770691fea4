//! A slow reference implementation of cron: minute by minute, by looking at a wall clock. Shares only the time zone
//! library with the real one.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

/// A set of values per field, and how the two day fields combine.
#[derive(Clone, Debug)]
pub(crate) struct CronExpression {
    pub(crate) minutes: Vec<i8>,
    pub(crate) hours: Vec<i8>,
    pub(crate) days: Option<Vec<i8>>,
    pub(crate) months: Vec<i8>,
    pub(crate) weekdays: Option<Vec<i8>>,
}

impl CronExpression {
    /// The expression as text.
    pub(crate) fn text(&self) -> String {
        let list = |values: &[i8]| values.iter().map(i8::to_string).collect::<Vec<_>>().join(",");
        let hours = if self.hours.len() == 24 { "*".to_owned() } else { list(&self.hours) };
        let optional =
            |values: &Option<Vec<i8>>| values.as_ref().map_or("*".to_owned(), |values| list(values));
        format!(
            "{} {hours} {} {} {}",
            list(&self.minutes),
            optional(&self.days),
            list(&self.months),
            optional(&self.weekdays)
        )
    }

    fn has(&self, time: DateTime) -> bool {
        let day = self.days.as_ref().map(|days| days.contains(&time.day()));
        let weekday = self
            .weekdays
            .as_ref()
            .map(|days| days.contains(&(time.date().weekday().to_sunday_zero_offset())));
        let day = match (day, weekday) {
            (Some(day), Some(weekday)) => day || weekday,
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => true,
        };
        day && self.months.contains(&time.month())
            && self.hours.contains(&time.hour())
            && self.minutes.contains(&time.minute())
    }

    /// All due times after `from` up to and including `to`, which are whole minutes.
    pub(crate) fn between(&self, zone: &TimeZone, from: Timestamp, to: Timestamp) -> Vec<Timestamp> {
        let every_hour = self.hours.len() == 24;
        // Starts two days earlier: long enough for every time that the clocks repeat.
        let mut at = from - 48.hours();
        let mut highest = zone.to_datetime(at);
        let mut due = Vec::new();
        loop {
            at += 1.minute();
            if at > to {
                return due;
            }
            let shown = zone.to_datetime(at);
            let is_due = if every_hour {
                self.has(shown)
            } else {
                // Checks the minutes since the latest local time reached so far.
                let mut passed = false;
                while highest < shown {
                    highest += 1.minute();
                    passed |= self.has(highest);
                }
                passed
            };
            if is_due && at > from {
                due.push(at);
            }
        }
    }
}
