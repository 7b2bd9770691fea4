//! How long a call may go on: its limit, again from every word of progress, but never beyond a bound. While somebody is
//! asked for it the clock stands still, which has a bound too. Reads no clock itself.

use std::time::Duration;

use tokio::time::Instant;

/// However much progress is told, a call is over after this, or after its own limit if that is longer.
pub(super) const LONGEST: Duration = Duration::from_secs(3600);

/// The clock of one call.
#[derive(Debug)]
pub(super) struct Patience {
    limit: Duration,
    until: Instant,
    /// Never later than this.
    end: Instant,
    stopped_at: Option<Instant>,
    /// How much longer it may stand still: a server that asks without end must not hold its call for ever.
    spare: Duration,
}

impl Patience {
    pub(super) fn new(limit: Duration, now: Instant) -> Self {
        Self { limit, until: now + limit, end: now + limit.max(LONGEST), stopped_at: None, spare: LONGEST }
    }

    /// When it is over, if the clock stays as it is.
    pub(super) fn until(&self) -> Instant {
        if self.stopped_at.is_some() { self.until + self.spare } else { self.until }
    }

    /// There is progress.
    pub(super) fn extend(&mut self, now: Instant) {
        // On a clock that stands still it is still the time at which it was stopped.
        self.until = (self.stopped_at.unwrap_or(now) + self.limit).min(self.end);
    }

    /// Somebody is asked.
    pub(super) fn stop(&mut self, now: Instant) {
        self.stopped_at.get_or_insert(now);
    }

    /// Nobody is asked any more.
    pub(super) fn go_on(&mut self, now: Instant) {
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
        let mut patience = Patience::new(s(20), start);
        assert_eq!(patience.until(), start + s(20));
        patience.extend(start + s(15));
        assert_eq!(patience.until(), start + s(35));
        patience.extend(start + s(3590));
        assert_eq!(patience.until(), start + LONGEST);
        let patience = Patience::new(s(7200), start);
        assert_eq!(patience.until(), start + s(7200), "the operator's own limit holds");
    }

    #[test]
    fn the_time_of_a_question_does_not_count() {
        let start = Instant::now();
        let mut patience = Patience::new(s(20), start);
        patience.stop(start + s(5));
        patience.stop(start + s(50));
        patience.go_on(start + s(1005));
        patience.go_on(start + s(2000));
        assert_eq!(patience.until(), start + s(1020), "fifteen were left");
        patience.stop(start + s(1010));
        patience.extend(start + s(1500));
        patience.go_on(start + s(2010));
        assert_eq!(patience.until(), start + s(2030), "progress meanwhile gives the whole limit, not more");
        patience.extend(start + s(9000));
        assert_eq!(patience.until(), start + LONGEST + s(2000), "nor does it count against the bound");
    }

    #[test]
    fn the_clock_does_not_stand_still_for_ever() {
        let start = Instant::now();
        let mut patience = Patience::new(s(20), start);
        patience.stop(start);
        patience.go_on(start + LONGEST - s(1));
        patience.stop(start + LONGEST);
        assert_eq!(patience.until(), start + LONGEST + s(20), "nineteen are left, and one to stand still");
        patience.go_on(start + LONGEST + s(10));
        assert_eq!(patience.until(), start + LONGEST + s(20));
    }
}
