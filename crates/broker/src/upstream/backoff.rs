//! Intervals and limits of the supervisor, and the delay between connection attempts.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

#[derive(Debug, Clone)]
pub struct Backoff {
    /// Before the second attempt; twice that before the next, and so on.
    pub retry_first: Duration,
    /// At most.
    pub retry_max: Duration,
    /// How long a connection must have lasted for its end to be no failure in a row.
    pub stable: Duration,
    /// Failures in a row from which on the server is left alone between attempts.
    pub failures_max: u32,
    pub cooldown: Duration,
    /// How often an idle server is asked whether it lives.
    pub ping_interval: Duration,
    pub ping_timeout: Duration,
    pub misses_max: u32,
    /// Between two listings, however often the tools are said to have changed.
    pub listing_gap: Duration,
    /// How much more time than one attempt a process has for its start: it may have to be fetched first.
    pub start_factor: u32,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            retry_first: Duration::from_millis(200),
            retry_max: Duration::from_secs(5),
            stable: Duration::from_secs(10),
            failures_max: 5,
            cooldown: Duration::from_secs(1),
            ping_interval: Duration::from_secs(30),
            ping_timeout: Duration::from_secs(10),
            misses_max: 3,
            listing_gap: Duration::from_millis(250),
            start_factor: 12,
        }
    }
}

impl Backoff {
    /// How long to wait after this many failures in a row: between half of the time and all of it, so that many who lost
    /// the same server do not come back at once.
    pub(super) fn wait(&self, failures: u32) -> Duration {
        let doubled =
            self.retry_first.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1).min(16)));
        let most = doubled.min(self.retry_max);
        // A fresh hasher is random enough to come at another moment than others.
        let thousandths = RandomState::new().hash_one(failures) % 1000;
        let thousandths = u32::try_from(thousandths).unwrap_or_default();
        most / 2 + most * thousandths / 2000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: N-13
    #[test]
    fn waits_double_up_to_a_bound_and_differ() {
        let backoff = Backoff::default();
        for (failures, most_ms) in
            [(0, 200), (1, 200), (2, 400), (3, 800), (5, 3200), (6, 5000), (40, 5000), (u32::MAX, 5000)]
        {
            let most = Duration::from_millis(most_ms);
            let waits: Vec<_> = (0..50).map(|_| backoff.wait(failures)).collect();
            assert!(waits.iter().all(|wait| *wait >= most / 2 && *wait <= most), "{failures}: {waits:?}");
            assert!(waits.iter().any(|wait| *wait != waits[0]), "{failures}");
        }
    }
}
