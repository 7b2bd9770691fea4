//! A body that misbehaves on command: raw JSON-RPC lines on standard streams, without embody's own code, so that it shares no
//! bug. It writes every executed call to a file, which reveals a call that was sent twice.
//!
//! `unruly --log FILE [--name NAME] [--tools FILE] [--replies FILE] [--instructions FILE] [--while FILE] [--start TRICK[:AMOUNT]]… [--stays] [--child]`
//!
//! | option | does |
//! |---|---|
//! | `--log` | appends events, one JSON object per line, on disk before the response |
//! | `--name` | its name in the handshake |
//! | `--tools` | an array of tool definitions in place of its own, read at each `tools/list` |
//! | `--replies` | an object, tool → `{trick?, amount?, result?}`, read at each call; a trick among a call's own arguments wins |
//! | `--instructions` | its instructions, read at each start |
//! | `--while` | exits at once when the file does not exist |
//! | `--start` | faults before the handshake: see [`start`] |
//! | `--stays` | does not exit when the peer is gone |
//! | `--child` | starts a process that stays |
//!
//! The arguments of a call select its fault: `{"trick": "…", "amount": …}`, see [`tricks`]. A request whose method begins
//! with `x/` is answered with its own params.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a server that is there to misbehave may fail loudly"
)]

mod journal;
mod outlet;
mod start;
mod tools;
mod tricks;

use std::io::BufRead;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use self::journal::Journal;
use self::outlet::Outlet;

/// The command line.
#[derive(Default)]
struct Options {
    log: PathBuf,
    name: String,
    tools: Option<PathBuf>,
    replies: Option<PathBuf>,
    instructions: Option<PathBuf>,
    lives_while: Option<PathBuf>,
    start: Vec<(String, u64)>,
    stays: bool,
    child: bool,
}

/// A received line.
#[derive(Deserialize)]
struct Message {
    id: Option<Box<RawValue>>,
    method: Option<String>,
    params: Option<Box<RawValue>>,
    result: Option<Box<RawValue>>,
    error: Option<Box<RawValue>>,
}

/// The state that every call uses.
struct Body {
    options: Options,
    journal: Journal,
    outlet: Outlet,
}

fn main() {
    let options = options();
    if options.lives_while.as_ref().is_some_and(|file| !file.exists()) {
        eprintln!("unruly: not now");
        std::process::exit(1);
    }
    let journal = Journal::open(&options.log);
    // Longer than any test takes.
    let child = options.child.then(|| std::process::Command::new("sleep").arg("7200").spawn().unwrap().id());
    journal.note(&json!({"event": "start", "pid": std::process::id(), "child": child}));
    let body = Arc::new(Body { options, journal, outlet: Outlet::default() });
    start::misbehave(&body);
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        match serde_json::from_str::<Message>(&line) {
            Ok(message) => body.hear(message),
            Err(error) => body.journal.note(&json!({"event": "broken", "error": error.to_string()})),
        }
    }
    body.journal.note(&json!({"event": "end", "pid": std::process::id()}));
    if body.options.stays {
        loop {
            std::thread::park();
        }
    }
}

impl Body {
    fn hear(self: &Arc<Self>, message: Message) {
        let Message { id, method, params, result, error } = message;
        match (id, method) {
            (Some(id), Some(method)) => self.answer(id, &method, params),
            (None, Some(method)) => {
                self.journal.note(&json!({"event": "notification", "method": method, "params": params}));
            }
            (Some(id), None) => self.outlet.resolve(id.get(), result.or(error)),
            (None, None) => {}
        }
    }

    fn answer(self: &Arc<Self>, id: Box<RawValue>, method: &str, params: Option<Box<RawValue>>) {
        match method {
            "initialize" => {
                self.journal.note(&json!({"event": "initialize", "params": params}));
                start::initialize(self, &id);
            }
            "ping" => self.outlet.result(&id, "{}"),
            "tools/list" => self.outlet.result(&id, &tools::listed(self.options.tools.as_deref())),
            "tools/call" => {
                let body = Arc::clone(self);
                std::thread::spawn(move || tricks::call(&body, &id, params.as_deref()));
            }
            _ if method.starts_with("x/") => {
                self.journal.note(&json!({"event": "request", "method": method, "params": params}));
                self.outlet.result(&id, params.as_deref().map_or("{}", RawValue::get));
            }
            _ => self.outlet.error(&id, -32601, &format!("no method `{method}`")),
        }
    }

    fn capabilities(&self) -> Value {
        json!({"tools": {"listChanged": true}, "logging": {}, "experimental": {"unruly": {"really": true}}})
    }
}

fn options() -> Options {
    let mut options = Options { name: "unruly".into(), ..Options::default() };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().unwrap_or_else(|| panic!("`{word}` needs a value"));
        match word.as_str() {
            "--log" => options.log = value().into(),
            "--name" => options.name = value(),
            "--tools" => options.tools = Some(value().into()),
            "--replies" => options.replies = Some(value().into()),
            "--instructions" => options.instructions = Some(value().into()),
            "--while" => options.lives_while = Some(value().into()),
            "--start" => {
                let trick = value();
                let (name, amount) = trick.split_once(':').unwrap_or((&trick, "0"));
                options.start.push((name.to_owned(), amount.parse().unwrap()));
            }
            "--stays" => options.stays = true,
            "--child" => options.child = true,
            _ => panic!("`{word}` is no option"),
        }
    }
    assert!(!options.log.as_os_str().is_empty(), "`--log FILE` is missing");
    options
}
