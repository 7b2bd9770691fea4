//! `/metrics`: every line can be read, and the numbers move with real calls.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::super::host::SOON;
use super::super::setup::{Scene, decision};
use super::exposition::Exposition;
use crate::peers::Listening;
use crate::support::served::{Served, begin, token};

const PATIENT: &str = "[policy]\nask_wait_s = 0\n";

/// A host with a session, over HTTP.
struct Client<'a> {
    host: &'a str,
    token: String,
    session: String,
    last_id: u64,
}

impl<'a> Client<'a> {
    fn initialize(host: &'a str, token: String) -> Self {
        let mut guest = Self { host, token, session: String::new(), last_id: 0 };
        let hello = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        });
        guest.ask("initialize", &hello);
        guest
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.last_id += 1;
        let body = json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params});
        let bearer = format!("Bearer {}", self.token);
        let mut headers =
            vec![("authorization", bearer.as_str()), ("accept", "application/json, text/event-stream")];
        if !self.session.is_empty() {
            headers.push(("mcp-session-id", &self.session));
            headers.push(("mcp-protocol-version", "2025-11-25"));
        }
        let answer = begin(self.host, "POST /mcp", &headers, Some(&body)).whole();
        assert_eq!(answer.status, 200, "{answer:?}");
        if let Some(session) = answer.header("mcp-session-id") {
            session.clone_into(&mut self.session);
        }
        let lines = answer.body.lines().map(|line| line.strip_prefix("data:").unwrap_or(line).trim());
        let mut messages = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let is_it = |message: &Value| message["id"] == self.last_id && message.get("method").is_none();
        messages.find(is_it).unwrap_or_else(|| panic!("no answer: {answer:?}"))
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let mut answer = self.ask("tools/call", &json!({"name": tool, "arguments": arguments}));
        answer["result"].take()
    }
}

fn scrape(host: &str, token: &str) -> Exposition {
    let bearer = format!("Bearer {token}");
    let answer = begin(host, "GET /metrics", &[("authorization", &bearer)], None).whole();
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    Exposition::read(&answer.body)
}

