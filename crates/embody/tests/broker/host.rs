//! A host on a pipe with raw JSON-RPC: what it sends and receives stays text, so that every byte can be
//! compared. It answers what is asked of it by a script.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Long enough for anything that happens at all.
pub(super) const SOON: Duration = Duration::from_secs(60);

pub(super) struct Host {
    pub(super) process: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    stderr_text: Arc<Mutex<String>>,
    last_id: u64,
    answers: HashMap<u64, Answer>,
    script: Script,
    /// Notifications, in the order in which they came.
    pub(super) notices: Vec<ReceivedMessages>,
    /// What was asked of this host, in the order in which it came.
    pub(super) questions: Vec<ReceivedMessages>,
}

/// What this host answers to a method and its params.
type Script = Box<dyn FnMut(&str, &Value) -> Reply>;

/// How a question is answered.
#[derive(Debug, Clone)]
pub(super) enum Reply {
    Result(Value),
    Error(i32, &'static str),
    /// Not now: [`Host::reply`] may do it later.
    Silence,
}

/// A notification or a question.
#[derive(Debug, Clone)]
pub(super) struct ReceivedMessages {
    pub(super) method: String,
    /// As text; empty without any.
    pub(super) params: String,
    /// Of a question, as text.
    pub(super) id: Option<String>,
}

impl ReceivedMessages {
    pub(super) fn data(&self) -> Value {
        serde_json::from_str(&self.params).unwrap_or_default()
    }
}

/// What a request came to, as the text that it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    Result(String),
    Error(String),
}

impl Answer {
    /// The result, which it must be.
    pub(super) fn result(&self) -> Value {
        match self {
            Self::Result(text) => serde_json::from_str(text).unwrap(),
            Self::Error(text) => panic!("an error: {text}"),
        }
    }

    /// The error, which it must be.
    pub(super) fn error(&self) -> Value {
        match self {
            Self::Error(text) => serde_json::from_str(text).unwrap(),
            Self::Result(text) => panic!("a result: {text}"),
        }
    }
}

#[derive(Deserialize)]
struct Message {
    jsonrpc: String,
    id: Option<Box<RawValue>>,
    method: Option<String>,
    params: Option<Box<RawValue>>,
    result: Option<Box<RawValue>>,
    error: Option<Box<RawValue>>,
}

