//! A server over streamable HTTP, with sessions and without: a socket on loopback that answers a call with whatever it is told.

use std::cell::RefCell;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};

use embody_wire::Url;
use embody_wire::upstream::{EraCache, Link, OutgoingCall, Route};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::frames::Bounds;
use super::{Ended, SOON, answer_to, events, frames, hear, json, opening, script};

const BOUNDS: Bounds = Bounds { bytes: 1 << 17, depth: 32, messages: 8 };
const STATUS: [&str; 8] = [
    "200 OK",
    "200 OK",
    "200 OK",
    "202 Accepted",
    "400 Bad Request",
    "401 Unauthorized",
    "404 Not Found",
    "307 Temporary Redirect\r\nLocation: http://127.0.0.1/",
];
/// A stream that wants to be left alone for longer is not heard out.
const MOST_PATIENCE_MS: u64 = 60;

thread_local! {
    static WORLD: RefCell<Option<World>> = const { RefCell::new(None) };
}

pub(super) fn check(choices: [u8; 4], data: &[u8], kind: &'static str) {
    WORLD.with_borrow_mut(|world| world.get_or_insert_with(World::new).check(choices, data, kind));
}

/// How a call is answered.
#[derive(Clone, Default)]
struct Plan {
    status: &'static str,
    kind: &'static str,
    data: Vec<u8>,
    piece: usize,
}

struct World {
    runtime: Runtime,
    port: u16,
    plan: Arc<Mutex<Plan>>,
    /// One to a server with sessions, one to a server without.
    links: [Option<Link>; 2],
}

impl World {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let plan = Arc::<Mutex<Plan>>::default();
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).unwrap();
        let port = listener.local_addr().unwrap().port();
        let plans = Arc::clone(&plan);
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&plans)));
            }
        });
        Self { runtime, port, plan, links: [None, None] }
    }

    fn check(&mut self, choices: [u8; 4], data: &[u8], kind: &'static str) {
        let (era, status) = (usize::from(choices[1] % 2), STATUS[usize::from(choices[2] % 8)]);
        let piece = 1 + usize::from(choices[3]);
        *self.plan.lock().unwrap() = Plan { status, kind, data: data.to_vec(), piece };
        let link = match self.links[era].take().filter(|link| link.closed().is_none()) {
            Some(link) => link,
            None => self.runtime.block_on(open(self.port, era)),
        };
        let is_run = self.runtime.block_on(async {
            let called = timeout(SOON, call(&link, status, data, kind, piece)).await;
            called.unwrap_or_else(|_| panic!("it does not end"))
        });
        assert!(!is_run || link.waiting() == 0, "nobody waits any more");
        self.links[era] = Some(link);
    }
}

async fn open(port: u16, era: usize) -> Link {
    let url = Url::parse(&format!("http://127.0.0.1:{port}/{era}")).unwrap();
    // Nobody listens to what belongs to no call.
    let (said, _) = mpsc::channel(1);
    let opening = opening(Route::Http { url }, BOUNDS, EraCache::default());
    let link = timeout(SOON, Link::open(&opening, said)).await.expect("it does not open");
    let link = link.unwrap_or_else(|error| panic!("it does not open: {error}"));
    assert_eq!(link.is_stateless(), era == 1);
    link
}

/// Makes the call, unless that would only take long; whether it did.
async fn call(link: &Link, status: &str, data: &[u8], kind: &str, piece: usize) -> bool {
    // The numbers of calls are given one after the other.
    let probe = link.begin(OutgoingCall { method: "x/number", params: None }).await;
    let number = probe.expect("a call is sent").number() + 1;
    let body = script::said(data, &[number]);
    let meant = if status != STATUS[0] {
        None
    } else if kind == "application/json" {
        frames::messages(&body, BOUNDS).and_then(|messages| answer(&messages, number))
    } else {
        events::check(&body, piece);
        let stream = events::read(&body);
        match heard_out(&stream, number) {
            Hearing::Answer(answer) => Some(answer),
            Hearing::Fault => None,
            // It would be taken up again, and refused then.
            Hearing::End if stream.has_place && stream.retry_ms.is_none_or(|ms| ms > MOST_PATIENCE_MS) => {
                return false;
            }
            Hearing::End => None,
        }
    };
    let (ended, outcome) = match link.begin(OutgoingCall { method: "tools/call", params: None }).await {
        Ok(mut running) => {
            assert_eq!(running.number(), number);
            let (ended, outcome, _) = hear(&mut running).await;
            (ended, outcome)
        }
        Err(_) => (Ended::Lost, None),
    };
    assert_eq!(ended, meant.map_or(Ended::Lost, Ended::Done), "as it was written");
    if let Some(asked) = outcome.and_then(|outcome| link.input_required(&outcome)) {
        assert!(link.is_stateless(), "only a server without sessions asks so");
        let answers = vec![serde_json::value::RawValue::NULL.to_owned(); asked.requests.len()];
        let again = asked.params(None, &answers).expect("what was asked can be answered");
        assert!(json::read(again.get()).is_some(), "not JSON: {}", again.get());
    }
    true
}

