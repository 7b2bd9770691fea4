//! What is counted for each server: its calls, what was decided about them, and where their time went.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::count::{Counter, Counters, Histogram};
use super::words::{End, Verdict};
use crate::policy::Class;

/// Servers that are told apart: as many as can be configured, and ours. Any further ones are counted together.
const MOST: usize = 80;

/// The name under which those are shown.
const OTHERS: &str = "_others";

/// One server.
#[derive(Debug)]
pub(crate) struct Body {
    pub(super) name: Box<str>,
    ends: [Counters<{ End::ALL.len() }>; Class::ALL.len()],
    verdicts: [Counters<{ Verdict::ALL.len() }>; Class::ALL.len()],
    /// The time of calls in the server.
    pub(super) upstream: Histogram,
    /// The rest of it that was not somebody else's.
    pub(super) overhead: Histogram,
    /// How often it was connected again.
    pub(crate) restarts: Counter,
}

impl Body {
    fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            ends: std::array::from_fn(|_| Counters::default()),
            verdicts: std::array::from_fn(|_| Counters::default()),
            upstream: Histogram::default(),
            overhead: Histogram::default(),
            restarts: Counter::default(),
        }
    }

    /// Something was decided about a call.
    pub(crate) fn decided(&self, class: Class, verdict: Verdict) {
        if let Some(verdicts) = self.verdicts.get(class as usize) {
            verdicts.add(verdict as usize);
        }
    }

    /// A call is over.
    pub(crate) fn over(&self, class: Class, end: End, timing: &Timing) {
        if let Some(ends) = self.ends.get(class as usize) {
            ends.add(end as usize);
        }
        let upstream = Duration::from_nanos(timing.upstream_ns.load(Ordering::Relaxed));
        let aside = Duration::from_nanos(timing.aside_ns.load(Ordering::Relaxed));
        if end != End::Refused && end != End::NotSent {
            self.upstream.record(upstream);
        }
        self.overhead.record(timing.began.elapsed().saturating_sub(upstream + aside));
    }

    pub(super) fn ended(&self, class: Class, end: End) -> u64 {
        self.ends.get(class as usize).map_or(0, |ends| ends.get(end as usize))
    }

    pub(super) fn decisions(&self, class: Class, verdict: Verdict) -> u64 {
        self.verdicts.get(class as usize).map_or(0, |verdicts| verdicts.get(verdict as usize))
    }
}

/// Where the time of one call goes.
#[derive(Debug)]
pub(crate) struct Timing {
    began: Instant,
    upstream_ns: AtomicU64,
    /// Whoever else was waited for: a person, the mind.
    aside_ns: AtomicU64,
}

impl Timing {
    /// Of a call that was read then.
    pub(crate) fn since(began: Instant) -> Self {
        Self { began, upstream_ns: AtomicU64::new(0), aside_ns: AtomicU64::new(0) }
    }

    /// The server had it for so long.
    pub(crate) fn upstream(&self, took: Duration) {
        add(&self.upstream_ns, took);
    }

    /// Waits for somebody else. The time counts also if the wait is broken off.
    pub(crate) async fn aside<T>(&self, waiting: impl Future<Output = T>) -> T {
        let _aside = Aside { timing: self, began: Instant::now() };
        waiting.await
    }
}

/// A wait for somebody else.
struct Aside<'a> {
    timing: &'a Timing,
    began: Instant,
}

impl Drop for Aside<'_> {
    fn drop(&mut self) {
        add(&self.timing.aside_ns, self.began.elapsed());
    }
}

fn add(to: &AtomicU64, took: Duration) {
    to.fetch_add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
}

/// Every server that was seen, found without a lock.
#[derive(Debug)]
pub(super) struct Bodies {
    places: [OnceLock<Box<Body>>; MOST],
    others: Body,
}

impl Default for Bodies {
    fn default() -> Self {
        Self { places: std::array::from_fn(|_| OnceLock::new()), others: Body::new(OTHERS) }
    }
}

impl Bodies {
    pub(super) fn of(&self, name: &str) -> &Body {
        self.places
            .iter()
            .map(|place| place.get_or_init(|| Box::new(Body::new(name))))
            .find(|body| *body.name == *name)
            .map_or(&self.others, |body| body)
    }

    /// Those that were seen, in the order in which they were.
    pub(super) fn seen(&self) -> impl Iterator<Item = &Body> {
        let others = Some(&self.others).filter(|_| self.places.iter().all(|place| place.get().is_some()));
        self.places.iter().filter_map(OnceLock::get).map(|body| &**body).chain(others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_server_has_its_own_numbers_up_to_a_bound() {
        let bodies = Bodies::default();
        let timing = Timing::since(Instant::now());
        timing.upstream(Duration::from_secs(1));
        bodies.of("desk").over(Class::Write, End::Done, &timing);
        bodies.of("lamp").decided(Class::Read, Verdict::Bounce);
        let desk = bodies.of("desk");
        assert_eq!((desk.ended(Class::Write, End::Done), desk.ended(Class::Read, End::Done)), (1, 0));
        assert_eq!((desk.upstream.read().count, desk.overhead.read().count), (1, 1));
        assert_eq!(bodies.of("lamp").decisions(Class::Read, Verdict::Bounce), 1);
        assert_eq!(bodies.seen().map(|body| &*body.name).collect::<Vec<_>>(), ["desk", "lamp"]);
        for number in 0..2 * MOST {
            bodies.of(&format!("b{number}")).over(Class::Read, End::Refused, &timing);
        }
        let names: Vec<&str> = bodies.seen().map(|body| &*body.name).collect();
        assert_eq!((names.len(), names.last()), (MOST + 1, Some(&OTHERS)));
        assert_eq!(bodies.of("one more").ended(Class::Read, End::Refused), (MOST + 2) as u64);
        assert_eq!(bodies.of("one more").upstream.read().count, 0);
    }
}
