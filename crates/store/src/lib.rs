//! Everything that must outlive a process, on SQLite or PostgreSQL with the same behaviour.

mod audit;
mod db;
mod error;
mod instructions;
mod memory;
mod store;

pub use self::audit::{
    Action, Actor, Arguments, AuditPages, AuditRecord, AuditReport, Begun, Break, CallEnd, ChainReport,
    ChainState, Decision, Event, Fault, Intent, Operation, Outcome, Read, Record, ToolCall, Verdict,
};
pub use self::error::{Error, ErrorKind, Result};
pub use self::instructions::{Instructions, InstructionsChange, InstructionsOutcome, PastInstructions};
pub use self::store::{Place, Scope, Store};
