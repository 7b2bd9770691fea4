//! What a turn costs beside the model, and what many at once take: `embody up`, a model that answers at once or slowly (the
//! scripted one of the tests), turns over `/api/chat`. Prints lines of cells between tabs; judges nothing.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a benchmark may fail loudly"
)]

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::Barrier;

/// Turns of each kind that are timed.
const TURNS: usize = 300;
/// Chats at once; fewer than the connections that the server accepts.
const CROWDS: [usize; 4] = [125, 250, 500, 900];
/// Chats from one address, fewer than the connections that the server accepts from it.
const OF_ADDRESS: usize = 250;
/// Turns that one user may have at once.
const OF_USER: usize = 16;

#[tokio::main]
async fn main() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let model = model(folder.path());
    let config = format!("[model]\nbase_url = \"{}/v1\"\nmodel = \"scripted\"\n", model.url);
    std::fs::write(folder.path().join("embody.toml"), config).unwrap();
    let up = start(
        Command::new(env!("CARGO_BIN_EXE_embody"))
            .args(["up", "--listen", "127.0.0.1:0", "--log", "error", "--workspace"])
            .arg(folder.path()),
    );
    turns(&client(1), &model, &up, folder.path()).await;
    crowds(&up, folder.path()).await;
}

/// A client that connects from this loopback address.
fn client(address: u8) -> reqwest::Client {
    let address = std::net::Ipv4Addr::new(127, 0, 0, address);
    let client = reqwest::Client::builder().local_address(std::net::IpAddr::from(address));
    client.pool_max_idle_per_host(0).build().unwrap()
}

/// A model that answers at once, and one whose answers take half a minute.
fn model(folder: &Path) -> Running {
    let slow = json!({"text": "word ", "repeat": 150, "chunk": 5, "delay_ms": 200});
    let rules = json!([
        {"when": {"user": "crowd"}, "reply": slow},
        {"when": {"user": "tool", "results": 0}, "reply": {"calls": [{"name": "list_tasks", "arguments": {}}]}},
        {"when": {}, "reply": {"text": "Good morning."}},
    ]);
    let script = folder.join("script.json");
    std::fs::write(&script, rules.to_string()).unwrap();
    let program = PathBuf::from(env!("CARGO_BIN_EXE_embody")).parent().unwrap().join("examples/scripted");
    assert!(
        program.exists(),
        "{} is missing: `cargo build --release -p embody-agent --example scripted`",
        program.display()
    );
    start(Command::new(program).arg(script).arg(folder.join("model.jsonl")))
}

/// One turn at a time: asking the model directly, and through everything.
async fn turns(http: &reqwest::Client, model: &Running, up: &Running, folder: &Path) {
    let token = token(folder, "bench");
    let mut direct = Vec::new();
    let [mut fresh, mut going_on, mut with_tool] = [const { Vec::new() }; 3];
    let mut thread = None;
    for _ in 0..TURNS {
        let ask =
            json!({"model": "scripted", "stream": true, "messages": [{"role": "user", "content": "hello"}]});
        let began = Instant::now();
        let answer = http.post(format!("{}/v1/chat/completions", model.url)).json(&ask).send().await.unwrap();
        answer.bytes().await.unwrap();
        direct.push(began.elapsed());
        fresh.push(turn(http, up, &token, "hello", None).await.0);
        // A conversation of ten turns, then another.
        let known = thread.take().filter(|(_, turns)| *turns < 10);
        let (time, id) =
            turn(http, up, &token, "hello", known.as_ref().map(|(id, _): &(String, u32)| &**id)).await;
        match known {
            None => thread = Some((id, 1)),
            Some((id, turns)) => {
                going_on.push(time);
                thread = Some((id, turns + 1));
            }
        }
        with_tool.push(turn(http, up, &token, "tool", None).await.0);
    }
    for (what, times) in [
        ("the model alone", direct),
        ("first turn of a conversation", fresh),
        ("later turn of a conversation", going_on),
        ("first turn, with one tool call", with_tool),
    ] {
        let mut micros: Vec<f64> = times.iter().map(|time| time.as_secs_f64() * 1e6).collect();
        micros.sort_by(f64::total_cmp);
        let at = |share: f64| micros[((micros.len() - 1) as f64 * share) as usize];
        println!("turn\t{what}\t{}\t{:.0}\t{:.0}", micros.len(), at(0.5), at(0.99));
    }
}

