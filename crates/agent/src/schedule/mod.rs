//! When a schedule is due, and running what is.
//!
//! | module | owns |
//! |---|---|
//! | `cron` | the five fields, and the local times that they name |
//! | `timetable` | moments: time zones, changes of the clocks, `@every`, `@once` |
//! | `misfire` | what becomes of runs that are late |
//! | `scheduler` | looking for what is due, in every process that has one |
//! | `attend` | one due schedule, from the claim to the end of its run |
//! | `turns` | a run as a turn of an agent |

mod agent_job;
mod cron;
mod misfire;
mod run_job;
mod scheduler;
mod timetable;

pub use self::agent_job::{agent_job, open_schedule_thread};
pub use self::misfire::Misfire;
pub use self::run_job::JobHandler;
pub use self::scheduler::{Scheduler, SchedulerSettings};
pub use self::timetable::{Timetable, TimetableError, span};

/// When a new schedule is due first, in microseconds since 1970; never for what is past. In words, why it is no timetable.
pub fn first_due(cron: &str, timezone: &str, now: i64) -> Result<Option<i64>, String> {
    Timetable::parse(cron, timezone).map(|table| table.next_after(now)).map_err(|error| error.to_string())
}
