//! A host on a pipe: starts the process and exchanges lines with it.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::hello;

/// Long enough for anything that happens at all.
pub(super) const SOON: Duration = Duration::from_secs(30);

pub(super) struct Host {
    pub(super) process: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    last_id: u64,
    /// What came besides answers.
    pub(super) notices: Vec<Value>,
}

impl Host {
    /// Starts the process without greeting it.
    pub(super) fn start(mut command: Command) -> Self {
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { input: process.stdin.take(), process, lines, last_id: 0, notices: Vec::new() }
    }

    /// Starts the process and opens a session.
    pub(super) fn initialize(command: Command) -> Self {
        let mut host = Self::start(command);
        assert_eq!(host.request("initialize", hello())["result"]["protocolVersion"], "2025-11-25");
        host.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        host
    }

    pub(super) fn send(&mut self, message: &Value) {
        self.input.as_mut().unwrap().write_all(format!("{message}\n").as_bytes()).unwrap();
    }

    /// Everything on stdout is protocol, one message a line.
    pub(super) fn receive(&mut self) -> Value {
        let line = self.lines.recv_timeout(SOON).expect("the mind said nothing");
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("not a message: {line}"))
    }

    /// The whole answer to a request.
    pub(super) fn request(&mut self, method: &str, params: Value) -> Value {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let message = self.receive();
            if message["id"] == id {
                return message;
            }
            self.notices.push(message);
        }
    }

    /// The result of a tool.
    pub(super) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.request("tools/call", json!({"name": tool, "arguments": arguments}))["result"].take()
    }

    /// The structured result of a tool that succeeds; its text is the same as JSON.
    pub(super) fn data(&mut self, tool: &str, arguments: Value) -> Value {
        let mut result = self.call(tool, arguments);
        assert_eq!(result["isError"], false, "{result}");
        let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(text, result["structuredContent"]);
        result["structuredContent"].take()
    }

    /// Closes its end, and waits for the process to end by itself.
    pub(super) fn close(mut self) -> ExitStatus {
        drop(self.input.take());
        self.wait()
    }

    pub(super) fn wait(&mut self) -> ExitStatus {
        let began = Instant::now();
        loop {
            if let Some(status) = self.process.try_wait().unwrap() {
                return status;
            }
            assert!(began.elapsed() < SOON, "it does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(super) fn stderr_text(&mut self) -> String {
        let mut text = String::new();
        self.process.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        text
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
