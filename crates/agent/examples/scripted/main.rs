//! A model server for tests: `scripted SCRIPT.json LOG.jsonl` prints its URL on its first line, answers in OpenAI's and
//! Anthropic's wire formats by the first rule of the script that matches, and logs every request whole (keys masked).
//!
//! ```json
//! [{"when": {"system": "part", "user": "part of the last user message", "results": 1, "channel": "telegram",
//!            "tool": "an available tool"},
//!   "reply": {"text": "You said $USER, it said $RESULT", "calls": [{"name": "look", "arguments": {"at": "$USER"}}],
//!             "status": 429, "retry_after": 1, "cut": true, "delay_ms": 50, "chunk": 7, "repeat": 1000, "no_usage": true},
//!   "times": 1}]
//! ```
//!
//! `results` counts the tool results since the last user message; `cut` ends the stream before its end marker;
//! `no_usage` reports no tokens (OpenAI only);
//! `delay_ms` waits before each event, and each event has `chunk` characters; arguments given as a string are sent
//! literally, valid or not.

#![allow(clippy::indexing_slicing, reason = "a JSON value answers `null` for what it lacks")]

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use axum::routing::{get, post};
use axum::serve::ListenerExt;
use serde::Deserialize;
use serde_json::{Value, json};

mod pieces;
mod question;

use question::{Format, Question};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    #[serde(default)]
    when: When,
    reply: Reply,
    times: Option<u64>,
    #[serde(skip)]
    used: AtomicU64,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct When {
    system: Option<String>,
    user: Option<String>,
    results: Option<usize>,
    channel: Option<String>,
    tool: Option<String>,
}

#[derive(Deserialize, Default, Clone)]
#[serde(deny_unknown_fields, default)]
struct Reply {
    text: String,
    calls: Vec<Call>,
    status: Option<u16>,
    retry_after: Option<u64>,
    cut: bool,
    delay_ms: u64,
    chunk: Option<usize>,
    repeat: Option<usize>,
    no_usage: bool,
}

#[derive(Deserialize, Clone)]
#[serde(deny_unknown_fields)]
struct Call {
    name: String,
    #[serde(default = "no_arguments")]
    arguments: Value,
}

fn no_arguments() -> Value {
    json!({})
}

struct Server {
    rules: Vec<Rule>,
    log: Mutex<File>,
    asked: AtomicU64,
}

#[tokio::main]
async fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(script), Some(log)) = (arguments.next(), arguments.next()) else {
        return Err(io::Error::other("usage: scripted SCRIPT.json LOG.jsonl"));
    };
    let rules = serde_json::from_slice(&std::fs::read(script)?)?;
    let log = Mutex::new(OpenOptions::new().create(true).append(true).open(log)?);
    let server = Arc::new(Server { rules, log, asked: AtomicU64::new(0) });
    let router = Router::new()
        .route("/v1/chat/completions", post(answer))
        .route("/v1/messages", post(answer))
        .route(
            "/v1/models",
            get(async || axum::Json(json!({"object": "list", "data": [{"id": "scripted"}]}))),
        )
        .layer(DefaultBodyLimit::disable())
        .with_state(server);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}", listener.local_addr()?);
    io::stdout().flush()?;
    // Small writes must be sent at once: Nagle's algorithm would distort measurements.
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    axum::serve(listener, router).await
}

async fn answer(State(server): State<Arc<Server>>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let format = if uri.path().ends_with("/messages") { Format::Anthropic } else { Format::OpenAi };
    let body: Value = match serde_json::from_slice(&body) {
        Ok(body) => body,
        Err(error) => return refuse(format, 400, None, &format!("the body is not JSON: {error}")),
    };
    server.note(&uri, &headers, &body);
    let question = Question::read(format, &body);
    let Some(rule) = server.rules.iter().find(|rule| rule.matches(&question)) else {
        return refuse(format, 400, None, &format!("no rule of the script is for `{}`", question.user));
    };
    let reply = rule.reply.filled(&question);
    if let Some(status) = reply.status {
        return refuse(format, status, reply.retry_after, &reply.text);
    }
    let number = server.asked.fetch_add(1, Ordering::Relaxed);
    pieces::respond(format, body["stream"] == true, number, reply, body.to_string().len() as u64 / 4).await
}

fn refuse(format: Format, status: u16, retry_after: Option<u64>, message: &str) -> Response {
    let body = match format {
        Format::OpenAi => json!({"error": {"message": message, "type": "scripted", "code": null}}),
        Format::Anthropic => json!({"type": "error", "error": {"type": "scripted", "message": message}}),
    };
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = Response::builder().status(status).header("content-type", "application/json");
    if let Some(seconds) = retry_after {
        response = response.header("retry-after", seconds);
    }
    response.body(Body::from(body.to_string())).unwrap_or_default()
}

impl Server {
    fn note(&self, uri: &Uri, headers: &HeaderMap, body: &Value) {
        let shown = |name: &str, value: &str| match name {
            "authorization" | "x-api-key" => "[masked]".to_owned(),
            _ => value.to_owned(),
        };
        let headers: serde_json::Map<String, Value> = headers
            .iter()
            .map(|(name, value)| {
                (name.to_string(), shown(name.as_str(), value.to_str().unwrap_or("?")).into())
            })
            .collect();
        let line = json!({"path": uri.path(), "headers": headers, "body": body});
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        // One write per line, so that a reader sees complete lines only.
        if let Err(error) = log.write_all(format!("{line}\n").as_bytes()) {
            eprintln!("the log cannot be written: {error}");
        }
    }
}

impl Rule {
    fn matches(&self, question: &Question) -> bool {
        let has =
            |text: &str, part: &Option<String>| part.as_ref().is_none_or(|part| text.contains(part.as_str()));
        let when = &self.when;
        let fits = has(&question.system, &when.system)
            && has(&question.user, &when.user)
            && when.results.is_none_or(|count| question.results.len() == count)
            && when.tool.as_ref().is_none_or(|tool| question.tools.contains(tool))
            && when
                .channel
                .as_ref()
                .is_none_or(|channel| question.system.contains(&format!("responding via {channel}")));
        let count = |used: u64| self.times.is_none_or(|times| used < times).then_some(used + 1);
        fits && self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, count).is_ok()
    }
}

impl Reply {
    /// Replaces the placeholders with texts of the request.
    fn filled(&self, question: &Question) -> Self {
        let last = question.results.last().map_or("", String::as_str);
        let fill = |text: &str| text.replace("$USER", &question.user).replace("$RESULT", last);
        let mut reply = self.clone();
        reply.text = fill(&self.text).repeat(self.repeat.unwrap_or(1));
        for call in &mut reply.calls {
            fill_value(&mut call.arguments, &fill);
        }
        reply
    }
}

fn fill_value(value: &mut Value, fill: &impl Fn(&str) -> String) {
    match value {
        Value::String(text) => *text = fill(text),
        Value::Array(items) => items.iter_mut().for_each(|item| fill_value(item, fill)),
        Value::Object(fields) => fields.values_mut().for_each(|field| fill_value(field, fill)),
        _ => {}
    }
}

/// The delay before an event.
fn delay(reply: &Reply) -> Option<Duration> {
    (reply.delay_ms > 0).then(|| Duration::from_millis(reply.delay_ms))
}
