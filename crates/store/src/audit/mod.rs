//! The audit chain: what was decided and done, append-only, each record bound to the one before by a keyed hash.
//!
//! Refuses secrets: what enters is redacted first. Refuses to change or remove a record.

mod calls;
mod chain;
mod entry;
mod file;
mod head;
mod journal;
mod key;
mod operation;
mod read;
mod redact;
mod report;
mod scrub;
mod secrets;
mod task;
mod verify;

pub(crate) use self::chain::{Chain, ChainFiles};
pub(crate) use self::entry::Entry;
pub use self::entry::{Actor, CallEnd, Decision, Event, Intent, Outcome, Read, Record, ToolCall, Verdict};
pub use self::journal::RecordedIntent;
pub use self::operation::{Action, Operation};
pub use self::read::{AuditPages, AuditRecord};
pub use self::redact::Arguments;
pub use self::report::{AuditReport, Break, ChainReport, ChainState, Fault};
pub use self::task::{TaskMessage, TaskMessageKind};
