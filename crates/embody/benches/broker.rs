//! What the broker costs: the same tool call directly to a server, and through `embody mcp` with gates, audit and
//! observation on, over stdio, all processes on one core. The server is this program, started with `--echo`: it reads a
//! line, finds the id, and writes the answer. Prints lines of cells between tabs; judges nothing.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a benchmark may fail loudly"
)]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

const WARM_UP: usize = 500;
const CALLS: usize = 2000;
const ROUNDS: usize = 9;
const AT_ONCE: usize = 32;
/// Several times what may wait for its record: whoever calls so often waits for the records too.
const MANY: usize = 20_000;
const SIZES: [usize; 4] = [100, 1_000, 10_000, 100_000];

fn main() {
    if std::env::args().any(|argument| argument == "--echo") {
        return echo();
    }
    if std::env::args().any(|argument| argument == "--hop") {
        return hop();
    }
    pin();
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let this = std::env::current_exe().unwrap();
    configure(folder.path(), &this);
    // Interleaved, so that what else the machine does falls on all alike.
    for round in 0..ROUNDS {
        measure(round, "direct", Host::start(Command::new(&this).arg("--echo")));
        measure(round, "bare hop", Host::start(Command::new(&this).arg("--hop")));
        measure(round, "embody", Host::start(&mut embody(folder.path())));
    }
}

/// Everything that is started from here stays on one core.
fn pin() {
    let core = rustix::thread::sched_getcpu();
    let mut set = rustix::thread::CpuSet::new();
    set.set(core);
    if let Err(error) = rustix::thread::sched_setaffinity(None, &set) {
        eprintln!("the processes are not kept on one core: {error}");
    }
}

fn configure(workspace: &Path, this: &Path) {
    let config = format!(
        "[[body]]\nname = \"echo\"\ncommand = [{:?}, \"--echo\"]\n\n[[policy.rule]]\ntools = [\"note\"]\nclass = \"write\"\ngate = \"allow\"\n",
        this.display().to_string()
    );
    std::fs::write(workspace.join("embody.toml"), config).unwrap();
}

fn embody(workspace: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_embody"));
    command.args(["mcp", "--log", "error", "--workspace"]).arg(workspace);
    command
}

fn measure(round: usize, what: &str, mut host: Host) {
    for (kind, tool) in [("read", "echo"), ("write", "note")] {
        if what == "embody" {
            host.call("runtime_bootstrap", json!({}));
        }
        let count = if kind == "read" { CALLS } else { CALLS / 10 };
        for _ in 0..WARM_UP.min(count) {
            host.call(tool, json!({"text": "warm"}));
        }
        let mut micros: Vec<f64> = (0..count)
            .map(|number| {
                let began = Instant::now();
                host.call(tool, json!({"text": format!("call {number}")}));
                began.elapsed().as_secs_f64() * 1e6
            })
            .collect();
        micros.sort_by(f64::total_cmp);
        let at = |share: f64| micros[((micros.len() - 1) as f64 * share) as usize];
        println!("call\t{round}\t{what}\t{kind}\t{count}\t{:.1}\t{:.1}\t{:.1}", at(0.5), at(0.9), at(0.99));
    }
    for bytes in SIZES {
        let text = "x".repeat(bytes);
        let median = host.median(500, || json!({ "text": text }));
        println!("size\t{round}\t{what}\t{bytes}\t{median:.1}");
    }
    let began = Instant::now();
    host.many("echo", MANY);
    println!("rate\t{round}\t{what}\t{:.0}", MANY as f64 / began.elapsed().as_secs_f64());
    host.end();
}

struct Host {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    last: u64,
}

impl Host {
    fn start(command: &mut Command) -> Self {
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = process.stdin.take().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let mut host = Self { process, input, output, last: 0 };
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}});
        host.send("initialize", &hello);
        host.answer();
        writeln!(host.input, r#"{{"jsonrpc":"2.0","method":"notifications/initialized"}}"#).unwrap();
        host.send("tools/list", &json!({}));
        host.answer();
        host
    }

    fn send(&mut self, method: &str, params: &Value) {
        self.last += 1;
        let line = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"{method}\",\"params\":{params}}}\n",
            self.last
        );
        self.input.write_all(line.as_bytes()).unwrap();
    }

    /// The next answer, whatever else is said before it.
    fn answer(&mut self) -> String {
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the server has ended");
            if line.contains("\"result\"") || line.contains("\"error\"") {
                return line;
            }
        }
    }

    fn call(&mut self, tool: &str, arguments: Value) {
        self.send("tools/call", &json!({"name": tool, "arguments": arguments}));
        let answer = self.answer();
        assert!(!answer.contains("\"isError\":true") && answer.contains("\"result\""), "{answer}");
    }

    /// The median time of so many calls, in microseconds.
    fn median(&mut self, count: usize, arguments: impl Fn() -> Value) -> f64 {
        let mut micros: Vec<f64> = (0..count)
            .map(|_| {
                let arguments = arguments();
                let began = Instant::now();
                self.call("echo", arguments);
                began.elapsed().as_secs_f64() * 1e6
            })
            .collect();
        micros.sort_by(f64::total_cmp);
        micros[micros.len() / 2]
    }

    /// So many calls, `AT_ONCE` of them on their way at any time.
    fn many(&mut self, tool: &str, count: usize) {
        let params = json!({"name": tool, "arguments": {"text": "many"}});
        for _ in 0..AT_ONCE {
            self.send("tools/call", &params);
        }
        for done in 0..count {
            self.answer();
            if done + AT_ONCE < count {
                self.send("tools/call", &params);
            }
        }
    }

    fn end(mut self) {
        drop(self.input);
        assert!(self.process.wait().unwrap().success());
    }
}

