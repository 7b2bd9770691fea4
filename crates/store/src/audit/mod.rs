//! The audit chain: what was decided and done, append-only, each record bound to the one before by a keyed hash.
//!
//! Texts are redacted first. No record is ever removed. A record is changed only by `erase`, which the chain itself records.

mod chain;
mod entry;
pub(crate) mod erase;
mod head;
mod journal;
mod key;
mod read;
mod redact;
mod scrub;
mod verify;

pub(crate) use self::chain::{Chain, ChainFiles};
pub(crate) use self::entry::Entry;
pub use self::entry::{
    Action, Actor, AuditOutcome, AuditedCall, CallEnd, DecisionKind, DecisionRecord, Event, Intent,
    Operation, Read, Record, TaskMessage, TaskMessageKind,
};
pub use self::journal::RecordedIntent;
pub(crate) use self::key::{make_once, read as read_key};
pub use self::read::{AuditFollower, AuditPages, AuditRange, AuditRecord, AuditTail};
pub use self::redact::RedactedArguments;
pub use self::verify::{AuditReport, Break, ChainReport, ChainState, Fault};