enum Hearing {
    Answer(Result<String, String>),
    /// What cannot be read may have been the answer.
    Fault,
    End,
}

fn heard_out(stream: &events::Stream, number: u64) -> Hearing {
    for (name, data) in &stream.events {
        if name != "message" || data.is_empty() {
            continue;
        }
        let Some(messages) = frames::messages(data.as_bytes(), BOUNDS) else { return Hearing::Fault };
        if let Some(answer) = answer(&messages, number) {
            return Hearing::Answer(answer);
        }
    }
    if stream.is_broken { Hearing::Fault } else { Hearing::End }
}

/// The answer among these; on the stream of a call an error without an id is one.
fn answer(messages: &[frames::Message], number: u64) -> Option<Result<String, String>> {
    messages.iter().find_map(|message| match message {
        frames::Message::Response { id: None, outcome } => Some(outcome.clone()),
        other => answer_to(other, number),
    })
}

async fn serve(stream: TcpStream, plan: Arc<Mutex<Plan>>) {
    let mut stream = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    let _ = stream.read_line(&mut line).await;
    loop {
        let mut header = String::new();
        if stream.read_line(&mut header).await.unwrap_or(0) <= 2 {
            break;
        }
        let lower = header.to_ascii_lowercase();
        if let Some(given) = lower.strip_prefix("content-length:") {
            length = given.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    let _ = stream.read_exact(&mut body).await;
    let plan = plan.lock().unwrap().clone();
    let (head, body, piece) = answered(&line, &String::from_utf8_lossy(&body), plan);
    let head = format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    let _ = stream.write_all(head.as_bytes()).await;
    for part in body.chunks(piece.max(1)) {
        // Whoever has heard enough does not read on.
        if stream.write_all(part).await.is_err() || stream.flush().await.is_err() {
            return;
        }
        tokio::task::yield_now().await;
    }
    let _ = stream.shutdown().await;
}

/// Status and headers, the body, and in which pieces it goes out.
fn answered(line: &str, body: &str, plan: Plan) -> (String, Vec<u8>, usize) {
    const WHOLE: usize = 1 << 16;
    let is_alone = line.contains(" /1 ");
    let refused = |status: &str| (format!("{status}\r\nContent-Type: text/plain"), Vec::new(), WHOLE);
    if !line.starts_with("POST") {
        return refused(if line.starts_with("GET") { "405 Method Not Allowed" } else { "200 OK" });
    }
    let message = json::read(body).expect("what we send is JSON");
    let method = message.member("method").and_then(|method| method.text().map(str::to_owned));
    let id = message.member("id").map_or("null", |id| id.raw);
    let json = |outcome: &str| {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},{outcome}}}"#);
        let session = if is_alone { "" } else { "\r\nMcp-Session-Id: s" };
        (format!("200 OK\r\nContent-Type: application/json{session}"), text.into_bytes(), WHOLE)
    };
    match method.as_deref() {
        Some("server/discover") if is_alone => {
            json(r#""result":{"supportedVersions":["2026-07-28"],"capabilities":{}}"#)
        }
        Some("initialize") if !is_alone => json(
            r#""result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}"#,
        ),
        Some("tools/call") => {
            let numbers = [id.parse().expect("a number")];
            let said = script::said(&plan.data, &numbers);
            (format!("{}\r\nContent-Type: {}", plan.status, plan.kind), said, plan.piece)
        }
        Some(_) if id != "null" => json(r#""error":{"code":-32601,"message":"no such method"}"#),
        _ => refused("202 Accepted"),
    }
}
