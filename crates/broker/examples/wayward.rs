//! A server on standard input and output that misbehaves as its first argument says. Other arguments only mark the process,
//! so that a test can find it.

use std::io::{BufRead, Write};
use std::process::{Command, exit};
use std::time::Duration;

use serde_json::{Value, json};

fn main() {
    let way = std::env::args().nth(1).unwrap_or_default();
    match way.as_str() {
        "noisy" => {
            let line = "x".repeat(5000);
            (0..4000).for_each(|number| eprintln!("{number} {line}"));
            eprintln!("ready");
        }
        // Its child ignores the request to exit, and the server does not wait for it.
        "stubborn" => {
            let marks: Vec<String> = std::env::args().skip(2).collect();
            let script = "trap '' TERM; while :; do sleep 1; done";
            let _ = Command::new("sh").args(["-c", script, "sh"]).args(marks).spawn();
        }
        _ => {}
    }
    let mut has_listed = false;
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        let (Some(id), Some(method)) = (message.get("id"), message.get("method").and_then(Value::as_str))
        else {
            continue;
        };
        match (way.as_str(), method) {
            ("deaf", _) => {}
            // A stateless server that stops responding after it has listed its tools.
            ("hung", "initialize") => {
                write(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no"}}))
            }
            ("hung", _) if has_listed => {}
            ("hung", "server/discover") => {
                let found = json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}});
                write(&json!({"jsonrpc": "2.0", "id": id, "result": found}));
            }
            ("hung", "subscriptions/listen") => {}
            ("crash", "tools/call") => {
                eprintln!("going down");
                exit(3);
            }
            _ => answer(id, method),
        }
        has_listed |= method == "tools/list";
    }
    if way == "stubborn" {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

fn answer(id: &Value, method: &str) {
    let result = match method {
        "initialize" => json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "wayward", "version": "1"},
        }),
        "tools/list" => json!({"tools": [{"name": "stray", "inputSchema": {"type": "object"}}]}),
        "tools/call" => json!({"content": []}),
        _ => json!({}),
    };
    write(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
}

fn write(answer: &Value) {
    let mut out = std::io::stdout().lock();
    // The reader is gone.
    let _ = writeln!(out, "{answer}").and_then(|()| out.flush());
}
