//! The closed sets of labels. Text from hosts or bodies is never a label.

use embody_store::audit::{Outcome as Ended, Verdict};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutcomeLabel {
    Done,
    Failed,
    Unknown,
    /// Permitted, but could not be sent.
    NotSent,
    /// Not permitted.
    Refused,
}

impl OutcomeLabel {
    pub(super) const ALL: [Self; 5] = [Self::Done, Self::Failed, Self::Unknown, Self::NotSent, Self::Refused];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
            Self::NotSent => "not_sent",
            Self::Refused => "refused",
        }
    }
}

impl From<Ended> for OutcomeLabel {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Done => Self::Done,
            Ended::Failed => Self::Failed,
            Ended::Denied => Self::NotSent,
            Ended::Unknown => Self::Unknown,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DecisionLabel {
    Permit,
    Deny,
    Bounce,
    Pending,
    Held,
    Blocked,
    Timeout,
}

impl DecisionLabel {
    pub(super) const ALL: [Self; 7] =
        [Self::Permit, Self::Deny, Self::Bounce, Self::Pending, Self::Held, Self::Blocked, Self::Timeout];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Permit => "permit",
            Self::Deny => "deny",
            Self::Bounce => "bounce",
            Self::Pending => "pending",
            Self::Held => "held",
            Self::Blocked => "blocked",
            Self::Timeout => "timeout",
        }
    }
}

impl From<Verdict> for DecisionLabel {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Allow => Self::Permit,
            Verdict::Deny => Self::Deny,
            Verdict::Pending => Self::Pending,
            Verdict::Bounce => Self::Bounce,
            Verdict::Held => Self::Held,
            Verdict::Timeout => Self::Timeout,
            Verdict::Blocked => Self::Blocked,
        }
    }
}

/// The results of approvals, in the order of their counters.
pub(super) const APPROVAL_RESULTS: [&str; 7] =
    ["approved", "denied", "pending", "timed_out", "lapsed", "full", "unshowable"];

/// The methods with their own label; all others share one.
pub(super) const METHODS: [&str; 24] = [
    "tools/call",
    "tools/list",
    "initialize",
    "ping",
    "server/discover",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "prompts/list",
    "prompts/get",
    "completion/complete",
    "logging/setLevel",
    "subscriptions/listen",
    "tasks/list",
    "tasks/get",
    "tasks/result",
    "tasks/update",
    "tasks/cancel",
    "sampling/createMessage",
    "elicitation/create",
    "roots/list",
    OTHER,
];

pub(super) const OTHER: &str = "_OTHER";

pub(super) fn method_index(name: &str) -> usize {
    METHODS.iter().position(|known| *known == name).unwrap_or(METHODS.len() - 1)
}
