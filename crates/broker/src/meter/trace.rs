//! Spans of one host request and of the requests sent on its behalf, by the OpenTelemetry conventions for MCP.
//!
//! The trace is a task-local, so that code that runs for a request need not pass it along. Without an exporter no trace
//! exists, and every function here does nothing. Spans contain no text of a host or a server except names of existing tools
//! and prompts, request ids, and the trace state.

use std::borrow::Cow;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use embody_store::Principal;
use embody_store::audit::{AuditOutcome, DecisionKind};
use embody_wire::Outcome;
use embody_wire::message::ErrorObject;
use embody_wire::server::{Call, Era, MODERN};
use embody_wire::upstream::{Link, Route};
use serde::Deserialize;

use super::Meter;
use super::counters::{OTHER, method_label, outcome_label};
use super::span::{Attribute, Span, SpanKind, Spans, Value};
use crate::pipeline::ToolCall;
use crate::pipeline::record::is_error;
use crate::pipeline::send::CallResult;
use crate::session::lock;
use crate::trace_context::{TraceContext, new_span_id};
use crate::upstream::Upstream;

/// The longest foreign name or id in a span, in characters.
const NAME_CHARS: usize = 128;
const CALL: &str = "tools/call";
const CANCELLED: &str = "cancelled";
const LOST: &str = "connection_lost";
const TIMEOUT: &str = "timeout";

tokio::task_local! {
    static TRACE: Arc<Trace>;
}

struct Trace {
    spans: Spans,
    context: TraceContext,
    id: [u8; 8],
    began: Instant,
    start_ns: u64,
    facts: Mutex<Facts>,
}

#[derive(Default)]
struct Facts {
    /// The tool's listed name and its upstream name.
    tool: Option<(String, String)>,
    attributes: Vec<Attribute>,
}

/// A request in progress. Its span ends when it is dropped.
pub(crate) struct RequestSpan {
    trace: Arc<Trace>,
    method: &'static str,
    prompt: Option<String>,
    attributes: Vec<Attribute>,
    outcome: Option<SpanFailure>,
}

type SpanFailure = Option<Failure>;

struct Failure {
    kind: Cow<'static, str>,
    code: Option<i64>,
}

impl Failure {
    fn of(kind: &'static str) -> SpanFailure {
        Some(Self { kind: Cow::Borrowed(kind), code: None })
    }
}

impl Meter {
    /// Starts the request's span, if spans are exported. `now_us` is the time in microseconds since 1970.
    pub(crate) fn trace(&self, call: &Call<Principal>, now_us: impl Fn() -> i64) -> Option<RequestSpan> {
        let spans = self.spans.as_ref()?;
        let context = TraceContext::of(call.request.params.as_deref());
        let is_taken =
            context.parent.map_or_else(|| spans.samples(context.trace), |parent| parent.is_sampled);
        if !is_taken {
            return None;
        }
        let method = method_label(&call.request.method);
        let trace = Trace {
            spans: spans.clone(),
            context,
            id: new_span_id(),
            began: Instant::now(),
            start_ns: u64::try_from(now_us()).unwrap_or_default().saturating_mul(1000),
            facts: Mutex::default(),
        };
        let prompt = (method == "prompts/get").then(|| prompt_of(call)).flatten();
        let attributes = host_side(call, method);
        Some(RequestSpan { trace: Arc::new(trace), method, prompt, attributes, outcome: None })
    }
}

impl RequestSpan {
    pub(crate) async fn run(mut self, answering: impl Future<Output = Outcome>) -> Outcome {
        let outcome = TRACE.scope(Arc::clone(&self.trace), answering).await;
        self.outcome = Some(failed(&outcome, self.method));
        outcome
    }
}

impl Drop for RequestSpan {
    fn drop(&mut self) {
        // The caller did not wait for the response.
        let failed = self.outcome.take().unwrap_or_else(|| Failure::of(CANCELLED));
        let facts = std::mem::take(&mut *lock(&self.trace.facts));
        let mut attributes = std::mem::take(&mut self.attributes);
        let tool = facts.tool.map(|(name, _)| name);
        attributes.extend(tool_attributes(tool.as_deref()));
        attributes.extend(facts.attributes);
        let prompt = self.prompt.take().filter(|_| failed.is_none());
        attributes.extend(prompt.clone().map(|name| ("gen_ai.prompt.name", text(name))));
        let context = &self.trace.context;
        self.trace.record(FinishedSpan {
            id: self.trace.id,
            parent: context.parent.map(|parent| parent.id),
            name: named(self.method, tool.or(prompt).as_deref()),
            kind: SpanKind::Server,
            began: self.trace.began,
            attributes,
            failed,
        });
    }
}

