//! A whole broker between a host on a raw pipe and scripted servers, all in this process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use embody_broker::catalogue::{CatalogueCache, ListingLimit};
use embody_broker::gate::MindDown;
use embody_broker::policy::{Glob, Policy};
use embody_broker::upstream::{BodySpec, IdleShutdown, Role, Spec};
use embody_broker::{
    Broker, BrokerConfig, BrokerSettings, CurrentSettings, Rules, Timeouts, UpstreamFactory,
};
use embody_store::audit::AuditRecord;
use embody_store::{DatabaseUrl, Principal, Store};
use embody_wire::server::{CancellationToken, lines};
use embody_wire::upstream::{EraCache, InProcessServer, Route};
use embody_wire::{Limits, Proxies};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};
use tokio::sync::{mpsc, oneshot, watch};

/// Longer than any step takes; a test that waits this long has failed.
const SOON: Duration = Duration::from_secs(30);

/// The method name under which a server's received responses are stored, as whole lines.
pub(crate) const ANSWER: &str = "(answer)";

/// The reaction of a scripted server to a request.
pub(crate) enum Reply {
    /// A result as raw text.
    Result(String),
    Error(i64, &'static str),
    /// No response.
    Silence,
}

pub(crate) fn result(text: impl Into<String>) -> Option<Reply> {
    Some(Reply::Result(text.into()))
}

type Script = Arc<dyn Fn(&str, &str) -> Option<Reply> + Send + Sync>;

/// A scripted server, shared by all connections.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) name: &'static str,
    capabilities: String,
    script: Script,
    seen: watch::Sender<Vec<(String, String)>>,
    /// The senders of its connections.
    out: Arc<Mutex<Vec<mpsc::UnboundedSender<String>>>>,
    /// Whether it accepts connections.
    is_open: watch::Sender<bool>,
    /// Whether it reads.
    listens: watch::Sender<bool>,
    call_timeout: Duration,
    start_timeout: Duration,
}

#[derive(Deserialize)]
struct Envelope {
    id: Option<Box<RawValue>>,
    method: Option<String>,
    params: Option<Box<RawValue>>,
    result: Option<Box<RawValue>>,
    error: Option<Box<RawValue>>,
}

