//! What must hold at the face of a broker, whatever a host says: every request is answered once, by its id; every line that is
//! no message is answered once; what is written is the protocol; and nothing runs on when everybody has left.
//!
//! The bytes are what the host writes (`script`). A whole broker answers, with a store in memory and a body by script. What
//! its answers are held against is read from the same bytes by a reader of its own (`frames`).

#[path = "../frames.rs"]
mod frames;
#[path = "../json.rs"]
mod json;
mod script;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use embody_broker::Broker;
use embody_store::Principal;
use embody_wire::Limits;
use embody_wire::server::{CancellationToken, lines};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::runtime::Runtime;
use tokio::sync::Notify;
use tokio::time::timeout;

use self::frames::{Bounds, Message};
use self::script::{Step, steps};
use crate::stage::{Server, body, result, setup};

const BOUNDS: Bounds = Bounds { bytes: 4096, depth: 32, messages: 8 };
/// Longer than anything takes.
const SOON: Duration = Duration::from_secs(30);
/// How long a host waits for what it may never be told. It decides nothing but what comes before what.
const A_MOMENT: Duration = Duration::from_millis(20);
/// Hosts that one broker serves: then everything must end.
const HOSTS: u32 = 256;

const TOOLS: &str = r#"{"tools":[{"name":"note_down","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":false,"destructiveHint":false,"openWorldHint":false}},{"name":"send_mail","inputSchema":{"type":"object"}},{"name":"look","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},{"name":"wait","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}"#;

thread_local! {
    static WORLD: RefCell<Option<World>> = const { RefCell::new(None) };
}

/// Panics when something does not hold.
pub(crate) fn check(data: &[u8]) {
    let steps = steps(data);
    WORLD.with_borrow_mut(|kept| {
        let mut world = kept.take().unwrap_or_else(World::new);
        world.serve(&steps);
        if world.served < HOSTS {
            *kept = Some(world);
        } else {
            world.end();
        }
    });
}

/// Ends the broker that served the last ones. Panics when something of it is left.
pub(crate) fn finish() {
    if let Some(world) = WORLD.take() {
        world.end();
    }
}

struct World {
    runtime: Runtime,
    broker: Arc<Broker>,
    desk: Server,
    served: u32,
}

