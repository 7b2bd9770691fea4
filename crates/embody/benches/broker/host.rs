//! The host, the same for everybody: raw JSON-RPC of the session era, over stdio or streamable HTTP. It does as little as one
//! can, so that what is measured is whoever answers.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use serde_json::{Value, json};

use crate::http;

/// Calls on their way at any time, where there are many.
pub(crate) const AT_ONCE: usize = 32;
/// The longest that anybody takes to start or to answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Where a server is reached over HTTP.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    pub(crate) port: u16,
    pub(crate) path: &'static str,
    pub(crate) token: Option<String>,
}

/// A connection to a server that has been greeted.
pub(crate) struct Host {
    way: Way,
    last: u64,
    /// When it was answered for the first time, and when it had shown its tools.
    pub(crate) greeted: Instant,
    pub(crate) listed: Instant,
    pub(crate) tools: Vec<String>,
}

enum Way {
    Stdio { input: ChildStdin, output: BufReader<ChildStdout> },
    Http { address: Address, session: Option<String>, connections: Vec<Connection> },
}

/// A session that shares the connection of a [`Host`].
pub(crate) struct HttpSession {
    address: Address,
    id: Option<String>,
}

struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// A process that was started, and how to talk to it.
pub(crate) struct Started {
    pub(crate) process: Child,
    pub(crate) host: Host,
    pub(crate) began: Instant,
}