/// Many turns at once; the memory while all of them are being answered.
async fn crowds(up: &Running, folder: &Path) {
    let most = CROWDS.into_iter().max().unwrap();
    let clients: Vec<reqwest::Client> =
        (1..=most.div_ceil(OF_ADDRESS)).map(|number| client(number as u8)).collect();
    let tokens: Vec<String> =
        (0..most.div_ceil(OF_USER)).map(|user| token(folder, &format!("user{user}"))).collect();
    let before = resident_kib(&up.process);
    for crowd in CROWDS {
        let all_speak = Arc::new(Barrier::new(crowd + 1));
        let began = Instant::now();
        let mut chats = tokio::task::JoinSet::new();
        for chat in 0..crowd {
            let http = clients[chat / OF_ADDRESS].clone();
            let (url, token) = (up.url.clone(), tokens[chat / OF_USER].clone());
            let all_speak = Arc::clone(&all_speak);
            chats.spawn(async move { speak(&http, &url, &token, &all_speak).await });
        }
        all_speak.wait().await;
        let (spoke, resident) = (began.elapsed(), resident_kib(&up.process));
        let whole = chats.join_all().await.into_iter().filter(|is_whole| *is_whole).count();
        let each = (resident.saturating_sub(before)) as f64 / crowd as f64;
        println!("crowd\t{crowd}\t{whole}\t{:.2}\t{resident}\t{each:.0}", spoke.as_secs_f64());
    }
    println!("resident\t{before}\t{}", resident_kib(&up.process));
}

/// One turn, to its last event: how long it took, and its thread.
async fn turn(
    http: &reqwest::Client,
    up: &Running,
    token: &str,
    text: &str,
    thread: Option<&str>,
) -> (Duration, String) {
    let began = Instant::now();
    let chat = json!({"text": text, "thread": thread});
    let answer =
        http.post(format!("{}/api/chat", up.url)).bearer_auth(token).json(&chat).send().await.unwrap();
    let events = answer.text().await.unwrap();
    let time = began.elapsed();
    assert!(events.contains("event: done"), "{events}");
    let first = events.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
    let first: Value = serde_json::from_str(first).unwrap();
    (time, first["thread"].as_str().unwrap().to_owned())
}

/// One of many: waits for the others after its first word, and reads to the end.
async fn speak(http: &reqwest::Client, url: &str, token: &str, all_speak: &Barrier) -> bool {
    let chat = json!({"text": "crowd"});
    let mut answer =
        http.post(format!("{url}/api/chat")).bearer_auth(token).json(&chat).send().await.unwrap();
    let (mut events, mut has_spoken) = (String::new(), false);
    while let Some(bytes) = answer.chunk().await.unwrap() {
        events.push_str(&String::from_utf8_lossy(&bytes));
        if !has_spoken && events.contains("event: text") {
            has_spoken = true;
            all_speak.wait().await;
        }
    }
    assert!(has_spoken, "{events}");
    events.contains("event: done")
}

fn token(folder: &Path, user: &str) -> String {
    let made = Command::new(env!("CARGO_BIN_EXE_embody"))
        .args(["token", "add", "--scope", "chat", "--user", user, "--json", "--log", "error", "--workspace"])
        .arg(folder)
        .output()
        .unwrap();
    let made: Value = serde_json::from_slice(&made.stdout).unwrap();
    ["secret", "token"].iter().find_map(|key| made[*key].as_str()).unwrap().to_owned()
}

fn resident_kib(process: &Child) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

/// A process that says on its first line where it is; it ends with this value.
struct Running {
    process: Child,
    url: String,
}

fn start(command: &mut Command) -> Running {
    let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(process.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    // Whatever else it says must not hold it up.
    std::thread::spawn(move || output.read_to_end(&mut Vec::new()));
    let url = line.trim().split("/#").next().unwrap().trim_end_matches('/').to_owned();
    Running { process, url }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
