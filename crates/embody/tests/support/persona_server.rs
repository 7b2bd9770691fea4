//! Persona servers on 127.0.0.1: streamable HTTP and legacy HTTP+SSE, each with a bearer check, written with plain
//! sockets so that nothing of the client under test is in them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

/// What the servers ask for.
pub(crate) const TOKEN: &str = "tok-3f9a-not-for-your-eyes-77";

/// The transport of a server.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum PersonaText {
    /// Streamable HTTP at `/mcp`, answers as JSON.
    Json,
    /// Streamable HTTP at `/mcp`, answers as event streams.
    Events,
    /// Legacy: a stream at `/sse`, messages to `/messages`.
    Legacy,
    /// Every request gets these bytes.
    Raw(&'static str),
    /// No request is ever answered.
    Silent,
}

/// What `get_system_prompt` comes to.
#[derive(Clone)]
pub(crate) enum Answer {
    /// A tool result.
    Result(Value),
    /// A JSON-RPC error.
    Error(String),
    /// Nothing.
    Never,
}

impl Answer {
    pub(crate) fn text(text: &str) -> Self {
        Self::Result(json!({ "content": [{ "type": "text", "text": text }] }))
    }
}

pub(crate) struct Server {
    port: u16,
    seen: Arc<Mutex<Vec<String>>>,
}

#[derive(Clone)]
struct ServerState {
    speech: PersonaText,
    answer: Answer,
    seen: Arc<Mutex<Vec<String>>>,
    stream: Arc<Mutex<Option<TcpStream>>>,
}

impl Server {
    pub(crate) fn start(speech: PersonaText, answer: Answer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::<Mutex<Vec<String>>>::default();
        let desk = ServerState { speech, answer, seen: Arc::clone(&seen), stream: Arc::default() };
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let desk = desk.clone();
                std::thread::spawn(move || desk.serve(stream));
            }
        });
        Self { port, seen }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// What was asked, in order: `METHOD PATH` for a refused request, the JSON-RPC method for an accepted one.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

struct Request {
    line: String,
    bearer: String,
    body: Vec<u8>,
}

impl ServerState {
    fn serve(&self, mut stream: TcpStream) {
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let Some(request) = read(&stream) else { return };
        match self.speech {
            PersonaText::Silent => return wait_for_the_end(&stream),
            PersonaText::Raw(bytes) => {
                self.note(request.line);
                return drop(stream.write_all(bytes.as_bytes()));
            }
            PersonaText::Json | PersonaText::Events | PersonaText::Legacy => {}
        }
        if request.bearer != format!("Bearer {TOKEN}") {
            self.note(format!("401 {}", request.line));
            return respond(&mut stream, "401 Unauthorized", "text/plain", "who are you?");
        }
        match (request.line.as_str(), self.speech) {
            ("GET /sse", PersonaText::Legacy) => self.open_stream(stream),
            ("POST /messages?session=1", PersonaText::Legacy) => {
                respond(&mut stream, "202 Accepted", "text/plain", "");
                self.answer(&request.body, |_, text| {
                    let event = format!("event: message\ndata: {text}\n\n");
                    self.stream.lock().unwrap().as_mut().unwrap().write_all(event.as_bytes()).unwrap();
                });
            }
            ("POST /mcp", PersonaText::Json | PersonaText::Events) => self.post(stream, &request.body),
            ("DELETE /mcp", PersonaText::Json | PersonaText::Events) => {
                self.note("DELETE".into());
                respond(&mut stream, "204 No Content", "text/plain", "");
            }
            // There is no stream of messages that no request asked for.
            ("GET /mcp", PersonaText::Json | PersonaText::Events) => {
                respond(&mut stream, "405 Method Not Allowed", "text/plain", "");
            }
            _ => {
                self.note(format!("404 {}", request.line));
                respond(&mut stream, "404 Not Found", "text/plain", "not here");
            }
        }
    }

    fn post(&self, mut stream: TcpStream, body: &[u8]) {
        let events = self.speech == PersonaText::Events;
        let mut answered = false;
        self.answer(body, |method, text| {
            answered = true;
            let (kind, text) = if events {
                ("text/event-stream", format!(": hello\n\nevent: message\ndata: {text}\n\n"))
            } else {
                ("application/json", text.to_owned())
            };
            let session = if method == "initialize" { "Mcp-Session-Id: s-1\r\n" } else { "" };
            write_head(&mut stream, "200 OK", kind, session, text.len());
            let _ = stream.write_all(text.as_bytes());
        });
        if !answered {
            let waits = matches!(self.answer, Answer::Never) && body.windows(10).any(|w| w == b"tools/call");
            if waits {
                wait_for_the_end(&stream)
            } else {
                respond(&mut stream, "202 Accepted", "text/plain", "")
            }
        }
    }

    fn open_stream(&self, mut stream: TcpStream) {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
        let hello = format!("{head}event: endpoint\ndata: /messages?session=1\n\n");
        *self.stream.lock().unwrap() = Some(stream.try_clone().unwrap());
        stream.write_all(hello.as_bytes()).unwrap();
        wait_for_the_end(&stream);
    }

    /// Gives the answer to a JSON-RPC message, if it wants one, to `send`.
    fn answer(&self, body: &[u8], mut send: impl FnMut(&str, &str)) {
        let message: Value = serde_json::from_slice(body).unwrap();
        let method = message["method"].as_str().unwrap().to_owned();
        let name = message["params"]["name"].as_str();
        self.note(name.map_or_else(|| method.clone(), |name| format!("{method} {name}")));
        let id = &message["id"];
        let result = match (method.as_str(), &self.answer) {
            ("initialize", _) => json!({
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "persona", "version": "1" },
            }),
            ("tools/list", _) => {
                json!({ "tools": [{ "name": "get_system_prompt", "inputSchema": { "type": "object" } }] })
            }
            ("tools/call", Answer::Result(result)) => result.clone(),
            ("tools/call", Answer::Error(message)) => {
                let error = json!({ "code": -32000, "message": message });
                let text = json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string();
                return send(&method, &text);
            }
            _ => return,
        };
        send(&method, &json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string());
    }

    fn note(&self, what: String) {
        self.seen.lock().unwrap().push(what);
    }
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split(' ');
    let line = format!("{} {}", words.next()?, words.next()?);
    let (mut bearer, mut length) = (String::new(), 0);
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let Some((name, value)) = header.trim_end().split_once(": ") else { break };
        match name.to_ascii_lowercase().as_str() {
            "authorization" => value.clone_into(&mut bearer),
            "content-length" => length = value.parse().unwrap(),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request { line, bearer, body })
}

fn respond(stream: &mut TcpStream, status: &str, kind: &str, body: &str) {
    write_head(stream, status, kind, "", body.len());
    let _ = stream.write_all(body.as_bytes());
}

fn write_head(stream: &mut TcpStream, status: &str, kind: &str, more: &str, length: usize) {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n{more}\r\n"
    );
    let _ = stream.write_all(head.as_bytes());
}

/// Returns when the client hangs up.
fn wait_for_the_end(mut stream: &TcpStream) {
    let _ = stream.read(&mut [0; 64]);
}
