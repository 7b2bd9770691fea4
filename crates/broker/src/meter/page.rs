//! The metrics of a broker in the Prometheus text format 0.0.4: counters as they are, gauges by inspecting the open sessions.

use std::collections::BTreeMap;
use std::fmt::{Display, Write};

use embody_store::audit::DecisionKind;

use super::Meter;
use super::counters::{APPROVAL_RESULTS, Histogram, HistogramSnapshot, METHODS, OUTCOMES, outcome_label};
use super::model::{RESULTS, TOKENS};
use super::span::SpanResult;
use crate::Broker;
use crate::builtin_tools::NAMES;
use crate::degraded::Degraded;
use crate::policy::Class;
use crate::session::Session;
use crate::upstream::Health;

pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Counter,
    Gauge,
    Histogram,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

#[derive(Debug, Default)]
pub struct Page {
    text: String,
    /// The only bodies whose samples are included; `None` for all.
    bodies: Option<Vec<String>>,
}

impl Page {
    pub fn of_bodies(bodies: Vec<String>) -> Self {
        Self { text: String::new(), bodies: Some(bodies) }
    }

    /// Begins a family: all samples of one name.
    pub fn family(&mut self, name: &'static str, kind: Kind, help: &str) -> Family<'_> {
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {}", kind.name());
        Family { text: &mut self.text, name, bodies: self.bodies.as_deref() }
    }

    pub fn number(&mut self, name: &'static str, kind: Kind, help: &str, value: impl Display) {
        self.family(name, kind, help).sample(&[], value);
    }

    pub fn into_text(self) -> String {
        self.text
    }
}

pub type Label<'a> = (&'static str, &'a str);

#[derive(Debug)]
pub struct Family<'a> {
    text: &'a mut String,
    name: &'static str,
    bodies: Option<&'a [String]>,
}

