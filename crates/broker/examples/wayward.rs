//! A server over standard input and output that goes astray in the way that its first argument says. Other arguments only
//! mark the process, so that a test can find it.

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
        // Its child does not go when it is asked to, and it does not wait for it.
        "stubborn" => {
            let marks: Vec<String> = std::env::args().skip(2).collect();
            let script = "trap '' TERM; while :; do sleep 1; done";
            let _ = Command::new("sh").args(["-c", script, "sh"]).args(marks).spawn();
        }
        _ => {}
    }
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        let (Some(id), Some(method)) = (message.get("id"), message.get("method").and_then(Value::as_str))
        else {
            continue;
        };
        match (way.as_str(), method) {
            ("deaf", _) => {}
            ("crash", "tools/call") => {
                eprintln!("going down");
                exit(3);
            }
            _ => answer(id, method),
        }
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
    let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
    let mut out = std::io::stdout().lock();
    // Nobody reads any more: then there is nobody to tell.
    let _ = writeln!(out, "{answer}").and_then(|()| out.flush());
}
