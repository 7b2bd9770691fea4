//! Servers that do with tasks what they should not, written with plain sockets. They tell of nothing that is listened to.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::super::conformance::READS;
use super::super::setup::remote_body;
use super::{Backend, Scene, TASKS, can};

/// What such a server does when it is asked how its task is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Behaviour {
    /// Nothing.
    Hangs,
    /// It asks something itself.
    Asks,
}

/// A server with one tool, whose calls become tasks.
struct HostileServer {
    body: String,
    /// Whether a client waits for the state of its task.
    is_waited_for: Arc<AtomicBool>,
}

impl HostileServer {
    fn start(way: Behaviour) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let is_waited_for = Arc::<AtomicBool>::default();
        let waits = Arc::clone(&is_waited_for);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let waits = Arc::clone(&waits);
                std::thread::spawn(move || answer(stream, way, &waits));
            }
        });
        Self { body: remote_body("sly", &url, "users = \"all\""), is_waited_for }
    }
}

fn answer(mut stream: TcpStream, way: Behaviour, is_waited_for: &AtomicBool) {
    let message = read(&stream).unwrap_or_default();
    let task = json!({
        "taskId": "1",
        "status": "working",
        "createdAt": "2026-01-01T00:00:00Z",
        "lastUpdatedAt": "2026-01-01T00:00:00Z",
        "ttlMs": 60_000,
        "pollIntervalMs": 1_000,
    });
    let result = match message["method"].as_str().unwrap_or_default() {
        "server/discover" => json!({
            "resultType": "complete",
            "supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {}, "extensions": {TASKS: {}}},
        }),
        "tools/list" => {
            json!({"resultType": "complete", "tools": [{"name": "begin", "inputSchema": {"type": "object"}}]})
        }
        "tools/call" => {
            let mut begun = task.clone();
            begun["resultType"] = "task".into();
            let reported = [
                json!({"jsonrpc": "2.0", "method": "notifications/tasks", "params": task}),
                json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": {}}),
                json!({"jsonrpc": "2.0", "id": message["id"], "result": begun}),
            ];
            let events = reported.map(|one| format!("event: message\ndata: {one}\n\n")).concat();
            return respond(&mut stream, "200 OK", "text/event-stream", &events);
        }
        "tasks/get" if way == Behaviour::Hangs => {
            is_waited_for.store(true, Ordering::SeqCst);
            let _ = stream.read(&mut [0]);
            return is_waited_for.store(false, Ordering::SeqCst);
        }
        "tasks/get" => {
            let params =
                json!({"message": "Approve?", "requestedSchema": {"type": "object", "properties": {}}});
            let asks = json!({"approval": {"method": "elicitation/create", "params": params}});
            json!({"resultType": "input_required", "inputRequests": asks, "requestState": "s"})
        }
        _ => return respond(&mut stream, "404 Not Found", "text/plain", "not here"),
    };
    let response = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    respond(&mut stream, "200 OK", "application/json", &response.to_string());
}

fn read(stream: &TcpStream) -> Option<Value> {
    let mut lines = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        lines.read_line(&mut line).ok()?;
        let line = line.trim_end().to_lowercase();
        match line.strip_prefix("content-length:") {
            Some(said) => length = said.trim().parse().ok()?,
            None if line.is_empty() => break,
            None => {}
        }
    }
    let mut body = vec![0; length];
    lines.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}

fn respond(stream: &mut TcpStream, status: &str, kind: &str, body: &str) {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    );
    let _ = stream.write_all(format!("{head}{body}").as_bytes());
}

#[test]
fn a_slow_server_delays_only_its_own_tasks() {
    let hostile_server = HostileServer::start(Behaviour::Hangs);
    let scene = Scene::new(Backend::Process, &[READS, &hostile_server.body]);
    let ann = scene.user("ann");
    let (slow, quick) = (ann.task("begin", &json!({})), ann.task("slow_compute", &json!({"seconds": 60})));
    let wanted = json!({"notifications": {"taskIds": [slow, quick]}});
    let mut listening = ann.begin("subscriptions/listen", &wanted, &can(json!({"elicitation": {}})));
    assert_eq!(listening.message().unwrap()["params"]["notifications"], wanted["notifications"]);
    let received = listening.message().unwrap();
    assert_eq!(received["params"]["taskId"], quick, "{received}");
    ann.about("tasks/cancel", &json!({"taskId": quick}));
    let received = listening.message().unwrap();
    assert_eq!(received["params"]["status"], "cancelled", "{received}");
    assert!(hostile_server.is_waited_for.load(Ordering::SeqCst), "it was not given up before");
}

// spec: N-10
#[test]
fn a_task_cannot_send_requests_or_notifications_outside_of_it() {
    let hostile_server = HostileServer::start(Behaviour::Asks);
    let scene = Scene::new(Backend::Process, &[READS, &hostile_server.body]);
    let ann = scene.user("ann");
    let able = can(json!({"elicitation": {}}));
    let mut reading = ann.begin("tools/call", &json!({"name": "begin", "arguments": {}}), &able);
    let mut messages = Vec::new();
    if reading.is_events() {
        while let Some(message) = reading.message() {
            messages.push(message);
        }
    } else {
        messages.push(reading.whole().json());
    }
    let [begun] = &messages[..] else { panic!("{messages:?}") };
    assert_eq!(begun["result"]["resultType"], "task", "{begun}");
    let answer = ann.get(begun["result"]["taskId"].as_str().unwrap());
    assert_eq!(answer["error"]["code"], -32603, "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains("returned no status"), "{answer}");
}
