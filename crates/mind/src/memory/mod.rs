//! What the tools about memories take and return, and what they do: `save` keeps, `read` finds and forgets, `catalog`
//! counts.

mod catalog;
mod read;
mod save;

pub use self::catalog::{ListMemoryFiles, MemoryCatalog, MemoryFile, MemoryFiles};
pub use self::read::{ForgetMemory, ForgottenMemory, Memories, MemoryEntry, ReadMemory, Recall};
pub use self::save::{SaveMemory, SavedMemory};

pub(crate) use self::read::entry;
