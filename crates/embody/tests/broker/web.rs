//! A body at an address that misbehaves, on plain sockets: streamable HTTP at `/mcp`, legacy at `/sse`. A call's argument
//! `trick` selects the failure:
//!
//! | trick | does |
//! |---|---|
//! | `hang` | never answers |
//! | `half_closed` | begins an event stream and closes its end before the answer; goes on reading |
//! | `cut` | closes in the middle of an answer |
//! | `slow_head` · `slow_body` | a byte now and then, for ever |
//! | `huge` | a line that is longer than anybody wants |
//! | `html` | a page |
//! | `fails` | 500 |
//! | `forgets` | 404: does not know the session any more |
//! | `moved` | sends the caller on to another address |
//! | `elicit` | asks the host on the call's own stream, and answers with what it said |

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

/// A socket on which nothing moves for that long is given up.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server for as long as the test lives.
pub(super) struct Web {
    port: u16,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    /// The bearer that it wants, if any.
    token: Mutex<Option<String>>,
    /// Where `/sse` sends its messages, and `moved` its callers.
    elsewhere: Mutex<String>,
    seen: Mutex<Vec<SeenRequest>>,
    calls: Mutex<Vec<Value>>,
    /// What the host said to a question.
    answer: Mutex<Option<Value>>,
    answered: Condvar,
}

/// A request that came in.
#[derive(Debug, Clone)]
pub(super) struct SeenRequest {
    /// `METHOD PATH`.
    pub(super) line: String,
    /// The bearer, if one was sent.
    pub(super) bearer: Option<String>,
    /// Of JSON-RPC, if it was that.
    pub(super) method: Option<String>,
    /// The status that was answered first.
    pub(super) status: u16,
}

struct Request {
    line: String,
    bearer: Option<String>,
    body: Value,
}

impl Web {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::<State>::default();
        let serving = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&serving);
                std::thread::spawn(move || state.serve(stream));
            }
        });
        Self { port, state }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// From now on it wants this token.
    pub(super) fn want(&self, token: &str) {
        *self.state.token.lock().unwrap() = Some(token.to_owned());
    }

    /// From now on it sends others there.
    pub(super) fn point_to(&self, url: &str) {
        url.clone_into(&mut self.state.elsewhere.lock().unwrap());
    }

    /// Every request, in order.
    pub(super) fn seen(&self) -> Vec<SeenRequest> {
        self.state.seen.lock().unwrap().clone()
    }

    /// The params of every executed call, in order.
    pub(super) fn calls(&self) -> Vec<Value> {
        self.state.calls.lock().unwrap().clone()
    }
}

impl State {
    fn serve(&self, mut stream: TcpStream) {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let Some(request) = read(&stream) else { return };
        let wanted = self.token.lock().unwrap().clone();
        let is_known = wanted.is_none() || wanted == request.bearer;
        let method = request.body["method"].as_str().map(str::to_owned);
        let status = match (is_known, request.line.as_str(), &method) {
            (false, ..) => 401,
            (true, "POST /mcp", Some(_)) if request.body["id"].is_null() => 202,
            (true, "POST /mcp", None) => 202,
            (true, "POST /mcp", Some(_)) | (true, "GET /sse", _) => 200,
            (true, "DELETE /mcp", _) => 204,
            (true, "GET /mcp", _) => 405,
            _ => 404,
        };
        let Request { line, bearer, body } = request;
        self.seen.lock().unwrap().push(SeenRequest {
            line: line.clone(),
            bearer,
            method: method.clone(),
            status,
        });
        match (status, method.as_deref()) {
            (200, None) => self.legacy(&mut stream),
            (200, Some(method)) => self.answer(&mut stream, method, &body),
            (202, None) => {
                *self.answer.lock().unwrap() = Some(body);
                self.answered.notify_all();
                head(&mut stream, "202 Accepted", "text/plain", 0);
            }
            (202, _) => head(&mut stream, "202 Accepted", "text/plain", 0),
            (204, _) => head(&mut stream, "204 No Content", "text/plain", 0),
            (401, _) => head(&mut stream, "401 Unauthorized\r\nWWW-Authenticate: Bearer", "text/plain", 0),
            (405, _) => head(&mut stream, "405 Method Not Allowed", "text/plain", 0),
            _ => head(&mut stream, "404 Not Found", "text/plain", 0),
        }
    }

    /// The stream of the legacy transport, which says where messages go.
    fn legacy(&self, stream: &mut TcpStream) {
        open_events(stream);
        let endpoint = format!("event: endpoint\ndata: {}\n\n", self.elsewhere.lock().unwrap());
        let _ = stream.write_all(endpoint.as_bytes());
        wait_for_the_end(stream);
    }

