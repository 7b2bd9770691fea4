//! The closed sets that numbers and spans are told apart by. What a host or a body writes is never among them.

use embody_store::{Outcome as Ended, Verdict as Decided};

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Done,
    /// The server says that it failed.
    Failed,
    /// It was sent, and nobody knows what came of it.
    Unknown,
    /// It was permitted, and could not be sent.
    NotSent,
    /// It was not permitted.
    Refused,
}

impl End {
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

impl From<Ended> for End {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Done => Self::Done,
            Ended::Failed => Self::Failed,
            Ended::Denied => Self::NotSent,
            Ended::Unknown => Self::Unknown,
        }
    }
}

/// What was decided about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Permit,
    Deny,
    Bounce,
    Pending,
    Held,
    Blocked,
    Timeout,
}

impl Verdict {
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

impl From<Decided> for Verdict {
    fn from(decided: Decided) -> Self {
        match decided {
            Decided::Allow => Self::Permit,
            Decided::Deny => Self::Deny,
            Decided::Pending => Self::Pending,
            Decided::Bounce => Self::Bounce,
            Decided::Held => Self::Held,
            Decided::Timeout => Self::Timeout,
            Decided::Blocked => Self::Blocked,
        }
    }
}

/// What came of asking a person, in the order of its counters.
pub(super) const ANSWERS: [&str; 7] =
    ["approved", "denied", "pending", "timed_out", "lapsed", "full", "unshowable"];

/// The methods that are told apart; every other is one.
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

/// Any other.
pub(super) const OTHER: &str = "_OTHER";

/// The place of a method.
pub(super) fn method(name: &str) -> usize {
    METHODS.iter().position(|known| *known == name).unwrap_or(METHODS.len() - 1)
}
