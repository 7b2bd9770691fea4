//! Where a term occurs, packed into blocks of a few hundred bytes. Independent of the database.
//!
//! A block has whole memories, ordered by their number in the scope. Its key in the table is at least the number of
//! every memory inside and less than that of every memory of the next block; the last block of a term is open, with
//! the key [`OPEN`].

#[cfg(test)]
mod tests;

pub(crate) const OPEN: i64 = i64::MAX;

/// One term in one chunk of one memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Posting {
    /// The memory's number in its scope.
    pub(crate) seq: u32,
    /// The session's number in the scope; 0 for none.
    pub(crate) session: u32,
    pub(crate) chunk: u16,
    pub(crate) count: u16,
    /// Number of terms of the chunk.
    pub(crate) length: u16,
}

const FORMAT: u8 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a block of the memory index is damaged")]
pub(crate) struct DamagedBlock;

pub(crate) fn decode(data: &[u8], into: &mut Vec<Posting>) -> Result<(), DamagedBlock> {
    let (head, mut body) = Head::split(data)?;
    let mut last = Head::default();
    let mut chunk = None;
    // A posting takes at least three bytes.
    into.reserve(body.len() / 3);
    while !body.is_empty() {
        let posting = match short(&mut body, last) {
            Some(posting) => posting,
            None => read(&mut body, last, chunk).ok_or(DamagedBlock)?,
        };
        last = Head { seq: posting.seq, session: posting.session };
        chunk = Some(posting.chunk);
        into.push(posting);
    }
    if last == head { Ok(()) } else { Err(DamagedBlock) }
}

/// The next posting is stored as its distance from this one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Head {
    seq: u32,
    session: u32,
}

impl Head {
    fn split(data: &[u8]) -> Result<(Self, &[u8]), DamagedBlock> {
        let Some((&FORMAT, mut rest)) = data.split_first() else { return Err(DamagedBlock) };
        let mut number = || u32::try_from(varint::read(&mut rest)?).ok();
        let (Some(seq), Some(session)) = (number(), number()) else { return Err(DamagedBlock) };
        Ok((Self { seq, session }, rest))
    }

    fn join(self, body: &[u8]) -> Vec<u8> {
        let mut data = Vec::with_capacity(body.len() + 11);
        data.push(FORMAT);
        varint::write(&mut data, self.seq.into());
        varint::write(&mut data, self.session.into());
        data.extend_from_slice(body);
        data
    }

    /// Appends a posting that follows this head, and makes it the head.
    fn write(&mut self, body: &mut Vec<u8>, posting: &Posting) {
        let Posting { seq, session, chunk, count, length } = *posting;
        varint::write(body, u64::from(seq.saturating_sub(self.seq)));
        varint::write(body, u64::from(length) << 2 | u64::from(count > 1) << 1 | u64::from(chunk > 0));
        if chunk > 0 {
            varint::write(body, chunk.into());
        }
        if count > 1 {
            varint::write(body, count.into());
        }
        if seq != self.seq {
            varint::write(body, varint::zigzag(i64::from(session) - i64::from(self.session)));
        }
        *self = Self { seq, session };
    }
}

/// Most postings: three bytes, the only chunk, the term once.
#[inline]
fn short(body: &mut &[u8], last: Head) -> Option<Posting> {
    let [step @ 1..=0x7f, packed @ 4..=0x7f, session @ 0..=0x7f, rest @ ..] = *body else { return None };
    if packed & 3 != 0 {
        return None;
    }
    let seq = last.seq.checked_add(u32::from(*step))?;
    let difference = i32::from(session >> 1) ^ -i32::from(session & 1);
    let session = last.session.checked_add_signed(difference)?;
    *body = rest;
    Some(Posting { seq, session, chunk: 0, count: 1, length: u16::from(packed >> 2) })
}

fn read(body: &mut &[u8], last: Head, last_chunk: Option<u16>) -> Option<Posting> {
    let step = u32::try_from(varint::read(body)?).ok()?;
    let packed = varint::read(body)?;
    let chunk = if packed & 1 == 0 { 0 } else { above(varint::read(body)?, 0)? };
    let count = if packed & 2 == 0 { 1 } else { above(varint::read(body)?, 1)? };
    let length = above(packed >> 2, count - 1)?;
    let seq = last.seq.checked_add(step)?;
    let session = if step == 0 {
        last_chunk.filter(|last| chunk > *last)?;
        last.session
    } else {
        u32::try_from(i64::from(last.session).checked_add(varint::unzigzag(varint::read(body)?))?).ok()?
    };
    Some(Posting { seq, session, chunk, count, length })
}

fn above(value: u64, least: u16) -> Option<u16> {
    u16::try_from(value).ok().filter(|value| *value > least)
}

/// The size of a full block: four of them, with their keys, share a page of SQLite.
const FULL_BYTES: usize = 750;

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
    pub(crate) fn open(data: &[u8]) -> Result<Self, DamagedBlock> {
        let (head, body) = Head::split(data)?;
        Ok(Self { head, body: body.to_vec() })
    }

    /// Appends the postings of one memory, which must be the newest of the scope. If they do not fit, closes and returns
    /// the block, and begins a new one.
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

/// Replaces the postings of memory `seq` by `memory`, which may be empty. The last returned block has the key of the
/// old one; an empty result means that nothing is left.
pub(crate) fn replace(block: &Block, seq: u32, memory: &[Posting]) -> Result<Vec<Block>, DamagedBlock> {
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

/// Numbers in as few bytes as they need, seven bits to a byte, lowest first.
mod varint {
    pub(super) fn write(into: &mut Vec<u8>, mut value: u64) {
        loop {
            let [low, ..] = value.to_le_bytes();
            value >>= 7;
            if value == 0 {
                into.push(low & 0x7f);
                return;
            }
            into.push(low | 0x80);
        }
    }

    /// `None` if it is truncated or too long.
    #[inline]
    pub(super) fn read(from: &mut &[u8]) -> Option<u64> {
        let (first, rest) = from.split_first()?;
        if *first < 0x80 {
            *from = rest;
            return Some(u64::from(*first));
        }
        read_long(from)
    }

    fn read_long(from: &mut &[u8]) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..63).step_by(7) {
            let (byte, rest) = from.split_first()?;
            *from = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if *byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    /// A small number for a small difference of either sign.
    pub(super) fn zigzag(difference: i64) -> u64 {
        ((difference << 1) ^ (difference >> 63)).cast_unsigned()
    }

    pub(super) fn unzigzag(value: u64) -> i64 {
        (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
    }
}
