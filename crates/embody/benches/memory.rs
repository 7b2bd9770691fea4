//! How well memories are found, and how fast, by a host: public conversations with questions whose evidence is known
//! (LoCoMo's file). Each turn is one `save_memory`, each conversation one user with a mind process of their own, each
//! question one `read_memory`; the same searches are then timed inside. Both are timed in three rounds, since other work on
//! the machine spoils some. Prints lines of cells between tabs; judges nothing.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a benchmark may fail loudly"
)]

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use embody_store::memories::MemorySearch;
use embody_store::{DatabaseUrl, Scope, Store};
use serde_json::{Value, json};

fn main() {
    let data = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    let data = data.expect("the benchmark needs the path of the data file");
    let text = std::fs::read_to_string(&data).unwrap_or_else(|error| panic!("cannot read `{data}`: {error}"));
    let conversations: Vec<Value> = serde_json::from_str(&text).expect("the data is not a JSON array");
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let asked = through_mcp(&conversations, folder.path());
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(inside(&asked, folder.path()));
}

const ROUNDS: usize = 3;

/// A question and whose it is.
type Asked = (String, String);

fn through_mcp(conversations: &[Value], folder: &Path) -> Vec<Asked> {
    let mut quality: BTreeMap<String, Sum> = BTreeMap::new();
    let mut reads: [Vec<f64>; ROUNDS] = Default::default();
    let mut saves = Vec::new();
    let (mut memories, mut asked) = (0, Vec::new());
    for (number, conversation) in conversations.iter().enumerate() {
        let user = format!("user{number}");
        let mut mind = Mind::start(folder, &user);
        let turns = load(&mut mind, &conversation["conversation"], &mut saves);
        memories += turns.len();
        for question in conversation["qa"].as_array().unwrap() {
            let evidence = evidence(question, &turns);
            if evidence.is_empty() {
                continue;
            }
            let query = question["question"].as_str().unwrap().to_owned();
            let found = mind.timed_read(&query, &mut reads[0]);
            let found = found["memories"].as_array().unwrap();
            let hits: Vec<bool> =
                found.iter().map(|memory| evidence.contains(memory["id"].as_str().unwrap())).collect();
            let half =
                if number % 2 == 0 { "conversations 1, 3, 5, 7, 9" } else { "conversations 2, 4, 6, 8, 10" };
            let spread =
                if evidence.len() > 1 { "evidence in several turns" } else { "evidence in one turn" };
            for group in ["all", category(question), half, spread] {
                quality.entry(group.to_owned()).or_default().add(&hits, evidence.len());
            }
            asked.push((user.clone(), query));
        }
        for round in &mut reads[1..] {
            for (_, query) in asked.iter().filter(|(asker, _)| *asker == user) {
                mind.timed_read(query, round);
            }
        }
        mind.end();
    }
    for (group, sum) in &quality {
        let [recall_5, recall_10, gain] = sum.means();
        println!("quality\t{group}\t{}\t{recall_5:.4}\t{recall_10:.4}\t{gain:.4}", sum.questions);
    }
    println!("memories\t{memories}");
    times("read_memory, by a host over stdio", reads.into());
    times("save_memory, by a host over stdio, durable", vec![saves]);
    asked
}

/// The same questions to the store itself.
async fn inside(asked: &[Asked], folder: &Path) {
    let store = Store::open(DatabaseUrl::File(folder.join("embody.db"))).await.unwrap();
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let mut searches = Vec::new();
        for (user, query) in asked {
            let scope = Scope::new(user, "assistant").unwrap();
            let search = MemorySearch { query: query.clone(), limit: 10, kind: None, since: None };
            let began = Instant::now();
            store.memories().search(&scope, &search).await.unwrap();
            searches.push(began.elapsed().as_secs_f64() * 1e6);
        }
        rounds.push(searches);
    }
    times("the search inside", rounds);
    store.close().await;
}

fn times(what: &str, rounds: Vec<Vec<f64>>) {
    let quietest = rounds.iter().map(|round| share(round, 0.99)).fold(f64::INFINITY, f64::min);
    let all = rounds.concat();
    println!("time\t{what}\t{}\t{:.0}\t{:.0}\t{quietest:.0}", all.len(), share(&all, 0.5), share(&all, 0.99));
}

fn share(micros: &[f64], share: f64) -> f64 {
    let mut micros = micros.to_vec();
    micros.sort_by(f64::total_cmp);
    micros[((micros.len() - 1) as f64 * share) as usize]
}

/// A mind process, and a host that waits for each answer.
struct Mind {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    last_id: u64,
}