fn until(host: &str, token: &str, what: &str, is_so: impl Fn(&Exposition) -> bool) -> Exposition {
    let deadline = Instant::now() + SOON;
    loop {
        let page = scrape(host, token);
        if is_so(&page) {
            return page;
        }
        assert!(Instant::now() < deadline, "waiting for {what}: {page:#?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn ended(page: &Exposition, class: &str, outcome: &str) -> f64 {
    page.get("embody_calls_total", &[("body", "desk"), ("class", class), ("outcome", outcome)])
}

fn decided(page: &Exposition, class: &str, decision: &str) -> f64 {
    page.get("embody_decisions_total", &[("body", "desk"), ("class", class), ("decision", decision)])
}

#[test]
fn metrics_count_calls() {
    let scene = Scene::new("", &[PATIENT]);
    let (mcp, operate) = (token(&scene.world, "owner", "mcp"), token(&scene.world, "owner", "operate"));
    let served = Served::start(&scene.world);
    let before = scrape(&served.host, &operate);
    assert_eq!(before.get("embody_sessions", &[("era", "session")]), 0.0);
    assert_eq!(before.get("embody_spans_total", &[("result", "exported")]), 0.0);
    let mut guest = Client::initialize(&served.host, mcp);
    for _ in 0..3 {
        assert_ne!(guest.call("look", &json!({"text": "hunter2"}))["isError"], true);
    }
    assert_eq!(decision(&guest.call("note", &json!({}))), "bounce");
    assert_ne!(guest.call("note", &json!({}))["isError"], true, "the bounce has delivered the contract");
    assert_eq!(decision(&guest.call("send_note", &json!({}))), "pending");
    guest.call("look", &json!({"trick": "fail"}));
    guest.call("look", &json!({"trick": "error"}));
    guest.call("no_such_tool", &json!({}));
    guest.call("runtime_status", &json!({}));
    let page = scrape(&served.host, &operate);
    assert_eq!([ended(&page, "read", "done"), ended(&page, "read", "failed")], [3.0, 2.0]);
    assert_eq!([ended(&page, "write", "done"), ended(&page, "write", "refused")], [1.0, 1.0]);
    assert_eq!(ended(&page, "human_visible_write", "refused"), 1.0);
    assert_eq!([decided(&page, "read", "permit"), decided(&page, "write", "permit")], [5.0, 1.0]);
    assert_eq!([decided(&page, "write", "bounce"), decided(&page, "write", "deny")], [1.0, 0.0]);
    assert_eq!(decided(&page, "human_visible_write", "pending"), 1.0);
    assert_eq!(page.sum("embody_calls_total"), 8.0, "nothing is counted twice");
    assert_eq!(page.sum("embody_decisions_total"), 8.0);
    assert_eq!(page.get("embody_call_upstream_seconds_count", &[("body", "desk")]), 6.0);
    assert_eq!(page.get("embody_call_overhead_seconds_count", &[("body", "desk")]), 8.0);
    assert_eq!(page.get("embody_approvals_total", &[("answer", "pending")]), 1.0);
    assert_eq!(page.get("embody_approval_wait_seconds_count", &[]), 1.0);
    assert_eq!(page.get("embody_approvals_waiting", &[]), 0.0);
    assert_eq!(page.get("embody_calls_rejected_total", &[]), 1.0);
    assert_eq!(page.get("embody_own_calls_total", &[("tool", "runtime_status")]), 1.0);
    assert_eq!(page.get("embody_requests_total", &[("method", "tools/call")]), 10.0);
    assert_eq!(page.get("embody_sessions", &[("era", "session")]), 1.0);
    assert_eq!(page.get("embody_sessions_total", &[("era", "session")]), 1.0);
    assert_eq!(page.get("embody_bootstraps_total", &[("result", "done")]), 1.0);
    assert_eq!(page.get("embody_upstreams", &[("body", "desk"), ("state", "connected")]), 1.0);
    assert_eq!(page.get("embody_upstream_restarts_total", &[("body", "desk")]), 0.0);
    assert_eq!(page.get("embody_degraded_sessions", &[("reason", "body_unavailable")]), 0.0);
    assert_eq!(page.get("embody_audit_failures_total", &[]), 0.0);
    assert!(page.get("embody_audit_queue", &[]) <= page.get("embody_audit_queue_limit", &[]));
    assert!(page.get("process_resident_memory_bytes", &[]) > 1e6);
    assert!(page.get("process_open_fds", &[]) > 3.0);
    // Delivered observations leave the outbox.
    until(&served.host, &operate, "the outbox", |page| page.get("embody_outbox_observations", &[]) == 0.0);
    // A server that comes back is counted.
    guest.call("look", &json!({"trick": "crash"}));
    let page = until(&served.host, &operate, "a restart", |page| {
        page.get("embody_upstream_restarts_total", &[("body", "desk")]) == 1.0
    });
    assert_eq!(ended(&page, "read", "unknown"), 1.0);
    assert_labels(&page);
}

/// Labels are of closed sets, or names that the operator gave.
fn assert_labels(page: &Exposition) {
    let known = [
        "answer", "body", "class", "decision", "end", "era", "le", "method", "outcome", "reason", "result",
        "state", "tool", "version",
    ];
    assert!(page.labels().iter().all(|label| known.contains(&label.as_str())), "{:?}", page.labels());
    assert_eq!(page.values("body").into_iter().collect::<Vec<_>>(), ["desk", "embody", "mind"]);
    let tools = ["body_tool", "find_tools", "reflect_user_message", "runtime_bootstrap", "runtime_status"];
    assert_eq!(page.values("tool").into_iter().collect::<Vec<_>>(), tools);
}

#[test]
fn a_standalone_broker_serves_metrics_to_operators() {
    let scene = Scene::new("", &[]);
    let [mcp, operate] = ["mcp", "operate"].map(|scope| token(&scene.world, "owner", scope));
    let mut command = scene.world.command();
    let words = ["--log", "error", "mcp", "--listen", "127.0.0.1:0"];
    command.arg("--workspace").arg(scene.world.workspace()).args(words);
    let server = Listening::start(&mut command);
    let host = server.url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
    let get = |headers: &[(&str, &str)]| begin(host, "GET /metrics", headers, None).whole();
    let refused = get(&[]).refused(401, "a token is required");
    assert!(refused.body.contains("`embody token add --user NAME --scope operate`"), "{}", refused.body);
    get(&[("authorization", "Bearer nobody's")]).refused(401, "the token is unknown");
    get(&[("authorization", &format!("Bearer {mcp}"))]).refused(403, "this token has the scope `mcp`");
    let bearer = format!("Bearer {operate}");
    get(&[("authorization", &bearer), ("host", "evil.example")]).refused(403, "");
    let mut guest = Client::initialize(host, mcp);
    guest.call("look", &json!({}));
    let page = scrape(host, &operate);
    assert_eq!(ended(&page, "read", "done"), 1.0);
    assert_eq!(page.get("embody_sessions", &[("era", "session")]), 1.0);
}