impl Started {
    /// Starts a server; without an address it talks over stdio.
    pub(crate) fn new(command: &mut Command, address: Option<Address>) -> Self {
        let quiet =
            || if std::env::var_os("BENCH_STDERR").is_some() { Stdio::inherit() } else { Stdio::null() };
        let began = Instant::now();
        command.stderr(quiet());
        let Some(address) = address else {
            let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            let (input, output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
            let host = Host::greet(Way::Stdio { input, output: BufReader::new(output) });
            return Self { process, host, began };
        };
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        let first = Connection::wait(address.port);
        let host = Host::greet(Way::Http { address, session: None, connections: vec![first] });
        Self { process, host, began }
    }

    /// Ends it, politely first.
    pub(crate) fn end(mut self) {
        let pid = rustix::process::Pid::from_child(&self.process);
        if matches!(self.host.way, Way::Http { .. }) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        drop(self.host);
        let until = Instant::now() + PATIENCE / 3;
        while self.process.try_wait().unwrap().is_none() {
            if Instant::now() > until {
                let _ = self.process.kill();
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Host {
    /// Opens another session on the same connection: a server closes idle connections beyond its limit.
    pub(crate) fn open_session(&mut self, address: Address) -> HttpSession {
        let mut session = HttpSession { address, id: None };
        self.switch(&mut session);
        self.initialize();
        self.switch(&mut session);
        session
    }

    /// Calls a tool in another session of this connection.
    pub(crate) fn call_in(&mut self, session: &mut HttpSession, tool: &str, arguments: &Value) {
        self.switch(session);
        self.call(tool, arguments);
        self.switch(session);
    }

    fn switch(&mut self, other: &mut HttpSession) {
        let Way::Http { address, session, .. } = &mut self.way else {
            panic!("sessions of stdio are processes")
        };
        std::mem::swap(address, &mut other.address);
        std::mem::swap(session, &mut other.id);
    }

    fn greet(way: Way) -> Self {
        let now = Instant::now();
        let mut host = Self { way, last: 0, greeted: now, listed: now, tools: Vec::new() };
        host.initialize();
        host
    }

    fn initialize(&mut self) {
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}});
        let answer = self.ask("initialize", &hello);
        assert!(answer.contains("\"result\""), "{answer}");
        self.greeted = Instant::now();
        self.notify(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        self.tools = self.list();
        self.listed = Instant::now();
    }

    /// The names of all tools.
    pub(crate) fn list(&mut self) -> Vec<String> {
        let (mut names, mut params) = (Vec::new(), json!({}));
        loop {
            let answer: Value = serde_json::from_str(&self.ask("tools/list", &params)).unwrap();
            let result = &answer["result"];
            names.extend(
                result["tools"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .filter_map(|tool| tool["name"].as_str())
                    .map(str::to_owned),
            );
            match result["nextCursor"].as_str() {
                Some(cursor) => params = json!({ "cursor": cursor }),
                None => return names,
            }
        }
    }

    /// What a tool of the server behind is called here.
    pub(crate) fn name(&self, tool: &str) -> String {
        self.tools
            .iter()
            .find(|name| name.ends_with(tool))
            .unwrap_or_else(|| panic!("{:?}", self.tools))
            .clone()
    }

    /// Asks, and waits for the answer, whatever else is said before it.
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> String {
        self.last += 1;
        let message = message(self.last, method, params);
        match &mut self.way {
            Way::Stdio { input, output } => {
                input.write_all(message.as_bytes()).unwrap();
                answer(output)
            }
            Way::Http { address, session, connections } => {
                let connection = connections.first_mut().unwrap();
                connection.send(address, session.as_deref(), &message);
                let whole = connection.receive();
                if session.is_none() {
                    *session = whole.header("mcp-session-id").map(str::to_owned);
                }
                whole.answer()
            }
        }
    }

    fn notify(&mut self, message: &str) {
        match &mut self.way {
            Way::Stdio { input, .. } => writeln!(input, "{message}").unwrap(),
            Way::Http { address, session, connections } => {
                let connection = connections.first_mut().unwrap();
                connection.send(address, session.as_deref(), message);
                connection.receive();
            }
        }
    }

    /// Calls a tool.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) {
        check(&self.ask("tools/call", &json!({"name": tool, "arguments": arguments})));
    }

    /// Reads the contract, after which writes are sent. A write that comes too soon after it is bounced, and repeated.
    pub(crate) fn read_contract(&mut self, write: &str) {
        self.call("runtime_bootstrap", &json!({}));
        let params = json!({"name": write, "arguments": {"text": "first"}});
        let until = Instant::now() + PATIENCE;
        loop {
            let answer = self.ask("tools/call", &params);
            if !answer.contains("\"decision\":\"bounce\"") || Instant::now() > until {
                return check(&answer);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// How long each of so many calls took, in microseconds, shortest first; and all of them together, in seconds.
    pub(crate) fn times(
        &mut self,
        tool: &str,
        count: usize,
        text: impl Fn(usize) -> String,
    ) -> (Vec<f64>, f64) {
        let all = Instant::now();
        let mut micros: Vec<f64> = (0..count)
            .map(|number| {
                let arguments = json!({"text": text(number)});
                let began = Instant::now();
                self.call(tool, &arguments);
                began.elapsed().as_secs_f64() * 1e6
            })
            .collect();
        let all = all.elapsed().as_secs_f64();
        micros.sort_by(f64::total_cmp);
        (micros, all)
    }

    /// The same, [`AT_ONCE`] of them on their way at any time.
    pub(crate) fn many(&mut self, tool: &str, count: usize) -> (Vec<f64>, f64) {
        let params = json!({"name": tool, "arguments": {"text": "many"}});
        let first = self.last + 1;
        self.last += count as u64;
        let mut messages = (first..=self.last).map(|id| message(id, "tools/call", &params));
        let all = Instant::now();
        let mut micros = match &mut self.way {
            Way::Stdio { input, output } => many_lines(input, output, &mut messages, count),
            Way::Http { address, session, connections } => {
                while connections.len() < AT_ONCE {
                    connections.push(Connection::wait(address.port));
                }
                many_requests(connections, address, session.as_deref(), &mut messages, count)
            }
        };
        let all = all.elapsed().as_secs_f64();
        micros.sort_by(f64::total_cmp);
        (micros, all)
    }
}

fn many_lines(
    input: &mut ChildStdin,
    output: &mut BufReader<ChildStdout>,
    messages: &mut impl Iterator<Item = String>,
    count: usize,
) -> Vec<f64> {
    let mut sent = HashMap::with_capacity(AT_ONCE * 2);
    let mut send = |sent: &mut HashMap<u64, Instant>| {
        if let Some(message) = messages.next() {
            sent.insert(id(&message), Instant::now());
            input.write_all(message.as_bytes()).unwrap();
        }
    };
    (0..AT_ONCE).for_each(|_| send(&mut sent));
    (0..count)
        .map(|_| {
            let answer = answer(output);
            check(&answer);
            let micros = sent.remove(&id(&answer)).unwrap().elapsed().as_secs_f64() * 1e6;
            send(&mut sent);
            micros
        })
        .collect()
}

fn many_requests(
    connections: &mut [Connection],
    address: &Address,
    session: Option<&str>,
    messages: &mut impl Iterator<Item = String>,
    count: usize,
) -> Vec<f64> {
    let mut sent: Vec<Instant> = Vec::with_capacity(connections.len());
    for connection in connections.iter_mut() {
        sent.push(Instant::now());
        if let Some(message) = messages.next() {
            connection.send(address, session, &message);
        }
    }
    let mut micros = Vec::with_capacity(count);
    while micros.len() < count {
        let mut waited: Vec<PollFd<'_>> =
            connections.iter().map(|connection| PollFd::new(&connection.stream, PollFlags::IN)).collect();
        assert!(poll(&mut waited, Some(&PATIENCE.try_into().unwrap())).unwrap() > 0, "nobody answers");
        let ready: Vec<bool> = waited.iter().map(|one| !one.revents().is_empty()).collect();
        for (index, connection) in connections.iter_mut().enumerate().filter(|(index, _)| ready[*index]) {
            let Some(whole) = connection.read() else { continue };
            micros.push(sent[index].elapsed().as_secs_f64() * 1e6);
            check(&whole.answer());
            if let Some(message) = messages.next() {
                sent[index] = Instant::now();
                connection.send(address, session, &message);
            }
        }
    }
    micros
}

impl Connection {
    /// Connects as soon as somebody listens.
    fn wait(port: u16) -> Self {
        let (address, until) = (SocketAddr::from(([127, 0, 0, 1], port)), Instant::now() + PATIENCE);
        loop {
            if let Ok(stream) = TcpStream::connect(address) {
                stream.set_nodelay(true).unwrap();
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                return Self { stream, buffer: Vec::new() };
            }
            assert!(Instant::now() < until, "nobody listens on {address}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn send(&mut self, address: &Address, session: Option<&str>, message: &str) {
        let (path, port) = (address.path, address.port);
        let token = address
            .token
            .as_ref()
            .map_or(String::new(), |token| format!("Authorization: Bearer {token}\r\n"));
        let session = session.map_or(String::new(), |id| {
            format!("Mcp-Session-Id: {id}\r\nMCP-Protocol-Version: 2025-11-25\r\n")
        });
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{token}{session}Content-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n{message}",
            message.len()
        );
        self.stream.write_all(request.as_bytes()).unwrap();
    }

    fn receive(&mut self) -> http::Whole {
        loop {
            if let Some(whole) = self.read() {
                return whole;
            }
        }
    }

    /// Reads once; the message if it is whole.
    fn read(&mut self) -> Option<http::Whole> {
        let mut bytes = [0; 64 * 1024];
        let count = self.stream.read(&mut bytes).unwrap();
        assert!(count > 0, "the server has hung up: {}", String::from_utf8_lossy(&self.buffer));
        self.buffer.extend_from_slice(&bytes[..count]);
        let whole = http::message(&self.buffer)?;
        self.buffer.drain(..whole.length);
        let line = whole.head.lines().next().unwrap_or_default();
        assert!(line.contains(" 20"), "{line}: {}", whole.body);
        Some(whole)
    }
}

fn message(id: u64, method: &str, params: &Value) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}\n")
}

/// The next answer, whatever else is said before it.
fn answer(output: &mut BufReader<ChildStdout>) -> String {
    loop {
        let mut line = String::new();
        assert!(output.read_line(&mut line).unwrap() > 0, "the server has ended");
        if line.contains("\"result\"") || line.contains("\"error\"") {
            return line;
        }
    }
}

fn check(answer: &str) {
    assert!(!answer.contains("\"isError\":true") && answer.contains("\"result\""), "{answer}");
}

/// The number of a message that we made, or of its answer: nothing else in them is called so.
fn id(message: &str) -> u64 {
    let from = message.find("\"id\":").unwrap() + 5;
    let digits = message[from..].trim_start();
    let end = digits.find(|letter: char| !letter.is_ascii_digit()).unwrap();
    digits[..end].parse().unwrap()
}
