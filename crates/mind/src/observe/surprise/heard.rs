//! Which observations were counted: the keys of the last ones, so that one that is told again, by another process too, is
//! counted once. Older keys are forgotten.

use super::codec::{Pack, Unpack};

/// So many are known. One that is told again comes soon after, or not at all.
const MOST: usize = 256;

/// The keys, the oldest first.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Heard(Vec<u64>);

impl Heard {
    pub(super) fn read(bytes: &[u8]) -> Self {
        Self(Unpack::new(bytes).list(MOST, Unpack::long).unwrap_or_default())
    }

    pub(super) fn pack(&self) -> Vec<u8> {
        let mut pack = Pack::default();
        pack.list(&self.0, |pack, key| pack.long(*key));
        pack.done()
    }

    /// Whether the key was not known; it is from now on.
    pub(super) fn is_new(&mut self, key: u64) -> bool {
        if self.0.contains(&key) {
            return false;
        }
        if self.0.len() >= MOST {
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
        let mut heard = Heard::default();
        let more = u64::try_from(MOST).unwrap() + 10;
        assert!((0..more).all(|key| heard.is_new(key)));
        let mut again = Heard::read(&heard.pack());
        assert_eq!(again, heard);
        assert!((10..more).all(|key| !again.is_new(key)));
        assert!(again.is_new(9));
        assert_eq!(Heard::read(b"what is this"), Heard::default());
    }
}
