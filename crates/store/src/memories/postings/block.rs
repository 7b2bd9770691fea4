//! The bytes of a block: a head with what appending needs to know, then each posting as its distance from the one
//! before. Reading refuses whatever writing would not have written.

use super::Posting;
use super::varint;

const FORMAT: u8 = 1;

/// A block that this format does not explain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a block of the memory index is damaged")]
pub(crate) struct Damaged;

/// Appends the postings of a block to `into`.
pub(crate) fn decode(data: &[u8], into: &mut Vec<Posting>) -> Result<(), Damaged> {
    let (head, mut body) = Head::split(data)?;
    let mut last = Head::default();
    let mut chunk = None;
    // None takes less than three bytes.
    into.reserve(body.len() / 3);
    while !body.is_empty() {
        let posting = match short(&mut body, last) {
            Some(posting) => posting,
            None => read(&mut body, last, chunk).ok_or(Damaged)?,
        };
        last = Head { seq: posting.seq, session: posting.session };
        chunk = Some(posting.chunk);
        into.push(posting);
    }
    if last == head { Ok(()) } else { Err(Damaged) }
}

/// What the next posting is a distance from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) seq: u32,
    pub(super) session: u32,
}

impl Head {
    /// The head of a block, and its postings.
    pub(super) fn split(data: &[u8]) -> Result<(Self, &[u8]), Damaged> {
        let Some((&FORMAT, mut rest)) = data.split_first() else { return Err(Damaged) };
        let mut number = || u32::try_from(varint::read(&mut rest)?).ok();
        let (Some(seq), Some(session)) = (number(), number()) else { return Err(Damaged) };
        Ok((Self { seq, session }, rest))
    }

    /// The bytes of a block with this head.
    pub(super) fn join(self, body: &[u8]) -> Vec<u8> {
        let mut data = Vec::with_capacity(body.len() + 11);
        data.push(FORMAT);
        varint::write(&mut data, self.seq.into());
        varint::write(&mut data, self.session.into());
        data.extend_from_slice(body);
        data
    }

    /// Appends a posting that follows this head, and becomes its head.
    pub(super) fn write(&mut self, body: &mut Vec<u8>, posting: &Posting) {
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

/// The kind that most postings are: three bytes, the only chunk, the term once.
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
