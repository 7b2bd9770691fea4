//! What a large catalogue costs a model, and how well the search finds what is not listed: `embody mcp` over stdio, in front
//! of one body with as many tools as there are to be. Prints lines of cells between tabs; judges nothing.
//!
//! - `made`: the tools
//! - `asked`: what is searched for
//! - `host`: a host on a pipe
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a benchmark may fail loudly"
)]

mod asked;
mod host;
mod made;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use embody_prompt::tokens;
use serde_json::{Value, json};

use self::asked::Question;
use self::host::Host;

/// Tools of the body.
const SIZES: [usize; 5] = [10, 100, 500, 1000, 5000];
/// How often the list is asked for.
const LISTS: usize = 30;

fn main() {
    for size in SIZES {
        measure(size);
    }
}

fn measure(size: usize) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let tools = made::tools(size);
    let file = folder.path().join("tools.json");
    std::fs::write(&file, Value::from(tools.clone()).to_string()).unwrap();
    configure(folder.path(), &file, "max_listed = 1000000");
    // The first sight of every tool: all of them are pinned.
    let (first, _) = timed(|| session(folder.path()).1);
    let (again, (mut host, whole)) = timed(|| session(folder.path()));
    let whole_time = list_time(&mut host);
    drop(host);
    configure(folder.path(), &file, "");
    let (mut host, short) = session(folder.path());
    let short_time = list_time(&mut host);
    let questions = asked::questions(&tools);
    let (first_find, _) = timed(|| find(&mut host, &questions[0].text));
    let found = search(&mut host, &questions);
    let cells = [
        size.to_string(),
        tokens::count(&whole).to_string(),
        tokens::count(&short).to_string(),
        found.tokens.to_string(),
        milliseconds(first),
        milliseconds(again),
        milliseconds(whole_time),
        milliseconds(short_time),
        milliseconds(first_find),
        milliseconds(found.time),
    ];
    println!("size\t{}", cells.join("\t"));
    for (kind, hits) in &found.hits {
        println!("found\t{size}\t{kind}\t{}\t{}\t{}", hits.asked, hits.first, hits.among);
    }
    for question in &found.missed {
        eprintln!("not among the first five of {size}: `{}` for `{}`", question.text, question.tool);
    }
}

fn configure(folder: &Path, tools: &Path, more: &str) {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_embody")).parent().unwrap().join("examples/unruly");
    assert!(
        program.exists(),
        "{} is missing: `cargo build --release -p embody-broker --example unruly`",
        program.display()
    );
    let log = folder.join("body.log");
    let words = [program.as_path(), Path::new("--log"), &log, Path::new("--tools"), tools];
    let command: Vec<String> = words.iter().map(|word| word.display().to_string()).collect();
    let body = format!("[[body]]\nname = \"office\"\ncommand = {}\n", json!(command));
    std::fs::write(folder.join("embody.toml"), format!("[tools]\n{more}\n{body}")).unwrap();
}

/// A session, once it has the whole list: the body's tools are there.
fn session(folder: &Path) -> (Host, String) {
    let mut host = Host::start(folder);
    let deadline = Instant::now() + Duration::from_secs(120);
    let mut is_there = false;
    loop {
        let list = host.ask("tools/list", &json!({}));
        let status = host.call("runtime_status", &json!({}));
        let status: Value = serde_json::from_str(&status).unwrap();
        let bodies = status["structuredContent"]["upstreams"].as_array().unwrap();
        let office = bodies.iter().find(|body| body["name"] == "office").unwrap();
        let offered = status["structuredContent"]["tools"]["offered"].as_u64().unwrap();
        let has = office["tool_count"].as_u64().unwrap();
        // The list is one that was made when they were there.
        if has > 0 && offered > has && is_there {
            return (host, list);
        }
        is_there = has > 0 && offered > has;
        assert!(Instant::now() < deadline, "the body has not come: {office}");
    }
}

fn list_time(host: &mut Host) -> Duration {
    let mut times: Vec<Duration> =
        (0..LISTS).map(|_| timed(|| host.ask("tools/list", &json!({}))).0).collect();
    times.sort_unstable();
    times[times.len() / 2]
}

fn find(host: &mut Host, query: &str) -> Value {
    let answer = host.call("find_tools", &json!({ "query": query }));
    serde_json::from_str(&answer).unwrap()
}

#[derive(Default)]
struct Hits {
    asked: usize,
    first: usize,
    among: usize,
}

struct Searched<'a> {
    /// Of one result as the model reads it, on average.
    tokens: usize,
    /// The median.
    time: Duration,
    hits: Vec<(&'static str, Hits)>,
    missed: Vec<&'a Question>,
}

fn search<'a>(host: &mut Host, questions: &'a [Question]) -> Searched<'a> {
    let mut searched = Searched { tokens: 0, time: Duration::ZERO, hits: Vec::new(), missed: Vec::new() };
    let mut times = Vec::new();
    for question in questions {
        let (time, answer) = timed(|| find(host, &question.text));
        times.push(time);
        let text = answer["content"][0]["text"].as_str().unwrap();
        searched.tokens += tokens::count(text);
        let names: Vec<&str> = answer["structuredContent"]["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["name"].as_str().unwrap())
            .collect();
        let place = match searched.hits.iter().position(|(kind, _)| *kind == question.kind) {
            Some(place) => place,
            None => {
                searched.hits.push((question.kind, Hits::default()));
                searched.hits.len() - 1
            }
        };
        // A tool whose name the mind has too is listed under the name of its server.
        let is_it = |name: &&str| name.trim_start_matches("office__") == question.tool;
        let hits = &mut searched.hits[place].1;
        hits.asked += 1;
        hits.first += usize::from(names.first().is_some_and(is_it));
        hits.among += usize::from(names.iter().any(&is_it));
        if !names.iter().any(is_it) {
            searched.missed.push(question);
        }
    }
    times.sort_unstable();
    searched.tokens /= questions.len();
    searched.time = times[times.len() / 2];
    searched
}

fn timed<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let start = Instant::now();
    let done = work();
    (start.elapsed(), done)
}

fn milliseconds(time: Duration) -> String {
    format!("{:.2}", time.as_secs_f64() * 1e3)
}
