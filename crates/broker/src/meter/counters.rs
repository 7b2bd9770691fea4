//! Counters, gauges and histograms on atomics (no lock, no allocation; several reads are not one consistent snapshot), the
//! counters per server, and the closed sets of labels. Text from hosts or bodies is never a label.

use std::collections::HashMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use embody_store::audit::{AuditOutcome, DecisionKind};

use super::Meter;
use crate::policy::Class;
use crate::session::Session;

/// Servers with their own counters: as many as can be configured, plus the embedded ones. Any further ones share one.
const BODIES_MAX: usize = 80;

const OTHERS: &str = "_others";

#[derive(Debug)]
pub(crate) struct Body {
    pub(super) name: Box<str>,
    outcomes: [Counters<{ OUTCOMES.len() }>; Class::ALL.len()],
    decisions: [Counters<{ DecisionKind::ALL.len() }>; Class::ALL.len()],
    pub(super) upstream: Histogram,
    /// The time that was spent in the broker itself.
    pub(super) overhead: Histogram,
    pub(crate) restarts: Counter,
}

impl Body {
    fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            outcomes: std::array::from_fn(|_| Counters::default()),
            decisions: std::array::from_fn(|_| Counters::default()),
            upstream: Histogram::default(),
            overhead: Histogram::default(),
            restarts: Counter::default(),
        }
    }

    pub(crate) fn record_decision(&self, class: Class, decision: DecisionKind) {
        if let Some(decisions) = self.decisions.get(class as usize) {
            decisions.add(decision as usize);
        }
    }

    pub(crate) fn finish(&self, class: Class, outcome: Option<AuditOutcome>, timing: &Timing) {
        if let Some(outcomes) = self.outcomes.get(class as usize) {
            outcomes.add(outcome_index(outcome));
        }
        let upstream = Duration::from_nanos(timing.upstream_ns.load(Ordering::Relaxed));
        let aside = Duration::from_nanos(timing.aside_ns.load(Ordering::Relaxed));
        if outcome.is_some_and(|outcome| outcome != AuditOutcome::Denied) {
            self.upstream.record(upstream);
        }
        self.overhead.record(timing.began.elapsed().saturating_sub(upstream + aside));
    }

    pub(super) fn outcomes(&self, class: Class, outcome: Option<AuditOutcome>) -> u64 {
        self.outcomes.get(class as usize).map_or(0, |outcomes| outcomes.get(outcome_index(outcome)))
    }

    pub(super) fn decisions(&self, class: Class, decision: DecisionKind) -> u64 {
        self.decisions.get(class as usize).map_or(0, |decisions| decisions.get(decision as usize))
    }
}

fn outcome_index(outcome: Option<AuditOutcome>) -> usize {
    outcome.map_or(OUTCOMES.len() - 1, |outcome| outcome as usize)
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

    pub(crate) fn upstream(&self, took: Duration) {
        add(&self.upstream_ns, took);
    }

    /// Waits for another party and counts the time, even if the wait is cancelled.
    pub(crate) async fn exclude_wait<T>(&self, waiting: impl Future<Output = T>) -> T {
        let _wait = OtherWait { timing: self, began: Instant::now() };
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
    slots: [OnceLock<Box<Body>>; BODIES_MAX],
    others: Body,
}

impl Default for Bodies {
    fn default() -> Self {
        Self { slots: std::array::from_fn(|_| OnceLock::new()), others: Body::new(OTHERS) }
    }
}

impl Bodies {
    pub(super) fn of(&self, name: &str) -> &Body {
        self.slots
            .iter()
            .map(|slot| slot.get_or_init(|| Box::new(Body::new(name))))
            .find(|body| *body.name == *name)
            .map_or(&self.others, |body| body)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Body> {
        let others = Some(&self.others).filter(|_| self.slots.iter().all(|slot| slot.get().is_some()));
        self.slots.iter().filter_map(OnceLock::get).map(|body| &**body).chain(others)
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

/// The upper bounds of the histogram buckets, in nanoseconds: from the cost of a read to the time that a person takes.
const BOUNDS_NS: [u64; 18] = [
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    100_000_000,
    250_000_000,
    1_000_000_000,
    5_000_000_000,
    15_000_000_000,
    60_000_000_000,
    300_000_000_000,
];

#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Debug)]
pub(crate) struct Counters<const N: usize>([Counter; N]);

impl<const N: usize> Default for Counters<N> {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Counter::default()))
    }
}

impl<const N: usize> Counters<N> {
    pub(crate) fn add(&self, index: usize) {
        self.add_many(index, 1);
    }

    pub(crate) fn add_many(&self, index: usize, count: u64) {
        if let Some(counter) = self.0.get(index) {
            counter.add(count);
        }
    }

    pub(crate) fn get(&self, index: usize) -> u64 {
        self.0.get(index).map_or(0, Counter::get)
    }

    /// Each label with its counter, in the same order.
    pub(super) fn labelled<'a>(&self, labels: [&'a str; N]) -> impl Iterator<Item = (&'a str, u64)> {
        labels.into_iter().zip(self.0.iter().map(Counter::get))
    }
}

#[derive(Debug, Default)]
pub(crate) struct Gauge(AtomicU64);

impl Gauge {
    pub(crate) fn enter(&self) -> GaugeGuard<'_> {
        self.0.fetch_add(1, Ordering::Relaxed);
        GaugeGuard(self)
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

pub(crate) struct GaugeGuard<'a>(&'a Gauge);

