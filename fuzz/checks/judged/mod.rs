//! What must hold of every byte that a body gets, whatever a host says: nothing of a host message arrives without a permit,
//! but for the one notification that is passed on, without its parameters.
//!
//! The bytes are what the host writes, as for `face`; it answers no question, so that nothing is approved. Two bodies
//! record what they get. One is denied whole: it gets what the broker says by itself, and nothing else. The other is open:
//! it gets reads and writes that no person is asked about, and those only as requests.

#[allow(dead_code, clippy::duplicate_mod, reason = "each check is a program of its own where it is fuzzed")]
#[path = "../json.rs"]
mod json;
#[allow(clippy::duplicate_mod, reason = "each check is a program of its own where it is fuzzed")]
#[path = "../face/script.rs"]
mod script;

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use embody_broker::Broker;
use embody_broker::policy::Glob;
use embody_broker::upstream::BodySpec;
use embody_store::Principal;
use embody_wire::Limits;
use embody_wire::server::{CancellationToken, lines};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::Runtime;
use tokio::time::timeout;

use self::script::{Step, steps};
use crate::stage::{ANSWER, Server, body, result, setup};

/// Longer than anything takes.
const SOON: Duration = Duration::from_secs(30);
/// How long a host waits where its script says so. It decides nothing but what comes before what.
const A_MOMENT: Duration = Duration::from_millis(10);
/// Hosts that one broker serves.
const HOSTS: u32 = 256;

const CAN: &str = r#"{"tools":{"listChanged":true},"resources":{"subscribe":true},"prompts":{},"completions":{},"logging":{},"tasks":{"list":{},"requests":{"tools":{"call":{}}}}}"#;
const TOOLS: &str = r#"{"tools":[{"name":"note_down","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":false,"destructiveHint":false,"openWorldHint":false}},{"name":"send_mail","inputSchema":{"type":"object"}},{"name":"look","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},{"name":"wait","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}"#;
const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
/// `_meta` that is not shown.
const META: [&str; 9] = [
    "progressToken",
    "traceparent",
    "tracestate",
    "baggage",
    "io.modelcontextprotocol/related-task",
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientInfo",
    "io.modelcontextprotocol/clientCapabilities",
    "io.modelcontextprotocol/logLevel",
];

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
        }
    });
}

/// How many requests with a permit have arrived so far at the open body of this broker.
#[allow(dead_code, reason = "the fuzzer does not ask")]
pub(crate) fn arrived() -> usize {
    WORLD.with_borrow(|kept| kept.as_ref().map_or(0, |world| world.arrived))
}

struct World {
    runtime: Runtime,
    broker: Arc<Broker>,
    locked: Server,
    open: Server,
    served: u32,
    arrived: usize,
}

impl World {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (locked, open) = (server("locked"), server("open"));
        let forward_methods = vec!["x/do".to_owned()];
        let denied =
            BodySpec { deny: vec![Glob::new("*")], forward_methods: forward_methods.clone(), ..body() };
        let bodies = [(&locked, denied), (&open, BodySpec { forward_methods, ..body() })];
        let broker = runtime
            .block_on(async { Arc::new(Broker::start(setup(&Server::silent("mind"), &bodies).await)) });
        Self { runtime, broker, locked, open, served: 0, arrived: 0 }
    }

    fn serve(&mut self, steps: &[Step]) {
        self.served += 1;
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let ending = CancellationToken::new();
        let limits = Limits { message_max_bytes: 4096, depth_max: 32, batch_max: 8, ..Limits::default() };
        let principal = Principal::host("owner", "default").unwrap();
        let (mut input, mut output) = tokio::io::split(ours);
        let saying = async {
            for step in steps {
                match step {
                    Step::Bytes(bytes) => output.write_all(bytes).await.expect("the broker must read"),
                    Step::BodySays(line) => self.open.say(line),
                    Step::Rest => tokio::time::sleep(A_MOMENT).await,
                    // It has no state to bring back, and answers nothing.
                    Step::State | Step::Responses | Step::Answer => {}
                }
            }
            // What is under way when the host leaves is not sent.
            tokio::time::sleep(A_MOMENT).await;
            let _ = output.shutdown().await;
        };
        let served =
            lines::serve(Arc::clone(&self.broker), principal, tokio::io::split(theirs), limits, ending);
        let mut heard = Vec::new();
        self.runtime.block_on(async {
            let all = async { tokio::join!(served, saying, input.read_to_end(&mut heard)) };
            assert!(timeout(SOON, all).await.is_ok(), "it does not end");
        });
        for (method, params) in self.locked.take_all() {
            assert!(is_the_brokers(&method, &params), "a body that is denied gets {method} {params}");
        }
        for (method, params) in self.open.take_all() {
            if !is_the_brokers(&method, &params) {
                assert!(is_permitted(&method, &params), "without a permit: {method} {params}");
                self.arrived += 1;
            }
        }
    }
}

