//! Caches results of the definition scan by definition hash, which covers all scanned texts.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::Finding;

/// The number of cached definitions. The cache is cleared when it is full.
const MOST: usize = 8192;

pub(super) struct ScanCache(Mutex<BTreeMap<String, Option<Finding>>>);

impl ScanCache {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    pub(super) fn finding(&self, hash: &str, scan: impl FnOnce() -> Option<Finding>) -> Option<Finding> {
        let known = |known: &Mutex<BTreeMap<_, _>>| {
            known.lock().unwrap_or_else(PoisonError::into_inner).get(hash).cloned()
        };
        if let Some(finding) = known(&self.0) {
            return finding;
        }
        // The lock is not held during a scan.
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
        let (scan_cache, frame) = (ScanCache::new(), found(Suspicion::Frame));
        assert_eq!(scan_cache.finding("a", || frame.clone()), frame);
        assert_eq!(scan_cache.finding("b", || None), None);
        assert_eq!(scan_cache.finding("a", || panic!("it was scanned")), frame);
        assert_eq!(scan_cache.finding("b", || panic!("it was scanned")), None);
        for number in 0..MOST {
            scan_cache.finding(&number.to_string(), || None);
        }
        assert!(scan_cache.0.lock().unwrap().len() <= MOST);
        assert_eq!(scan_cache.finding("a", || found(Suspicion::Secrecy)), found(Suspicion::Secrecy));
    }
}