struct FinishedSpan {
    id: [u8; 8],
    parent: Option<[u8; 8]>,
    name: String,
    kind: SpanKind,
    began: Instant,
    attributes: Vec<Attribute>,
    failed: SpanFailure,
}

impl Trace {
    fn record(&self, part: FinishedSpan) {
        let FinishedSpan { id, parent, name, kind, began, mut attributes, failed } = part;
        let is_error = failed.is_some();
        if let Some(Failure { kind, code }) = failed {
            attributes.extend(code.map(|code| ("rpc.response.status_code", text(code.to_string()))));
            attributes.push(("error.type", Value::Text(kind)));
        }
        let since = |at: Instant| {
            let elapsed = at.saturating_duration_since(self.began);
            self.start_ns.saturating_add(u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX))
        };
        self.spans.record(Span {
            trace: self.context.trace,
            id,
            parent,
            is_parent_remote: kind == SpanKind::Server && parent.is_some(),
            state: self.context.state.clone(),
            name,
            kind,
            start_ns: since(began),
            end_ns: since(Instant::now()),
            attributes,
            is_error,
        });
    }
}

pub(crate) fn record_call(call: &ToolCall<'_>) {
    with(|trace| {
        let mut facts = lock(&trace.facts);
        facts.tool = Some((cut(&call.tool.name), cut(&call.tool.tool)));
        facts.attributes.extend([
            ("embody.body", text(call.tool.upstream.to_string())),
            ("embody.class", Value::Text(Cow::Borrowed(call.ruling.class.name()))),
            ("embody.call.id", text(call.id.clone())),
        ]);
    });
}

pub(crate) fn record_builtin(name: &str) {
    with(|trace| lock(&trace.facts).tool = Some((name.to_owned(), name.to_owned())));
}

pub(crate) fn record_decision(decision: DecisionKind) {
    note("embody.decision", decision.name());
}

pub(crate) fn record_outcome(outcome: Option<AuditOutcome>) {
    note("embody.outcome", outcome_label(outcome));
}

fn note(key: &'static str, value: &'static str) {
    with(|trace| lock(&trace.facts).attributes.push((key, Value::Text(Cow::Borrowed(value)))));
}

fn with(work: impl FnOnce(&Arc<Trace>)) {
    // Does nothing without a trace.
    let _ = TRACE.try_with(work);
}

/// Work for a request. Its span ends when it is dropped.
pub(crate) struct OpenSpan(Option<Box<SpanInProgress>>);

struct SpanInProgress {
    trace: Arc<Trace>,
    part: FinishedSpan,
}

impl OpenSpan {
    fn begin(describe: impl FnOnce(&Trace) -> (String, SpanKind, Vec<Attribute>)) -> Self {
        let begun = TRACE.try_with(|trace| {
            let (name, kind, attributes) = describe(trace);
            let (id, parent, began) = (new_span_id(), Some(trace.id), Instant::now());
            let part =
                FinishedSpan { id, parent, name, kind, began, attributes, failed: Failure::of(CANCELLED) };
            Box::new(SpanInProgress { trace: Arc::clone(trace), part })
        });
        Self(begun.ok())
    }

    pub(crate) fn sent(&mut self, number: u64) {
        if let Some(open) = &mut self.0 {
            open.part.attributes.push(("jsonrpc.request.id", text(number.to_string())));
        }
    }

    pub(crate) fn finish(mut self, result: CallResult, method: &str) -> CallResult {
        if let Some(open) = &mut self.0 {
            open.part.failed = match &result {
                CallResult::Answered(outcome) => failed(outcome, method),
                CallResult::Unavailable(_) => Failure::of("unavailable"),
                CallResult::NotSent(_) => Failure::of("not_sent"),
                CallResult::Lost(error) if error.was_not_executed() => Failure::of("not_sent"),
                CallResult::Lost(_) => Failure::of(LOST),
                CallResult::TimedOut => Failure::of(TIMEOUT),
                CallResult::CancelledUnsent | CallResult::Cancelled => Failure::of(CANCELLED),
            };
        }
        result
    }

    /// The same for the broker's own requests: a response, or a timeout.
    pub(crate) fn finish_reply<E>(mut self, answered: Option<&Result<Outcome, E>>) {
        if let Some(open) = &mut self.0 {
            open.part.failed = match answered {
                Some(Ok(outcome)) => failed(outcome, CALL),
                Some(Err(_)) => Failure::of(LOST),
                None => Failure::of(TIMEOUT),
            };
        }
    }

    pub(crate) fn finish_ok(mut self) {
        if let Some(open) = &mut self.0 {
            open.part.failed = None;
        }
    }
}

impl Drop for OpenSpan {
    fn drop(&mut self) {
        if let Some(open) = self.0.take() {
            let SpanInProgress { trace, part } = *open;
            trace.record(part);
        }
    }
}