impl Host {
    /// Starts the process without greeting it. Nothing that it asks can be done.
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
        let stderr_text = Arc::<Mutex<String>>::default();
        let mut errors = process.stderr.take().unwrap();
        let received = Arc::clone(&stderr_text);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = errors.read(&mut bytes) {
                received.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
        });
        Self {
            input: process.stdin.take(),
            process,
            lines,
            stderr_text,
            last_id: 0,
            answers: HashMap::new(),
            script: Box::new(|_, _| Reply::Error(-32601, "no such method")),
            notices: Vec::new(),
            questions: Vec::new(),
        }
    }

    /// The same host with another script.
    pub(super) fn answering(mut self, script: impl FnMut(&str, &Value) -> Reply + 'static) -> Self {
        self.script = Box::new(script);
        self
    }

    /// Opens a session; returns the result of `initialize`.
    pub(super) fn initialize(&mut self, capabilities: &Value) -> Value {
        let hello = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": capabilities,
            "clientInfo": {"name": "test", "version": "1"},
        });
        let greeting = self.ask("initialize", &hello.to_string()).result();
        assert_eq!(greeting["protocolVersion"], "2025-11-25", "{greeting}");
        self.write(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        greeting
    }

    /// Writes a line.
    pub(super) fn write(&mut self, line: &str) {
        let written = self.input.as_mut().unwrap().write_all(format!("{line}\n").as_bytes());
        assert!(written.is_ok(), "nobody reads: {}", self.stderr_text());
    }

    /// Writes several requests at once, whose ids go up to `last_id`.
    pub(super) fn write_all(&mut self, last_id: u64, lines: &str) {
        self.last_id = last_id;
        self.write(lines);
    }

    pub(super) fn notify(&mut self, method: &str, params: &Value) {
        self.write(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string());
    }

    /// Sends a request and returns its id.
    pub(super) fn begin(&mut self, method: &str, params: &str) -> u64 {
        self.last_id += 1;
        let (id, method) = (self.last_id, Value::from(method));
        self.write(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{method},"params":{params}}}"#));
        id
    }

    /// Sends a tool call and returns its id.
    pub(super) fn begin_call(&mut self, tool: &str, arguments: &Value) -> u64 {
        self.begin("tools/call", &json!({"name": tool, "arguments": arguments}).to_string())
    }

    /// The response to a request. Handles messages that arrive in between.
    pub(super) fn answer(&mut self, id: u64) -> Answer {
        self.until(&format!("the answer to request {id}"), |host| host.answers.contains_key(&id));
        self.answers.remove(&id).unwrap()
    }

    /// Whether the answer to a request is there already.
    pub(super) fn has_answer(&self, id: u64) -> bool {
        self.answers.contains_key(&id)
    }

    /// Whether an unread response is there.
    pub(super) fn has_any_answer(&self) -> bool {
        !self.answers.is_empty()
    }

    /// Sends a request and returns its response.
    pub(super) fn ask(&mut self, method: &str, params: &str) -> Answer {
        let id = self.begin(method, params);
        self.answer(id)
    }

    /// The result of a tool.
    pub(super) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let id = self.begin_call(tool, arguments);
        self.answer(id).result()
    }

    /// Answers a question that was left open.
    pub(super) fn reply(&mut self, question: &ReceivedMessages, reply: &Reply) {
        let id = question.id.as_deref().unwrap();
        match reply {
            Reply::Result(result) => {
                self.write(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#));
            }
            Reply::Error(code, message) => {
                let error = json!({"code": code, "message": message});
                self.write(&format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#));
            }
            Reply::Silence => {}
        }
    }

    /// Hears what comes until something is so.
    pub(super) fn until(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + SOON;
        while !is_so(self) {
            if let Err(error) = self.receive(deadline.saturating_duration_since(Instant::now())) {
                panic!(
                    "waiting for {what}: {error}\nnotices: {:#?}\nquestions: {:#?}\nstderr: {}",
                    self.notices,
                    self.questions,
                    self.stderr_text()
                );
            }
        }
    }

    /// Receives one message, if one arrives in that time.
    pub(super) fn receive(&mut self, limit: Duration) -> Result<(), RecvTimeoutError> {
        let line = self.lines.recv_timeout(limit)?;
        let message: Message =
            serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: not a message: {line}"));
        assert_eq!(message.jsonrpc, "2.0", "{line}");
        let id = message.id.as_deref().map(|id| id.get().to_owned());
        match (id, message.method) {
            (id, Some(method)) => {
                let params = message.params.map(|params| params.get().to_owned()).unwrap_or_default();
                let received = ReceivedMessages { method, params, id };
                if received.id.is_none() {
                    self.notices.push(received);
                } else {
                    let reply = (self.script)(&received.method, &received.data());
                    self.reply(&received, &reply);
                    self.questions.push(received);
                }
            }
            (Some(id), None) => {
                let answer = match (message.result, message.error) {
                    (Some(result), None) => Answer::Result(result.get().to_owned()),
                    (None, Some(error)) => Answer::Error(error.get().to_owned()),
                    _ => panic!("neither a result nor an error: {line}"),
                };
                let id: u64 = id.parse().unwrap_or_else(|_| panic!("an id that nobody used: {line}"));
                assert!(id <= self.last_id, "an id that nobody used: {line}");
                assert!(self.answers.insert(id, answer).is_none(), "answered twice: {line}");
            }
            (None, None) => panic!("not a message: {line}"),
        }
        Ok(())
    }

    /// Closes its end, and waits for the process to end by itself.
    pub(super) fn close(mut self) -> ExitStatus {
        drop(self.input.take());
        let deadline = Instant::now() + SOON;
        loop {
            if let Some(status) = self.process.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "it does not end: {}", self.stderr_text());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// `kill -9`.
    pub(super) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Its stderr so far.
    pub(super) fn stderr_text(&self) -> String {
        self.stderr_text.lock().unwrap().clone()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // Closed first: child processes end with the process only if it can shut down.
        drop(self.input.take());
        let deadline = Instant::now() + Duration::from_secs(5);
        while Instant::now() < deadline && matches!(self.process.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What a form of the broker is open for at least before an answer to it can be a person's.
pub(super) const READING_TIME: Duration = Duration::from_millis(510);

/// A person who approves in the form, or a host that answers otherwise at once.
pub(super) fn elicited(action: &str) -> Reply {
    match action {
        "accept" => {
            std::thread::sleep(READING_TIME);
            Reply::Result(json!({"action": "accept", "content": {}}))
        }
        _ => Reply::Result(json!({"action": action})),
    }
}
