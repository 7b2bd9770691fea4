//! `embody up` on a free port, and a client on plain sockets, so that every header is the test's own.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::support::world::World;

/// A socket on which nothing moves for that long is given up.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running `embody up`.
pub(crate) struct Served {
    pub(crate) process: Child,
    pub(crate) stdout: BufReader<ChildStdout>,
    pub(crate) host: String,
    pub(crate) code: String,
}

const UP: [&str; 5] = ["--log", "error", "up", "--listen", "127.0.0.1:0"];

impl Served {
    pub(crate) fn start(world: &World) -> Self {
        let mut command = world.command();
        command.arg("--workspace").arg(world.workspace()).args(UP);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut stdout = BufReader::new(process.stdout.take().unwrap());
        let (host, code) = address(&mut stdout);
        Self { process, stdout, host, code }
    }

    pub(crate) fn signal(&self, name: &str) {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
    }

    /// Sends a request without authentication.
    pub(crate) fn ask(&self, line: &str, headers: &[(&str, &str)], body: Option<&Value>) -> Answer {
        self.begin(line, headers, body).whole()
    }

    /// Asks with a bearer token.
    pub(crate) fn get(&self, path: &str, token: &str) -> Answer {
        self.ask(&format!("GET {path}"), &[("authorization", &format!("Bearer {token}"))], None)
    }

    pub(crate) fn post(&self, path: &str, token: &str, body: &Value) -> Answer {
        self.begin_post(path, token, body).whole()
    }

    pub(crate) fn begin_post(&self, path: &str, token: &str, body: &Value) -> Reading {
        self.begin(&format!("POST {path}"), &[("authorization", &format!("Bearer {token}"))], Some(body))
    }

    /// Sends a request, and reads the head of its answer.
    pub(crate) fn begin(&self, line: &str, headers: &[(&str, &str)], body: Option<&Value>) -> Reading {
        begin(&self.host, line, headers, body)
    }

    /// Signs in with a code; the cookie.
    pub(crate) fn sign_in(&self, code: &str) -> String {
        let answer = self.ask("POST /api/login", &[], Some(&serde_json::json!({ "code": code })));
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.header("set-cookie").unwrap().split(';').next().unwrap().to_owned()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn address(stdout: &mut BufReader<ChildStdout>) -> (String, String) {
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    let (host, code) = line.trim().strip_prefix("http://").unwrap().split_once("/#code=").unwrap();
    (host.to_owned(), code.to_owned())
}

/// Sends a request to this host, and reads the head of its answer.
pub(crate) fn begin(host: &str, line: &str, headers: &[(&str, &str)], body: Option<&Value>) -> Reading {
    Reading::new(send(host, line, headers, body).unwrap()).unwrap()
}

/// Sends a request to a host that may be gone; [`Reading::new`] reads the answer.
pub(crate) fn send(
    host: &str,
    line: &str,
    headers: &[(&str, &str)],
    body: Option<&Value>,
) -> std::io::Result<TcpStream> {
    let mut stream = TcpStream::connect(host)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut head = format!("{line} HTTP/1.1\r\nConnection: close\r\n");
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
        head += &format!("Host: {host}\r\n");
    }
    let body = body.map(Value::to_string);
    if let Some(body) = &body {
        head += &format!("Content-Length: {}\r\n", body.len());
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
            head += "Content-Type: application/json\r\n";
        }
    }
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    stream.write_all(format!("{head}\r\n{}", body.unwrap_or_default()).as_bytes())?;
    Ok(stream)
}

/// A token of a user.
pub(crate) fn token(world: &World, user: &str, scope: &str) -> String {
    let made = world.run(&["token", "add", "--user", user, "--scope", scope, "--json"]).ok().json();
    made["token"].as_str().unwrap().to_owned()
}

