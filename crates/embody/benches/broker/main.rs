//! What the broker costs: the same tool call directly to a server, through `embody` with gates, audit and observation on, and
//! through the proxies of others, all processes on one core. The server behind everybody is this program, started with
//! `--echo`. Prints lines of cells between tabs; judges nothing.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a benchmark may fail loudly"
)]

mod growth;
mod hop;
mod host;
mod http;
mod process;
mod server;
mod subject;

use std::time::Duration;

use self::host::Started;
use self::process::Resident;
use self::server::{READ, WRITE};
use self::subject::Subject;

const ROUNDS: usize = 7;
/// Rounds of starting; each takes as long as the slowest of all takes to start.
const STARTS: usize = 5;
const WARM_UP: usize = 500;
const WRITES: usize = 200;
const SIZES: [usize; 4] = [100, 1_000, 10_000, 100_000];
/// What comes after a start is over by then, and the process is idle.
const IDLE: Duration = Duration::from_secs(1);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1)?.parse::<usize>().ok()
    };
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    if has("--echo") {
        return server::over_stdio(number("--tools").unwrap_or(2));
    }
    if let Some(port) = number("--echo-http") {
        return server::over_http(u16::try_from(port).unwrap());
    }
    if has("--hop") {
        return hop::stand();
    }
    process::pin();
    let fresh = || tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let subjects: Vec<Subject> = subject::all();
    let rounds = number("--rounds").unwrap_or(ROUNDS);
    // Interleaved, so that what else the machine does falls on all alike.
    for round in 0..rounds {
        for subject in &subjects {
            let folder = fresh();
            measure(round, subject, subject.start(folder.path(), 1));
        }
        println!("flush\t{round}\t{:.1}", process::flush_micros(fresh().path()));
        eprintln!("round {} of {rounds} is done", round + 1);
    }
    for round in 0..rounds.min(STARTS) {
        for subject in &subjects {
            start(round, subject, fresh().path());
        }
    }
    eprintln!("starts are measured");
    // Those of starting and ending are in both.
    if let Some((without, with)) = flushes(&fresh, 0).zip(flushes(&fresh, WRITES)) {
        println!("flushes\t{:.3}", (with - without) / WRITES as f64);
    }
    growth::measure(&fresh);
}

/// Starts it with two servers behind it, if it can, and lets it be.
fn start(round: usize, subject: &Subject, folder: &std::path::Path) {
    let servers = subject.most_servers().min(2);
    let started = subject.start(folder, servers);
    let millis = |at: std::time::Instant| (at - started.began).as_secs_f64() * 1e3;
    let (greeted, listed) = (millis(started.host.greeted), millis(started.host.listed));
    std::thread::sleep(IDLE);
    let Resident { own, others, anonymous } = process::resident_kb(started.process.id());
    println!("start\t{round}\t{subject}\t{servers}\t{greeted:.2}\t{listed:.2}\t{own}\t{others}\t{anonymous}");
    started.end();
}

/// How often the disk is flushed from the start to the end, with so many writes one after another.
fn flushes(fresh: &dyn Fn() -> tempfile::TempDir, writes: usize) -> Option<f64> {
    let (folder, traces) = (fresh(), fresh());
    let trace = traces.path().join("flushes");
    let workspace = subject::Workspace::new(folder.path(), &[vec!["--echo".to_owned()]]);
    let mut started = Started::new(&mut workspace.traced(&trace)?, None);
    let write = started.host.name(WRITE);
    started.host.read_contract(&write);
    started.host.times(&write, writes, |number| format!("call {number}"));
    started.end();
    let trace = std::fs::read_to_string(trace).unwrap();
    Some(trace.lines().filter(|line| line.contains("sync(")).count() as f64)
}

fn measure(round: usize, subject: &Subject, mut started: Started) {
    let host = &mut started.host;
    let (calls, many) = subject.calls();
    let read = host.name(READ);
    let print = |kind: &str, (micros, seconds): (Vec<f64>, f64)| {
        let at = |share: f64| micros[((micros.len() - 1) as f64 * share) as usize];
        let (count, rate) = (micros.len(), micros.len() as f64 / seconds);
        println!(
            "call\t{round}\t{subject}\t{kind}\t{count}\t{:.1}\t{:.1}\t{:.1}\t{rate:.0}",
            at(0.5),
            at(0.9),
            at(0.99)
        );
    };
    let text = |number| format!("call {number}");
    host.times(&read, WARM_UP.min(calls), text);
    print("read", host.times(&read, calls, text));
    if !matches!(subject, Subject::Peer(_)) {
        let write = host.name(WRITE);
        if subject.is_ours() {
            host.read_contract(&write);
        }
        host.times(&write, WRITES / 4, text);
        print("write", host.times(&write, WRITES, text));
    }
    for bytes in SIZES {
        let text = "x".repeat(bytes);
        let (micros, _) = host.times(&read, calls / 8, |_| text.clone());
        println!("size\t{round}\t{subject}\t{bytes}\t{:.1}", median(micros));
    }
    print("32 reads", host.many(&read, many));
    started.end();
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