impl Server {
    /// The script gets the method and the raw parameters (or an empty string); an unknown method returns `-32601`.
    pub(crate) fn new(
        name: &'static str,
        capabilities: &str,
        script: impl Fn(&str, &str) -> Option<Reply> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name,
            capabilities: capabilities.to_owned(),
            script: Arc::new(script),
            seen: watch::Sender::default(),
            out: Arc::default(),
            is_open: watch::Sender::new(true),
            listens: watch::Sender::new(true),
            call_timeout: Duration::from_secs(20),
            start_timeout: Limits::default().attempt_timeout,
        }
    }

    /// With this start timeout.
    pub(crate) fn starting_within(mut self, start_timeout: Duration) -> Self {
        self.start_timeout = start_timeout;
        self
    }

    /// A server without any capability.
    pub(crate) fn silent(name: &'static str) -> Self {
        Self::new(name, "{}", |_, _| None)
    }

    pub(crate) fn closed(self) -> Self {
        self.is_open.send_replace(false);
        self
    }

    /// With this call timeout.
    pub(crate) fn within(mut self, call_timeout: Duration) -> Self {
        self.call_timeout = call_timeout;
        self
    }

    /// With short timeouts.
    pub(crate) fn brief(mut self) -> Self {
        self.call_timeout = Duration::from_millis(200);
        self
    }

    /// Stops or resumes reading.
    pub(crate) fn listen(&self, listens: bool) {
        self.listens.send_replace(listens);
    }

    /// Closes its connections and rejects new ones until it is opened.
    pub(crate) fn close(&self) {
        self.is_open.send_replace(false);
        self.out.lock().unwrap().clear();
    }

    pub(crate) fn open(&self) {
        self.is_open.send_replace(true);
    }

    /// Writes a raw line on every connection.
    pub(crate) fn say(&self, line: &str) {
        for out in &*self.out.lock().unwrap() {
            let _ = out.send(line.to_owned());
        }
    }

    /// The number of connections.
    pub(crate) fn connected(&self) -> usize {
        self.out.lock().unwrap().iter().filter(|out| !out.is_closed()).count()
    }

    /// Everything received: methods and raw parameters.
    pub(crate) fn all(&self) -> Vec<(String, String)> {
        self.seen.borrow().clone()
    }

    /// The same, and clears it.
    pub(crate) fn take_all(&self) -> Vec<(String, String)> {
        self.seen.send_replace(Vec::new())
    }

    /// The raw parameters received with this method.
    pub(crate) fn received(&self, method: &str) -> Vec<String> {
        of(&self.seen.borrow(), method)
    }

    /// Waits until this method was received this often.
    pub(crate) async fn saw(&self, method: &str, times: usize) -> Vec<String> {
        let mut seen = self.seen.subscribe();
        let waited = seen.wait_for(|seen| seen.iter().filter(|(known, _)| known == method).count() >= times);
        let waited = tokio::time::timeout(SOON, waited).await;
        let seen = waited.unwrap_or_else(|_| panic!("`{}` did not see `{method}` {times} times", self.name));
        of(&seen.unwrap(), method)
    }

    fn connect(&self) -> DuplexStream {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        if *self.is_open.borrow() {
            let (out, lines) = mpsc::unbounded_channel();
            self.out.lock().unwrap().push(out.clone());
            tokio::spawn(self.clone().serve(theirs, out.downgrade(), lines));
        }
        ours
    }

    async fn serve(
        self,
        stream: DuplexStream,
        out: mpsc::WeakUnboundedSender<String>,
        mut lines: mpsc::UnboundedReceiver<String>,
    ) {
        let (input, mut output) = tokio::io::split(stream);
        let writing = async {
            while let Some(line) = lines.recv().await {
                if output.write_all(format!("{line}\n").as_bytes()).await.is_err() {
                    break;
                }
            }
        };
        let reading = async {
            let mut input = BufReader::new(input).lines();
            let mut listens = self.listens.subscribe();
            while let Ok(Some(line)) = input.next_line().await {
                listens.wait_for(|listens| *listens).await.unwrap();
                let message: Envelope = serde_json::from_str(&line).unwrap();
                let Some(method) = message.method else {
                    self.seen.send_modify(|seen| seen.push((ANSWER.to_owned(), line)));
                    continue;
                };
                let params = message.params.map(|params| params.get().to_owned()).unwrap_or_default();
                let reply = self.reply(&method, &params);
                self.seen.send_modify(|seen| seen.push((method, params)));
                let (Some(id), Some(out)) = (message.id, out.upgrade()) else { continue };
                let id = id.get();
                let _ = match reply {
                    Reply::Result(result) => {
                        out.send(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#))
                    }
                    Reply::Error(code, words) => out.send(format!(
                        r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"{words}"}}}}"#
                    )),
                    Reply::Silence => Ok(()),
                };
            }
        };
        tokio::select! {
            () = writing => {}
            () = reading => {}
        }
    }

    fn reply(&self, method: &str, params: &str) -> Reply {
        if let Some(reply) = (self.script)(method, params) {
            return reply;
        }
        match method {
            "initialize" => Reply::Result(format!(
                r#"{{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{{"name":"{}","version":"1"}}}}"#,
                self.capabilities, self.name
            )),
            "ping" => Reply::Result("{}".to_owned()),
            "tools/list" => Reply::Result(r#"{"tools":[]}"#.to_owned()),
            _ => Reply::Error(-32601, "no such method"),
        }
    }

    fn spec(&self, role: Role) -> Arc<Spec> {
        let server = self.clone();
        let connect = InProcessServer::on_streams(move || tokio::io::split(server.connect()));
        Arc::new(Spec {
            name: self.name.to_owned(),
            role,
            route: Route::InProcess(connect),
            tokens: None,
            proxies: Proxies::default(),
            limits: Limits { attempt_timeout: self.start_timeout, ..Limits::default() },
            call_timeout: self.call_timeout,
            idle_shutdown: IdleShutdown::default(),
            tools: None,
            check: None,
            era: EraCache::default(),
        })
    }
}

fn of(seen: &[(String, String)], method: &str) -> Vec<String> {
    seen.iter().filter(|(known, _)| known == method).map(|(_, params)| params.clone()).collect()
}

/// The ids of received requests, as written.
type Questions = Arc<Mutex<Vec<String>>>;

/// A host with a broker.
pub(crate) struct Host {
    out: mpsc::UnboundedSender<String>,
    answers: Arc<Mutex<HashMap<u64, oneshot::Sender<Envelope>>>>,
    received: tokio::sync::Mutex<mpsc::UnboundedReceiver<(String, String)>>,
    /// The ids of the requests that it has received.
    asked: Questions,
    last: Mutex<u64>,
    /// Whether it reads.
    listens: watch::Sender<bool>,
    broker: Arc<Broker>,
    _switch: CancellationToken,
}

