//! Intervals and limits of the supervisor, and the delay between connection attempts.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

#[derive(Debug, Clone)]
pub struct Backoff {
    /// The delay before the second attempt; doubled for each further attempt.
    pub retry_first: Duration,
    /// The maximum delay.
    pub retry_max: Duration,
    /// A connection that lasted this long resets the count of consecutive failures.
    pub stable: Duration,
    /// From this many consecutive failures on, requests do not trigger an early attempt during `cooldown`.
    pub failures_max: u32,
    pub cooldown: Duration,
    /// How often an idle server is pinged.
    pub ping_interval: Duration,
    pub ping_timeout: Duration,
    pub misses_max: u32,
    /// The minimum time between two listings, however often the tools change.
    pub listing_gap: Duration,
    /// A process may take this many times the limit of one attempt to start, because it may have to be downloaded first.
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
    /// The delay after this many consecutive failures: between half and all of the interval, so that clients of the same
    /// server do not reconnect at the same time.
    pub(super) fn wait(&self, failures: u32) -> Duration {
        let doubled =
            self.retry_first.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1).min(16)));
        let most = doubled.min(self.retry_max);
        // A fresh hasher is random enough for jitter.
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
