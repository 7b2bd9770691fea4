//! Counters per server: calls, decisions, timing and restarts.

use std::collections::HashMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::Meter;
use super::count::{Counter, Counters, Histogram};
use super::labels::{DecisionLabel, OutcomeLabel};
use crate::policy::Class;
use crate::session::Session;

/// Servers with their own counters: as many as can be configured, plus the embedded ones. Any further ones share one.
const BODIES_MAX: usize = 80;

const OTHERS: &str = "_others";

#[derive(Debug)]
pub(crate) struct Body {
    pub(super) name: Box<str>,
    ends: [Counters<{ OutcomeLabel::ALL.len() }>; Class::ALL.len()],
    verdicts: [Counters<{ DecisionLabel::ALL.len() }>; Class::ALL.len()],
    pub(super) upstream: Histogram,
    /// The time that was spent in the broker itself.
    pub(super) overhead: Histogram,
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

    pub(crate) fn record_decision(&self, class: Class, verdict: DecisionLabel) {
        if let Some(verdicts) = self.verdicts.get(class as usize) {
            verdicts.add(verdict as usize);
        }
    }

    pub(crate) fn finish(&self, class: Class, end: OutcomeLabel, timing: &Timing) {
        if let Some(ends) = self.ends.get(class as usize) {
            ends.add(end as usize);
        }
        let upstream = Duration::from_nanos(timing.upstream_ns.load(Ordering::Relaxed));
        let aside = Duration::from_nanos(timing.aside_ns.load(Ordering::Relaxed));
        if end != OutcomeLabel::Refused && end != OutcomeLabel::NotSent {
            self.upstream.record(upstream);
        }
        self.overhead.record(timing.began.elapsed().saturating_sub(upstream + aside));
    }

    pub(super) fn outcomes(&self, class: Class, end: OutcomeLabel) -> u64 {
        self.ends.get(class as usize).map_or(0, |ends| ends.get(end as usize))
    }

    pub(super) fn decisions(&self, class: Class, verdict: DecisionLabel) -> u64 {
        self.verdicts.get(class as usize).map_or(0, |verdicts| verdicts.get(verdict as usize))
    }
}

#[derive(Debug)]
pub(crate) struct Timing {
    began: Instant,
    upstream_ns: AtomicU64,
    aside_ns: AtomicU64,
}

impl Timing {
    pub(crate) fn since(began: Instant) -> Self {
        Self { began, upstream_ns: AtomicU64::new(0), aside_ns: AtomicU64::new(0) }
    }

    /// Adds the time that the server took.
    pub(crate) fn upstream(&self, took: Duration) {
        add(&self.upstream_ns, took);
    }

    /// Waits for another party and counts the time, even if the wait is cancelled.
    pub(crate) async fn aside<T>(&self, waiting: impl Future<Output = T>) -> T {
        let _aside = OtherWait { timing: self, began: Instant::now() };
        waiting.await
    }
}

struct OtherWait<'a> {
    timing: &'a Timing,
    began: Instant,
}

impl Drop for OtherWait<'_> {
    fn drop(&mut self) {
        add(&self.timing.aside_ns, self.began.elapsed());
    }
}

fn add(to: &AtomicU64, took: Duration) {
    to.fetch_add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
}

/// All known servers, readable without a lock.
#[derive(Debug)]
pub(super) struct Bodies {
    places: [OnceLock<Box<Body>>; BODIES_MAX],
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

    /// The known servers, in the order of their first use.
    pub(super) fn seen(&self) -> impl Iterator<Item = &Body> {
        let others = Some(&self.others).filter(|_| self.places.iter().all(|place| place.get().is_some()));
        self.places.iter().filter_map(OnceLock::get).map(|body| &**body).chain(others)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Restarts(HashMap<String, u32>);

impl Restarts {
    pub(crate) fn count(&mut self, meter: &Meter, session: &Session, upstream: &str) {
        let Some(found) = session.upstream(upstream) else { return };
        let restarts = found.status().restarts;
        let counted = self.0.entry(upstream.to_owned()).or_default();
        meter.body(upstream).restarts.add(restarts.saturating_sub(*counted).into());
        *counted = restarts;
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
        bodies.of("desk").finish(Class::Write, OutcomeLabel::Done, &timing);
        bodies.of("lamp").record_decision(Class::Read, DecisionLabel::Bounce);
        let desk = bodies.of("desk");
        assert_eq!(
            (desk.outcomes(Class::Write, OutcomeLabel::Done), desk.outcomes(Class::Read, OutcomeLabel::Done)),
            (1, 0)
        );
        assert_eq!((desk.upstream.read().count, desk.overhead.read().count), (1, 1));
        assert_eq!(bodies.of("lamp").decisions(Class::Read, DecisionLabel::Bounce), 1);
        assert_eq!(bodies.seen().map(|body| &*body.name).collect::<Vec<_>>(), ["desk", "lamp"]);
        for number in 0..2 * BODIES_MAX {
            bodies.of(&format!("b{number}")).finish(Class::Read, OutcomeLabel::Refused, &timing);
        }
        let names: Vec<&str> = bodies.seen().map(|body| &*body.name).collect();
        assert_eq!((names.len(), names.last()), (BODIES_MAX + 1, Some(&OTHERS)));
        assert_eq!(
            bodies.of("one more").outcomes(Class::Read, OutcomeLabel::Refused),
            (BODIES_MAX + 2) as u64
        );
        assert_eq!(bodies.of("one more").upstream.read().count, 0);
    }
}