impl World {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let desk = Server::new(
            "desk",
            r#"{"tools":{"listChanged":true},"resources":{"subscribe":true},"prompts":{},"logging":{}}"#,
            |method, params| match method {
                "tools/list" => result(TOOLS),
                "tools/call" if params.contains(r#""wait""#) => Some(crate::stage::Reply::Silence),
                "tools/call" => result(r#"{"content":[{"type":"text","text":"done"}]}"#),
                "resources/list" => result(r#"{"resources":[{"uri":"test://a","name":"a"}]}"#),
                "resources/read" => result(r#"{"contents":[{"uri":"test://a","text":"a"}]}"#),
                "resources/subscribe" | "resources/unsubscribe" | "logging/setLevel" => result("{}"),
                "prompts/list" => result(r#"{"prompts":[{"name":"p"}]}"#),
                "prompts/get" => result(r#"{"messages":[]}"#),
                _ => None,
            },
        );
        let broker = runtime.block_on(async {
            Arc::new(Broker::start(setup(&Server::silent("mind"), &[(&desk, body())]).await))
        });
        Self { runtime, broker, desk, served: 0 }
    }

    fn serve(&mut self, steps: &[Step]) {
        self.served += 1;
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let ending = CancellationToken::new();
        let limits = Limits {
            message_max_bytes: BOUNDS.bytes,
            depth_max: BOUNDS.depth,
            batch_max: BOUNDS.messages,
            calls_max: 8,
            ..Limits::default()
        };
        let principal = Principal::host("owner", "default").unwrap();
        let streams = tokio::io::split(theirs);
        let (input, output) = tokio::io::split(ours);
        let host = Host::default();
        let (served, sent, ()) = self.runtime.block_on(async {
            let served = lines::serve(Arc::clone(&self.broker), principal, streams, limits, ending);
            let all = async { tokio::join!(served, host.say(output, steps, &self.desk), host.hear(input)) };
            timeout(SOON, all).await.unwrap_or_else(|_| panic!("it does not end: {host:?}"))
        });
        assert!(served.is_ok(), "a pipe that was closed is no failure: {served:?}");
        account(&sent, &host);
    }

    /// Ends the broker: whatever it has begun ends with it.
    fn end(self) {
        self.runtime.block_on(async {
            timeout(SOON, self.broker.shutdown()).await.expect("the broker does not end");
            drop(self.broker);
            self.desk.close();
            let all = async {
                while tokio::runtime::Handle::current().metrics().num_alive_tasks() > 0 {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            };
            let left = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
            timeout(SOON, all).await.unwrap_or_else(|_| panic!("{} tasks are left", left()));
        });
    }
}

/// What a host has heard.
#[derive(Debug, Default)]
struct Host {
    answers: RefCell<HashMap<Option<String>, Vec<String>>>,
    /// How many there are.
    answered: Cell<usize>,
    /// The id of the last question, as written.
    question: RefCell<Option<String>>,
    /// The last state, and the names of what was asked with it.
    state: RefCell<(String, Vec<String>)>,
    news: Notify,
}

impl Host {
    /// Says everything, and closes its end; what it has said.
    async fn say(&self, mut output: WriteHalf<DuplexStream>, steps: &[Step], desk: &Server) -> Vec<u8> {
        let mut sent = Vec::new();
        for step in steps {
            match step {
                Step::Bytes(bytes) => say(&mut output, &mut sent, bytes).await,
                Step::State => {
                    let text = serde_json::Value::from(self.state.borrow().0.as_str()).to_string();
                    say(&mut output, &mut sent, format!(r#""requestState":{text}"#).as_bytes()).await;
                }
                Step::Responses => {
                    let accepted = serde_json::json!({"action": "accept", "content": {}});
                    let answers: serde_json::Map<String, serde_json::Value> =
                        self.state.borrow().1.iter().map(|key| (key.clone(), accepted.clone())).collect();
                    let text = serde_json::Value::from(answers).to_string();
                    say(&mut output, &mut sent, format!(r#""inputResponses":{text}"#).as_bytes()).await;
                }
                Step::Answer => {
                    let id = self.question.borrow().clone().unwrap_or_else(|| r#""embody-1""#.to_owned());
                    let text = format!(
                        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"action":"accept","content":{{}}}}}}"#
                    );
                    say(&mut output, &mut sent, format!("{text}\n").as_bytes()).await;
                }
                Step::BodySays(line) => desk.say(line),
                Step::Rest => self.rest(&sent).await,
            }
        }
        let _ = output.shutdown().await;
        sent
    }

    /// Waits until everything is answered, for a moment only: what asks has no answer yet.
    async fn rest(&self, sent: &[u8]) {
        let wanted = Expected::read(sent).all();
        let waiting = async {
            while self.answered.get() < wanted {
                self.news.notified().await;
            }
        };
        let _ = timeout(A_MOMENT, waiting).await;
    }

    /// Hears everything until the other side closes its end.
    async fn hear(&self, input: ReadHalf<DuplexStream>) {
        let mut input = BufReader::new(input);
        loop {
            let mut line = Vec::new();
            if input.read_until(b'\n', &mut line).await.unwrap() == 0 {
                return;
            }
            assert_eq!(line.last(), Some(&b'\n'), "a line has an end: {}", String::from_utf8_lossy(&line));
            match frames::check_written(&line) {
                Message::Request { raw_id, .. } => *self.question.borrow_mut() = Some(raw_id),
                Message::Notification { .. } => {}
                Message::Response { id, outcome } => {
                    let (Ok(text) | Err(text)) = outcome;
                    assert!(!text.contains("the server failed while it worked on this request"), "{text}");
                    self.learn(&text);
                    self.answers.borrow_mut().entry(id).or_default().push(text);
                    self.answered.set(self.answered.get() + 1);
                }
            }
            self.news.notify_one();
        }
    }

    /// Learns what it is asked by an answer.
    fn learn(&self, result: &str) {
        let Some(result) = json::read(result) else { panic!("not JSON: {result}") };
        if let (Some(state), Some(asked)) = (result.member("requestState"), result.member("inputRequests")) {
            let json::Node::Object(asked) = &asked.node else { panic!("no questions: {asked:?}") };
            let keys = asked.iter().filter_map(|(key, _)| key.clone()).collect();
            *self.state.borrow_mut() = (state.text().unwrap_or_default().to_owned(), keys);
        }
    }
}

async fn say(output: &mut WriteHalf<DuplexStream>, sent: &mut Vec<u8>, bytes: &[u8]) {
    output.write_all(bytes).await.expect("nobody reads");
    sent.extend_from_slice(bytes);
}

/// What is to be answered.
#[derive(Default)]
struct Expected {
    /// How often each id was asked with.
    requests: HashMap<String, usize>,
    /// Ids that the host has cancelled somewhere: they need no answer.
    cancelled: Vec<String>,
    /// Lines that are no messages.
    broken: Vec<Vec<u8>>,
}

impl Expected {
    fn read(sent: &[u8]) -> Self {
        let mut expected = Self::default();
        for line in frames::lines(sent, BOUNDS) {
            let Some(messages) = frames::messages(line, BOUNDS) else {
                expected.broken.push(line.to_vec());
                continue;
            };
            for message in messages {
                match message {
                    Message::Request { id, .. } => *expected.requests.entry(id).or_default() += 1,
                    Message::Notification { method, params } if method == "notifications/cancelled" => {
                        let params = params.as_deref().and_then(json::read);
                        let id = params.as_ref().and_then(|params| params.member("requestId"));
                        expected.cancelled.extend(id.and_then(frames::key));
                    }
                    Message::Notification { .. } | Message::Response { .. } => {}
                }
            }
        }
        expected
    }

    fn all(&self) -> usize {
        self.requests.values().sum::<usize>() + self.broken.len()
    }
}

fn account(sent: &[u8], host: &Host) {
    let expected = Expected::read(sent);
    let answers = host.answers.borrow();
    for (id, count) in &expected.requests {
        let given = answers.get(&Some(id.clone())).map_or(0, Vec::len);
        let is_cancelled = expected.cancelled.contains(id);
        assert!(given >= *count || is_cancelled, "{id} was asked {count} times: {given} answers");
    }
    for (id, given) in answers.iter() {
        let Some(id) = id else { continue };
        let asked = expected.requests.get(id).copied().unwrap_or(0);
        // The id of a line that is no message is told if it can be made out.
        let within = expected.broken.iter().filter(|line| may_contain(line, id)).count();
        assert!(given.len() <= asked + within, "{id} was asked {asked} times: {given:?}");
    }
    let all: usize = answers.values().map(Vec::len).sum();
    assert!(all <= expected.all(), "{all} answers to {}: {answers:?}", expected.all());
    if expected.cancelled.is_empty() {
        assert_eq!(all, expected.all(), "every line that is no message is answered: {answers:?}");
    }
}

/// Whether an id can stand in a line: as it is, or with escapes.
fn may_contain(line: &[u8], id: &str) -> bool {
    let id = id.strip_prefix('"').unwrap_or(id).as_bytes();
    line.contains(&b'\\') || id.is_empty() || line.windows(id.len()).any(|part| part == id)
}
