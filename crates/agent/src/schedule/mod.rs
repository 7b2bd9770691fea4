//! Timetables, and the scheduler that runs due jobs.
//!
//! | module | owns |
//! |---|---|
//! | `cron` | the five fields, and the local times that they match |
//! | `timetable` | instants: time zones, clock changes, `@every`, `@once` |
//! | `misfire` | the policy for late runs |
//! | `scheduler` | finds and starts due schedules, in every process that runs one |
//! | `run_job` | one due schedule, from the claim to the end of its run |
//! | `agent_job` | a run as a turn of an agent |

mod agent_job;
mod cron;
mod misfire;
mod run_job;
mod scheduler;
mod timetable;

pub use self::agent_job::{agent_job, open_schedule_thread};
pub use self::misfire::Misfire;
pub use self::run_job::{JobError, JobHandler};
pub use self::scheduler::{Scheduler, SchedulerSettings};
pub use self::timetable::{Timetable, TimetableError, span, span_up_to};

/// When a new schedule is first due, in microseconds since 1970; `None` if that is in the past. The error says why the
/// timetable is invalid.
pub fn first_due(cron: &str, timezone: &str, now: i64) -> Result<Option<i64>, String> {
    Timetable::parse(cron, timezone).map(|table| table.next_after(now)).map_err(|error| error.to_string())
}
