//! Metrics and spans of calls. Owns counting and span records; exporting is done elsewhere. Labels come from closed sets or from
//! the configuration: never an argument, a result or a user name.
//!
//! - `counters`: counters, gauges, histograms, also per server; the closed label sets
//! - `model`: requests of our own agents to their models
//! - `page`: the Prometheus page
//! - `span`: span records and their bounded queue
//! - `trace`: the spans of one request

mod counters;
mod model;
mod page;
mod span;
pub(crate) mod trace;

use std::time::Duration;

use embody_wire::server::Era;

use self::counters::{APPROVAL_RESULTS, Bodies, Counter, Counters, Gauge, GaugeGuard, Histogram, METHODS};
use self::model::Models;
use crate::approval::Answer;
use crate::builtin_tools::{BuiltinTool, NAMES};

pub(crate) use self::counters::{Body, Restarts, Timing};
pub use self::model::{ModelRequestInfo, ModelRequestSpan};
pub(crate) use self::page::write_metrics;
pub use self::page::{CONTENT_TYPE, Family, Kind, Label, Page};
pub use self::span::{Attribute, Span, SpanKind, Spans, Value};

#[derive(Debug, Default)]
pub struct Meter {
    bodies: Bodies,
    requests: Counters<{ METHODS.len() }>,
    own: Counters<{ NAMES.len() }>,
    /// Rejected calls: an unknown tool, or arguments that two parsers could read differently.
    pub(crate) rejected: Counter,
    approvals: Counters<{ APPROVAL_RESULTS.len() }>,
    approval_wait: Histogram,
    approvals_waiting: Gauge,
    /// Sessions with `initialize`, and without.
    sessions: Counters<2>,
    bootstraps: Counters<2>,
    /// Records that could not be stored.
    pub(crate) unrecorded: Counter,
    /// Dropped observations before calls.
    pub(crate) unobserved: Counter,
    models: Models,
    spans: Option<Spans>,
}

impl Meter {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn with_spans(spans: Spans) -> Self {
        Self { spans: Some(spans), ..Self::default() }
    }

    pub(crate) fn body(&self, name: &str) -> &Body {
        self.bodies.of(name)
    }

    pub(crate) fn count_request(&self, method: &str) {
        self.requests.add(counters::method_index(method));
    }

    pub(crate) fn count_builtin(&self, own: BuiltinTool) {
        self.own.add(own as usize);
    }

    pub(crate) fn enter_approval(&self) -> GaugeGuard<'_> {
        self.approvals_waiting.enter()
    }

    pub(crate) fn record_approval(&self, answer: &Answer, waited: Duration) {
        self.approval_wait.record(waited);
        self.approvals.add(match answer {
            Answer::Approved { .. } => 0,
            Answer::Denied { .. } => 1,
            Answer::Pending { .. } => 2,
            Answer::TimedOut { .. } => 3,
            Answer::Lapsed { .. } => 4,
            Answer::Full => 5,
            Answer::Unshowable(_) => 6,
        });
    }

    pub(crate) fn count_session(&self, era: Era) {
        self.sessions.add(usize::from(era == Era::Stateless));
    }

    pub(crate) fn count_bootstrap(&self, is_done: bool) {
        self.bootstraps.add(usize::from(!is_done));
    }
}