impl Drop for GaugeGuard<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[derive(Debug, Default)]
pub(crate) struct Histogram {
    /// Each bucket counts values above the previous bound and up to its own; the last counts the rest.
    buckets: Counters<{ BOUNDS_NS.len() + 1 }>,
    sum_ns: Counter,
}

impl Histogram {
    pub(crate) fn record(&self, took: Duration) {
        let took_ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.buckets.add(BOUNDS_NS.partition_point(|bound| *bound < took_ns));
        self.sum_ns.add(took_ns);
    }

    /// The cumulative count per bound in seconds, then the total count and the sum.
    pub(super) fn read(&self) -> HistogramSnapshot {
        let mut count = 0;
        let up_to = |(index, bound): (usize, &u64)| {
            count += self.buckets.get(index);
            (seconds(*bound), count)
        };
        let up_to: Vec<(f64, u64)> = BOUNDS_NS.iter().enumerate().map(up_to).collect();
        let count = up_to.last().map_or(0, |(_, count)| *count) + self.buckets.get(BOUNDS_NS.len());
        HistogramSnapshot { up_to, count, sum: seconds(self.sum_ns.get()) }
    }
}

#[derive(Debug, PartialEq)]
pub(super) struct HistogramSnapshot {
    pub(super) up_to: Vec<(f64, u64)>,
    pub(super) count: u64,
    pub(super) sum: f64,
}

#[expect(clippy::cast_precision_loss, reason = "a sum of months still has its microseconds")]
fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// How calls end; `None` is a call that was not permitted.
pub(super) const OUTCOMES: [Option<AuditOutcome>; 5] = [
    Some(AuditOutcome::Done),
    Some(AuditOutcome::Failed),
    Some(AuditOutcome::Unknown),
    Some(AuditOutcome::Denied),
    None,
];

pub(super) const fn outcome_label(outcome: Option<AuditOutcome>) -> &'static str {
    match outcome {
        Some(AuditOutcome::Done) => "done",
        Some(AuditOutcome::Failed) => "failed",
        Some(AuditOutcome::Unknown) => "unknown",
        Some(AuditOutcome::Denied) => "not_sent",
        None => "refused",
    }
}

/// The results of approvals, in the order of their counters.
pub(super) const APPROVAL_RESULTS: [&str; 7] =
    ["approved", "denied", "pending", "timed_out", "lapsed", "full", "unshowable"];

/// The methods with their own label; all others share one.
pub(super) const METHODS: [&str; 24] = [
    "tools/call",
    "tools/list",
    "initialize",
    "ping",
    "server/discover",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "prompts/list",
    "prompts/get",
    "completion/complete",
    "logging/setLevel",
    "subscriptions/listen",
    "tasks/list",
    "tasks/get",
    "tasks/result",
    "tasks/update",
    "tasks/cancel",
    "sampling/createMessage",
    "elicitation/create",
    "roots/list",
    OTHER,
];

pub(super) const OTHER: &str = "_OTHER";

pub(super) fn method_label(name: &str) -> &'static str {
    METHODS.get(method_index(name)).copied().unwrap_or(OTHER)
}

pub(super) fn method_index(name: &str) -> usize {
    METHODS.iter().position(|known| *known == name).unwrap_or(METHODS.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_server_has_its_own_numbers_up_to_a_bound() {
        let bodies = Bodies::default();
        let timing = Timing::since(Instant::now());
        timing.upstream(Duration::from_secs(1));
        bodies.of("desk").finish(Class::Write, Some(AuditOutcome::Done), &timing);
        bodies.of("lamp").record_decision(Class::Read, DecisionKind::Bounce);
        let desk = bodies.of("desk");
        assert_eq!(
            (
                desk.outcomes(Class::Write, Some(AuditOutcome::Done)),
                desk.outcomes(Class::Read, Some(AuditOutcome::Done))
            ),
            (1, 0)
        );
        assert_eq!((desk.upstream.read().count, desk.overhead.read().count), (1, 1));
        assert_eq!(bodies.of("lamp").decisions(Class::Read, DecisionKind::Bounce), 1);
        assert_eq!(bodies.all().map(|body| &*body.name).collect::<Vec<_>>(), ["desk", "lamp"]);
        for number in 0..2 * BODIES_MAX {
            bodies.of(&format!("b{number}")).finish(Class::Read, None, &timing);
        }
        let names: Vec<&str> = bodies.all().map(|body| &*body.name).collect();
        assert_eq!((names.len(), names.last()), (BODIES_MAX + 1, Some(&OTHERS)));
        assert_eq!(bodies.of("one more").outcomes(Class::Read, None), (BODIES_MAX + 2) as u64);
        assert_eq!(bodies.of("one more").upstream.read().count, 0);
    }

    #[test]
    fn a_time_is_counted_under_every_bound_that_it_keeps() {
        let histogram = Histogram::default();
        for ns in [1, 10_000, 10_001, 2_000_000_000, u64::MAX / 4] {
            histogram.record(Duration::from_nanos(ns));
        }
        let read = histogram.read();
        assert_eq!(read.count, 5);
        assert_eq!(read.up_to[0], (0.000_01, 2));
        assert_eq!(read.up_to[1], (0.000_025, 3));
        assert_eq!(read.up_to.last(), Some(&(300.0, 4)));
        assert!(read.up_to.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1));
        assert!(read.sum > 2.0);
    }

    #[test]
    fn what_goes_on_ends_when_it_is_dropped() {
        let gauge = Gauge::default();
        let (one, two) = (gauge.enter(), gauge.enter());
        assert_eq!(gauge.get(), 2);
        drop((one, two));
        assert_eq!(gauge.get(), 0);
    }
}