/// A broker that does nothing: it reads a message, exchanges its id, and passes it on; on the runtime that the real one
/// uses.
fn hop() {
    use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt};
    async fn pass(from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, ids: Ids) {
        let mut lines = tokio::io::BufReader::new(from);
        let mut line = String::new();
        while lines.read_line(&mut line).await.unwrap() > 0 {
            let out = ids.exchange(&line);
            to.write_all(out.as_bytes()).await.unwrap();
            line.clear();
        }
    }
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(async {
        let this = std::env::current_exe().unwrap();
        let mut child = tokio::process::Command::new(this)
            .arg("--echo")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = standard();
        let known = std::sync::Arc::default();
        let there = pass(
            input,
            child.stdin.take().unwrap(),
            Ids { known: std::sync::Arc::clone(&known), is_back: false },
        );
        let back = pass(child.stdout.take().unwrap(), output, Ids { known, is_back: true });
        let (there, back) = (tokio::spawn(there), tokio::spawn(back));
        there.await.unwrap();
        back.await.unwrap();
    });
}

struct Ids {
    known: std::sync::Arc<std::sync::Mutex<(u64, std::collections::HashMap<u64, String>)>>,
    is_back: bool,
}

impl Ids {
    /// The line with the other side's id.
    fn exchange(&self, line: &str) -> String {
        let message: Message<'_> = serde_json::from_str(line).unwrap();
        let Some(id) = message.id.map(serde_json::value::RawValue::get) else { return line.to_owned() };
        let mut known = self.known.lock().unwrap();
        let other = if self.is_back {
            known.1.remove(&id.parse().unwrap()).unwrap()
        } else {
            known.0 += 1;
            let number = known.0;
            known.1.insert(number, id.to_owned());
            number.to_string()
        };
        let start = id.as_ptr() as usize - line.as_ptr() as usize;
        format!("{}{other}{}", &line[..start], &line[start + id.len()..])
    }
}

/// A server that does as little as one can on a runtime, as servers do: reads a line, finds the id, writes the answer.
fn echo() {
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt};
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        let (input, mut output) = standard();
        let mut input = tokio::io::BufReader::new(input);
        let mut line = String::new();
        while input.read_line(&mut line).await.unwrap() > 0 {
            let message: Message<'_> = serde_json::from_str(&line).unwrap();
            if let Some(id) = message.id {
                let answer = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{}}}\n", result(&message));
                output.write_all(answer.as_bytes()).await.unwrap();
            }
            line.clear();
        }
    });
}

fn result(message: &Message<'_>) -> String {
    match message.method {
        "initialize" => {
            json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "echo", "version": "1"}})
                .to_string()
        }
        "tools/list" => json!({"tools": [
            {"name": "echo", "description": "Says it again.", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}},
            {"name": "note", "description": "Writes it down.", "inputSchema": {"type": "object"}},
        ]})
        .to_string(),
        "ping" => "{}".to_owned(),
        _ => format!(r#"{{"content":[{{"type":"text","text":{}}}]}}"#, message.params.arguments.text.unwrap()),
    }
}

/// The standard streams as pipes that the runtime waits for.
fn standard() -> (tokio::net::unix::pipe::Receiver, tokio::net::unix::pipe::Sender) {
    use std::os::fd::AsFd;
    let input = std::io::stdin().as_fd().try_clone_to_owned().unwrap();
    let output = std::io::stdout().as_fd().try_clone_to_owned().unwrap();
    (
        tokio::net::unix::pipe::Receiver::from_owned_fd(input).unwrap(),
        tokio::net::unix::pipe::Sender::from_owned_fd(output).unwrap(),
    )
}

#[derive(serde::Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    id: Option<&'a serde_json::value::RawValue>,
    #[serde(default)]
    method: &'a str,
    #[serde(borrow, default)]
    params: Params<'a>,
}

#[derive(serde::Deserialize, Default)]
struct Params<'a> {
    #[serde(borrow, default)]
    arguments: Arguments<'a>,
}

#[derive(serde::Deserialize, Default)]
struct Arguments<'a> {
    #[serde(borrow, default)]
    text: Option<&'a serde_json::value::RawValue>,
}
