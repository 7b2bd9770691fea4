//! Writes a broker's metrics to a page: counters as they are, gauges by inspecting the open sessions.

use std::collections::BTreeMap;

use embody_wire::server::Era;

use super::labels::{APPROVAL_RESULTS, DecisionLabel, METHODS, OutcomeLabel};
use super::page::{Kind, Page};
use super::{Meter, span};
use crate::Broker;
use crate::builtin_tools::NAMES;
use crate::policy::Class;
use crate::session::Session;
use crate::upstream::Health;

/// The eras, in the order of their counters.
const ERAS: [&str; 2] = ["session", "stateless"];
/// The degraded states of a session.
const DEGRADED: [&str; 6] = [
    "mind_unavailable",
    "body_unavailable",
    "bootstrap_missing",
    "observe_unavailable",
    "definition_changed",
    "host_prompt_missing",
];
/// The states of a connection, in the order of `Health`.
const STATES: [&str; 4] = ["connecting", "connected", "unavailable", "idle"];

pub(crate) fn write_metrics(broker: &Broker, page: &mut Page) {
    let (meter, open) = (&broker.config.meter, broker.sessions.all());
    // Create counters at zero, so that their first change is visible.
    for upstream in open.iter().flat_map(|session| session.upstreams()) {
        meter.body(&upstream.spec().name);
    }
    calls(meter, page);
    times(meter, page);
    requests(meter, page);
    people(meter, page);
    sessions(meter, &open, page);
    let (waiting, most) = broker.post_calls.waiting();
    page.number(
        "embody_audit_queue",
        Kind::Gauge,
        "Calls that are over and wait to be put on record.",
        waiting,
    );
    page.number(
        "embody_audit_queue_limit",
        Kind::Gauge,
        "So many may wait; then calls wait with them.",
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
    spans(meter, page);
}

fn calls(meter: &Meter, page: &mut Page) {
    let mut family =
        page.family("embody_calls_total", Kind::Counter, "Tool calls that are over, by how they ended.");
    for body in meter.bodies.seen() {
        for class in Class::ALL {
            for end in OutcomeLabel::ALL {
                let labels = [("body", &*body.name), ("class", class.name()), ("outcome", end.name())];
                family.sample(&labels, body.outcomes(class, end));
            }
        }
    }
    let mut family =
        page.family("embody_decisions_total", Kind::Counter, "What was decided about tool calls.");
    for body in meter.bodies.seen() {
        for class in Class::ALL {
            for verdict in DecisionLabel::ALL {
                let labels = [("body", &*body.name), ("class", class.name()), ("decision", verdict.name())];
                family.sample(&labels, body.decisions(class, verdict));
            }
        }
    }
    page.number(
        "embody_calls_rejected_total",
        Kind::Counter,
        "Tool calls of no tool that is there, or with arguments that cannot be read.",
        meter.rejected.get(),
    );
}

fn times(meter: &Meter, page: &mut Page) {
    let mut family = page.family(
        "embody_call_upstream_seconds",
        Kind::Histogram,
        "How long tool calls that were sent took in their server.",
    );
    for body in meter.bodies.seen() {
        family.histogram(&[("body", &body.name)], &body.upstream);
    }
    let mut family = page.family(
        "embody_call_overhead_seconds",
        Kind::Histogram,
        "How long tool calls took besides: not in their server, nor while a person or the mind was waited for.",
    );
    for body in meter.bodies.seen() {
        family.histogram(&[("body", &body.name)], &body.overhead);
    }
}

fn requests(meter: &Meter, page: &mut Page) {
    let mut family = page.family("embody_requests_total", Kind::Counter, "Requests of hosts.");
    for (place, method) in METHODS.iter().enumerate() {
        family.sample(&[("method", method)], meter.requests.get(place));
    }
    let mut family =
        page.family("embody_own_calls_total", Kind::Counter, "Calls of the tools of the broker itself.");
    for (place, tool) in NAMES.iter().enumerate() {
        family.sample(&[("tool", tool)], meter.own.get(place));
    }
}

fn people(meter: &Meter, page: &mut Page) {
    page.number(
        "embody_approvals_waiting",
        Kind::Gauge,
        "Calls that wait for a person at this moment.",
        meter.approvals_waiting.get(),
    );
    let mut family = page.family("embody_approvals_total", Kind::Counter, "What came of asking a person.");
    for (place, answer) in APPROVAL_RESULTS.iter().enumerate() {
        family.sample(&[("answer", answer)], meter.approvals.get(place));
    }
    page.family("embody_approval_wait_seconds", Kind::Histogram, "How long calls waited for a person.")
        .histogram(&[], &meter.approval_wait);
}

fn sessions(meter: &Meter, open: &[std::sync::Arc<Session>], page: &mut Page) {
    let (mut eras, mut modes) = ([0_u64; ERAS.len()], [0_u64; DEGRADED.len()]);
    let mut upstreams: BTreeMap<&str, [u64; STATES.len()]> = BTreeMap::new();
    for session in open {
        count(&mut eras, usize::from(session.host.era() == Era::Stateless));
        let degraded = session.degraded();
        for (place, mode) in DEGRADED.iter().enumerate() {
            if degraded.iter().any(|one| one.name() == *mode) {
                count(&mut modes, place);
            }
        }
        for upstream in session.upstreams() {
            let state = match upstream.health() {
                Health::Connecting => 0,
                Health::Connected => 1,
                Health::Unavailable => 2,
                Health::Idle => 3,
            };
            count(upstreams.entry(&upstream.spec().name).or_default(), state);
        }
    }
    let mut family = page.family("embody_sessions", Kind::Gauge, "Sessions that are open.");
    for (era, open) in ERAS.iter().zip(eras) {
        family.sample(&[("era", era)], open);
    }
    let mut family = page.family("embody_sessions_total", Kind::Counter, "Sessions that were opened.");
    for (place, era) in ERAS.iter().enumerate() {
        family.sample(&[("era", era)], meter.sessions.get(place));
    }
    let mut family = page.family(
        "embody_degraded_sessions",
        Kind::Gauge,
        "Open sessions in which something does not work.",
    );
    for (mode, open) in DEGRADED.iter().zip(modes) {
        family.sample(&[("reason", mode)], open);
    }
    let mut family = page.family("embody_upstreams", Kind::Gauge, "Connections of open sessions to servers.");
    for (body, states) in &upstreams {
        for (state, open) in STATES.iter().zip(states) {
            family.sample(&[("body", body), ("state", state)], open);
        }
    }
    let mut family = page.family(
        "embody_upstream_restarts_total",
        Kind::Counter,
        "How often servers were connected again.",
    );
    for body in meter.bodies.seen() {
        family.sample(&[("body", &body.name)], body.restarts.get());
    }
    let mut family =
        page.family("embody_bootstraps_total", Kind::Counter, "How often the mind was asked for its packet.");
    for (place, result) in ["done", "failed"].iter().enumerate() {
        family.sample(&[("result", result)], meter.bootstraps.get(place));
    }
}

fn spans(meter: &Meter, page: &mut Page) {
    let mut family =
        page.family("embody_spans_total", Kind::Counter, "Spans of traces, by what became of them.");
    for result in span::SpanResult::ALL {
        family.sample(
            &[("result", result.name())],
            meter.spans.as_ref().map_or(0, |spans| spans.count(result)),
        );
    }
}

fn count(numbers: &mut [u64], place: usize) {
    if let Some(number) = numbers.get_mut(place) {
        *number += 1;
    }
}
