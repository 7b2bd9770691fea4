//! A host on a pipe: asks, and reads answers. What comes besides them it passes over.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

pub(super) struct Host {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    last: u64,
}

#[derive(Deserialize)]
struct Message {
    id: Option<u64>,
    method: Option<String>,
    result: Option<Box<RawValue>>,
}

impl Host {
    /// Starts `embody mcp` in this workspace, and opens a session.
    pub(super) fn start(workspace: &Path) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_embody"))
            .args(["--log", "error", "mcp", "--workspace"])
            .arg(workspace)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        let mut host = Self { process, input, output: BufReader::new(output), last: 0 };
        let client = json!({"name": "bench", "version": "1"});
        host.ask(
            "initialize",
            &json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}),
        );
        host.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        host
    }

    /// The result of a request, as text.
    pub(super) fn ask(&mut self, method: &str, params: &Value) -> String {
        self.last += 1;
        self.write(&json!({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}));
        let mut line = String::new();
        loop {
            line.clear();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the broker is gone");
            let message: Message = serde_json::from_str(&line).unwrap();
            if message.id == Some(self.last) && message.method.is_none() {
                return message.result.unwrap_or_else(|| panic!("{method}: {line}")).get().to_owned();
            }
        }
    }

    /// The result of a tool, as text.
    pub(super) fn call(&mut self, tool: &str, arguments: &Value) -> String {
        self.ask("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    fn write(&mut self, message: &Value) {
        self.input.write_all(format!("{message}\n").as_bytes()).unwrap();
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
