//! A model that does what a test wants, on a loopback socket: the Responses API and chat completions, both as event
//! streams, as far as two hosts use them. It says the same again when it is asked the same again.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

/// A socket on which nothing moves for that long is given up.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the model does next.
#[derive(Debug, Clone)]
pub(super) enum Next {
    /// Calls a tool by the name that it has behind the host.
    Call(&'static str, Value),
    /// Says something and is done.
    Say(&'static str),
}

/// What the model knows when it is asked.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    /// The results of its calls, in order, as the host shows them.
    pub(super) results: Vec<String>,
    /// Everything that the host sent: the whole context.
    pub(super) context: String,
}

type Script = Box<dyn FnMut(&Seen) -> Next + Send>;

/// A model for as long as the test lives.
pub(super) struct Model {
    port: u16,
    mind: Arc<Mutex<Mind>>,
}

struct Mind {
    script: Script,
    /// What it said after so many results.
    said: Vec<Next>,
    seen: Vec<Seen>,
    complaints: Vec<String>,
}

impl Model {
    /// The script is asked once for each number of results, from none upwards.
    pub(super) fn start(script: impl FnMut(&Seen) -> Next + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mind =
            Mind { script: Box::new(script), said: Vec::new(), seen: Vec::new(), complaints: Vec::new() };
        let mind = Arc::new(Mutex::new(mind));
        let serving = Arc::clone(&mind);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mind = Arc::clone(&serving);
                std::thread::spawn(move || serve(&mind, stream));
            }
        });
        Self { port, mind }
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    /// What it has seen each time that it was asked to go on.
    pub(super) fn seen(&self) -> Vec<Seen> {
        let mind = self.mind.lock().expect("the script must not fail");
        assert!(mind.complaints.is_empty(), "{:#?}", mind.complaints);
        mind.seen.clone()
    }
}

impl Mind {
    fn next(&mut self, seen: Seen) -> Next {
        let count = seen.results.len();
        if self.said.len() == count {
            let next = (self.script)(&seen);
            self.seen.push(seen);
            self.said.push(next);
        }
        self.said[count].clone()
    }
}

fn serve(mind: &Mutex<Mind>, mut stream: TcpStream) {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let Some((line, body)) = read(&stream) else { return };
    let api = match line.as_str() {
        "POST /v1/responses" => Api::Responses,
        "POST /v1/chat/completions" => Api::Chat,
        // Hosts look for more than they need, a list of models for instance.
        _ => return reply(&mut stream, "404 Not Found", "application/json", "{}"),
    };
    let tools = api.tools(&body);
    // Titles and summaries are asked for without tools.
    let next = if tools.is_empty() {
        Next::Say("A title")
    } else {
        let seen = Seen { results: api.results(&body), context: body.to_string() };
        mind.lock().unwrap().next(seen)
    };
    let called = match &next {
        Next::Say(_) => None,
        Next::Call(wanted, _) => tools.iter().find(|tool| tool.is(wanted)),
    };
    if let (Next::Call(wanted, _), None) = (&next, called) {
        let complaint = format!("the model is not offered `{wanted}`: {tools:?}");
        mind.lock().unwrap().complaints.push(complaint);
        return reply(&mut stream, "400 Bad Request", "application/json", "{}");
    }
    let number = api.results(&body).len();
    reply(&mut stream, "200 OK", "text/event-stream", &api.events(&next, called, number));
}

/// A tool as a host shows it.
#[derive(Debug, Clone)]
struct Tool {
    namespace: Option<String>,
    name: String,
}

impl Tool {
    /// Hosts put a prefix before the name.
    fn is(&self, wanted: &str) -> bool {
        self.name.strip_suffix(wanted).is_some_and(|before| before.is_empty() || before.ends_with('_'))
    }
}

#[derive(Debug, Clone, Copy)]
enum Api {
    Responses,
    Chat,
}

