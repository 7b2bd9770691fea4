//! What an operator watches: numbers that calls count in on their way, and the spans of calls for whoever traces them.
//!
//! Owns counting and the records of spans; who is told of them, and how, is somebody else's. Labels and attributes are of
//! closed sets, or names that the operator gave: never an argument, a result or the name of a user. A call pays for its
//! numbers with a few atomics, and for spans only while somebody takes them.
//!
//! - `count`: counters, gauges, histograms
//! - `words`: the closed sets
//! - `bodies`: what is counted for each server
//! - `restarts`: how often servers came back
//! - `page`: the text that Prometheus reads
//! - `scrape`: a broker's numbers on a page
//! - `context`: where a trace comes from
//! - `span`: what is recorded, and the queue to whoever takes it
//! - `trace`: one request and what is sent on behalf of it

mod bodies;
mod context;
mod count;
mod page;
mod restarts;
mod scrape;
mod span;
pub(crate) mod trace;
mod words;

use std::time::Duration;

use embody_wire::server::Era;

use self::bodies::Bodies;
pub(crate) use self::bodies::{Body, Timing};
use self::count::{Counter, Counters, Gauge, Histogram, Inside};
pub use self::page::{CONTENT_TYPE, Family, Kind, Label, Page};
pub(crate) use self::restarts::Restarts;
pub use self::span::{Attribute, Span, SpanKind, Spans, Value};
use self::words::{ANSWERS, METHODS};
pub(crate) use self::words::{End, Verdict};
use crate::approval::Answer;
use crate::builtin_tools::{BuiltinTool, NAMES};

/// The numbers of one broker, and where its spans go.
#[derive(Debug, Default)]
pub struct Meter {
    bodies: Bodies,
    requests: Counters<{ METHODS.len() }>,
    own: Counters<{ NAMES.len() }>,
    /// Calls that were none: of no tool, or with arguments that nobody can read in one way only.
    pub(crate) rejected: Counter,
    answers: Counters<{ ANSWERS.len() }>,
    asked: Histogram,
    asking: Gauge,
    /// Sessions with a greeting, and without.
    sessions: Counters<2>,
    /// Bootstraps that were done, and that failed.
    bootstraps: Counters<2>,
    /// What should be on record and is not.
    pub(crate) unrecorded: Counter,
    /// Observations before calls that were dropped.
    pub(crate) unobserved: Counter,
    spans: Option<Spans>,
}

impl Meter {
    /// Numbers, and no spans.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with somebody who takes spans.
    #[must_use]
    pub fn with_spans(spans: Spans) -> Self {
        Self { spans: Some(spans), ..Self::default() }
    }

    /// The numbers of this server.
    pub(crate) fn body(&self, name: &str) -> &Body {
        self.bodies.of(name)
    }

    /// A request has come.
    pub(crate) fn asked_for(&self, method: &str) {
        self.requests.add(words::method(method));
    }

    /// A tool of our own is called.
    pub(crate) fn own(&self, own: BuiltinTool) {
        self.own.add(own as usize);
    }

    /// A person is being asked, until this is dropped.
    pub(crate) fn asking(&self) -> Inside<'_> {
        self.asking.enter()
    }

    /// This came of asking, after so long.
    pub(crate) fn answered(&self, answer: &Answer, waited: Duration) {
        self.asked.record(waited);
        self.answers.add(match answer {
            Answer::Approved { .. } => 0,
            Answer::Denied { .. } => 1,
            Answer::Pending { .. } => 2,
            Answer::TimedOut { .. } => 3,
            Answer::Lapsed { .. } => 4,
            Answer::Full => 5,
            Answer::Unshowable(_) => 6,
        });
    }

    /// A session was opened.
    pub(crate) fn opened(&self, era: Era) {
        self.sessions.add(usize::from(era == Era::Stateless));
    }

    /// The mind was asked for its packet.
    pub(crate) fn booted(&self, is_done: bool) {
        self.bootstraps.add(usize::from(!is_done));
    }
}
