//! Span records and the bounded queue to the exporter. A full queue drops spans and counts them; calls never wait.

use std::borrow::Cow;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use super::counters::Counters;

const QUEUE: usize = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    Internal,
    Server,
    Client,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Text(Cow<'static, str>),
    Number(i64),
}

pub type Attribute = (&'static str, Value);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    pub trace: [u8; 16],
    pub id: [u8; 8],
    pub parent: Option<[u8; 8]>,
    /// Whether the parent belongs to another process.
    pub is_parent_remote: bool,
    pub state: String,
    pub name: String,
    pub kind: SpanKind,
    pub start_ns: u64,
    pub end_ns: u64,
    pub attributes: Vec<Attribute>,
    pub is_error: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SpanResult {
    Exported,
    QueueFull,
    Failed,
}

impl SpanResult {
    pub(super) const ALL: [Self; 3] = [Self::Exported, Self::QueueFull, Self::Failed];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Exported => "exported",
            Self::QueueFull => "queue_full",
            Self::Failed => "failed",
        }
    }
}

#[derive(Debug, Clone)]
pub struct Spans(Arc<SpanQueue>);

#[derive(Debug)]
struct SpanQueue {
    queue: mpsc::Sender<Span>,
    results: Counters<{ SpanResult::ALL.len() }>,
    /// For new traces: the smallest value of the 56 random bits with which a trace is recorded.
    threshold: u64,
}

impl Spans {
    /// A queue and its receiver. Records this percentage of the traces that begin here; for others the caller's decision
    /// applies.
    pub fn new(sample_percent: u8) -> (Self, mpsc::Receiver<Span>) {
        let (queue, end) = mpsc::channel(QUEUE);
        let threshold = (1 << 56) / 100 * u64::from(100 - sample_percent.min(100));
        let threshold = if sample_percent == 0 { u64::MAX } else { threshold };
        (Self(Arc::new(SpanQueue { queue, results: Counters::default(), threshold })), end)
    }

    pub fn exported(&self, count: usize) {
        self.add(SpanResult::Exported, count);
    }

    /// Counts spans that could not be exported and are not retried.
    pub fn failed(&self, count: usize) {
        self.add(SpanResult::Failed, count);
    }

    /// How many spans were lost so far, for any reason.
    pub fn lost(&self) -> u64 {
        self.count(SpanResult::QueueFull) + self.count(SpanResult::Failed)
    }

    pub(super) fn samples(&self, trace: [u8; 16]) -> bool {
        let [.., a, b, c, d, e, f, g] = trace;
        u64::from_be_bytes([0, a, b, c, d, e, f, g]) >= self.0.threshold
    }

    pub(super) fn record(&self, span: Span) {
        if let Err(TrySendError::Full(_)) = self.0.queue.try_send(span) {
            self.add(SpanResult::QueueFull, 1);
        }
    }

    pub(super) fn count(&self, result: SpanResult) -> u64 {
        self.0.results.get(result as usize)
    }

    fn add(&self, result: SpanResult, count: usize) {
        self.0.results.add_many(result as usize, count as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span() -> Span {
        Span {
            trace: [1; 16],
            id: [2; 8],
            parent: None,
            is_parent_remote: false,
            state: String::new(),
            name: "x".to_owned(),
            kind: SpanKind::Internal,
            start_ns: 0,
            end_ns: 1,
            attributes: Vec::new(),
            is_error: false,
        }
    }

    #[test]
    fn a_full_queue_loses_spans_and_says_so() {
        let (spans, mut end) = Spans::new(100);
        for _ in 0..QUEUE + 3 {
            spans.record(span());
        }
        assert_eq!((spans.count(SpanResult::QueueFull), spans.lost()), (3, 3));
        assert!(end.try_recv().is_ok());
        spans.record(span());
        spans.failed(2);
        assert_eq!((spans.count(SpanResult::QueueFull), spans.lost()), (3, 5));
    }

    #[test]
    fn a_share_of_the_traces_is_recorded() {
        let trace = |byte: u8| {
            let mut trace = [0; 16];
            trace[9] = byte;
            trace
        };
        let taken =
            |percent: u8| (0..=255).filter(|byte| Spans::new(percent).0.samples(trace(*byte))).count();
        assert_eq!((taken(0), taken(50), taken(100)), (0, 128, 256));
        assert!((25..=26).contains(&taken(10)));
    }
}
