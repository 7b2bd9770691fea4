//! The free space in each user's outbox, cached. Counting rows takes longer the more there are, so they are counted at intervals,
//! and insertions in between are subtracted.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a count is valid, since observations are delivered and other processes add some.
const COUNTED: Duration = Duration::from_secs(1);
/// The same for a full outbox, which drops observations.
const FULL: Duration = Duration::from_millis(100);
const MOST: usize = 4096;

#[derive(Clone, Debug, Default)]
pub(crate) struct QuotaCache(Arc<Mutex<HashMap<String, Quota>>>);

#[derive(Debug)]
struct Quota {
    pending: i64,
    /// The count stopped at this number.
    limit: u32,
    counted: Instant,
}

impl QuotaCache {
    /// Counts one more if it is within the limit; `None` if the rows have to be counted first.
    pub(super) fn take(&self, user: &str, limit: u32) -> Option<bool> {
        let mut quotas = self.lock();
        let room = quotas.get_mut(user)?;
        if limit > room.limit && room.pending >= i64::from(room.limit) {
            return None;
        }
        let has_room = room.pending < i64::from(limit);
        if room.counted.elapsed() > if has_room { COUNTED } else { FULL } {
            return None;
        }
        room.pending += i64::from(has_room);
        Some(has_room)
    }

    /// Sets the count, up to the limit.
    pub(super) fn counted(&self, user: &str, pending: i64, limit: u32) {
        let mut quotas = self.lock();
        if quotas.len() >= MOST {
            quotas.clear();
        }
        quotas.insert(user.to_owned(), Quota { pending, limit, counted: Instant::now() });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Quota>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: N-06
    #[test]
    fn a_place_is_taken_once_and_an_old_count_is_not_believed() {
        let quotas = QuotaCache::default();
        let age = |age: Duration| quotas.lock().get_mut("ann").unwrap().counted -= age;
        assert_eq!(quotas.take("ann", 10), None);
        quotas.counted("ann", 8, 10);
        let taken = [(); 3].map(|()| quotas.take("ann", 10));
        assert_eq!(taken, [Some(true), Some(true), Some(false)]);
        assert_eq!(quotas.take("ann", 11), None, "it was not counted so far");
        assert_eq!(quotas.take("bob", 10), None);
        quotas.counted("ann", 10, 10);
        age(FULL * 2);
        assert_eq!(quotas.take("ann", 10), None, "a full one may have room again");
        quotas.counted("ann", 0, 10);
        age(FULL * 2);
        assert_eq!(quotas.take("ann", 10), Some(true));
        age(COUNTED);
        assert_eq!(quotas.take("ann", 10), None);
        for user in 0..=MOST {
            quotas.counted(&user.to_string(), 0, 10);
        }
        assert!(quotas.lock().len() <= MOST);
    }
}
