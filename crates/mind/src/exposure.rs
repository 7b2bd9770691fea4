//! Which sessions have read what somebody other than the owner wrote. Kept in the process, bounded; a session that is
//! marked stays marked until tens of thousands of others were marked after it.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use crate::Caller;

/// The sessions of one generation.
const GENERATION: usize = 32 * 1024;

/// The sessions that have read untrusted content.
#[derive(Debug, Default)]
pub(crate) struct Exposure {
    marks: Mutex<Generations>,
}

/// Two of them, so that the older one can be dropped whole.
#[derive(Debug, Default)]
struct Generations {
    now: HashSet<Key>,
    before: HashSet<Key>,
}

/// A session; whoever has none shares one with all of the same writer that have none.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    user: String,
    agent: String,
    session: Result<String, String>,
}

impl Exposure {
    pub(crate) fn mark(&self, caller: &Caller) {
        let mut marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        if marks.now.len() >= GENERATION {
            marks.before = std::mem::take(&mut marks.now);
        }
        marks.now.insert(Key::of(caller));
    }

    pub(crate) fn is_marked(&self, caller: &Caller) -> bool {
        let marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        let key = Key::of(caller);
        marks.now.contains(&key) || marks.before.contains(&key)
    }
}

impl Key {
    fn of(caller: &Caller) -> Self {
        Self {
            user: caller.scope.user().to_owned(),
            agent: caller.scope.agent().to_owned(),
            session: caller.session.clone().ok_or_else(|| caller.writer.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Trust;
    use embody_store::Scope;

    fn caller(session: Option<&str>) -> Caller {
        Caller {
            scope: Scope::new("ann", "assistant").unwrap(),
            writer: "host".into(),
            trust: Trust::Agent,
            session: session.map(str::to_owned),
            trains: false,
        }
    }

    #[test]
    fn a_mark_lasts_and_the_list_is_bounded() {
        let exposure = Exposure::default();
        exposure.mark(&caller(Some("first")));
        assert!(exposure.is_marked(&caller(Some("first"))));
        assert!(!exposure.is_marked(&caller(Some("second"))) && !exposure.is_marked(&caller(None)));
        for n in 0..3 * GENERATION {
            exposure.mark(&caller(Some(&n.to_string())));
            if n == GENERATION {
                assert!(exposure.is_marked(&caller(Some("first"))), "it was forgotten too soon");
            }
        }
        let marks = exposure.marks.lock().unwrap();
        assert!(marks.now.len() + marks.before.len() <= 2 * GENERATION);
    }
}
