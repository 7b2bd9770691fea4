//! A scripted server in this process, with a separate pipe per connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use embody_broker::policy::Glob;
use embody_broker::upstream::{Backoff, BodySpec, IdleShutdown, Role, Spec, Upstream, UpstreamEvent};
use embody_wire::upstream::{EraCache, InProcessServer, Route};
use embody_wire::{InitializeParams, Limits, Proxies};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;
use tokio::time::timeout;

pub(crate) const SOON: Duration = Duration::from_secs(20);
pub(crate) const LONG: Duration = Duration::from_secs(3600);

/// The reaction of a server to a message.
pub(crate) enum Does {
    /// Writes these messages in order.
    Write(Vec<Value>),
    /// Closes the pipe.
    Close,
}

/// A message of a connection, numbered from 0.
pub(crate) struct Message<'a> {
    pub(crate) connection: usize,
    pub(crate) method: &'a str,
    pub(crate) id: Value,
    pub(crate) params: Value,
}

impl Message<'_> {
    pub(crate) fn result(&self, result: Value) -> Does {
        Does::Write(vec![json!({"jsonrpc": "2.0", "id": self.id, "result": result})])
    }

    /// The response of an ordinary server with these tools.
    pub(crate) fn plain(&self, tools: &[&str]) -> Does {
        match self.method {
            "initialize" => self.result(hello("scripted")),
            "tools/list" => self.result(listing(tools)),
            _ if self.id.is_null() => Does::Write(Vec::new()),
            _ => self.result(json!({})),
        }
    }
}

pub(crate) fn hello(name: &str) -> Value {
    json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {"listChanged": true}}, "serverInfo": {"name": name, "version": "1"}})
}

pub(crate) fn listing(tools: &[&str]) -> Value {
    json!({"tools": tools.iter().map(|name| json!({"name": name})).collect::<Vec<_>>()})
}

pub(crate) fn note(method: &str) -> Value {
    json!({"jsonrpc": "2.0", "method": method})
}

/// A server, and the means to observe it.
pub(crate) struct Scripted {
    pub(crate) route: Route,
    pub(crate) connections: Arc<AtomicUsize>,
    /// Each connection that the peer has closed.
    pub(crate) closed: mpsc::UnboundedReceiver<usize>,
}

impl Scripted {
    pub(crate) fn new(script: impl Fn(&Message<'_>) -> Does + Send + Sync + 'static) -> Self {
        let (script, connections) = (Arc::new(script), Arc::new(AtomicUsize::new(0)));
        let (gone, closed) = mpsc::unbounded_channel();
        let counted = Arc::clone(&connections);
        let connect = InProcessServer::on_streams(move || {
            let (ours, theirs) = tokio::io::duplex(1 << 16);
            let connection = counted.fetch_add(1, Ordering::SeqCst);
            let (script, gone) = (Arc::clone(&script), gone.clone());
            tokio::spawn(async move {
                serve(theirs, connection, &*script).await;
                let _ = gone.send(connection);
            });
            tokio::io::split(ours)
        });
        Self { route: Route::InProcess(connect), connections, closed }
    }

    pub(crate) fn start(&self, pace: Backoff) -> (Arc<Upstream>, mpsc::Receiver<UpstreamEvent>) {
        start(self.route.clone(), Limits::default(), pace)
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

async fn serve(
    stream: tokio::io::DuplexStream,
    connection: usize,
    script: &(dyn Fn(&Message<'_>) -> Does + Send + Sync),
) {
    let (input, mut output) = tokio::io::split(stream);
    let mut lines = BufReader::new(input).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let value: Value = serde_json::from_str(&line).unwrap();
        let method = value["method"].as_str().unwrap_or("answer");
        let params =
            if value["method"].is_null() { value["result"].clone() } else { value["params"].clone() };
        let message = Message { connection, method, id: value["id"].clone(), params };
        let Does::Write(texts) = script(&message) else { return };
        for text in texts {
            if output.write_all(format!("{text}\n").as_bytes()).await.is_err() {
                return;
            }
        }
    }
}

/// Starts an upstream on a route.
pub(crate) fn start(
    route: Route,
    limits: Limits,
    pace: Backoff,
) -> (Arc<Upstream>, mpsc::Receiver<UpstreamEvent>) {
    let (sender, events) = mpsc::channel(64);
    let role = Role::Body(BodySpec { allow: vec![Glob::new("*")], ..BodySpec::default() });
    let spec = Spec {
        name: "body".to_owned(),
        role,
        route,
        tokens: None,
        proxies: Proxies::default(),
        limits,
        call_timeout: SOON,
        idle_shutdown: IdleShutdown::default(),
        tools: None,
        check: None,
        era: EraCache::default(),
    };
    (Upstream::start_with_backoff(pace, Arc::new(spec), InitializeParams::default(), sender), events)
}

/// Only the first attempt happens by itself.
pub(crate) fn still() -> Backoff {
    Backoff {
        retry_first: LONG,
        retry_max: LONG,
        ping_interval: LONG,
        listing_gap: Duration::ZERO,
        ..Backoff::default()
    }
}

/// The names of the currently listed tools.
pub(crate) fn names(upstream: &Upstream) -> Vec<String> {
    upstream.tools().iter().map(|tool| tool.name.clone()).collect()
}

/// Waits for a state of an upstream, which reports every change.
pub(crate) async fn until(events: &mut mpsc::Receiver<UpstreamEvent>, is_so: impl Fn() -> bool) {
    let changes = async {
        while !is_so() {
            events.recv().await.expect("the upstream is gone");
        }
    };
    timeout(SOON, changes).await.expect("it did not become so");
}
