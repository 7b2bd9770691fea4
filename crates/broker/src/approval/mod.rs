//! Asking a person about one call: the host, the console, the terminal and Telegram are asked at once, and whoever answers
//! first has decided.
//!
//! The store is where an answer counts: this waits for one, whoever writes it there, and writes down the host's. It uses no
//! approval up; that is one commit with the intent of the call. What cannot be shown whole is not asked at all.
//!
//! | file | owns |
//! |---|---|
//! | `words` | what the person reads |
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
mod wait;
mod words;

use std::time::Duration;

use embody_store::{AskApproval, Scope, Store};

pub use self::argument::shown;
pub use self::bound::{bound_policy, bound_version, bound_ways, flag_text};
pub use self::form::where_asked;
pub(crate) use self::form::{form_fits, lines as lines_of};
pub use self::words::{Subject, Unshowable, WORDS_LIMIT, words};
use crate::arguments::Arguments;
use crate::policy::{Class, Via};

/// A call that needs a person's yes.
#[derive(Debug, Clone)]
pub struct Wanted<'a> {
    /// Whose call, and by which agent.
    pub scope: &'a Scope,
    /// The session that it comes from.
    pub session: &'a str,
    /// The channel of that session.
    pub channel: &'a str,
    /// The body that is called.
    pub body: &'a str,
    /// The tool of that body.
    pub tool: &'a str,
    /// What the tool does to the world.
    pub class: Class,
    /// What it is called with.
    pub arguments: &'a Arguments,
    /// The arguments that the tool's schema declares; empty if it declares none.
    pub declared: Vec<String>,
    /// The hash of the tool's pinned definition.
    pub pin: &'a str,
    /// The version of the policy that asks.
    pub policy: &'a str,
    /// Why somebody is asked.
    pub reason: String,
    /// What the mind flagged.
    pub flags: Vec<String>,
    /// The ways that the rules leave.
    pub via: &'a [Via],
    /// Whether no request of the host waits while its form is open (stateless era): then the form may stay open for
    /// as long as the approval does.
    pub is_parked: bool,
}

/// What came of asking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Yes, and nobody has used it so far.
    Approved {
        /// The approval.
        id: String,
    },
    /// No.
    Denied {
        /// The approval.
        id: String,
        /// Who said so.
        by: String,
    },
    /// It was not answered while the call waited. The same call picks the answer up.
    Pending {
        /// The approval.
        id: String,
        /// Where it can be answered meanwhile. Empty if only by a form, which the same call shows again.
        channels: Vec<Via>,
    },
    /// Nobody has answered in the time that there was: a denial. It is told once; the same call asks anew after that.
    TimedOut {
        /// The approval.
        id: String,
    },
    /// The answer was yes, and nobody used it in the time that there was. It is told once; the same call asks anew after
    /// that.
    Lapsed {
        /// The approval.
        id: String,
        /// Who said yes.
        by: String,
    },
    /// As many questions as one person may have are open.
    Full,
    /// A person could not see all of it, so nobody is asked. The text says why.
    Unshowable(String),
}

/// Asks, and waits.
#[derive(Debug, Clone)]
pub struct Approvals {
    store: Store,
    ask_wait: Duration,
    ask_timeout: Duration,
}

impl Approvals {
    /// On this store. One call waits for `ask_wait`; the question itself is open for `ask_timeout`.
    #[must_use]
    pub fn new(store: Store, ask_wait: Duration, ask_timeout: Duration) -> Self {
        Self { store, ask_wait, ask_timeout }
    }
}

impl Wanted<'_> {
    fn subject(&self) -> Subject<'_> {
        Subject {
            user: self.scope.user(),
            agent: self.scope.agent(),
            channel: self.channel,
            body: self.body,
            tool: self.tool,
            class: self.class.name(),
            args: self.arguments.canonical(),
            declared: &self.declared,
            reason: &self.reason,
            flags: &self.flags,
        }
    }

    /// Whether the host may answer. What destroys is never put to it: whoever drives the host could answer for the owner.
    fn is_for_host(&self) -> bool {
        self.class != Class::Destructive && self.via.contains(&Via::Elicitation)
    }

    /// The channels other than the host's form that may answer.
    fn other_channels(&self) -> Vec<Via> {
        self.via.iter().copied().filter(|via| *via != Via::Elicitation).collect()
    }

    fn ask(&self, timeout: Duration) -> AskApproval {
        AskApproval {
            scope: self.scope.clone(),
            session: self.session.to_owned(),
            channel: self.channel.to_owned(),
            body: self.body.to_owned(),
            tool: self.tool.to_owned(),
            class: self.class.name().to_owned(),
            args: self.arguments.canonical().to_owned(),
            pin: self.pin.to_owned(),
            policy: bound_policy(self.policy, self.class, self.via),
            reason: self.reason.clone(),
            flags: self.flags.clone(),
            timeout,
        }
    }
}
