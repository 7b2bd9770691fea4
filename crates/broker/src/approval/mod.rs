//! Asks the owner about one call: the host, the console, the terminal and Telegram are asked at once, and the first answer
//! decides.
//!
//! Answers are in the store: this waits for one, and stores the answer of the host's form. It does not use an approval, which
//! is one commit with the intent of the call. A call that cannot be shown completely is not asked about.
//!
//! | file | owns |
//! |---|---|
//! | `text` | what the owner reads |
//! | `headline` | its first three lines |
//! | `overview` | every value of the arguments, its meaning by its key, and the recipients |
//! | `form` | the form in the host, whether the text fits, and the decision from its answer |
//! | `wait` | the race between channels, and its timeouts |

mod form;
mod headline;
mod overview;
mod text;
mod wait;

use std::time::Duration;

use embody_store::Store;
use embody_store::approvals::ApprovalRequest;

use self::text::TooLong;
use crate::pipeline::observe::{NO_NUMBER, UNUSUAL};
use crate::policy::{Class, Via};

pub(crate) use self::form::where_asked;
pub(crate) use self::form::{form_fits, lines as lines_of};
pub(crate) use self::text::APPROVAL_TEXT_BYTES;
pub use self::text::{ApprovalView, approval_text, visible_json};

/// The reason, in the audit too, that an approval expired without an answer.
pub const EXPIRED_UNANSWERED: &str = "the approval expired before the owner answered, so it was not denied";
/// The reason, in the audit too, that a call was approved and not repeated in time.
pub const EXPIRED_UNUSED: &str =
    "the owner approved it, but the approval expired before the call was repeated";

#[derive(Debug, Clone)]
pub struct ApprovalPrompt<'a> {
    pub request: ApprovalRequest,
    pub class: Class,
    /// The arguments that the tool's schema declares; empty if it declares none.
    pub declared: Vec<String>,
    pub via: &'a [Via],
    /// Whether no request of the host is open while its form is (stateless era): the form may then stay open as long as the
    /// approval.
    pub is_suspended: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Approved, and not used yet.
    Approved {
        id: String,
    },
    Denied {
        id: String,
        by: String,
    },
    /// Not answered while the call waited. A repeated call finds the answer.
    Pending {
        id: String,
        /// Where it can still be answered; empty if only in a form, which a repeated call shows again.
        channels: Vec<Via>,
        /// Whether the call was asked about before, under rules that have changed since.
        after_other_rules: bool,
    },
    /// Expired without an answer. Reported once; then a repeated call asks again.
    TimedOut {
        id: String,
    },
    /// Approved, but not used before it expired. Reported once; then a repeated call asks again.
    Lapsed {
        id: String,
        by: String,
    },
    Full,
    /// It cannot be shown completely, so the owner is not asked; with the reason.
    Unshowable(String),
}

#[derive(Debug, Clone)]
pub struct Approvals {
    store: Store,
    ask_wait: Duration,
}

impl Approvals {
    /// One call waits for at most `ask_wait`; the approval itself is open for the request's `timeout`.
    pub fn new(store: Store, ask_wait: Duration) -> Self {
        Self { store, ask_wait }
    }
}

impl ApprovalPrompt<'_> {
    fn text(&self) -> Result<String, TooLong> {
        approval_text(&ApprovalView { declared: &self.declared, ..ApprovalView::from(&self.request) })
    }

    /// Whether the host may answer. Never for a destructive call: the person or program that controls the host could answer
    /// for the owner.
    fn is_for_host(&self) -> bool {
        self.class != Class::Destructive && self.via.contains(&Via::Elicitation)
    }

    fn other_channels(&self) -> Vec<Via> {
        self.via.iter().copied().filter(|via| *via != Via::Elicitation).collect()
    }
}

/// The policy's version, the class of the call, and the allowed channels.
pub fn bound_policy(version: &str, class: Class, via: &[Via]) -> String {
    let ways: Vec<&str> = Via::ALL.into_iter().filter(|way| via.contains(way)).map(Via::name).collect();
    format!("{version}/{}/{}", class.name(), ways.join(","))
}

/// The version in [`bound_policy`].
pub fn bound_version(policy: &str) -> &str {
    policy.split_once('/').map_or(policy, |(version, _)| version)
}

/// The channels in [`bound_policy`].
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
pub(crate) fn flag_text(flag: &str) -> String {
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
