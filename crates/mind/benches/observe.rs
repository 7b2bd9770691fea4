//! What an observation costs in a large mind: before a call, which somebody waits for, and after it, which teaches. It
//! measures and judges nothing. `EMBODY_BENCH_SIZES` says how many memories; PostgreSQL is measured where
//! `EMBODY_TEST_POSTGRES` names one, in a database that must be there and empty.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a benchmark may fail loudly, and its output is its purpose"
)]

use std::time::Instant;

use embody_mind::{Caller, ObservedCall, Trust, ZonedNow, observe, replay};
use embody_store::instructions::InstructionsChange;
use embody_store::memories::NewMemory;
use embody_store::{DatabaseUrl, Scope, Store};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::json;

const CALLS: usize = 2000;
/// One memory in so many restricts something: far more than people have.
const RESTRICTING: usize = 500;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let sizes = std::env::var("EMBODY_BENCH_SIZES").unwrap_or_else(|_| "1000,100000".to_owned());
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    for size in sizes.split(',').map(|size| size.parse::<usize>().expect("a size is a number")) {
        let store = Store::open(DatabaseUrl::File(folder.path().join(format!("{size}.db")))).await.unwrap();
        measure("sqlite", &store, size).await;
        store.close().await;
    }
    if let Ok(url) = std::env::var("EMBODY_TEST_POSTGRES") {
        let keys = folder.path().join("keys");
        let store = Store::open(DatabaseUrl::Postgres { url, direct_url: None, keys }).await.unwrap();
        measure("postgresql", &store, 100_000).await;
        store.close().await;
    }
}

async fn measure(backend: &str, store: &Store, size: usize) {
    let caller = Caller {
        scope: Scope::new("ann", "assistant").unwrap(),
        writer: "broker".into(),
        trust: Trust::Agent,
        session: Some("bench".into()),
        trains: true,
    };
    fill(store, &caller.scope, size).await;
    let started = Instant::now();
    let done = replay(store, &caller.scope, u64::MAX).await.unwrap();
    let scanned = size as f64 / started.elapsed().as_secs_f64();
    let (mut before, mut after, mut flags) = (Vec::new(), Vec::new(), 0);
    for index in 0..CALLS {
        let args = json!({
            "to": [format!("person{}@company.example", index * 7 % 40)],
            "subject": format!("subject {index}"),
            "body": "some words about the project and the next meeting ".repeat(1 + index % 20),
        });
        let seconds = 1_790_000_000 + i64::try_from(index).unwrap() * 60;
        let now =
            ZonedNow::new(Timestamp::from_second(seconds).unwrap(), TimeZone::get("Europe/Berlin").unwrap());
        let call = ObservedCall { tool_name: "send_email", args: &args, result: None, key: None };
        let started = Instant::now();
        flags += observe(store, &caller, call, &now).await.unwrap().cautionary_flags.len();
        before.push(started.elapsed().as_secs_f64() * 1e6);
        let result = json!({"ok": true});
        let key = index.to_string();
        let call = ObservedCall { result: Some(&result), key: Some(&key), ..call };
        let started = Instant::now();
        observe(store, &caller, call, &now).await.unwrap();
        after.push(started.elapsed().as_secs_f64() * 1e6);
    }
    println!(
        "observe\t{backend}\t{size}\t{:.0}\t{:.0}\t{:.0}\t{:.0}\t{scanned:.0}\t{}\t{flags}",
        share(&mut before, 0.5),
        share(&mut before, 0.99),
        share(&mut after, 0.5),
        share(&mut after, 0.99),
        done.restricting,
    );
}

async fn fill(store: &Store, scope: &Scope, size: usize) {
    let standing = "Answer in bullet points.\nNever mail the press.\nNo messages after 22:00.\nAsk me before you delete anything.";
    let change = InstructionsChange { text: standing.into(), writer: "ann".into(), expected_version: None };
    store.instructions().set(scope, change).await.unwrap();
    for part in 0..size.div_ceil(1000) {
        let count = (size - part * 1000).min(1000);
        let memories = (0..count).map(|index| memory(part * 1000 + index)).collect();
        store.memories().save_all(scope, memories).await.unwrap();
    }
}

fn memory(index: usize) -> NewMemory {
    let text = if index.is_multiple_of(RESTRICTING) {
        format!("Do not mail person{} about the topic{} without asking me", index / RESTRICTING % 60, index)
    } else {
        format!(
            "person{} said that word{} and word{} go well with word{}",
            index % 97,
            index % 1009,
            index % 5003,
            index
        )
    };
    let session = Some(format!("session {}", index / 20));
    NewMemory { session, ..NewMemory::note(&text, "bench", "owner") }
}

fn share(times: &mut [f64], share: f64) -> f64 {
    times.sort_by(f64::total_cmp);
    let last = times.len().saturating_sub(1);
    times.get((last as f64 * share) as usize).copied().unwrap_or(0.0)
}
