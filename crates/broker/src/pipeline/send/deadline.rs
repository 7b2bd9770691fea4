//! The deadline of a sent call: its limit, extended by progress up to a bound. The clock stops, also up to a bound, while the
//! host answers a request for the call. Takes the time as an argument.

use std::time::Duration;

use tokio::time::Instant;

/// Progress extends a call up to this bound, or up to the call's own limit if that is longer.
pub(crate) const LONGEST: Duration = Duration::from_secs(3600);

#[derive(Debug)]
pub(super) struct Deadline {
    limit: Duration,
    until: Instant,
    /// The bound for extensions.
    end: Instant,
    stopped_at: Option<Instant>,
    /// How much longer the clock may stop: a server must not keep its call open by sending requests without end.
    spare: Duration,
}

impl Deadline {
    pub(super) fn new(limit: Duration, now: Instant) -> Self {
        Self { limit, until: now + limit, end: now + limit.max(LONGEST), stopped_at: None, spare: LONGEST }
    }

    pub(super) fn until(&self) -> Instant {
        if self.stopped_at.is_some() { self.until + self.spare } else { self.until }
    }

    /// Called on progress.
    pub(super) fn extend(&mut self, now: Instant) {
        self.until = (self.stopped_at.unwrap_or(now) + self.limit).min(self.end);
    }

    pub(super) fn stop(&mut self, now: Instant) {
        self.stopped_at.get_or_insert(now);
    }

    pub(super) fn resume(&mut self, now: Instant) {
        if let Some(stopped_at) = self.stopped_at.take() {
            let stood = now.saturating_duration_since(stopped_at).min(self.spare);
            self.spare = self.spare.saturating_sub(stood);
            (self.until, self.end) = (self.until + stood, self.end + stood);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn progress_extends_up_to_a_bound() {
        let start = Instant::now();
        let mut deadline = Deadline::new(s(20), start);
        assert_eq!(deadline.until(), start + s(20));
        deadline.extend(start + s(15));
        assert_eq!(deadline.until(), start + s(35));
        deadline.extend(start + s(3590));
        assert_eq!(deadline.until(), start + LONGEST);
        let deadline = Deadline::new(s(7200), start);
        assert_eq!(deadline.until(), start + s(7200), "the operator's own limit holds");
    }

    #[test]
    fn the_time_of_a_question_does_not_count() {
        let start = Instant::now();
        let mut deadline = Deadline::new(s(20), start);
        deadline.stop(start + s(5));
        deadline.stop(start + s(50));
        deadline.resume(start + s(1005));
        deadline.resume(start + s(2000));
        assert_eq!(deadline.until(), start + s(1020), "fifteen were left");
        deadline.stop(start + s(1010));
        deadline.extend(start + s(1500));
        deadline.resume(start + s(2010));
        assert_eq!(deadline.until(), start + s(2030), "progress meanwhile gives the whole limit, not more");
        deadline.extend(start + s(9000));
        assert_eq!(deadline.until(), start + LONGEST + s(2000), "nor does it count against the bound");
    }

    #[test]
    fn the_clock_does_not_stand_still_for_ever() {
        let start = Instant::now();
        let mut deadline = Deadline::new(s(20), start);
        deadline.stop(start);
        deadline.resume(start + LONGEST - s(1));
        deadline.stop(start + LONGEST);
        assert_eq!(deadline.until(), start + LONGEST + s(20), "nineteen are left, and one to stand still");
        deadline.resume(start + LONGEST + s(10));
        assert_eq!(deadline.until(), start + LONGEST + s(20));
    }
}
