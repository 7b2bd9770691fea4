//! Counters, gauges and histograms on atomics: no lock, no allocation. Several reads are not one consistent snapshot.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The upper bounds of the histogram buckets, in nanoseconds: from the cost of a read to the time that a person takes.
pub(super) const BOUNDS_NS: [u64; 18] = [
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
    pub(crate) fn add(&self, place: usize) {
        self.add_many(place, 1);
    }

    pub(crate) fn add_many(&self, place: usize, count: u64) {
        if let Some(counter) = self.0.get(place) {
            counter.add(count);
        }
    }

    pub(crate) fn get(&self, place: usize) -> u64 {
        self.0.get(place).map_or(0, Counter::get)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Gauge(AtomicU64);

impl Gauge {
    /// Increments the gauge until the guard is dropped.
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
        let up_to = |(place, bound): (usize, &u64)| {
            count += self.buckets.get(place);
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

#[cfg(test)]
mod tests {
    use super::*;

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