/// A token of the owner, in whose host forms approve.
pub(crate) fn approving_token(world: &World) -> String {
    let add = ["token", "add", "--user", "owner", "--scope", "mcp", "--may-approve", "--json"];
    world.run(&add).ok().json()["token"].as_str().unwrap().to_owned()
}

/// An answer whose body may still be on its way.
pub(crate) struct Reading {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    lines: BufReader<Box<dyn Read + Send>>,
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

/// A server-sent event.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) data: Value,
}

impl Reading {
    /// Reads the head of an answer; an error if the other side breaks off before it is over.
    pub(crate) fn new(stream: TcpStream) -> std::io::Result<Self> {
        let mut lines = BufReader::new(stream);
        let mut line = String::new();
        if lines.read_line(&mut line)? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let status = line.split(' ').nth(1).unwrap_or_else(|| panic!("{line:?}")).parse().unwrap();
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            if lines.read_line(&mut line)? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            headers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
        let is_chunked =
            headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked");
        let lines: Box<dyn Read + Send> =
            if is_chunked { Box::new(Chunks { lines, left: 0 }) } else { Box::new(lines) };
        Ok(Self { status, headers, lines: BufReader::new(lines) })
    }

    pub(crate) fn whole(mut self) -> Answer {
        let mut body = String::new();
        let _ = self.lines.read_to_string(&mut body);
        Answer { status: self.status, headers: self.headers, body }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Whether it comes as events.
    pub(crate) fn is_events(&self) -> bool {
        self.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"))
    }

    /// The next message of an event stream, or none when it has ended, also in the middle of one.
    pub(crate) fn message(&mut self) -> Option<Value> {
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).unwrap_or(0) == 0 || !line.ends_with('\n') {
                return None;
            }
            let data = line.trim_end().strip_prefix("data:").map(str::trim).filter(|data| !data.is_empty());
            if let Some(data) = data {
                return Some(serde_json::from_str(data).unwrap());
            }
        }
    }

    /// The next event, or none when the stream has ended.
    pub(crate) fn event(&mut self) -> Option<Event> {
        let mut event = Event { id: String::new(), name: String::new(), data: Value::Null };
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).unwrap_or(0) == 0 {
                return None;
            }
            match line.trim_end().split_once(": ") {
                Some(("id", id)) => event.id = id.to_owned(),
                Some(("event", name)) => event.name = name.to_owned(),
                Some(("data", data)) => event.data = serde_json::from_str(data).unwrap(),
                _ if event.name.is_empty() => {}
                _ => return Some(event),
            }
        }
    }

    /// All events to the end.
    pub(crate) fn events(mut self) -> Vec<Event> {
        assert_eq!(self.status, 200);
        std::iter::from_fn(|| self.event()).collect()
    }

    /// Events up to one of this name.
    pub(crate) fn until(&mut self, name: &str) -> Event {
        while let Some(event) = self.event() {
            if event.name == name {
                return event;
            }
        }
        panic!("there is no `{name}`");
    }
}

/// The words of these events, joined.
pub(crate) fn text(events: &[Event]) -> String {
    events.iter().filter_map(|event| event.data["delta"].as_str()).collect()
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The same response, which must have this status and contain this text.
    pub(crate) fn refused(self, status: u16, words: &str) -> Self {
        assert_eq!(self.status, status, "{self:?}");
        let message = self.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(message.contains(words), "no {words:?} in {message:?}");
        self
    }
}

/// A chunked body.
struct Chunks {
    lines: BufReader<TcpStream>,
    left: usize,
}

impl Read for Chunks {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        if self.left == 0 {
            let mut line = String::new();
            self.lines.read_line(&mut line)?;
            if line.trim().is_empty() {
                line.clear();
                self.lines.read_line(&mut line)?;
            }
            self.left = usize::from_str_radix(line.trim(), 16).unwrap_or(0);
            if self.left == 0 {
                return Ok(0);
            }
        }
        let most = into.len().min(self.left);
        let read = self.lines.read(&mut into[..most])?;
        self.left -= read;
        Ok(read)
    }
}
