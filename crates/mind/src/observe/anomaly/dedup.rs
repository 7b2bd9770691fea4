//! The idempotency keys of the last observations, so that a repeated one, also from another process, is counted once. Older
//! keys are dropped.

use super::codec::{Decoder, Encoder};

/// A repeated observation comes soon after the first, or not at all.
const MAX_KEYS: usize = 256;

/// The keys, the oldest first.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SeenKeys(Vec<u64>);

impl SeenKeys {
    pub(super) fn read(bytes: &[u8]) -> Self {
        Self(Decoder::new(bytes).list(MAX_KEYS, Decoder::long).unwrap_or_default())
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut encoder = Encoder::default();
        encoder.list(&self.0, |encoder, key| encoder.long(*key));
        encoder.finish()
    }

    /// Whether the key was new.
    pub(super) fn insert(&mut self, key: u64) -> bool {
        if self.0.contains(&key) {
            return false;
        }
        if self.0.len() >= MAX_KEYS {
            self.0.remove(0);
        }
        self.0.push(key);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_keys_are_known() {
        let mut seen = SeenKeys::default();
        let more = u64::try_from(MAX_KEYS).unwrap() + 10;
        assert!((0..more).all(|key| seen.insert(key)));
        let mut again = SeenKeys::read(&seen.encode());
        assert_eq!(again, seen);
        assert!((10..more).all(|key| !again.insert(key)));
        assert!(again.insert(9));
        assert_eq!(SeenKeys::read(b"what is this"), SeenKeys::default());
    }
}
