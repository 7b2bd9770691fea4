//! How much room is left in the outbox of each user. To count takes the longer the more there is, and calls come by the
//! thousand: so it is counted now and then, and what is added in between is counted off.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a count is believed: what was delivered meanwhile made room, what other processes added took it.
const COUNTED: Duration = Duration::from_secs(1);
/// The same of an outbox that is full: every observation that finds it so is lost.
const FULL: Duration = Duration::from_millis(100);
/// Users whose counts are kept.
const MOST: usize = 4096;

/// The rooms of a store's users.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rooms(Arc<Mutex<HashMap<String, Room>>>);

#[derive(Debug)]
struct Room {
    left: i64,
    counted: Instant,
}

impl Rooms {
    /// Takes a place for one more; none if it has to be counted first.
    pub(super) fn take(&self, user: &str) -> Option<bool> {
        let mut rooms = self.lock();
        let room = rooms.get_mut(user)?;
        let believed = if room.left > 0 { COUNTED } else { FULL };
        if room.counted.elapsed() > believed {
            return None;
        }
        room.left -= 1;
        Some(room.left >= 0)
    }

    /// So much was left when it was counted.
    pub(super) fn counted(&self, user: &str, left: i64) {
        let mut rooms = self.lock();
        if rooms.len() >= MOST {
            rooms.retain(|_, room| room.counted.elapsed() < COUNTED);
        }
        rooms.insert(user.to_owned(), Room { left, counted: Instant::now() });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Room>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: N-06
    #[test]
    fn a_place_is_taken_once_and_an_old_count_is_not_believed() {
        let rooms = Rooms::default();
        assert_eq!(rooms.take("ann"), None);
        rooms.counted("ann", 2);
        assert_eq!(
            [rooms.take("ann"), rooms.take("ann"), rooms.take("ann")],
            [Some(true), Some(true), Some(false)]
        );
        assert_eq!(rooms.take("bob"), None);
        for left in [5, 0] {
            rooms.counted("ann", left);
            rooms.lock().get_mut("ann").unwrap().counted -= COUNTED * 2;
            assert_eq!(rooms.take("ann"), None);
        }
        rooms.counted("ann", 0);
        assert_eq!(rooms.take("ann"), Some(false));
    }
}
