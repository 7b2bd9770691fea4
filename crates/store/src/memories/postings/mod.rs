//! Where a term occurs, packed into blocks of a few hundred bytes. Owns their format; knows nothing of a database.
//!
//! A block holds whole memories, ordered by their number in the scope. Its key in the table is a number that no memory
//! inside exceeds and every memory of the next block does; the last block of a term is open, with the key [`OPEN`].

mod block;
mod edit;
#[cfg(test)]
mod tests;
mod varint;

pub(crate) use block::{Damaged, decode};
pub(crate) use edit::{Block, Tail, replace};

/// The key of the block that still grows.
pub(crate) const OPEN: i64 = i64::MAX;

/// One term in one chunk of one memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Posting {
    /// The memory's number in its scope.
    pub(crate) seq: u32,
    /// The session's number in the scope; 0 for none.
    pub(crate) session: u32,
    pub(crate) chunk: u16,
    /// How often the chunk has the term.
    pub(crate) count: u16,
    /// Number of terms of the chunk.
    pub(crate) length: u16,
}
