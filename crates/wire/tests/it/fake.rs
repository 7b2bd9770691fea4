//! A well-behaved HTTP server that records its requests and answers with a plain function.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, Response};
use embody_wire::upstream::Route;
use embody_wire::{Client, ClientOptions, Error, Limits, Secret, Url};
use serde_json::value::RawValue;
use tokio::net::TcpListener;

pub(crate) type HttpResponse = Response<Body>;

/// One request as the server received it.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// The JSON-RPC method; empty for a response or a body that is not JSON.
    pub(crate) fn rpc_method(&self) -> String {
        self.envelope().method.unwrap_or_default()
    }

    pub(crate) fn rpc_id(&self) -> String {
        self.envelope().id.unwrap().get().to_owned()
    }

    fn envelope(&self) -> Envelope {
        serde_json::from_str(&self.body).unwrap_or_default()
    }
}

/// Parsed independently of the crate under test, and without the payload: not every payload fits a JSON value.
#[derive(Default, serde::Deserialize)]
struct Envelope {
    method: Option<String>,
    id: Option<Box<RawValue>>,
}

/// The requests a server received, in order.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<Seen>>>);

impl Log {
    pub(crate) fn push(&self, seen: Seen) {
        self.0.lock().unwrap().push(seen);
    }

    pub(crate) fn all(&self) -> Vec<Seen> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.all().iter().map(|seen| format!("{} {} {}", seen.method, seen.path, seen.rpc_method())).collect()
    }
}

/// Starts a server and returns its base URL, without a trailing slash, and its log.
pub(crate) async fn serve(
    answer: impl Fn(&Seen) -> HttpResponse + Clone + Send + Sync + 'static,
) -> (String, Log) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let log = Log::default();
    let kept = log.clone();
    let app = Router::new().fallback(move |request: Request| {
        let (log, answer) = (kept.clone(), answer.clone());
        async move {
            let (parts, body) = request.into_parts();
            let seen = Seen {
                method: parts.method.to_string(),
                path: parts.uri.to_string(),
                headers: parts.headers,
                body: String::from_utf8(to_bytes(body, usize::MAX).await.unwrap().to_vec()).unwrap(),
            };
            log.push(seen.clone());
            answer(&seen)
        }
    });
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    (base, log)
}

/// A server with a session `s-1` that answers every tool call with `result`.
pub(crate) fn session_with(
    result: &'static str,
) -> impl Fn(&Seen) -> HttpResponse + Clone + Send + Sync + 'static {
    move |seen| match seen.rpc_method().as_str() {
        "initialize" => {
            let mut reply = json(&initialize_result(seen));
            reply.headers_mut().insert("mcp-session-id", "s-1".parse().unwrap());
            reply
        }
        "tools/call" => json(&result_of(seen, result)),
        _ => status(202),
    }
}

pub(crate) fn initialize_result(seen: &Seen) -> String {
    initialize_result_of(seen, "2025-11-25")
}

pub(crate) fn initialize_result_of(seen: &Seen, version: &str) -> String {
    let server = r#""serverInfo":{"name":"fake","version":"1"}"#;
    result_of(seen, &format!(r#"{{"protocolVersion":"{version}","capabilities":{{}},{server}}}"#))
}

pub(crate) fn result_of(seen: &Seen, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, seen.rpc_id())
}

pub(crate) fn json(text: &str) -> HttpResponse {
    typed("application/json", text)
}

pub(crate) fn typed(content_type: &str, text: &str) -> HttpResponse {
    Response::builder().header("content-type", content_type).body(Body::from(text.to_owned())).unwrap()
}

pub(crate) fn status(code: u16) -> HttpResponse {
    Response::builder().status(code).body(Body::empty()).unwrap()
}

pub(crate) const TOKEN: &str = "Tok-0123456789ABCdef";

pub(crate) fn terms() -> ClientOptions {
    ClientOptions { bearer: Some(Secret::new(TOKEN)), ..ClientOptions::default() }
}

/// Options for a server that does not answer: only the timeout under test is short.
pub(crate) fn terms_with(limits: Limits) -> ClientOptions {
    ClientOptions { limits, ..terms() }
}

pub(crate) const SHORT: Duration = Duration::from_millis(30);

pub(crate) async fn connect_http(url: &str, terms: ClientOptions) -> Result<Client, Error> {
    Client::open(Route::Http { url: Url::parse(url).unwrap() }, &terms).await
}

pub(crate) async fn connect_sse(url: &str, terms: ClientOptions) -> Result<Client, Error> {
    Client::open(Route::Sse { url: Url::parse(url).unwrap() }, &terms).await
}

pub(crate) fn raw_json(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

pub(crate) fn no_params() -> Box<RawValue> {
    raw_json("{}")
}