impl Family<'_> {
    fn shows(&self, labels: &[Label<'_>]) -> bool {
        let is_hidden = |&(name, value): &Label<'_>| {
            name == "body" && self.bodies.is_some_and(|bodies| !bodies.iter().any(|body| body == value))
        };
        !labels.iter().any(is_hidden)
    }

    pub fn sample(&mut self, labels: &[Label<'_>], value: impl Display) {
        if !self.shows(labels) {
            return;
        }
        self.line("", labels, None, value);
    }

    fn sample_each<'v>(
        &mut self,
        label: &'static str,
        samples: impl IntoIterator<Item = (&'v str, impl Display)>,
    ) {
        samples.into_iter().for_each(|(value, number)| self.sample(&[(label, value)], number));
    }

    fn histogram(&mut self, labels: &[Label<'_>], histogram: &Histogram) {
        if !self.shows(labels) {
            return;
        }
        let HistogramSnapshot { up_to, count, sum } = histogram.read();
        for (bound, count) in up_to {
            self.line("_bucket", labels, Some(&bound.to_string()), count);
        }
        self.line("_bucket", labels, Some("+Inf"), count);
        self.line("_sum", labels, None, sum);
        self.line("_count", labels, None, count);
    }

    fn line(&mut self, suffix: &str, labels: &[Label<'_>], bound: Option<&str>, value: impl Display) {
        let _ = write!(self.text, "{}{suffix}", self.name);
        let all = labels.iter().copied().chain(bound.map(|bound| ("le", bound)));
        for (index, (name, value)) in all.enumerate() {
            let _ = write!(self.text, "{}{name}=\"", if index == 0 { '{' } else { ',' });
            self.escaped(value);
            self.text.push('"');
        }
        if !labels.is_empty() || bound.is_some() {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
    }

    fn escaped(&mut self, value: &str) {
        for character in value.chars() {
            match character {
                '\\' => self.text.push_str("\\\\"),
                '"' => self.text.push_str("\\\""),
                '\n' => self.text.push_str("\\n"),
                other => self.text.push(other),
            }
        }
    }
}

/// The eras, in the order of their counters.
const ERAS: [&str; 2] = ["session", "stateless"];
const DEGRADED: [&str; 6] = [
    "mind_unavailable",
    "body_unavailable",
    "bootstrap_missing",
    "observe_unavailable",
    "definition_changed",
    "host_prompt_missing",
];
const STATES: [(&str, Health); 4] = [
    ("connecting", Health::Connecting),
    ("connected", Health::Connected),
    ("unavailable", Health::Unavailable),
    ("idle", Health::Idle),
];

pub(crate) fn write_metrics(broker: &Broker, page: &mut Page) {
    let (meter, open) = (&broker.config.meter, broker.sessions.all());
    // Create counters at zero, so that their first change is visible.
    for upstream in open.iter().flat_map(|session| session.upstreams()) {
        meter.body(&upstream.spec().name);
    }
    calls(meter, page);
    requests(meter, page);
    approvals(meter, page);
    sessions(meter, &open, page);
    models(meter, page);
    let (waiting, most) = broker.post_calls.waiting();
    page.number("embody_audit_queue", Kind::Gauge, "Finished calls that wait to be recorded.", waiting);
    page.number(
        "embody_audit_queue_limit",
        Kind::Gauge,
        "Capacity of this queue; when it is full, calls wait.",
        most,
    );
    page.number(
        "embody_audit_failures_total",
        Kind::Counter,
        "Records that could not be written.",
        meter.unrecorded.get(),
    );
    page.number(
        "embody_observations_dropped_total",
        Kind::Counter,
        "Observations before reads that were not sent to the mind because too many waited.",
        meter.unobserved.get(),
    );
    let count = |result| meter.spans.as_ref().map_or(0, |spans| spans.count(result));
    page.family("embody_spans_total", Kind::Counter, "Trace spans, by result.")
        .sample_each("result", SpanResult::ALL.map(|result| (result.name(), count(result))));
}

fn calls(meter: &Meter, page: &mut Page) {
    let mut family = page.family("embody_calls_total", Kind::Counter, "Finished tool calls, by outcome.");
    for body in meter.bodies.all() {
        for class in Class::ALL {
            for outcome in OUTCOMES {
                let labels =
                    [("body", &*body.name), ("class", class.name()), ("outcome", outcome_label(outcome))];
                family.sample(&labels, body.outcomes(class, outcome));
            }
        }
    }
    let mut family = page.family("embody_decisions_total", Kind::Counter, "Decisions about tool calls.");
    for body in meter.bodies.all() {
        for class in Class::ALL {
            for decision in DecisionKind::ALL {
                let labels = [("body", &*body.name), ("class", class.name()), ("decision", decision.name())];
                family.sample(&labels, body.decisions(class, decision));
            }
        }
    }
    page.number(
        "embody_calls_rejected_total",
        Kind::Counter,
        "Tool calls with an unknown tool or invalid arguments.",
        meter.rejected.get(),
    );
    let mut family = page.family(
        "embody_call_upstream_seconds",
        Kind::Histogram,
        "Time that sent tool calls took in their server.",
    );
    for body in meter.bodies.all() {
        family.histogram(&[("body", &body.name)], &body.upstream);
    }
    let mut family = page.family(
        "embody_call_overhead_seconds",
        Kind::Histogram,
        "Time that tool calls took in the broker, without their server and without waiting for a person or the mind.",
    );
    for body in meter.bodies.all() {
        family.histogram(&[("body", &body.name)], &body.overhead);
    }
}

fn requests(meter: &Meter, page: &mut Page) {
    page.family("embody_requests_total", Kind::Counter, "Requests from hosts.")
        .sample_each("method", meter.requests.labelled(METHODS));
    page.family("embody_own_calls_total", Kind::Counter, "Calls of the broker's own tools.")
        .sample_each("tool", meter.own.labelled(NAMES));
}

fn approvals(meter: &Meter, page: &mut Page) {
    page.number(
        "embody_approvals_waiting",
        Kind::Gauge,
        "Calls that wait for approval now.",
        meter.approvals_waiting.get(),
    );
    page.family("embody_approvals_total", Kind::Counter, "Approval requests, by result.")
        .sample_each("answer", meter.approvals.labelled(APPROVAL_RESULTS));
    page.family("embody_approval_wait_seconds", Kind::Histogram, "Time that calls waited for approval.")
        .histogram(&[], &meter.approval_wait);
}

fn models(meter: &Meter, page: &mut Page) {
    let models = meter.models.all();
    let mut family = page.family(
        "embody_model_requests_total",
        Kind::Counter,
        "Requests of embody's own agents to their models, by how they ended.",
    );
    for counters in &models {
        for (result, count) in RESULTS.into_iter().zip(counters.results) {
            family.sample(&[("model", &counters.model), ("result", result)], count);
        }
    }
    let mut family = page.family(
        "embody_model_tokens_total",
        Kind::Counter,
        "Tokens that models reported, by type; `input` includes those read from and written to a cache.",
    );
    for counters in &models {
        for (kind, count) in TOKENS.into_iter().zip(counters.tokens) {
            family.sample(&[("model", &counters.model), ("type", kind)], count);
        }
    }
}

fn sessions(meter: &Meter, open: &[std::sync::Arc<Session>], page: &mut Page) {
    let stateless = open.iter().filter(|session| session.is_stateless()).count();
    page.family("embody_sessions", Kind::Gauge, "Open sessions.")
        .sample_each("era", ERAS.into_iter().zip([open.len() - stateless, stateless]));
    page.family("embody_sessions_total", Kind::Counter, "Sessions opened.")
        .sample_each("era", meter.sessions.labelled(ERAS));
    let degraded: Vec<Vec<Degraded>> = open.iter().map(|session| session.degraded()).collect();
    let has = |all: &&Vec<Degraded>, mode: &str| all.iter().any(|one| one.name() == mode);
    page.family("embody_degraded_sessions", Kind::Gauge, "Open sessions that are degraded.").sample_each(
        "reason",
        DEGRADED.map(|mode| (mode, degraded.iter().filter(|all| has(all, mode)).count())),
    );
    let mut upstreams: BTreeMap<&str, Vec<Health>> = BTreeMap::new();
    for upstream in open.iter().flat_map(|session| session.upstreams()) {
        upstreams.entry(&upstream.spec().name).or_default().push(upstream.health());
    }
    let mut family = page.family("embody_upstreams", Kind::Gauge, "Connections of open sessions to servers.");
    for (body, healths) in &upstreams {
        for (state, health) in STATES {
            let count = healths.iter().filter(|known| **known == health).count();
            family.sample(&[("body", body), ("state", state)], count);
        }
    }
    let restarts = meter.bodies.all().map(|body| (&*body.name, body.restarts.get()));
    page.family("embody_upstream_restarts_total", Kind::Counter, "Reconnections to servers.")
        .sample_each("body", restarts);
    page.family("embody_bootstraps_total", Kind::Counter, "Bootstrap requests to the mind.")
        .sample_each("result", meter.bootstraps.labelled(["done", "failed"]));
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn samples_stand_under_what_they_are() {
        let mut page = Page::default();
        page.number("a_total", Kind::Counter, "Things\nthat \\ happened.", 3);
        let mut family = page.family("b", Kind::Gauge, "State.");
        family.sample(&[("x", "say \"no\"\n\\"), ("y", "ü")], 0.5);
        assert_eq!(
            page.into_text(),
            "# HELP a_total Things\\nthat \\\\ happened.\n# TYPE a_total counter\na_total 3\n\
             # HELP b State.\n# TYPE b gauge\nb{x=\"say \\\"no\\\"\\n\\\\\",y=\"ü\"} 0.5\n"
        );
    }

    #[test]
    fn a_histogram_ends_with_everything() {
        let histogram = Histogram::default();
        histogram.record(Duration::from_micros(20));
        let mut page = Page::default();
        page.family("t_seconds", Kind::Histogram, "Time.").histogram(&[("body", "desk")], &histogram);
        let text = page.into_text();
        for line in [
            "t_seconds_bucket{body=\"desk\",le=\"0.00001\"} 0",
            "t_seconds_bucket{body=\"desk\",le=\"0.000025\"} 1",
            "t_seconds_bucket{body=\"desk\",le=\"300\"} 1",
            "t_seconds_bucket{body=\"desk\",le=\"+Inf\"} 1",
            "t_seconds_sum{body=\"desk\"} 0.00002",
            "t_seconds_count{body=\"desk\"} 1",
        ] {
            assert!(text.lines().any(|known| known == line), "no {line:?} in\n{text}");
        }
    }
}
