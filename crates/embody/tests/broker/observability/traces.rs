//! Traces arrive at a collector, by the conventions for MCP, and nothing that concerns the collector concerns a call.

use std::net::TcpListener;

use serde_json::{Value, json};

use super::super::host::{Answer, Host, Reply};
use super::super::setup::{Scene, decision, is_done, stranger, until};
use super::collector::{CLIENT, Collector, SERVER, Span};
use super::exposition::Exposition;
use crate::support::served::{Served, begin, token};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

fn telemetry(url: &str, more: &str) -> String {
    format!("[telemetry]\notlp_url = \"{url}\"\n{more}\n")
}

/// Calls a tool as part of a trace of the host's.
fn call(host: &mut Host, tool: &str, arguments: &Value, trace: &str) -> Value {
    let meta = json!({"traceparent": trace, "tracestate": "host=1"});
    let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
    match host.ask("tools/call", &params.to_string()) {
        Answer::Result(result) => serde_json::from_str(&result).unwrap(),
        Answer::Error(error) => serde_json::from_str(&error).unwrap(),
    }
}

fn of<'a>(spans: &'a [Span], trace: &str, kind: u64) -> Vec<&'a Span> {
    spans.iter().filter(|span| span.trace == trace && span.kind == kind).collect()
}

/// The one span of a trace that is of this kind.
fn only<'a>(spans: &'a [Span], trace: &str, kind: u64) -> &'a Span {
    let found = of(spans, trace, kind);
    assert_eq!(found.len(), 1, "{trace} {kind}: {spans:#?}");
    found[0]
}

fn says(span: &Span, expected: &[(&str, &str)]) {
    for (key, value) in expected {
        assert_eq!(span.attributes.get(*key).map(String::as_str), Some(*value), "{key}: {span:#?}");
    }
}

fn trace(number: u8) -> String {
    format!("{number:02x}{}", &TRACE[2..])
}

fn parent(number: u8) -> String {
    format!("00-{}-{PARENT}-01", trace(number))
}

#[test]
fn a_call_is_a_span_of_the_hosts_trace_with_a_child_span_for_the_upstream_request() {
    let collector = Collector::start();
    let scene = Scene::new("", &[&telemetry(&collector.url(), "headers = { x-team = \"blue-secret\" }")]);
    let mut host = stranger(&scene.world, &json!({}), |_, _| Reply::Error(-32601, "no such method"));
    let secret = json!({"text": "hunter2"});
    assert!(is_done(&call(&mut host, "look", &secret, &parent(1)), "look"));
    assert_eq!(decision(&call(&mut host, "note", &secret, &parent(2))), "bounce");
    let error = call(&mut host, "look", &json!({"trick": "error", "text": "hunter2"}), &parent(3));
    assert_eq!(error["code"], -32000);
    let lost = call(&mut host, "look", &json!({"trick": "crash", "text": "hunter2"}), &parent(4));
    assert_eq!(lost["_meta"]["embody/decision"]["outcome_unknown"], true, "{lost}");
    // Whoever began this one does not want it recorded.
    call(&mut host, "look", &json!({}), &format!("00-{}-{PARENT}-00", trace(5)));
    let failed = call(&mut host, "no_such_tool", &json!({}), &parent(6));
    assert_eq!(failed["code"], -32602);
    assert!(host.close().success());
    // Everything has been sent when the process ends.
    let spans = collector.spans();
    check_a_read(&spans);
    check_what_failed(&spans);
    // The host's trace context was forwarded unchanged, and no content of a call was exported.
    let calls = scene.desk.of_kind("call");
    assert_eq!(calls[0]["params"]["_meta"], json!({"traceparent": parent(1), "tracestate": "host=1"}));
    for post in collector.posts() {
        assert_eq!(post.line, "POST /v1/traces HTTP/1.1");
        assert_eq!(post.headers["content-type"], "application/x-protobuf");
        assert_eq!(post.headers["x-team"], "blue-secret");
        let text = String::from_utf8_lossy(&post.body);
        for word in ["hunter2", "blue-secret", "no_such_tool", "unruly", "is done"] {
            assert!(!text.contains(word), "{word} is in {text}");
        }
    }
}

fn check_a_read(spans: &[Span]) {
    let served = only(spans, &trace(1), SERVER);
    assert_eq!((served.name.as_str(), served.parent.as_str()), ("tools/call look", PARENT));
    assert_eq!((served.state.as_str(), served.is_error, served.flags), ("host=1", false, 0x301));
    says(
        served,
        &[
            ("mcp.method.name", "tools/call"),
            ("mcp.protocol.version", "2025-11-25"),
            ("gen_ai.tool.name", "look"),
            ("gen_ai.operation.name", "execute_tool"),
            ("network.transport", "pipe"),
            ("embody.body", "desk"),
            ("embody.class", "read"),
            ("embody.decision", "permit"),
            ("embody.outcome", "done"),
            ("embody.channel", "mcp"),
        ],
    );
    for key in ["mcp.session.id", "jsonrpc.request.id", "embody.call.id"] {
        assert!(served.attributes.get(key).is_some_and(|value| !value.is_empty()), "{key}: {served:#?}");
    }
    assert!(!served.attributes.contains_key("error.type"));
    says_resource(served);
    let sent = only(spans, &trace(1), CLIENT);
    assert_eq!((sent.name.as_str(), &sent.parent, sent.flags), ("tools/call look", &served.id, 0x101));
    says(
        sent,
        &[
            ("mcp.method.name", "tools/call"),
            ("gen_ai.tool.name", "look"),
            ("network.transport", "pipe"),
            ("embody.body", "desk"),
        ],
    );
    assert!(sent.attributes.contains_key("jsonrpc.request.id"));
    assert!(served.start_ns <= sent.start_ns && sent.start_ns <= sent.end_ns && sent.end_ns <= served.end_ns);
}

