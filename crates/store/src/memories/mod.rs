//! What an agent remembers: saving, searching, revising and forgetting, scoped by user and agent.
//!
//! `analyze` makes terms of a text, `postings` packs where they occur, `rank` orders what matches: all pure. The rest
//! keeps them in tables, the same way in both databases.

pub(crate) mod alike;
mod analyze;
mod change;
mod fields;
mod index;
mod insert;
mod ledger;
mod list;
mod lookup;
#[cfg(test)]
mod plans;
mod postings;
mod rank;
mod rebuild;
mod rows;
mod save;
mod search;
mod transfer;

pub use self::alike::{Merge, NumberedMemory};
pub use self::analyze::{TextTerm, text_terms};
pub use self::change::ForgetOutcome;
pub use self::fields::{
    FoundMemory, KindCount, Memory, MemoryList, MemoryRevision, MemorySearch, MemoryStatus, NewMemory,
    RevisionOutcome, SaveResult,
};
pub use self::transfer::MemoryImport;