    fn answer(&self, stream: &mut TcpStream, method: &str, body: &Value) {
        let params = &body["params"];
        let result = match method {
            "initialize" => json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "web", "version": "1"},
            }),
            "tools/list" => tools(),
            "tools/call" => {
                self.calls.lock().unwrap().push(params.clone());
                json!({"content": [{"type": "text", "text": "done"}]})
            }
            _ => json!({}),
        };
        let text = json!({"jsonrpc": "2.0", "id": body["id"], "result": result}).to_string();
        match params["arguments"]["trick"].as_str().filter(|_| method == "tools/call") {
            Some(trick) => self.misbehave(stream, trick, &text),
            None => {
                let session = if method == "initialize" { "\r\nMcp-Session-Id: session-1" } else { "" };
                head(stream, &format!("200 OK{session}"), "application/json", text.len());
                let _ = stream.write_all(text.as_bytes());
            }
        }
    }

    fn misbehave(&self, stream: &mut TcpStream, trick: &str, answer: &str) {
        const HUGE: usize = 100 * 1024 * 1024;
        match trick {
            "hang" => wait_for_the_end(stream),
            "half_closed" => {
                open_events(stream);
                let _ = stream.write_all(b": soon\n\n");
                let _ = stream.shutdown(Shutdown::Write);
                wait_for_the_end(stream);
            }
            "cut" => {
                head(stream, "200 OK", "application/json", answer.len());
                let _ = stream.write_all(&answer.as_bytes()[..answer.len() / 2]);
            }
            "slow_head" => drip(stream, "HTTP/1.1 200 OK\r\n", "X-More: and more\r\n"),
            "slow_body" => {
                head(stream, "200 OK", "application/json", HUGE);
                drip(stream, "{", " ");
            }
            "huge" => {
                head(stream, "200 OK", "application/json", HUGE);
                let piece = vec![b' '; 1 << 20];
                while stream.write_all(&piece).is_ok() {}
            }
            "html" => {
                let page = "<html><body>Sign in</body></html>";
                head(stream, "200 OK", "text/html", page.len());
                let _ = stream.write_all(page.as_bytes());
            }
            "fails" => head(stream, "500 Internal Server Error", "text/plain", 0),
            "forgets" => head(stream, "404 Not Found", "text/plain", 0),
            "moved" => {
                let place = self.elsewhere.lock().unwrap().clone();
                let status = format!("307 Temporary Redirect\r\nLocation: {place}");
                head(stream, &status, "text/plain", 0);
            }
            "elicit" => self.elicit(stream, answer),
            other => panic!("no trick `{other}`"),
        }
    }

    fn elicit(&self, stream: &mut TcpStream, answer: &str) {
        open_events(stream);
        let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
        let params = json!({"message": "What is your name?", "requestedSchema": schema});
        let question = json!({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": params});
        let _ = stream.write_all(format!("event: message\ndata: {question}\n\n").as_bytes());
        let waiting = self.answer.lock().unwrap();
        let (mut said, _) =
            self.answered.wait_timeout_while(waiting, PATIENCE, |said| said.is_none()).unwrap();
        let mut answer: Value = serde_json::from_str(answer).unwrap();
        answer["result"]["structuredContent"] = json!({"answer": said.take().unwrap_or_default()["result"]});
        let _ = stream.write_all(format!("event: message\ndata: {answer}\n\n").as_bytes());
    }
}

fn tools() -> Value {
    let tool = |name: &str, annotations: Value| {
        json!({
            "name": name,
            "description": format!("The tool {name}."),
            "inputSchema": {"type": "object"},
            "annotations": annotations,
        })
    };
    json!({"tools": [tool("web_look", json!({"readOnlyHint": true})), tool("web_send", json!({}))]})
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split(' ');
    let line = format!("{} {}", words.next()?, words.next()?);
    let (mut bearer, mut length) = (None, 0);
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let Some((name, value)) = header.trim_end().split_once(": ") else { break };
        match name.to_ascii_lowercase().as_str() {
            "authorization" => bearer = value.strip_prefix("Bearer ").map(str::to_owned),
            "content-length" => length = value.parse().ok()?,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request { line, bearer, body: serde_json::from_slice(&body).unwrap_or_default() })
}

/// `status` may bring further headers with it.
fn head(stream: &mut TcpStream, status: &str, kind: &str, length: usize) {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    let _ = stream.write_all(head.as_bytes());
}

fn open_events(stream: &mut TcpStream) {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
    let _ = stream.write_all(head.as_bytes());
}

/// A first part, and then single bytes until the client disconnects.
fn drip(stream: &mut TcpStream, begin: &str, more: &str) {
    let _ = stream.write_all(begin.as_bytes());
    for byte in more.bytes().cycle() {
        std::thread::sleep(Duration::from_millis(20));
        if stream.write_all(&[byte]).is_err() {
            return;
        }
    }
}

/// Returns when the other side hangs up.
fn wait_for_the_end(mut stream: &TcpStream) {
    let _ = stream.read(&mut [0; 64]);
}