fn server(name: &'static str) -> Server {
    Server::new(name, CAN, move |method, params| match method {
        "tools/list" => result(TOOLS),
        "tools/call" if params.contains(r#""wait""#) => Some(crate::stage::Reply::Silence),
        "tools/call" => result(r#"{"content":[{"type":"text","text":"done"}]}"#),
        "resources/list" => result(format!(
            r#"{{"resources":[{{"uri":"{name}://1","name":"a"}},{{"uri":"memory://1","name":"a"}}]}}"#
        )),
        "resources/templates/list" => result(r#"{"resourceTemplates":[{"uriTemplate":"{x}","name":"a"}]}"#),
        "resources/read" => result(r#"{"contents":[]}"#),
        "prompts/list" => {
            result(format!(r#"{{"prompts":[{{"name":"{name}"}},{{"name":"get_system_prompt"}}]}}"#))
        }
        "prompts/get" => result(r#"{"messages":[]}"#),
        "initialize" | "server/discover" => None,
        _ => result("{}"),
    })
}

/// Whether the broker says this by itself: nothing in it is a host's, but for a level that is one of eight.
fn is_the_brokers(method: &str, params: &str) -> bool {
    match method {
        "initialize" | "server/discover" | "ping" | "tools/list" | "notifications/initialized" | ANSWER => {
            true
        }
        "notifications/roots/list_changed" => params.is_empty(),
        // Of its own calls; the reason is all that a host says.
        "notifications/cancelled" => {
            members(params).iter().all(|name| matches!(&**name, "requestId" | "reason"))
        }
        "logging/setLevel" => LEVELS.iter().any(|level| params == format!(r#"{{"level":"{level}"}}"#)),
        _ => false,
    }
}

/// Whether this is a request that needs no approval. What only lists brings nothing else.
fn is_permitted(method: &str, params: &str) -> bool {
    let text = |name: &str| {
        let read = json::read(params)?;
        read.member(name)?.text().map(str::to_owned)
    };
    let has_only = |known: &[&str]| members(params).iter().all(|name| known.contains(&&**name));
    match method {
        "tools/call" => text("name").is_some_and(|name| matches!(&*name, "look" | "wait" | "note_down")),
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => {
            let scheme = text("uri").map(|uri| uri.split(':').next().unwrap_or_default().to_lowercase());
            scheme.is_some_and(|scheme| !matches!(&*scheme, "memory" | "instructions" | "embody"))
        }
        "prompts/get" => text("name").is_some(),
        "completion/complete" | "x/do" => true,
        // It has given no cursor and no task.
        "resources/list" | "resources/templates/list" | "prompts/list" | "tasks/list" => {
            has_only(&["_meta"]) && is_known_meta(params)
        }
        _ => false,
    }
}

fn members(params: &str) -> Vec<String> {
    match json::read(params).map(|read| read.node) {
        Some(json::Node::Object(members)) => members.into_iter().filter_map(|(name, _)| name).collect(),
        _ => Vec::new(),
    }
}

fn is_known_meta(params: &str) -> bool {
    let Some(read) = json::read(params) else { return params.is_empty() };
    let Some(meta) = read.member("_meta") else { return true };
    match &meta.node {
        json::Node::Object(members) => {
            members.iter().all(|(name, _)| name.as_deref().is_some_and(|name| META.contains(&name)))
        }
        _ => false,
    }
}
