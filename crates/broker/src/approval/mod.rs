//! Asking the owner about one call: the host, the console, the terminal and Telegram are asked at once, and the first answer
//! decides.
//!
//! Answers live in the store: this waits for one there, and writes down that of the host's form. It does not use an approval;
//! that is one commit with the intent of the call. What cannot be shown whole is not asked at all.
//!
//! | file | owns |
//! |---|---|
//! | `text` | what the owner reads |
//! | `argument` | the exact arguments, made visible |
//! | `overview` | every value of the arguments, with what its key says |
//! | `keys` | what a key says about its value |
//! | `audience` | who the arguments name |
//! | `elicitation` | the form in the host, and what its answer decides |
//! | `headline` | the first three lines: what happens and to whom, the beginning of the text, why |
//! | `second` | the second of them: text, attachments, other arguments |
//! | `form` | whether the words fit a form |
//! | `wait` | the race, its end, and what a time-out is |
//! | `bound` | what of the policy and of the mind's view an approval is bound to |

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

use embody_store::{AskApproval, Store};

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
    /// Whether no request of the host waits while its form is open (stateless era): then the form may stay open for as long as
    /// the approval.
    pub is_parked: bool,
}

/// The owner's answer, as far as there is one.
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
    /// Not answered while the call waited. The same call picks the answer up.
    Pending {
        id: String,
        /// Where it can be answered meanwhile; empty if only in a form, which the same call shows again.
        channels: Vec<Via>,
    },
    /// Expired without an answer. Reported once; after that the same call asks again.
    TimedOut {
        id: String,
    },
    /// Approved, but not used before it expired. Reported once; after that the same call asks again.
    Lapsed {
        id: String,
        by: String,
    },
    /// Too many approvals are open.
    Full,
    /// It cannot be shown whole, so the owner is not asked; with the reason.
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

    /// Whether the host may answer. A destructive call is never put to it: whoever drives the host could answer for the owner.
    fn is_for_host(&self) -> bool {
        self.class != Class::Destructive && self.via.contains(&Via::Elicitation)
    }

    /// The channels other than the host's form that may answer.
    fn other_channels(&self) -> Vec<Via> {
        self.via.iter().copied().filter(|via| *via != Via::Elicitation).collect()
    }
}
