//! Asks the owner about one call: the host, the console, the terminal and Telegram are asked at once, and the first answer
//! decides.
//!
//! Answers are in the store: this waits for one, and stores the answer of the host's form. It does not use an approval, which
//! is one commit with the intent of the call. A call that cannot be shown completely is not asked about.
//!
//! | file | owns |
//! |---|---|
//! | `text` | what the owner reads |
//! | `argument` | the exact arguments, made visible |
//! | `overview` | every value of the arguments, with the meaning of its key |
//! | `keys` | the meaning of a key |
//! | `audience` | the recipients that the arguments name |
//! | `elicitation` | the form in the host, and the decision from its answer |
//! | `headline` | the first three lines: action and recipients, beginning of the text, reason |
//! | `second` | the second of them: text, attachments, other arguments |
//! | `form` | whether the text fits a form |
//! | `wait` | the race between channels, and its timeouts |
//! | `bound` | the parts of the policy and of the mind's view that an approval is bound to |

mod argument;
mod audience;
mod bound;
mod elicitation;
mod form;
mod headline;
mod keys;
mod overview;
mod second;
mod text;
mod wait;

use std::time::Duration;

use embody_store::Store;
use embody_store::approvals::AskApproval;

pub use self::argument::shown;
pub use self::bound::{bound_channels, bound_policy, bound_version, flag_text};
pub use self::form::where_asked;
pub(crate) use self::form::{form_fits, lines as lines_of};
pub(crate) use self::text::APPROVAL_TEXT_LIMIT;
use self::text::TooLong;
pub use self::text::{ApprovalView, approval_text};
use crate::policy::{Class, Via};

/// An approval request, and how it may be shown and answered.
#[derive(Debug, Clone)]
pub struct ApprovalPrompt<'a> {
    pub request: AskApproval,
    pub class: Class,
    /// The arguments that the tool's schema declares; empty if it declares none.
    pub declared: Vec<String>,
    /// The channels that the rules allow.
    pub via: &'a [Via],
    /// Whether no request of the host is open while its form is (stateless era): the form may then stay open as long as the
    /// approval.
    pub is_parked: bool,
}

/// The owner's answer, if any.
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
    /// Too many approvals are open.
    Full,
    /// It cannot be shown completely, so the owner is not asked; with the reason.
    Unshowable(String),
}

/// Asks the owner, and waits for the answer.
#[derive(Debug, Clone)]
pub struct Approvals {
    store: Store,
    ask_wait: Duration,
}

impl Approvals {
    /// One call waits for at most `ask_wait`; the approval itself is open for the request's `timeout`.
    #[must_use]
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

    /// The channels other than the host's form that may answer.
    fn other_channels(&self) -> Vec<Via> {
        self.via.iter().copied().filter(|via| *via != Via::Elicitation).collect()
    }
}
