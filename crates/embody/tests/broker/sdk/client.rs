//! An official SDK client as a process: `client.mjs` and `client.py` connect and run the steps that they are given.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::super::host::SOON;
use super::Endpoint;
use crate::peers::{package, program};

/// The SDK, and how it negotiates the protocol version. Each validates structured results against the tool's
/// `outputSchema`; generation 1 of the TypeScript SDK validates those of errors too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sdk {
    /// `@modelcontextprotocol/sdk`: the session era.
    TypeScript1,
    /// `@modelcontextprotocol/client`: probes for the stateless era. Over stdio the probe runs in a process of its own.
    TypeScript2,
    /// `mcp`, restricted to the session era.
    PythonLegacy,
    /// `mcp`: probes for the stateless era.
    Python,
}

impl Sdk {
    /// What it negotiates with a server of both eras.
    pub(super) fn version(self) -> &'static str {
        match self {
            Self::TypeScript1 | Self::PythonLegacy => "2025-11-25",
            Self::TypeScript2 | Self::Python => "2026-07-28",
        }
    }

    fn command(self, mut plan: Value) -> Command {
        let script = |name: &str| -> PathBuf {
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/broker/sdk").join(name)
        };
        plan["era"] = if self.version() == "2025-11-25" { "legacy" } else { "auto" }.into();
        match self {
            Self::TypeScript1 | Self::TypeScript2 => {
                plan["generation"] = if self == Self::TypeScript1 { 1 } else { 2 }.into();
                let mut command = Command::new(program("node"));
                command.arg(script("client.mjs")).arg(package("sdk-typescript")).arg(plan.to_string());
                command
            }
            Self::PythonLegacy | Self::Python => {
                let mut command = Command::new(program("python"));
                command.arg(script("client.py")).arg(plan.to_string());
                command
            }
        }
    }
}

/// A client with a connection.
pub(super) struct Client {
    process: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    errors: Arc<Mutex<String>>,
    /// The negotiated `version` and the server's `instructions`.
    pub(super) connected: Value,
}

/// What a step returned, the messages of the forms that were shown meanwhile, and how long it took.
pub(super) struct Step {
    pub(super) returned: Value,
    pub(super) forms: Vec<String>,
    pub(super) elapsed: Duration,
}

impl Client {
    /// `forms`: whether the client declares elicitation. It cancels every form until [`Client::answer`] says otherwise.
    pub(super) fn connect(sdk: Sdk, endpoint: &Endpoint<'_>, forms: bool) -> Self {
        let mut plan = endpoint.plan();
        plan["forms"] = forms.into();
        let mut command = sdk.command(plan);
        command.env_clear().env("HOME", endpoint.home()).env("PATH", "/usr/bin:/bin").process_group(0);
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        let errors = Arc::<Mutex<String>>::default();
        let (mut stream, kept) = (process.stderr.take().unwrap(), Arc::clone(&errors));
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = stream.read(&mut bytes) {
                kept.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
        });
        let input = process.stdin.take();
        let mut client = Self { process, input, lines, errors, connected: Value::Null };
        client.connected = client.read("the connection").returned;
        client
    }

    /// The tools, as the client returns them. From here on it validates results.
    pub(super) fn list(&mut self) -> Vec<Value> {
        let step = self.step(&json!({"list": true}));
        step.returned.as_array().unwrap().clone()
    }

    /// The result of one call, which the client must not throw.
    pub(super) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.calls(vec![(tool, arguments)]).remove(0)
    }

    /// The results of calls that are made at once, none of which the client may throw.
    pub(super) fn calls(&mut self, calls: Vec<(&str, Value)>) -> Vec<Value> {
        self.timed_calls(calls).returned.as_array().unwrap().clone()
    }

    /// The same, with what else the step came to.
    pub(super) fn timed_calls(&mut self, calls: Vec<(&str, Value)>) -> Step {
        let plan: Vec<Value> =
            calls.iter().map(|(name, arguments)| json!({"name": name, "arguments": arguments})).collect();
        let mut step = self.step(&json!({"calls": plan}));
        for (call, outcome) in plan.iter().zip(step.returned.as_array_mut().unwrap()) {
            assert!(outcome["threw"].is_null(), "{call}: the client threw {}", outcome["threw"]);
            *outcome = outcome["returned"].take();
        }
        step
    }

    /// How forms are answered from now on, and after how long.
    pub(super) fn answer(&mut self, action: &str, after: Duration) {
        let after = u64::try_from(after.as_millis()).unwrap();
        self.step(&json!({"answer": {"action": action, "after_ms": after}}));
    }

    fn step(&mut self, step: &Value) -> Step {
        let written = self.input.as_mut().unwrap().write_all(format!("{step}\n").as_bytes());
        assert!(written.is_ok(), "{step}: {}", self.errors.lock().unwrap());
        self.read(&step.to_string())
    }

    fn read(&self, what: &str) -> Step {
        let line = self.lines.recv_timeout(2 * SOON);
        let line = line.unwrap_or_else(|error| panic!("{what}: {error}: {}", self.errors.lock().unwrap()));
        let mut read: Value = serde_json::from_str(&line).unwrap();
        assert!(read["threw"].is_null(), "{what}: the client threw {}", read["threw"]);
        Step {
            returned: read["returned"].take(),
            forms: serde_json::from_value(read["forms"].take()).unwrap(),
            elapsed: Duration::from_millis(read["ms"].as_u64().unwrap()),
        }
    }

    /// Disconnects, and returns what the client and its server wrote to stderr.
    pub(super) fn close(mut self) -> String {
        self.end();
        assert!(self.process.try_wait().unwrap().is_some_and(|status| status.success()));
        self.errors.lock().unwrap().clone()
    }

    fn end(&mut self) {
        drop(self.input.take());
        let deadline = Instant::now() + Duration::from_secs(20);
        while Instant::now() < deadline && matches!(self.process.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.end();
        }
        // Not the client alone: it has started the server.
        let group = format!("-{}", self.process.id());
        let _ = Command::new("kill").args(["-s", "KILL", "--", &group]).stderr(Stdio::null()).status();
        let _ = self.process.wait();
    }
}
