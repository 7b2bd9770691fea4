//! What an approval is bound to besides the call: the policy, its ruling, and the mind's flags.

use crate::pipeline::observe::{NO_NUMBER, UNUSUAL};
use crate::policy::{Class, Via};

/// The policy's version, the class of the call, and the allowed channels.
#[must_use]
pub fn bound_policy(version: &str, class: Class, via: &[Via]) -> String {
    let ways: Vec<&str> = Via::ALL.into_iter().filter(|way| via.contains(way)).map(Via::name).collect();
    format!("{version}/{}/{}", class.name(), ways.join(","))
}

/// The version in [`bound_policy`].
#[must_use]
pub fn bound_version(policy: &str) -> &str {
    policy.split_once('/').map_or(policy, |(version, _)| version)
}

/// The channels in [`bound_policy`].
#[must_use]
pub fn bound_channels(policy: &str) -> Vec<Via> {
    let named = policy.rsplit_once('/').map_or("", |(_, ways)| ways);
    Via::ALL.into_iter().filter(|way| named.split(',').any(|name| name == way.name())).collect()
}

/// Whether all current flags of the mind were shown. The degree of surprise varies over time and does not count; rules are
/// compared by their text.
pub(super) fn covers(shown: &[String], now: &[String]) -> bool {
    now.iter().all(|flag| shown.iter().any(|known| known == flag || is_same(known, flag)))
}

fn is_same(one: &str, other: &str) -> bool {
    let is_unusual = |flag: &str| flag.starts_with(UNUSUAL) || flag.starts_with(NO_NUMBER);
    if is_unusual(one) && is_unusual(other) {
        return true;
    }
    rule(one).is_some_and(|rule_of_one| Some(rule_of_one) == rule(other))
}

/// The rule that a flag names, else the whole flag.
#[must_use]
pub fn flag_text(flag: &str) -> String {
    rule(flag).unwrap_or_else(|| flag.to_owned())
}

fn rule(flag: &str) -> Option<String> {
    let flag: serde_json::Value = serde_json::from_str(flag).ok()?;
    flag.get("rule")?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: N-10
    #[test]
    fn the_class_and_the_ways_are_bound() {
        let all = bound_policy("v1", Class::Write, &Via::ALL);
        assert_eq!(all, "v1/write/elicitation,console,cli,telegram");
        assert_eq!(bound_policy("v1", Class::Write, &[Via::Telegram, Via::Cli]), "v1/write/cli,telegram");
        assert_ne!(all, bound_policy("v1", Class::HumanVisibleWrite, &Via::ALL));
        assert_eq!(bound_channels("v1/write/cli,telegram"), [Via::Cli, Via::Telegram]);
        assert_eq!(
            (bound_channels(&all), bound_channels("v1/write/"), bound_channels("v1")),
            (Via::ALL.to_vec(), vec![], vec![])
        );
        assert_eq!((bound_version(&all), bound_version("v1")), ("v1", "v1"));
    }

    // spec: N-10
    #[test]
    fn what_was_not_shown_is_not_covered() {
        let rule =
            |rule: &str, version: u8| format!(r#"{{"rule":"{rule}","source":{{"version":{version}}}}}"#);
        for (shown, now, expected) in [
            (vec![], vec![], true),
            (vec!["a".to_owned()], vec![], true),
            (vec!["a".to_owned()], vec!["a".to_owned()], true),
            (vec!["a".to_owned()], vec!["a".to_owned(), "b".to_owned()], false),
            (vec![], vec![format!("{UNUSUAL} (0.71 of 1)")], false),
            (vec![format!("{UNUSUAL} (0.71 of 1): x")], vec![format!("{UNUSUAL} (0.72 of 1): y")], true),
            (vec![format!("{UNUSUAL} (0.71 of 1)")], vec![format!("{NO_NUMBER}")], true),
            (vec![rule("never mail Bob", 1)], vec![rule("never mail Bob", 2)], true),
            (vec![rule("never mail Bob", 1)], vec![rule("never mail Eve", 1)], false),
        ] {
            assert_eq!(covers(&shown, &now), expected, "{shown:?} {now:?}");
        }
    }
}
