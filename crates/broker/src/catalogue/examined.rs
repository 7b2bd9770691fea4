//! The results of the definition scan, so that each definition is scanned once. A definition is known by its hash, which is
//! over all the texts that are scanned.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::Finding;

/// Definitions that are remembered. When there are more it starts anew.
const MOST: usize = 8192;

pub(super) struct Examined(Mutex<BTreeMap<String, Option<Finding>>>);

impl Examined {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// What the scan of the definition with this hash finds.
    pub(super) fn finding(&self, hash: &str, scan: impl FnOnce() -> Option<Finding>) -> Option<Finding> {
        let known = |known: &Mutex<BTreeMap<_, _>>| {
            known.lock().unwrap_or_else(PoisonError::into_inner).get(hash).cloned()
        };
        if let Some(finding) = known(&self.0) {
            return finding;
        }
        // A scan takes its time: the lock is not held meanwhile.
        let finding = scan();
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(hash.to_owned(), finding.clone());
        finding
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_definition_is_scanned_once_and_not_all_are_remembered() {
        use crate::catalogue::{Part, Suspicion};
        let found = |suspicion| Some(Finding { suspicion, part: Part::Description, excerpt: "x".to_owned() });
        let (examined, frame) = (Examined::new(), found(Suspicion::Frame));
        assert_eq!(examined.finding("a", || frame.clone()), frame);
        assert_eq!(examined.finding("b", || None), None);
        assert_eq!(examined.finding("a", || panic!("it was scanned")), frame);
        assert_eq!(examined.finding("b", || panic!("it was scanned")), None);
        for number in 0..MOST {
            examined.finding(&number.to_string(), || None);
        }
        assert!(examined.0.lock().unwrap().len() <= MOST);
        assert_eq!(examined.finding("a", || found(Suspicion::Secrecy)), found(Suspicion::Secrecy));
    }
}