/// Waits for the first record of this kind.
pub(crate) async fn recorded(store: &Store, event: &str) -> AuditRecord {
    let found = async {
        loop {
            let records = store.audit().tail(100, None).await.unwrap();
            if let Some(found) = records.into_iter().find(|record| record.event == event) {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(SOON, found).await.unwrap_or_else(|_| panic!("there is no `{event}` on record"))
}

/// The usual body: everything is exposed, and its annotations are trusted.
pub(crate) fn body() -> BodySpec {
    BodySpec { allow: vec![Glob::new("*")], trust_annotations: true, ..BodySpec::default() }
}

/// The configuration of a broker with this mind and these bodies.
pub(crate) async fn setup(mind: &Server, bodies: &[(&Server, BodySpec)]) -> BrokerConfig {
    let body =
        |(server, body): &(&Server, BodySpec)| UpstreamFactory::fixed(server.spec(Role::Body(body.clone())));
    BrokerConfig {
        store: Store::open(DatabaseUrl::Memory).await.unwrap(),
        agent: "default".to_owned(),
        owner: "owner".to_owned(),
        mind: UpstreamFactory::fixed(mind.spec(Role::Mind)),
        settings: CurrentSettings::new(BrokerSettings {
            bodies: bodies.iter().map(body).collect(),
            policy: Arc::new(Policy::default()),
            policy_version: "1".to_owned(),
            mind_down: MindDown::Warn,
            times: times(),
            listing_limit: ListingLimit::default(),
        }),
        rules: Rules::new(|_| async { Ok("be kind".to_owned()) }),
        catalogues: CatalogueCache::default(),
        meter: Arc::default(),
        clock: Box::new(|| 1_800_000_000_000_000),
    }
}

impl Host {
    /// A broker with an empty mind and these bodies.
    pub(crate) async fn new(bodies: &[&Server]) -> Self {
        let bodies: Vec<(&Server, BodySpec)> = bodies.iter().map(|server| (*server, body())).collect();
        Self::with(&Server::silent("mind"), &bodies).await
    }

    pub(crate) async fn with(mind: &Server, bodies: &[(&Server, BodySpec)]) -> Self {
        Self::initialized(Broker::start(setup(mind, bodies).await)).await
    }

    /// A host with an initialized session.
    pub(crate) async fn initialized(broker: Broker) -> Self {
        let host = Self::connect(Arc::new(broker), "owner");
        let hello = r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}"#;
        host.result("initialize", hello).await;
        host.notify("notifications/initialized", "{}");
        host
    }

    /// A stateless host: every request carries its client info.
    pub(crate) fn stateless(broker: &Arc<Broker>) -> Self {
        Self::stateless_as("owner", broker)
    }

    /// The same for this user.
    pub(crate) fn stateless_as(user: &str, broker: &Arc<Broker>) -> Self {
        Self::connect(Arc::clone(broker), user)
    }

    fn connect(broker: Arc<Broker>, user: &str) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let principal =
            Principal { may_approve: user == "owner", ..Principal::host(user, "default").unwrap() };
        let ending = CancellationToken::new();
        let switch = ending.clone();
        let streams = tokio::io::split(theirs);
        tokio::spawn(lines::serve(Arc::clone(&broker), principal, streams, Limits::default(), ending));
        let (input, mut output) = tokio::io::split(ours);
        let (out, mut lines) = mpsc::unbounded_channel::<String>();
        tokio::spawn(async move {
            while let Some(line) = lines.recv().await {
                output.write_all(format!("{line}\n").as_bytes()).await.unwrap();
            }
        });
        let answers = Arc::<Mutex<HashMap<u64, oneshot::Sender<Envelope>>>>::default();
        let (sender, received) = mpsc::unbounded_channel();
        let asked = Questions::default();
        let listens = watch::Sender::new(true);
        tokio::spawn(read(input, Arc::clone(&answers), (sender, Arc::clone(&asked)), listens.subscribe()));
        let received = tokio::sync::Mutex::new(received);
        Self { out, answers, received, asked, last: Mutex::default(), listens, broker, _switch: switch }
    }

    /// Sends a request with raw parameters (or none); returns the raw outcome.
    pub(crate) async fn call(&self, method: &str, params: &str) -> Result<String, String> {
        let id = {
            let mut last = self.last.lock().unwrap();
            *last += 1;
            *last
        };
        let (sender, answer) = oneshot::channel();
        self.answers.lock().unwrap().insert(id, sender);
        let params = if params.is_empty() { String::new() } else { format!(r#","params":{params}"#) };
        self.out.send(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"{params}}}"#)).unwrap();
        let answer = tokio::time::timeout(SOON, answer).await;
        let answer = answer.unwrap_or_else(|_| panic!("no answer to `{method}`")).unwrap();
        match (answer.result, answer.error) {
            (Some(result), None) => Ok(result.get().to_owned()),
            (_, error) => Err(error.unwrap().get().to_owned()),
        }
    }

    /// The result of a request that must not fail.
    pub(crate) async fn result(&self, method: &str, params: &str) -> String {
        self.call(method, params).await.unwrap_or_else(|error| panic!("`{method}` failed: {error}"))
    }

    /// The code and the message of a request that must fail.
    pub(crate) async fn error(&self, method: &str, params: &str) -> (i64, String) {
        let error = self.call(method, params).await.expect_err("it did not fail");
        let error: serde_json::Value = serde_json::from_str(&error).unwrap();
        (error["code"].as_i64().unwrap(), error["message"].as_str().unwrap().to_owned())
    }

    pub(crate) fn notify(&self, method: &str, params: &str) {
        self.out.send(format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#)).unwrap();
    }

    /// Writes a raw line.
    pub(crate) fn say(&self, line: &str) {
        self.out.send(line.to_owned()).unwrap();
    }

    /// Answers the received request with this number, counted from 1.
    pub(crate) fn answer(&self, number: usize, result: &str) {
        let id = self.asked.lock().unwrap()[number - 1].clone();
        self.say(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#));
    }

    /// Stops or resumes reading.
    pub(crate) fn listen(&self, listens: bool) {
        self.listens.send_replace(listens);
    }

    /// The received notifications and requests that no other call has taken.
    pub(crate) async fn received_methods(&self) -> Vec<String> {
        let mut received = self.received.lock().await;
        std::iter::from_fn(|| received.try_recv().ok()).map(|(method, _)| method).collect()
    }

    /// Waits for this notification; returns the earlier ones.
    pub(crate) async fn receive_until(&self, method: &str) -> Vec<String> {
        let (mut received, mut before) = (self.received.lock().await, Vec::new());
        loop {
            let next = tokio::time::timeout(SOON, received.recv()).await;
            let (next, _) = next.unwrap_or_else(|_| panic!("no `{method}` after {before:?}")).unwrap();
            if next == method {
                return before;
            }
            before.push(next);
        }
    }

    /// The next notification or request that is not about tools.
    pub(crate) async fn next_notification(&self) -> (String, String) {
        let mut received = self.received.lock().await;
        loop {
            let next = tokio::time::timeout(SOON, received.recv()).await.expect("nothing was heard").unwrap();
            if next.0 != "notifications/tools/list_changed" {
                return next;
            }
        }
    }

    /// Waits until the broker reports this state of a server.
    pub(crate) async fn until(&self, server: &str, state: &str) {
        let waited = async {
            loop {
                let status = self.result("tools/call", r#"{"name":"runtime_status","arguments":{}}"#).await;
                let status: serde_json::Value = serde_json::from_str(&status).unwrap();
                let upstreams = status["structuredContent"]["upstreams"].as_array().unwrap();
                if upstreams.iter().any(|one| one["name"] == server && one["state"] == state) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(SOON, waited).await.unwrap_or_else(|_| panic!("`{server}` is not {state}"));
    }

    /// The broker's status of this session.
    pub(crate) async fn status(&self) -> serde_json::Value {
        let status = self.result("tools/call", r#"{"name":"runtime_status","arguments":{}}"#).await;
        let mut status: serde_json::Value = serde_json::from_str(&status).unwrap();
        status["structuredContent"].take()
    }

    pub(crate) async fn end(self) {
        self.broker.shutdown().await;
    }
}

async fn read(
    input: impl tokio::io::AsyncRead + Unpin,
    answers: Arc<Mutex<HashMap<u64, oneshot::Sender<Envelope>>>>,
    (sender, asked): (mpsc::UnboundedSender<(String, String)>, Questions),
    mut listens: watch::Receiver<bool>,
) {
    let mut input = BufReader::new(input).lines();
    while let Ok(Some(line)) = input.next_line().await {
        let _ = listens.wait_for(|listens| *listens).await;
        let message: Envelope = serde_json::from_str(&line).unwrap();
        if let Some(method) = message.method {
            let params = message.params.map(|params| params.get().to_owned()).unwrap_or_default();
            asked.lock().unwrap().extend(message.id.map(|id| id.get().to_owned()));
            let _ = sender.send((method, params));
            continue;
        }
        // An error about an invalid line has no id.
        let Some(id) = &message.id else { continue };
        let id: u64 = id.get().parse().unwrap();
        if let Some(answer) = answers.lock().unwrap().remove(&id) {
            let _ = answer.send(message);
        }
    }
}

/// The tests' hosts have no model and respond at once.
pub(crate) fn times() -> Timeouts {
    Timeouts { contract_delay: Duration::ZERO, ..Timeouts::default() }
}