impl Api {
    fn tools(self, body: &Value) -> Vec<Tool> {
        let name = |tool: &Value| Some(tool["name"].as_str()?.to_owned());
        let mut tools = Vec::new();
        for tool in array(&body["tools"]) {
            match self {
                Self::Chat => {
                    tools.extend(name(&tool["function"]).map(|name| Tool { namespace: None, name }));
                }
                Self::Responses if tool["type"] == "namespace" => {
                    let inside = array(&tool["tools"]).iter().filter_map(name);
                    tools.extend(inside.map(|inside| Tool { namespace: name(tool), name: inside }));
                }
                Self::Responses => tools.extend(name(tool).map(|name| Tool { namespace: None, name })),
            }
        }
        tools
    }

    fn results(self, body: &Value) -> Vec<String> {
        let (messages, key, kind, text) = match self {
            Self::Chat => (&body["messages"], "role", "tool", "content"),
            Self::Responses => (&body["input"], "type", "function_call_output", "output"),
        };
        array(messages).iter().filter(|one| one[key] == kind).map(|one| plain(&one[text])).collect()
    }

    fn events(self, next: &Next, tool: Option<&Tool>, number: usize) -> String {
        let id = format!("call_{number}");
        match self {
            Self::Chat => {
                let (delta, reason) = match (next, tool) {
                    (Next::Call(_, arguments), Some(tool)) => {
                        let function = json!({"name": tool.name, "arguments": arguments.to_string()});
                        let call = json!({"index": 0, "id": id, "type": "function", "function": function});
                        (json!({"role": "assistant", "tool_calls": [call]}), "tool_calls")
                    }
                    (Next::Say(text) | Next::Call(text, _), _) => {
                        (json!({"role": "assistant", "content": text}), "stop")
                    }
                };
                let chunk = |choices: Value| {
                    json!({"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "scripted", "choices": choices,
                        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}})
                };
                let said = chunk(json!([{"index": 0, "delta": delta, "finish_reason": null}]));
                let end = chunk(json!([{"index": 0, "delta": {}, "finish_reason": reason}]));
                format!("data: {said}\n\ndata: {end}\n\ndata: [DONE]\n\n")
            }
            Self::Responses => {
                let item = match (next, tool) {
                    (Next::Call(_, arguments), Some(tool)) => {
                        let mut item = json!({"type": "function_call", "id": format!("fc_{number}"), "call_id": id,
                            "name": tool.name, "arguments": arguments.to_string(), "status": "completed"});
                        if let Some(namespace) = &tool.namespace {
                            item["namespace"] = namespace.as_str().into();
                        }
                        item
                    }
                    (Next::Say(text) | Next::Call(text, _), _) => {
                        let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
                        json!({"type": "message", "id": format!("msg_{number}"), "role": "assistant",
                            "status": "completed", "content": content})
                    }
                };
                let usage = json!({"input_tokens": 1, "output_tokens": 1, "total_tokens": 2});
                let response = |status: &str, output: Value| json!({"id": "1", "object": "response", "status": status, "output": output, "usage": usage});
                let event = |kind: &str, mut data: Value| {
                    data["type"] = kind.into();
                    format!("event: {kind}\ndata: {data}\n\n")
                };
                [
                    event("response.created", json!({"response": response("in_progress", json!([]))})),
                    event("response.output_item.done", json!({"output_index": 0, "item": item})),
                    event("response.completed", json!({"response": response("completed", json!([item]))})),
                ]
                .concat()
            }
        }
    }
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The text of a result: as it is, or in parts.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(|part| plain(&part["text"])).collect(),
        _ => String::new(),
    }
}

/// `METHOD PATH` and the body.
fn read(stream: &TcpStream) -> Option<(String, Value)> {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first).ok()?;
    let mut words = first.split(' ');
    let line = format!("{} {}", words.next()?, words.next()?.split('?').next()?);
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let Some((name, value)) = header.trim_end().split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((line, serde_json::from_slice(&body).unwrap_or_default()))
}

fn reply(stream: &mut TcpStream, status: &str, kind: &str, body: &str) {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
}