impl Mind {
    fn start(workspace: &Path, user: &str) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_embody"))
            .args(["mind", "--log", "error", "--user", user, "--workspace"])
            .arg(workspace)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = process.stdin.take().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let mut mind = Self { process, input, output, last_id: 0 };
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}});
        mind.request("initialize", hello);
        mind
    }

    fn timed_read(&mut self, query: &str, times: &mut Vec<f64>) -> Value {
        let began = Instant::now();
        let found = self.call("read_memory", json!({"query": query, "limit": 10}));
        times.push(began.elapsed().as_secs_f64() * 1e6);
        found
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.request("tools/call", json!({"name": tool, "arguments": arguments}));
        assert_eq!(result["isError"], false, "{result}");
        result["structuredContent"].clone()
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        self.last_id += 1;
        let request = json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params});
        self.input.write_all(format!("{request}\n").as_bytes()).unwrap();
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the mind has ended");
            let mut message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == self.last_id {
                return message["result"].take();
            }
        }
    }

    fn end(mut self) {
        drop(self.input);
        assert!(self.process.wait().unwrap().success());
    }
}

/// Saves the turns; the id of each by the name that the evidence uses.
fn load(mind: &mut Mind, conversation: &Value, times: &mut Vec<f64>) -> HashMap<(u32, u32), String> {
    let mut saved = HashMap::new();
    for session in 1.. {
        let Some(turns) = conversation[format!("session_{session}")].as_array() else {
            // Numbers may be left out, but not many in a row.
            if session > 100 { break } else { continue }
        };
        let at = date(conversation[format!("session_{session}_date_time")].as_str().unwrap());
        for turn in turns {
            let said = turn["text"].as_str().unwrap();
            let shown =
                turn["blip_caption"].as_str().map(|caption| format!(" [{caption}]")).unwrap_or_default();
            let memory = json!({
                "text": format!("{said}{shown}"),
                "actor": turn["speaker"],
                "session": format!("session {session}"),
                "occurred_at": at,
            });
            let began = Instant::now();
            let kept = mind.call("save_memory", memory);
            times.push(began.elapsed().as_secs_f64() * 1e6);
            let name = numbers(turn["dia_id"].as_str().unwrap()).unwrap();
            saved.insert(name, kept["id"].as_str().unwrap().to_owned());
        }
    }
    saved
}

/// `D3:12`, also as `D3:012` or `D:3:12`.
fn numbers(name: &str) -> Option<(u32, u32)> {
    let mut numbers = name.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok());
    Some((numbers.next()?, numbers.next()?))
}

fn evidence(question: &Value, turns: &HashMap<(u32, u32), String>) -> HashSet<String> {
    let names = question["evidence"].as_array().unwrap().iter().filter_map(Value::as_str);
    let names = names.flat_map(|names| names.split([' ', ';', ',']).filter_map(numbers));
    names.filter_map(|name| turns.get(&name).cloned()).collect()
}

fn category(question: &Value) -> &'static str {
    match question["category"].as_u64() {
        Some(1) => "category 1: several hops",
        Some(2) => "category 2: time",
        Some(3) => "category 3: open domain",
        Some(4) => "category 4: single hop",
        _ => "category 5: adversarial",
    }
}

/// `1:56 pm on 8 May, 2023` as 2023-05-08; the hour does not matter here.
fn date(text: &str) -> String {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (_, date) = text.split_once(" on ").unwrap();
    let parts: Vec<&str> = date.split([' ', ',']).filter(|part| !part.is_empty()).collect();
    let month = MONTHS.iter().position(|month| parts[1].starts_with(month)).unwrap() + 1;
    format!("{}-{month:02}-{:0>2}", parts[2], parts[0])
}

#[derive(Default)]
struct Sum {
    questions: u32,
    totals: [f64; 3],
}

impl Sum {
    /// Adds recall at 5, recall at 10 and the discounted gain at 10 of one question.
    fn add(&mut self, hits: &[bool], evidence: usize) {
        let recall =
            |count: usize| hits.iter().take(count).filter(|hit| **hit).count() as f64 / evidence as f64;
        let worth = |place: usize| 1.0 / (place as f64 + 2.0).log2();
        let gain: f64 =
            hits.iter().take(10).enumerate().filter(|(_, hit)| **hit).map(|(place, _)| worth(place)).sum();
        let ideal: f64 = (0..evidence.min(10)).map(worth).sum();
        self.questions += 1;
        for (total, value) in self.totals.iter_mut().zip([recall(5), recall(10), gain / ideal]) {
            *total += value;
        }
    }

    fn means(&self) -> [f64; 3] {
        self.totals.map(|total| total / f64::from(self.questions))
    }
}
