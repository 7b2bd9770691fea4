//! The embedded mind: it keeps the voice, remembers, predicts and notices, without a language model.
//!
//! It knows nothing of any body or channel: a tool is a name, its arguments are JSON. It reads no file, no environment
//! and no wall clock; time arrives as a [`ZonedNow`], state is the store's. [`Mind`] has a method for each tool, with typed
//! arguments ([`read_arguments`](embody_mcp::read_arguments) makes them of JSON) and typed results.

mod bootstrap;
mod consolidate;
mod context;
mod diff;
mod error;
mod instructions;
mod memory;
mod mind;
mod observe;
mod proposals;
pub mod quarantine;
mod reflect;
mod resources;
pub mod server;
mod tools;
mod zoned_now;

pub use self::bootstrap::{BootstrapPacket, BootstrapSession, DegradedMode, GetSystemPrompt, SessionContext};
pub use self::consolidate::{ConsolidationOutcome, ConsolidationPolicy, consolidate, undo};
pub use self::context::{Context, GetContext, OpenCommitment, Recent, StandingInstructions};
pub use self::diff::full as full_diff;
pub use self::error::{Error, Result};
pub use self::instructions::{Confirmation, UpdateInstructions, UpdateOutcome, UpdatedInstructions};
pub use self::memory::{
    ForgetMemory, ForgottenMemory, ListMemoryFiles, Memories, MemoryCatalog, MemoryEntry, MemoryFile,
    MemoryFiles, ReadMemory, Recall, SaveMemory, SavedMemory,
};
pub use self::mind::{Caller, Mind, Trust};
pub use self::mind::{Contract, ContractSource};
pub use self::observe::{
    Flag, FlagSource, Observation, Observe, ObservedCall, Related as RelatedMemory, ReplayProgress, observe,
    replay,
};
pub use self::proposals::ProposalDecision;
pub use self::reflect::{Noted, Reflect, Reflection, Related};
pub use self::resources::json_text;
pub use self::resources::{Resource, ResourcePage, ResourceText};
pub use self::tools::Tool;
pub use self::zoned_now::ZonedNow;
