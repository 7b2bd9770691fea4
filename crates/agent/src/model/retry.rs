//! Decides whether and when to retry a request: only before any part of a response has arrived, only for transient
//! errors, and within a time limit. Pure: the caller supplies the clock and the random number.

use std::time::Duration;

use jiff::Timestamp;

use super::errors::ModelError;
use super::settings::ModelTimes;

const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(8);
/// From this attempt on, our own backoff is the minimum, even if the provider asks for a shorter delay. So the time
/// limit also bounds the number of attempts.
const MAX_SHORT_WAITS: u32 = 8;

#[derive(Debug)]
pub(super) struct FailedAttempt {
    pub(super) error: ModelError,
    pub(super) asked_wait: Option<Duration>,
    /// Part of the response had arrived, or the provider says that a retry is pointless.
    pub(super) is_final: bool,
}

impl From<ModelError> for FailedAttempt {
    fn from(error: ModelError) -> Self {
        Self { error, asked_wait: None, is_final: false }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct RetryState {
    pub(super) attempts: u32,
    /// Including delays.
    pub(super) elapsed: Duration,
    /// The duration of the last attempt; the next one is assumed to take as long.
    pub(super) last: Duration,
}

/// The delay before the next attempt; `None` for no retry. `dice` is a random number.
pub(super) fn wait(
    failed: &FailedAttempt,
    state: RetryState,
    times: &ModelTimes,
    dice: u32,
) -> Option<Duration> {
    let is_enough = times.attempts.is_some_and(|most| state.attempts >= most);
    if failed.is_final || !failed.error.is_transient() || is_enough {
        return None;
    }
    let doubled = FIRST_WAIT.saturating_mul(1 << state.attempts.saturating_sub(1).min(16)).min(LONGEST_WAIT);
    // Jitter between half and all of the delay, so that clients that failed together do not retry together.
    let jittered = doubled.mul_f64(0.5 + f64::from(dice) / f64::from(u32::MAX) / 2.0);
    let least = if state.attempts < MAX_SHORT_WAITS { jittered.min(FIRST_WAIT) } else { jittered };
    let wait = failed.asked_wait.map_or(jittered, |asked| asked.max(least));
    let end = state.elapsed.checked_add(wait)?.checked_add(state.last)?;
    (end <= times.retrying).then_some(wait)
}

/// Parses `Retry-After`: seconds, or a date.
pub(super) fn retry_after(value: &str, now: Timestamp) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds.max(0.0)).ok();
    }
    let date = jiff::fmt::rfc2822::parse(value).ok()?.timestamp();
    Some(Duration::try_from(date.duration_since(now)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(asked_wait: Option<Duration>) -> FailedAttempt {
        let error = ModelError::Unavailable { endpoint: String::new(), why: String::new() };
        FailedAttempt { error, asked_wait, is_final: false }
    }

    fn state(attempts: u32, elapsed_s: u64, last_s: u64) -> RetryState {
        let (elapsed, last) = (Duration::from_secs(elapsed_s), Duration::from_secs(last_s));
        RetryState { attempts, elapsed, last }
    }

    #[test]
    fn waits_grow_up_to_a_limit_and_end_with_the_patience() {
        let waits: Vec<u128> = (1..10)
            .map_while(|attempts| {
                wait(&failed(None), state(attempts, 0, 0), &ModelTimes::default(), u32::MAX)
            })
            .map(|wait| wait.as_millis())
            .collect();
        assert_eq!(waits, [500, 1000, 2000, 4000, 8000, 8000, 8000]);
        assert_eq!(
            wait(&failed(None), state(3, 0, 0), &ModelTimes::default(), 0),
            Some(Duration::from_secs(1))
        );
        assert_eq!(wait(&failed(None), state(3, 29, 0), &ModelTimes::default(), u32::MAX), None);
        assert_eq!(
            wait(&failed(None), state(2, 20, 10), &ModelTimes::default(), 0),
            None,
            "a retry would take as long"
        );
    }

    /// How often and for how long a request is tried that always fails at once.
    fn in_vain(times: &ModelTimes, asked_wait: Option<Duration>, dice: u32) -> (u32, Duration) {
        let mut state = state(1, 0, 0);
        while let Some(wait) = wait(&failed(asked_wait), state, times, dice) {
            state.attempts += 1;
            state.elapsed += wait;
        }
        (state.attempts, state.elapsed)
    }

    #[test]
    fn a_time_alone_is_used_up_and_bounds_the_attempts() {
        for seconds in [30, 60, 180, 600, 3600] {
            let retrying = Duration::from_secs(seconds);
            let times = ModelTimes { retrying, attempts: None, ..ModelTimes::default() };
            for (asked_wait, dice) in
                [(None, 0), (None, u32::MAX), (Some(Duration::ZERO), 0), (Some(Duration::ZERO), u32::MAX)]
            {
                let (attempts, elapsed) = in_vain(&times, asked_wait, dice);
                let case = format!("{seconds} s, {asked_wait:?}, {dice}: {attempts} attempts, {elapsed:?}");
                assert!(elapsed <= retrying && elapsed + LONGEST_WAIT > retrying, "{case}");
                assert!(u64::from(attempts) <= u64::from(MAX_SHORT_WAITS) + seconds / 4, "{case}");
            }
        }
    }

    #[test]
    fn without_a_time_that_somebody_set_a_few_attempts_are_enough() {
        let times = ModelTimes::default();
        assert_eq!(in_vain(&times, None, 0), (8, Duration::from_millis(15_750)));
        assert_eq!(in_vain(&times, None, u32::MAX), (7, Duration::from_millis(23_500)));
        assert_eq!(in_vain(&times, Some(Duration::ZERO), u32::MAX), (8, Duration::from_millis(3_500)));
    }

    #[test]
    fn the_provider_says_how_long_but_not_for_ever() {
        let asked = |seconds| {
            wait(&failed(Some(Duration::from_secs(seconds))), state(1, 0, 0), &ModelTimes::default(), 0)
        };
        assert_eq!(asked(7), Some(Duration::from_secs(7)));
        assert_eq!(asked(31), None);
        assert_eq!(asked(0), Some(Duration::from_millis(250)), "never at once");
        assert_eq!(asked(u64::MAX), None);
    }

    #[test]
    fn what_does_not_pass_is_not_tried_again() {
        let broken = FailedAttempt::from(ModelError::broken("x"));
        assert_eq!(wait(&broken, state(1, 0, 0), &ModelTimes::default(), 0), None);
        assert_eq!(
            wait(
                &FailedAttempt { is_final: true, ..failed(None) },
                state(1, 0, 0),
                &ModelTimes::default(),
                0
            ),
            None
        );
    }

    #[test]
    fn seconds_and_dates_are_read() {
        let now: Timestamp = "2015-10-21T07:27:30Z".parse().unwrap();
        let read = |value| retry_after(value, now);
        assert_eq!(read("12"), Some(Duration::from_secs(12)));
        assert_eq!(read(" 0.5 "), Some(Duration::from_millis(500)));
        assert_eq!(read("-3"), Some(Duration::ZERO));
        assert_eq!(read("Wed, 21 Oct 2015 07:28:00 GMT"), Some(Duration::from_secs(30)));
        assert_eq!(read("Wed, 21 Oct 2015 07:00:00 GMT"), Some(Duration::ZERO));
        assert_eq!(read("1e300"), None);
        assert_eq!(read("soon"), None);
    }
}
