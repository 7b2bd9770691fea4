//! Numbers in as few bytes as they need, seven bits to a byte, lowest first. Refuses what is cut off or too long.

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

/// Takes a number off the front, if there is a whole one.
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

/// A difference as a number that is small when the difference is, whatever its sign.
pub(super) fn zigzag(difference: i64) -> u64 {
    ((difference << 1) ^ (difference >> 63)).cast_unsigned()
}

/// The difference that [`zigzag`] made this number of.
pub(super) fn unzigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
}
