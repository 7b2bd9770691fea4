//! When a schedule is due, and running what is.
//!
//! | module | owns |
//! |---|---|
//! | `cron` | the five fields, and the local times that they name |
//! | `timetable` | moments: time zones, changes of the clocks, `@every`, `@once` |

mod cron;
mod timetable;

pub use self::timetable::{Timetable, TimetableError};

/// When a new schedule is due first, in microseconds since 1970; never for what is past. In words, why it is no timetable.
pub fn first_due(cron: &str, timezone: &str, now: i64) -> Result<Option<i64>, String> {
    Timetable::parse(cron, timezone).map(|table| table.next_after(now)).map_err(|error| error.to_string())
}
