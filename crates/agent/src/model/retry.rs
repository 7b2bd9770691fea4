//! Whether and when a question is asked again: only while nothing of an answer has come, only for what passes, never for
//! long. Pure: the clock and the dice are the caller's.

use std::time::Duration;

use jiff::Timestamp;

use super::errors::ModelError;
use super::settings::ModelTimes;

const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(8);
const ATTEMPTS_MOST: u32 = 8;

/// A question that was asked in vain.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) error: ModelError,
    /// How long the provider wants to be left alone.
    pub(super) asked_wait: Option<Duration>,
    /// Some of the answer had come, or the provider says that there is no point.
    pub(super) is_final: bool,
}

impl From<ModelError> for Failed {
    fn from(error: ModelError) -> Self {
        Self { error, asked_wait: None, is_final: false }
    }
}

/// How long to wait before the next attempt; `None`: there is none. `attempt` counts from one; `dice` is any number.
pub(super) fn wait(
    failed: &Failed,
    attempt: u32,
    elapsed: Duration,
    times: &ModelTimes,
    dice: u32,
) -> Option<Duration> {
    if failed.is_final || !failed.error.is_passing() || attempt >= ATTEMPTS_MOST {
        return None;
    }
    let doubled = FIRST_WAIT.saturating_mul(1 << attempt.saturating_sub(1).min(16)).min(LONGEST_WAIT);
    // Between half of it and all of it, so that those who failed together do not come back together.
    let jittered = doubled.mul_f64(0.5 + f64::from(dice) / f64::from(u32::MAX) / 2.0);
    let wait = failed.asked_wait.map_or(jittered, |asked| asked.max(jittered.min(FIRST_WAIT)));
    (elapsed.checked_add(wait)? <= times.retrying).then_some(wait)
}

/// A `Retry-After`: seconds, or a date.
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

    fn failed(asked_wait: Option<Duration>) -> Failed {
        let error = ModelError::Unavailable { place: String::new(), why: String::new() };
        Failed { error, asked_wait, is_final: false }
    }

    #[test]
    fn waits_grow_up_to_a_limit_and_end_with_the_patience() {
        let times = ModelTimes::default();
        let waits: Vec<u128> = (1..10)
            .map_while(|attempt| wait(&failed(None), attempt, Duration::ZERO, &times, u32::MAX))
            .map(|wait| wait.as_millis())
            .collect();
        assert_eq!(waits, [500, 1000, 2000, 4000, 8000, 8000, 8000]);
        assert_eq!(wait(&failed(None), 3, Duration::ZERO, &times, 0), Some(Duration::from_secs(1)));
        assert_eq!(wait(&failed(None), 3, Duration::from_secs(29), &times, u32::MAX), None);
    }

    #[test]
    fn the_provider_says_how_long_but_not_for_ever() {
        let times = ModelTimes::default();
        let asked = |seconds| wait(&failed(Some(Duration::from_secs(seconds))), 1, Duration::ZERO, &times, 0);
        assert_eq!(asked(7), Some(Duration::from_secs(7)));
        assert_eq!(asked(31), None);
        assert_eq!(asked(0), Some(Duration::from_millis(250)), "never at once");
        assert_eq!(asked(u64::MAX), None);
    }

    #[test]
    fn what_does_not_pass_is_not_tried_again() {
        let times = ModelTimes::default();
        let broken = Failed::from(ModelError::broken("x"));
        assert_eq!(wait(&broken, 1, Duration::ZERO, &times, 0), None);
        assert_eq!(wait(&Failed { is_final: true, ..failed(None) }, 1, Duration::ZERO, &times, 0), None);
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
