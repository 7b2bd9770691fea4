//! Owns the checks of the times of `[policy]`: how long a call waits for a person, and how long the question is open. Refuses
//! times that cannot both be kept.

use std::time::Duration;

use super::checks::Checks;
use super::defaults::{ASK_TIMEOUT_S, ASK_WAIT_S};
use super::origin::KeyPath;
use super::raw;

/// How long a call waits, and when its approval expires.
pub(super) fn times(raw: &raw::Policy, checks: &mut Checks<'_>) -> (Duration, Duration) {
    let timeout = raw.ask_timeout_s.unwrap_or(ASK_TIMEOUT_S);
    if let Some(wait) = raw.ask_wait_s.filter(|wait| *wait > timeout) {
        let path = KeyPath::dotted("policy.ask_wait_s");
        let message =
            format!("`{path}` is `{wait}`, which is longer than `policy.ask_timeout_s`, `{timeout}`");
        let hint = match raw.ask_timeout_s {
            Some(_) => "a call cannot wait longer than its approval lives",
            None => "a call cannot wait longer than its approval lives: set `ask_timeout_s` too",
        };
        checks.fail(&path, message, Some(hint));
    }
    // A wait that nobody has set gives way.
    let wait = raw.ask_wait_s.unwrap_or(ASK_WAIT_S.min(timeout));
    (Duration::from_secs(wait.into()), Duration::from_secs(timeout.into()))
}

#[cfg(test)]
mod tests {
    use super::super::{Config, ConfigError, Inputs};

    fn load(text: &str) -> Result<Config, ConfigError> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("embody.toml");
        std::fs::write(&file, format!("[policy]\n{text}\n")).unwrap();
        let workspace = folder.path().to_owned();
        Config::load(Inputs { file: Some(file), workspace, env: Vec::new(), overrides: Vec::new() })
    }

    #[test]
    fn a_wait_gives_way_to_a_shorter_life_that_is_set() {
        for (text, wait, timeout) in [
            ("", 45, 300),
            ("ask_timeout_s = 5", 5, 5),
            ("ask_wait_s = 300", 300, 300),
            ("ask_wait_s = 0", 0, 300),
            ("ask_wait_s = 7\nask_timeout_s = 7", 7, 7),
            ("ask_wait_s = 400\nask_timeout_s = 400", 400, 400),
        ] {
            let policy = load(text).unwrap().policy;
            assert_eq!((policy.ask_wait.as_secs(), policy.ask_timeout.as_secs()), (wait, timeout), "{text}");
        }
    }

    #[test]
    fn a_wait_that_is_longer_than_its_approval_lives_is_refused() {
        const HINT: &str = "a call cannot wait longer than its approval lives";
        for (text, wait, timeout, hint) in [
            ("ask_wait_s = 9\nask_timeout_s = 8", 9, 8, HINT.to_owned()),
            // The default counts too.
            ("ask_wait_s = 400", 400, 300, format!("{HINT}: set `ask_timeout_s` too")),
        ] {
            let error = load(text).unwrap_err();
            let words = format!(
                "embody.toml:2: `policy.ask_wait_s` is `{wait}`, which is longer than `policy.ask_timeout_s`, `{timeout}`"
            );
            assert!(error.message().ends_with(&words), "{}", error.message());
            assert_eq!(error.hints(), [hint]);
        }
    }
}
