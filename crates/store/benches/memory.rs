//! How well memories are found, and how fast: public conversations with questions whose evidence is known (LoCoMo's
//! file). Each turn is one memory, each conversation one user. Prints lines of cells between tabs; judges nothing.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a benchmark may fail loudly"
)]

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Instant;

use embody_store::{MemorySearch, NewMemory, Place, Scope, Store};
use serde_json::Value;

fn main() {
    let data = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    let data = data.expect("the benchmark needs the path of the data file");
    let text = std::fs::read_to_string(&data).unwrap_or_else(|error| panic!("cannot read `{data}`: {error}"));
    let conversations: Vec<Value> = serde_json::from_str(&text).expect("the data is not a JSON array");
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(run(&conversations));
}

async fn run(conversations: &[Value]) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(Place::File(folder.path().join("bench.db"))).await.unwrap();
    let mut quality: BTreeMap<String, Sum> = BTreeMap::new();
    let mut times_us = Vec::new();
    let mut memories = 0;
    for (number, conversation) in conversations.iter().enumerate() {
        let scope = Scope::new(&format!("user{number}"), "assistant").unwrap();
        let turns = load(&store, &scope, &conversation["conversation"]).await;
        memories += turns.len();
        for question in conversation["qa"].as_array().unwrap() {
            let evidence = evidence(question, &turns);
            if evidence.is_empty() {
                continue;
            }
            let query = question["question"].as_str().unwrap().to_owned();
            let search = MemorySearch { query, limit: 10, kind: None, since: None };
            let began = Instant::now();
            let found = store.search_memories(&scope, &search).await.unwrap();
            times_us.push(began.elapsed().as_secs_f64() * 1e6);
            let hits: Vec<bool> = found.iter().map(|found| evidence.contains(&found.memory.id)).collect();
            let half =
                if number % 2 == 0 { "conversations 1, 3, 5, 7, 9" } else { "conversations 2, 4, 6, 8, 10" };
            let spread =
                if evidence.len() > 1 { "evidence in several turns" } else { "evidence in one turn" };
            for group in ["all", category(question), half, spread] {
                quality.entry(group.to_owned()).or_default().add(&hits, evidence.len());
            }
        }
    }
    for (group, sum) in &quality {
        let [recall_5, recall_10, gain] = sum.means();
        println!("quality\t{group}\t{}\t{recall_5:.4}\t{recall_10:.4}\t{gain:.4}", sum.questions);
    }
    times_us.sort_by(f64::total_cmp);
    let at = |share: f64| times_us[((times_us.len() - 1) as f64 * share) as usize];
    println!("search\t{memories}\t{:.0}\t{:.0}", at(0.5), at(0.99));
    store.close().await;
}

/// Saves the turns; the id of each by the name that the evidence uses.
async fn load(store: &Store, scope: &Scope, conversation: &Value) -> HashMap<(u32, u32), String> {
    let mut names = Vec::new();
    let mut memories = Vec::new();
    for session in 1.. {
        let Some(turns) = conversation[format!("session_{session}")].as_array() else {
            // Numbers may be left out, but not many in a row.
            if session > 100 { break } else { continue }
        };
        let at = moment(conversation[format!("session_{session}_date_time")].as_str().unwrap());
        for turn in turns {
            let said = turn["text"].as_str().unwrap();
            let shown =
                turn["blip_caption"].as_str().map(|caption| format!(" [{caption}]")).unwrap_or_default();
            names.push(numbers(turn["dia_id"].as_str().unwrap()).unwrap());
            memories.push(NewMemory {
                actor: turn["speaker"].as_str().map(str::to_owned),
                session: Some(format!("session {session}")),
                occurred_at: Some(at),
                ..NewMemory::note(&format!("{said}{shown}"), "bench", "owner")
            });
        }
    }
    let saved = store.save_memories(scope, memories).await.unwrap();
    names.into_iter().zip(saved.into_iter().map(|saved| saved.id)).collect()
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

/// `1:56 pm on 8 May, 2023`, in microseconds since 1970; the hour does not matter here.
fn moment(text: &str) -> i64 {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (_, date) = text.split_once(" on ").unwrap();
    let parts: Vec<&str> = date.split([' ', ',']).filter(|part| !part.is_empty()).collect();
    let month = MONTHS.iter().position(|month| parts[1].starts_with(month)).unwrap() as i64;
    let (day, year): (i64, i64) = (parts[0].parse().unwrap(), parts[2].parse().unwrap());
    // Years and months counted from March, so that the leap day comes last.
    let (years, months) = if month < 2 { (year - 1, month + 10) } else { (year, month - 2) };
    let days = 365 * years + years / 4 - years / 100 + years / 400 + (153 * months + 2) / 5 + day - 719_469;
    days * 86_400_000_000
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