fn check_what_failed(spans: &[Span]) {
    let bounced = only(spans, &trace(2), SERVER);
    says(
        bounced,
        &[
            ("gen_ai.tool.name", "note"),
            ("embody.class", "write"),
            ("embody.decision", "bounce"),
            ("embody.outcome", "refused"),
            ("error.type", "tool_error"),
        ],
    );
    assert!(bounced.is_error && of(spans, &trace(2), CLIENT).is_empty());

    let (served, sent) = (only(spans, &trace(3), SERVER), only(spans, &trace(3), CLIENT));
    for span in [served, sent] {
        says(span, &[("error.type", "-32000"), ("rpc.response.status_code", "-32000")]);
        assert!(span.is_error);
    }
    let (served, sent) = (only(spans, &trace(4), SERVER), only(spans, &trace(4), CLIENT));
    says(served, &[("embody.outcome", "unknown"), ("error.type", "tool_error")]);
    says(sent, &[("error.type", "connection_lost")]);
    assert!(spans.iter().all(|span| span.trace != trace(5)));
    let unknown = only(spans, &trace(6), SERVER);
    assert_eq!(unknown.name, "tools/call", "what is no tool is no name");
    says(unknown, &[("error.type", "-32602")]);
}

fn says_resource(span: &Span) {
    let resource = &span.resource;
    assert_eq!(
        (resource["service.name"].as_str(), resource["service.version"].as_str()),
        ("embody", "0.1.0")
    );
    assert_eq!(resource["service.instance.id"].len(), 32);
    assert!(resource["process.pid"].parse::<u32>().is_ok());
}

#[test]
fn traces_can_be_configured_by_shared_variables_alone() {
    let collector = Collector::start();
    let mut scene = Scene::new("", &[]);
    scene.world = scene
        .world
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", &format!("{}/base/", collector.url()))
        .env("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20t0ken")
        .env("OTEL_SERVICE_NAME", "desk-broker");
    let mut host = scene.plain_host();
    host.ask("tools/list", "{}").result();
    assert!(is_done(&host.call("look", &json!({})), "look"));
    assert!(host.close().success());
    let spans = collector.spans();
    for name in ["initialize", "tools/list", "tools/call runtime_bootstrap", "tools/call look"] {
        let span = spans.iter().find(|span| span.name == name && span.kind == SERVER);
        let span = span.unwrap_or_else(|| panic!("no {name}: {spans:#?}"));
        assert_eq!((span.parent.as_str(), span.flags), ("", 0x101), "a trace of our own: {span:#?}");
        assert_eq!(span.resource["service.name"], "desk-broker");
    }
    let post = &collector.posts()[0];
    assert_eq!(post.line, "POST /base/v1/traces HTTP/1.1");
    assert_eq!(post.headers["authorization"], "Bearer t0ken");
}

#[test]
fn a_sample_of_zero_percent_exports_nothing() {
    let collector = Collector::start();
    let scene = Scene::new("", &[&telemetry(&collector.url(), "sample_percent = 0")]);
    let mut host = scene.plain_host();
    assert!(is_done(&host.call("look", &json!({})), "look"));
    assert!(is_done(&call(&mut host, "look", &json!({}), &parent(1)), "look"));
    assert!(host.close().success());
    let spans = collector.spans();
    assert!(!spans.is_empty() && spans.iter().all(|span| span.trace == trace(1)), "{spans:#?}");
}

#[test]
fn an_unavailable_collector_delays_no_call_and_no_shutdown() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let away = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for address in [silent.local_addr().unwrap(), away] {
        let scene = Scene::new("", &[&telemetry(&format!("http://{address}"), "")]);
        let mut host = scene.plain_host();
        for _ in 0..50 {
            assert!(is_done(&host.call("look", &json!({})), "look"));
        }
        assert!(host.close().success());
        scene.desk.gone();
        assert_eq!(scene.desk.calls("look").len(), 50);
    }
}

#[test]
fn rejected_spans_are_counted_and_retryable_ones_are_sent_again() {
    let collector = Collector::start();
    collector.answer(400);
    let scene = Scene::new("", &[&telemetry(&collector.url(), "")]);
    let (mcp, operate) = (token(&scene.world, "owner", "mcp"), token(&scene.world, "owner", "operate"));
    let served = Served::start(&scene.world);
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let initialize = || {
        let bearer = format!("Bearer {mcp}");
        let headers = [("authorization", bearer.as_str()), ("accept", "application/json, text/event-stream")];
        assert_eq!(begin(&served.host, "POST /mcp", &headers, Some(&initialize)).whole().status, 200);
    };
    let count = |result: &str| {
        let page = Exposition::read(&served.get("/metrics", &operate).body);
        page.get("embody_spans_total", &[("result", result)])
    };
    initialize();
    until("a refusal", || count("failed") == 1.0);
    assert_eq!((collector.posts().len(), count("exported")), (1, 0.0), "it was not tried again");
    collector.answer(503);
    initialize();
    until("an attempt", || collector.posts().len() == 2);
    collector.answer(200);
    until("another", || count("exported") == 1.0);
    assert_eq!(count("failed"), 1.0);
    let spans = collector.spans();
    assert_eq!((spans.len(), spans[0].name.as_str(), spans[0].kind), (1, "initialize", SERVER));
    // Over HTTP the transport is another.
    says(&spans[0], &[("network.transport", "tcp"), ("network.protocol.name", "http")]);
}
