//! A scripted model on a loopback socket, as far as four hosts use their providers' APIs: OpenAI responses and chat
//! completions, Anthropic messages, Gemini `generateContent`. A repeated request gets the same answer again.

mod anthropic;
mod chat;
mod gemini;
mod responses;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// A socket without traffic for this long is closed.
const SOCKET_TIMEOUT: Duration = Duration::from_secs(60);

/// What the model does next.
#[derive(Debug, Clone)]
pub(super) enum Next {
    /// Calls tools by their names at the broker, all in one answer.
    Call(Vec<(&'static str, Value)>),
    /// Ends the turn with a text.
    Say(&'static str),
}

impl Next {
    pub(super) fn call(tool: &'static str, arguments: Value) -> Self {
        Self::Call(vec![(tool, arguments)])
    }
}

/// What a host sends to the model.
#[derive(Debug, Clone)]
pub(super) struct Request {
    /// The results of the model's calls, in order, as the host shows them.
    pub(super) results: Vec<String>,
    pub(super) tools: Vec<Tool>,
    /// The whole request: the model's context.
    pub(super) body: Value,
}

impl Request {
    /// Whether the model can read this text.
    pub(super) fn contains(&self, text: &str) -> bool {
        fn is_in(value: &Value, text: &str) -> bool {
            match value {
                Value::String(found) => found.contains(text),
                Value::Array(parts) => parts.iter().any(|part| is_in(part, text)),
                Value::Object(members) => members.values().any(|member| is_in(member, text)),
                _ => false,
            }
        }
        is_in(&self.body, text)
    }
}

/// A tool as a host shows it to the model.
#[derive(Debug, Clone)]
pub(super) struct Tool {
    pub(super) namespace: Option<Namespace>,
    pub(super) name: String,
    pub(super) description: String,
    pub(super) schema: Value,
}

/// Codex groups the tools of a server under its name.
#[derive(Debug, Clone)]
pub(super) struct Namespace {
    pub(super) name: String,
    pub(super) description: String,
}

impl Tool {
    /// Hosts put a prefix before the name.
    pub(super) fn is(&self, wanted: &str) -> bool {
        self.name.strip_suffix(wanted).is_some_and(|before| before.is_empty() || before.ends_with('_'))
    }

    /// From the object that has the name.
    fn new(namespace: Option<&Namespace>, definition: &Value, schema: &str) -> Option<Self> {
        Some(Self {
            namespace: namespace.cloned(),
            name: definition["name"].as_str()?.to_owned(),
            description: definition["description"].as_str().unwrap_or_default().to_owned(),
            schema: definition[schema].clone(),
        })
    }
}

/// A request to the model and what it did then.
#[derive(Debug, Clone)]
pub(super) struct Step {
    pub(super) request: Request,
    pub(super) next: Next,
    /// When the request arrived, and when the model answered it.
    pub(super) arrived: Instant,
    pub(super) answered: Instant,
    /// What the observer of [`Model::start`] counted when the request arrived.
    pub(super) count: usize,
}

/// How long a model takes for an answer, at least: longer than `policy.contract_delay_ms`.
const THINKING: Duration = Duration::from_millis(300);

type Script = Box<dyn FnMut(&Request) -> Next + Send>;
type Observer = Box<dyn FnMut() -> usize + Send>;

/// Listens until the test process ends.
pub(super) struct Model {
    port: u16,
    state: Arc<Mutex<State>>,
}

struct State {
    script: Script,
    observer: Observer,
    /// By the number of results that the request has.
    answers: BTreeMap<usize, Next>,
    steps: Vec<Step>,
    stderr_text: Vec<String>,
}

impl Model {
    /// The script is called once for each number of results. The observer counts something at each of these moments.
    pub(super) fn start(
        observer: impl FnMut() -> usize + Send + 'static,
        script: impl FnMut(&Request) -> Next + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(State {
            script: Box::new(script),
            observer: Box::new(observer),
            answers: BTreeMap::new(),
            steps: Vec::new(),
            stderr_text: Vec::new(),
        }));
        let serving = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&serving);
                std::thread::spawn(move || serve(&state, stream));
            }
        });
        Self { port, state }
    }

    /// Without a path.
    pub(super) fn origin(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The base of OpenAI's APIs.
    pub(super) fn url(&self) -> String {
        format!("{}/v1", self.origin())
    }

    pub(super) fn steps(&self) -> Vec<Step> {
        let state = self.state.lock().expect("the script must not panic");
        assert!(state.stderr_text.is_empty(), "{:#?}", state.stderr_text);
        state.steps.clone()
    }
}

