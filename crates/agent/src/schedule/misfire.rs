//! Decides about a run that is late: the scheduler was not running when it was due, or the previous run took too long.
//! Pure.

use std::time::Duration;

use super::Timetable;

/// How many missed runs are made up individually.
const MAX_CAUGHT_UP: usize = 100;
/// How far back they are searched for when there are more.
const CAUGHT_UP_MICROS: i64 = 31 * 24 * 3600 * 1_000_000;

/// The policy for missed runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Misfire {
    Skip,
    /// One run replaces all of them.
    #[default]
    Once,
    /// Run each, in order, the newest hundred.
    All,
}

impl Misfire {
    /// Parses a name; the error lists the valid ones.
    pub fn named(name: &str) -> Result<Self, String> {
        match name {
            "skip" => Ok(Self::Skip),
            "once" => Ok(Self::Once),
            "all" => Ok(Self::All),
            _ => Err(format!("unknown misfire policy `{name}`; use skip, once or all")),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::Once => "once",
            Self::All => "all",
        }
    }
}

/// What to do with a due schedule, and when it is due next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    Run { next: Option<i64> },
    Skip { next: Option<i64> },
}

pub(super) struct DueRun<'a> {
    pub(super) table: &'a Timetable,
    pub(super) due: i64,
    pub(super) now: i64,
    /// How late a run may be without counting as missed.
    pub(super) grace: Duration,
}

pub(super) fn plan(misfire: Misfire, due_run: &DueRun<'_>) -> Plan {
    let &DueRun { table, due, now, grace } = due_run;
    let by = u64::try_from(now.saturating_sub(due)).map_or(Duration::ZERO, Duration::from_micros);
    match misfire {
        Misfire::Skip if by > grace => Plan::Skip { next: table.next_of(due, now) },
        Misfire::Skip | Misfire::Once => Plan::Run { next: table.next_of(due, now) },
        Misfire::All => match newest(table, due, now) {
            Some(oldest) => Plan::Skip { next: Some(oldest) },
            None => Plan::Run { next: table.next_after(due) },
        },
    }
}

/// The start of the newest hundred, if more were missed.
fn newest(table: &Timetable, due: i64, now: i64) -> Option<i64> {
    let missed =
        |from: i64| std::iter::successors(Some(from), |at| table.next_after(*at)).take_while(|at| *at <= now);
    missed(due).nth(MAX_CAUGHT_UP)?;
    let since = table.next_of(due, due.max(now.saturating_sub(CAUGHT_UP_MICROS)))?;
    let surplus = missed(since).count().saturating_sub(MAX_CAUGHT_UP);
    missed(since).nth(surplus)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: i64 = 60_000_000;
    const DAY: i64 = 24 * 60 * MINUTE;

    fn plan_run(misfire: Misfire, cron: &str, due: i64, now: i64) -> Plan {
        let table = Timetable::parse(cron, "UTC").expect("a timetable");
        plan(misfire, &DueRun { table: &table, due, now, grace: Duration::from_secs(60) })
    }

    #[test]
    fn in_time_all_are_alike() {
        for misfire in [Misfire::Skip, Misfire::Once, Misfire::All] {
            let plan = plan_run(misfire, "*/5 * * * *", 0, MINUTE);
            assert_eq!(plan, Plan::Run { next: Some(5 * MINUTE) });
        }
    }

    #[test]
    fn a_night_is_skipped_run_once_or_made_up_for() {
        let night = |misfire| plan_run(misfire, "*/30 * * * *", 0, 8 * 60 * MINUTE + 1);
        assert_eq!(night(Misfire::Skip), Plan::Skip { next: Some(510 * MINUTE) });
        assert_eq!(night(Misfire::Once), Plan::Run { next: Some(510 * MINUTE) });
        assert_eq!(night(Misfire::All), Plan::Run { next: Some(30 * MINUTE) });
    }

    #[test]
    fn a_moment_that_passed_is_skipped_or_run() {
        let once = |misfire| plan_run(misfire, "@once 1970-01-01T00:00:00Z", 0, DAY);
        assert_eq!(once(Misfire::Skip), Plan::Skip { next: None });
        assert_eq!(once(Misfire::Once), Plan::Run { next: None });
        assert_eq!(once(Misfire::All), Plan::Run { next: None });
    }

    #[test]
    fn a_hundred_are_made_up_for_at_most() {
        // Due 101 times, including now.
        let next = |now| plan_run(Misfire::All, "* * * * *", 0, now);
        assert_eq!(next(99 * MINUTE), Plan::Run { next: Some(MINUTE) });
        assert_eq!(next(100 * MINUTE), Plan::Skip { next: Some(MINUTE) });
        let year = 365 * DAY;
        assert_eq!(next(year), Plan::Skip { next: Some(year - 99 * MINUTE) });
        // Of the days of a year, the last month remains.
        let days = plan_run(Misfire::All, "0 0 * * *", 0, year);
        assert_eq!(days, Plan::Skip { next: Some(year - 30 * DAY) });
    }

    #[test]
    fn a_clock_that_went_back_makes_nothing_late() {
        let plan = plan_run(Misfire::Skip, "*/5 * * * *", 10 * MINUTE, 0);
        assert_eq!(plan, Plan::Run { next: Some(15 * MINUTE) });
    }
}