pub(crate) fn approval_span() -> OpenSpan {
    OpenSpan::begin(|_| ("approval".to_owned(), SpanKind::Internal, Vec::new()))
}

pub(crate) fn upstream_span(upstream: &Upstream, link: &Link, method: &str) -> OpenSpan {
    OpenSpan::begin(|trace| {
        let tool = lock(&trace.facts).tool.as_ref().map(|(_, tool)| tool.clone());
        let tool = tool.filter(|_| method == CALL);
        let mut attributes = server_side(&upstream.spec().name, link, method, tool.as_deref());
        if let Route::Http { url } | Route::Sse { url } | Route::Probe { url } = &upstream.spec().route {
            attributes.extend(url.host_str().map(|host| ("server.address", text(host.to_owned()))));
            let port = url.port_or_known_default();
            attributes.extend(port.map(|port| ("server.port", Value::Number(port.into()))));
        }
        (named(method, tool.as_deref()), SpanKind::Client, attributes)
    })
}

pub(crate) fn mind_span(link: &Link, tool: &str) -> OpenSpan {
    OpenSpan::begin(|_| {
        (named(CALL, Some(tool)), SpanKind::Client, server_side("mind", link, CALL, Some(tool)))
    })
}

fn host_side(call: &Call<Principal>, method: &'static str) -> Vec<Attribute> {
    let mut attributes = vec![("mcp.method.name", Value::Text(Cow::Borrowed(method)))];
    attributes.push(("jsonrpc.request.id", text(cut(call.request.id.as_json().trim_matches('"')))));
    attributes.extend(call.host.session.as_deref().map(|id| ("mcp.session.id", text(cut(id)))));
    let version = match call.host.era() {
        Era::Session(version) => version.map(embody_wire::Version::as_str),
        Era::Stateless => Some(MODERN),
    };
    attributes.extend(version.map(|version| ("mcp.protocol.version", Value::Text(Cow::Borrowed(version)))));
    attributes.extend(network(call.is_on_pipe()));
    attributes.push(("embody.channel", text(cut(&call.host.principal.channel))));
    attributes
}

fn server_side(upstream: &str, link: &Link, method: &str, tool: Option<&str>) -> Vec<Attribute> {
    let version = link.protocol_version();
    let method = method_label(method);
    let mut attributes = vec![
        ("mcp.method.name", Value::Text(Cow::Borrowed(method))),
        ("mcp.protocol.version", Value::Text(Cow::Borrowed(version))),
        ("embody.body", text(upstream.to_owned())),
    ];
    attributes.extend(network(matches!(link.transport(), "stdio" | "embedded")));
    attributes.extend(tool_attributes(tool));
    attributes
}

fn network(is_pipe: bool) -> impl Iterator<Item = Attribute> {
    let transport = if is_pipe { "pipe" } else { "tcp" };
    let protocol = (!is_pipe).then_some(("network.protocol.name", Value::Text(Cow::Borrowed("http"))));
    std::iter::once(("network.transport", Value::Text(Cow::Borrowed(transport)))).chain(protocol)
}

fn tool_attributes(tool: Option<&str>) -> impl Iterator<Item = Attribute> {
    let operation = ("gen_ai.operation.name", Value::Text(Cow::Borrowed("execute_tool")));
    tool.map(|tool| [("gen_ai.tool.name", text(tool.to_owned())), operation]).into_iter().flatten()
}

/// The name of a span: the method, and its target if that has few values.
fn named(method: &str, target: Option<&str>) -> String {
    let method = method_label(method);
    target.map_or_else(|| method.to_owned(), |target| format!("{method} {target}"))
}

/// Records only the code of an error: its message may repeat what was sent.
fn failed(outcome: &Outcome, method: &str) -> SpanFailure {
    match outcome {
        Outcome::Error(error) => {
            let code = serde_json::from_str::<ErrorObject>(error.get()).ok().map(|error| error.code);
            let kind = code.map_or(Cow::Borrowed(OTHER), |code| Cow::Owned(code.to_string()));
            Some(Failure { kind, code })
        }
        Outcome::Result(result) if method == CALL && is_error(result) => Failure::of("tool_error"),
        Outcome::Result(_) => None,
    }
}

fn prompt_of(call: &Call<Principal>) -> Option<String> {
    #[derive(Deserialize)]
    struct Named {
        name: String,
    }
    let Named { name } = serde_json::from_str(call.request.params.as_deref()?.get()).ok()?;
    Some(cut(&name))
}

fn cut(text: &str) -> String {
    embody_text::without_control(text, NAME_CHARS)
}

fn text(text: String) -> Value {
    Value::Text(Cow::Owned(text))
}