impl State {
    fn next(&mut self, request: &Request) -> Next {
        let number = request.results.len();
        if let Some(next) = self.answers.get(&number) {
            return next.clone();
        }
        let arrived = Instant::now();
        if number > 0 {
            std::thread::sleep(THINKING);
        }
        let count = (self.observer)();
        let next = (self.script)(request);
        let (request, answered) = (request.clone(), Instant::now());
        self.steps.push(Step { request, next: next.clone(), arrived, answered, count });
        self.answers.insert(number, next.clone());
        next
    }
}

/// The model's answer, for an API to write.
enum Answer<'a> {
    Text(&'a str),
    Calls(Vec<Call<'a>>),
}

struct Call<'a> {
    id: String,
    tool: &'a Tool,
    arguments: &'a Value,
}

fn serve(state: &Mutex<State>, mut stream: TcpStream) {
    stream.set_read_timeout(Some(SOCKET_TIMEOUT)).unwrap();
    let Some((method, path, body)) = read(&stream) else { return };
    let Some(api) = Api::of(&method, &path) else {
        // Hosts ask for more than they need, e.g. a list of models.
        return reply(&mut stream, "404 Not Found", "application/json", "{}");
    };
    let request = Request { results: api.results(&body), tools: api.tools(&body), body };
    // Titles and summaries are requested without tools.
    let next =
        if request.tools.is_empty() { Next::Say("A title") } else { state.lock().unwrap().next(&request) };
    let answer = match &next {
        Next::Say(text) => Answer::Text(text),
        Next::Call(calls) => {
            let mut resolved = Vec::new();
            for (index, (wanted, arguments)) in calls.iter().enumerate() {
                let Some(tool) = request.tools.iter().find(|tool| tool.is(wanted)) else {
                    let names: Vec<&str> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
                    let complaint = format!("the model is not offered `{wanted}`: {names:?}");
                    state.lock().unwrap().stderr_text.push(complaint);
                    return reply(&mut stream, "400 Bad Request", "application/json", "{}");
                };
                let id = format!("call_{}_{index}", request.results.len());
                resolved.push(Call { id, tool, arguments });
            }
            Answer::Calls(resolved)
        }
    };
    let (kind, text) = api.write(&path, &request, &answer);
    reply(&mut stream, "200 OK", kind, &text);
}

#[derive(Debug, Clone, Copy)]
enum Api {
    Responses,
    Chat,
    Anthropic,
    Gemini,
}

const EVENTS: &str = "text/event-stream";
const JSON: &str = "application/json";

impl Api {
    fn of(method: &str, path: &str) -> Option<Self> {
        match (method, path) {
            ("POST", "/v1/responses") => Some(Self::Responses),
            ("POST", "/v1/chat/completions") => Some(Self::Chat),
            ("POST", "/v1/messages") => Some(Self::Anthropic),
            ("POST", path)
                if path.ends_with(":generateContent") || path.ends_with(":streamGenerateContent") =>
            {
                Some(Self::Gemini)
            }
            _ => None,
        }
    }

    fn tools(self, body: &Value) -> Vec<Tool> {
        match self {
            Self::Responses => responses::tools(body),
            Self::Chat => chat::tools(body),
            Self::Anthropic => anthropic::tools(body),
            Self::Gemini => gemini::tools(body),
        }
    }

    fn results(self, body: &Value) -> Vec<String> {
        match self {
            Self::Responses => responses::results(body),
            Self::Chat => chat::results(body),
            Self::Anthropic => anthropic::results(body),
            Self::Gemini => gemini::results(body),
        }
    }

    /// Content type and content.
    fn write(self, path: &str, request: &Request, answer: &Answer<'_>) -> (&'static str, String) {
        let number = request.results.len();
        match self {
            Self::Responses => (EVENTS, responses::events(answer, number)),
            Self::Chat => (EVENTS, chat::events(answer)),
            Self::Anthropic if request.body["stream"] == true => (EVENTS, anthropic::events(answer, number)),
            Self::Anthropic => (JSON, anthropic::message(answer, number).to_string()),
            Self::Gemini if path.ends_with(":streamGenerateContent") => (EVENTS, gemini::events(answer)),
            Self::Gemini => (JSON, gemini::response(answer).to_string()),
        }
    }
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The text of a result: a string, or parts with text.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(|part| plain(&part["text"])).collect(),
        _ => String::new(),
    }
}

/// An event of a stream that names its kind twice.
fn event(kind: &str, mut data: Value) -> String {
    data["type"] = json!(kind);
    format!("event: {kind}\ndata: {data}\n\n")
}

/// Method, path without query, and body.
fn read(stream: &TcpStream) -> Option<(String, String, Value)> {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first).ok()?;
    let mut words = first.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?.split('?').next()?.to_owned());
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
    Some((method, path, serde_json::from_slice(&body).unwrap_or_default()))
}

fn reply(stream: &mut TcpStream, status: &str, kind: &str, body: &str) {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
}
