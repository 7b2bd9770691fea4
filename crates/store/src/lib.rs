//! Everything that must outlive a process, on SQLite or PostgreSQL with the same behaviour.

mod audit;
mod db;
mod error;
mod instructions;
mod legacy;
mod memory;
mod store;

pub use self::error::{Error, ErrorKind, Result};
pub use self::instructions::{Instructions, InstructionsChange, InstructionsOutcome, PastInstructions};
pub use self::legacy::{
    LegacyAgent, LegacyInstructions, LegacyReport, LegacyState, migrate_legacy, preview_legacy,
};
pub use self::store::{Place, Scope, Store};
