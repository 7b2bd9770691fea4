//! Changing blocks: memories are appended to the open one, and put into or taken out of closed ones.

use super::block::{Damaged, Head, decode};
use super::{OPEN, Posting};

/// So many bytes of postings make a block full: four of them, with their keys, share a page of SQLite.
const FULL_BYTES: usize = 750;

/// A row of the table: its key and its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) key: i64,
    pub(crate) data: Vec<u8>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tail {
    head: Head,
    body: Vec<u8>,
}

impl Tail {
    pub(crate) fn open(data: &[u8]) -> Result<Self, Damaged> {
        let (head, body) = Head::split(data)?;
        Ok(Self { head, body: body.to_vec() })
    }

    /// Appends the postings of one memory, which must be the newest of the scope. If they do not fit any more, the block is closed
    /// and returned, and a new one begins.
    pub(crate) fn push(&mut self, memory: &[Posting]) -> Option<Block> {
        let before = self.body.len();
        let head = self.head;
        for posting in memory {
            self.head.write(&mut self.body, posting);
        }
        if before == 0 || self.body.len() <= FULL_BYTES {
            return None;
        }
        self.body.truncate(before);
        let closed = Block { key: head.seq.into(), data: head.join(&self.body) };
        *self = Self::default();
        for posting in memory {
            self.head.write(&mut self.body, posting);
        }
        Some(closed)
    }

    pub(crate) fn block(&self) -> Block {
        Block { key: OPEN, data: self.head.join(&self.body) }
    }
}

/// The block with the postings of memory `seq` exchanged for `memory`, which may be empty. The last of the returned blocks has
/// the key of the old; none means that nothing is left of it.
pub(crate) fn replace(block: &Block, seq: u32, memory: &[Posting]) -> Result<Vec<Block>, Damaged> {
    let mut postings = Vec::new();
    decode(&block.data, &mut postings)?;
    postings.retain(|posting| posting.seq != seq);
    let place = postings.partition_point(|posting| posting.seq < seq);
    postings.splice(place..place, memory.iter().copied());
    let mut blocks = Vec::new();
    let mut tail = Tail::default();
    for memory in postings.chunk_by(|a, b| a.seq == b.seq) {
        blocks.extend(tail.push(memory));
    }
    if !postings.is_empty() {
        blocks.push(Block { key: block.key, ..tail.block() });
    }
    Ok(blocks)
}
