//! What came of the definitions that were examined, so that each is examined once. Owns nothing but that: a definition is
//! known by its hash, which is of all the texts that count.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::Doubt;

/// Definitions that are remembered. When there are more it starts anew.
const MOST: usize = 8192;

/// What was examined.
pub(super) struct Examined(Mutex<BTreeMap<String, Option<Doubt>>>);

impl Examined {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// The doubt about the definition of this hash.
    pub(super) fn doubt(&self, hash: &str, examine: impl FnOnce() -> Option<Doubt>) -> Option<Doubt> {
        let known = |known: &Mutex<BTreeMap<_, _>>| {
            known.lock().unwrap_or_else(PoisonError::into_inner).get(hash).copied()
        };
        if let Some(doubt) = known(&self.0) {
            return doubt;
        }
        // It takes its time: nobody else waits for it.
        let doubt = examine();
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(hash.to_owned(), doubt);
        doubt
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_definition_is_examined_once_and_not_all_are_remembered() {
        let examined = Examined::new();
        assert_eq!(examined.doubt("a", || Some(Doubt::Frame)), Some(Doubt::Frame));
        assert_eq!(examined.doubt("b", || None), None);
        assert_eq!(examined.doubt("a", || panic!("it was examined")), Some(Doubt::Frame));
        assert_eq!(examined.doubt("b", || panic!("it was examined")), None);
        for number in 0..MOST {
            examined.doubt(&number.to_string(), || None);
        }
        assert!(examined.0.lock().unwrap().len() <= MOST);
        assert_eq!(examined.doubt("a", || Some(Doubt::Secrecy)), Some(Doubt::Secrecy));
    }
}
