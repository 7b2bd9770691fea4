//! The audit chain: what was decided and done, append-only, each record bound to the one before by a keyed hash.

mod chain;

pub(crate) use self::chain::Chain;

/// One record to append.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The record's id.
    pub id: String,
    /// When it happened.
    pub at: i64,
    /// Whose it is.
    pub user: String,
    /// Which agent of theirs.
    pub agent: String,
    /// What kind of event.
    pub event: String,
    /// The event as JSON text; secrets never enter.
    pub detail: String,
}
