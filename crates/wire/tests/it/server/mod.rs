//! The transports in front of a service that misbehaves on request.

mod connections;
mod http;
mod legacy;
mod lines;
mod multi_round;

use std::sync::Arc;
use std::time::Duration;

use embody_wire::message::{Notification, Outcome};
use embody_wire::server::http::{Options, OriginGuard};
use embody_wire::server::{
    AskError, AuthError, Call, CancellationToken, Credentials, Host, Service, code, failure,
};
use embody_wire::{Limits, Secret};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// A timeout long enough for everything that happens at all.
const SOON: Duration = Duration::from_secs(20);

/// Answers by method, and reports to the test what it received.
pub(crate) struct Odd {
    seen: mpsc::UnboundedSender<String>,
}

pub(crate) type Seen = mpsc::UnboundedReceiver<String>;

pub(crate) fn odd() -> (Arc<Odd>, Seen) {
    let (seen, test) = mpsc::unbounded_channel();
    (Arc::new(Odd { seen }), test)
}

fn raw(value: &Value) -> Box<RawValue> {
    to_raw_value(value).unwrap()
}

/// Only the cancellation of the call ends the task, which outlives the panic.
fn panic_with_task(call: Call<String>, seen: mpsc::UnboundedSender<String>) -> ! {
    tokio::spawn(async move {
        call.until_cancelled_or_shutdown().await;
        let _ = seen.send("the call of the task is cancelled".into());
    });
    panic!("as asked")
}

impl Service for Odd {
    type Principal = String;

    async fn authenticate(&self, credentials: Credentials) -> Result<String, AuthError> {
        match credentials.bearer {
            None => Err(AuthError::Unknown("a token is needed".into())),
            Some(token) if token.expose() == "narrow" => Err(AuthError::Forbidden("not for this".into())),
            // One person may have several tokens: `ann/1`, `ann/2`.
            Some(token) => Ok(token.expose().split('/').next().unwrap_or_default().to_owned()),
        }
    }

    async fn are_valid(&self, bearers: &[Secret]) -> Vec<bool> {
        bearers.iter().map(|bearer| !bearer.expose().starts_with("revoked")).collect()
    }

    async fn call(&self, call: Call<String>) -> Outcome {
        let result = match &*call.request.method {
            "initialize" => {
                let hello = call.request.params.as_deref().map_or("{}", RawValue::get);
                let hello: Value = serde_json::from_str(hello).unwrap();
                let version = hello["protocolVersion"].as_str().unwrap_or("2025-11-25");
                json!({"protocolVersion": version, "capabilities": {}})
            }
            "refuse" => return failure(code::INVALID_PARAMS, "no"),
            "whoami" => json!({"principal": call.host.principal, "session": call.host.session.is_some()}),
            "count" => {
                for number in 0..1000 {
                    let params = Some(raw(&json!({"progress": number})));
                    call.notify(Notification { method: "notifications/progress".into(), params }).await;
                }
                json!({"counted": 1000})
            }
            "wait" => {
                self.seen.send("waiting".into()).unwrap();
                call.until_cancelled_or_shutdown().await;
                self.seen.send(format!("unwanted, cancelled: {}", call.is_cancelled())).unwrap();
                json!({"waited": true})
            }
            "ask" => match call.ask("elicitation/create", Some(raw(&json!({"message": "?"})))).await {
                Ok(Outcome::Result(answer)) => {
                    json!({"answer": serde_json::from_str::<Value>(answer.get()).unwrap()})
                }
                Ok(Outcome::Error(_)) => json!({"answer": "error"}),
                Err(AskError::Stateless) => json!({"answer": "stateless"}),
                Err(error) => json!({"answer": error.to_string()}),
            },
            "release" => {
                call.release_stream();
                json!({"released": true})
            }
            "number" => json!({"number": call.number(), "arrived": call.host.arrived()}),
            "written" => {
                let seen = self.seen.clone();
                call.on_flushed(move || drop(seen.send("written".into())));
                if call.request.params.is_some() {
                    call.notify(Notification { method: "notifications/message".into(), params: None }).await;
                }
                json!({})
            }
            "outside" => {
                let (host, seen) = (Arc::clone(&call.host), self.seen.clone());
                tokio::spawn(async move {
                    let method = "notifications/tools/list_changed".into();
                    host.notify(Notification { method, params: None }).await;
                    let answer = match host.ask("roots/list", None).await {
                        Ok(Outcome::Result(answer)) => answer.get().to_owned(),
                        other => format!("{other:?}"),
                    };
                    let _ = seen.send(answer);
                });
                json!({})
            }
            "panic" => panic!("as asked"),
            "panic_with_task" => panic_with_task(call, self.seen.clone()),
            "echo" => return Outcome::Result(call.request.params.clone().unwrap()),
            _ => return failure(code::METHOD_NOT_FOUND, "no such method"),
        };
        Outcome::Result(raw(&result))
    }

    async fn on_notification(&self, host: Arc<Host<String>>, notification: Notification) {
        self.seen.send(format!("{} from {}", notification.method, host.principal)).unwrap();
    }

    async fn on_disconnect(&self, host: Arc<Host<String>>) {
        let _ = self.seen.send(format!("{} is gone", host.principal));
    }
}

pub(crate) async fn next(seen: &mut Seen) -> String {
    tokio::time::timeout(SOON, seen.recv()).await.expect("nothing happened").unwrap()
}

/// Waits until a condition holds.
async fn eventually(mut is_so: impl AsyncFnMut() -> bool) {
    let until = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(SOON, until).await.expect("it never was so");
}

/// A server on a free port.
pub(crate) struct Served {
    pub(crate) url: String,
    pub(crate) seen: Seen,
    switch: CancellationToken,
    done: tokio::task::JoinHandle<std::io::Result<()>>,
}

impl Served {
    /// Waits until the service has received this.
    pub(crate) async fn until(&mut self, wanted: &str) {
        while next(&mut self.seen).await != wanted {}
    }
}

pub(crate) async fn served(limits: Limits) -> Served {
    let (service, seen) = odd();
    let ending = CancellationToken::new();
    let switch = ending.clone();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let options = Options { origin_guard: OriginGuard::default(), limits: limits.clone() };
    let router = embody_wire::server::http::router(service, options, ending.clone());
    let console = axum::routing::get(|| async { "open" }).post(|body: String| async { body });
    let other = axum::Router::new().route("/console", console);
    let router = router.merge(other);
    let done = tokio::spawn(async move {
        embody_wire::server::http::serve(listener, router, &limits, ending).await;
        Ok(())
    });
    Served { url, seen, switch, done }
}

fn request(id: u64, method: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method})
}

fn modern(id: u64, method: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {"_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }}})
}
