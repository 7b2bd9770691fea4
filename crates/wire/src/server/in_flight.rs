//! Limits the bytes of requests in flight: from reading a request until it is answered and no task works on it,
//! including the time it waits for a person. One token, or one pipe, cannot use all of the memory.

use std::sync::{Arc, Mutex, PoisonError};

use crate::limits::Limits;

/// The error message for a request beyond the limits.
pub(super) const TOO_MANY_BYTES: &str = "the running requests are too large in total; wait for one to end";

/// The largest message that is read beyond the limit of its token, to see whether it is a response or a notification:
/// these let calls release bytes.
pub(super) const SMALL_BYTES: usize = 64 * 1024;
/// Bytes of such messages, for each token.
const SMALL_EACH_BYTES: usize = 1024 * 1024;

/// The bytes in flight, by owner.
pub(super) struct Budget<K> {
    max_bytes: usize,
    max_bytes_each: usize,
    used: Mutex<Used<K>>,
}

struct Used<K> {
    all: usize,
    each: Vec<(K, usize)>,
}

/// The bytes of one request. Dropping it releases them.
pub(super) struct Share<K: PartialEq> {
    budget: Arc<Budget<K>>,
    key: K,
    bytes: usize,
}

/// The bytes do not fit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Full;

impl<K: PartialEq + Clone> Budget<K> {
    pub(super) fn new(limits: &Limits) -> Arc<Self> {
        Arc::new(Self {
            max_bytes: limits.in_flight_max_bytes,
            max_bytes_each: limits.in_flight_each_max_bytes,
            used: Mutex::new(Used { all: 0, each: Vec::new() }),
        })
    }

    /// A share without bytes.
    pub(super) fn share(self: &Arc<Self>, key: &K) -> Share<K> {
        Share { budget: Arc::clone(self), key: key.clone(), bytes: 0 }
    }
}

impl<K: PartialEq + Clone> Share<K> {
    /// Adds bytes, within the limit of its token.
    pub(super) fn grow(&mut self, bytes: usize) -> Result<(), Full> {
        self.grow_within(self.budget.max_bytes_each, bytes)
    }

    /// Adds bytes, even beyond the limit of its token while the message is small. See [`Share::is_within_bound`].
    pub(super) fn grow_if_small(&mut self, bytes: usize) -> Result<(), Full> {
        let more = if self.bytes.saturating_add(bytes) <= SMALL_BYTES { SMALL_EACH_BYTES } else { 0 };
        self.grow_within(self.budget.max_bytes_each.saturating_add(more), bytes)
    }

    /// Whether the token's total is within its limit.
    pub(super) fn is_within_bound(&self) -> bool {
        let used = self.budget.used.lock().unwrap_or_else(PoisonError::into_inner);
        let own = used.each.iter().find(|(key, _)| *key == self.key).map_or(0, |(_, own)| *own);
        own <= self.budget.max_bytes_each
    }

    fn grow_within(&mut self, max_bytes_each: usize, bytes: usize) -> Result<(), Full> {
        let mut used = self.budget.used.lock().unwrap_or_else(PoisonError::into_inner);
        let all = used.all.saturating_add(bytes);
        let known = used.each.iter().position(|(key, _)| *key == self.key);
        let own = known.and_then(|at| used.each.get(at)).map_or(0, |(_, own)| *own).saturating_add(bytes);
        if all > self.budget.max_bytes || own > max_bytes_each {
            return Err(Full);
        }
        used.all = all;
        match known.and_then(|at| used.each.get_mut(at)) {
            Some((_, known)) => *known = own,
            None => used.each.push((self.key.clone(), own)),
        }
        self.bytes += bytes;
        Ok(())
    }
}

impl<K: PartialEq> Drop for Share<K> {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        let mut used = self.budget.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.all = used.all.saturating_sub(self.bytes);
        if let Some(at) = used.each.iter().position(|(key, _)| *key == self.key)
            && let Some((_, own)) = used.each.get_mut(at)
        {
            *own = own.saturating_sub(self.bytes);
            if *own == 0 {
                used.each.swap_remove(at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_bounded_and_given_back() {
        let limits = Limits { in_flight_max_bytes: 100, in_flight_each_max_bytes: 60, ..Limits::default() };
        let budget = Budget::new(&limits);
        let (mut ann, mut also_ann, mut bob) =
            (budget.share(&"ann"), budget.share(&"ann"), budget.share(&"bob"));
        assert_eq!(ann.grow(40), Ok(()));
        assert_eq!(also_ann.grow(21), Err(Full), "60 for each");
        assert_eq!(also_ann.grow(20), Ok(()));
        assert_eq!(bob.grow(41), Err(Full), "100 for all");
        assert_eq!(bob.grow(40), Ok(()));
        drop(ann);
        assert_eq!(bob.grow(20), Ok(()));
        drop((also_ann, bob));
        let used = budget.used.lock().unwrap();
        assert!(used.all == 0 && used.each.is_empty());
    }

    #[test]
    fn only_what_is_small_grows_beyond_the_bound_of_its_token() {
        let (all, each) = (2 * SMALL_EACH_BYTES, 100);
        let limits = Limits { in_flight_max_bytes: all, in_flight_each_max_bytes: each, ..Limits::default() };
        let budget = Budget::new(&limits);
        let mut ann = budget.share(&"ann");
        assert_eq!(ann.grow(100), Ok(()));
        assert!(ann.is_within_bound());
        let mut small = budget.share(&"ann");
        assert_eq!(small.grow(1), Err(Full));
        assert_eq!(small.grow_if_small(SMALL_BYTES - 1), Ok(()));
        assert!(!small.is_within_bound());
        assert_eq!(small.grow_if_small(2), Err(Full), "in pieces too");
        let more: Vec<_> = std::iter::repeat_with(|| budget.share(&"ann"))
            .map_while(|mut share| share.grow_if_small(SMALL_BYTES).is_ok().then_some(share))
            .collect();
        assert_eq!(more.len(), SMALL_EACH_BYTES / SMALL_BYTES - 1, "their number is bounded");
        let mut bob = budget.share(&"bob");
        assert_eq!(bob.grow(100), Ok(()), "others are not held up");
        drop((small, more));
        assert!(ann.is_within_bound());
    }
}
