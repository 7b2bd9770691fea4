//! What the store costs: durable audit records, saving and searching memories, and how that grows. It measures and judges
//! nothing; `cargo xtask bench store` makes a page of it. PostgreSQL is measured where `EMBODY_TEST_POSTGRES` names one.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    missing_docs,
    reason = "a benchmark may fail loudly, and its output is its purpose"
)]

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use embody_store::audit::{Actor, AuditedCall, Event, Intent, Record, RedactedArguments};
use embody_store::memories::{MemorySearch, NewMemory};
use embody_store::{DatabaseUrl, Scope, Store};
use sqlx::{AssertSqlSafe, Connection, PgConnection};

/// Memories of each of many users.
const EACH: usize = 100;
/// Questions of one round, and rounds: other work on the machine spoils some of them, seldom all.
const QUERIES: usize = 2000;
const ROUNDS: usize = 5;
const SAVES: usize = 300;
/// Audit records are appended for so long in each case.
const APPENDING: Duration = Duration::from_secs(3);

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let sizes = std::env::var("EMBODY_BENCH_SIZES").unwrap_or_else(|_| "1000,100000,1000000".to_owned());
    let sizes: Vec<usize> = sizes.split(',').map(|size| size.parse().expect("a size is a number")).collect();
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    sync(folder.path());
    for backend in ["sqlite", "postgresql"] {
        for tasks in [1, 8, 64] {
            let Some(store) = open(backend, folder.path()).await else { continue };
            append(backend, &store, tasks).await;
            store.close().await;
        }
        for many in [true, false] {
            for &size in &sizes {
                let Some(store) = open(backend, folder.path()).await else { continue };
                memories(backend, &store, size, if many { size / EACH } else { 1 }).await;
                store.close().await;
            }
        }
    }
}

/// What the disk itself takes: the least that a durable write can cost.
fn sync(folder: &Path) {
    let mut file = File::create(folder.join("sync")).unwrap();
    let mut times = Times::default();
    for _ in 0..500 {
        file.write_all(&[7; 4096]).unwrap();
        times.take(|| file.sync_data().unwrap());
    }
    println!("sync\t{:.0}\t{:.0}", times.share(0.5), times.share(0.99));
}

async fn open(backend: &str, folder: &Path) -> Option<Store> {
    let name = format!("b{}", uuid::Uuid::now_v7().simple());
    let place = if backend == "sqlite" {
        DatabaseUrl::File(folder.join(format!("{name}.db")))
    } else {
        let server = std::env::var("EMBODY_TEST_POSTGRES").ok()?;
        let mut admin = PgConnection::connect(&server).await.unwrap();
        sqlx::raw_sql(AssertSqlSafe(format!("CREATE DATABASE {name}"))).execute(&mut admin).await.unwrap();
        let (base, _) = server.rsplit_once('/').unwrap();
        DatabaseUrl::Postgres { url: format!("{base}/{name}"), direct_url: None, keys: folder.join(name) }
    };
    Some(Store::open(place).await.unwrap())
}

async fn append(backend: &str, store: &Store, tasks: usize) {
    let end = Instant::now() + APPENDING;
    let mut appending = tokio::task::JoinSet::new();
    for task in 0..tasks {
        let store = store.clone();
        appending.spawn(async move {
            let mut times = Times::default();
            while Instant::now() < end {
                let record = intent(task);
                let started = Instant::now();
                store.audit().append(record).await.unwrap();
                times.0.push(started.elapsed().as_secs_f64() * 1e6);
            }
            times
        });
    }
    let mut all = Times::default();
    for times in appending.join_all().await {
        all.0.extend(times.0);
    }
    let rate = all.0.len() as f64 / APPENDING.as_secs_f64();
    println!("audit\t{backend}\t{tasks}\t{rate:.0}\t{:.0}\t{:.0}", all.share(0.5), all.share(0.99));
}

fn intent(task: usize) -> Record {
    let arguments =
        RedactedArguments::of(r#"{"to":"bob@example.com","text":"the minutes of the meeting are attached"}"#);
    let call = AuditedCall {
        call_id: uuid::Uuid::now_v7().to_string(),
        body: "mail".into(),
        tool: "send_email".into(),
        class: "human_visible_write".into(),
        args: arguments,
    };
    let actor =
        Actor { user: format!("user {task}"), agent: Some("assistant".into()), session: None, channel: None };
    Record { actor, event: Event::Intent(Intent { call, approval: None }) }
}

async fn memories(backend: &str, store: &Store, size: usize, users: usize) {
    let words = Words::new();
    let mut dice = Dice(0x9E37_79B9_7F4A_7C15);
    let scopes: Vec<Scope> =
        (0..users).map(|user| Scope::new(&format!("user {user}"), "assistant").unwrap()).collect();
    let each = size / users;
    let started = Instant::now();
    for scope in &scopes {
        for part in 0..each.div_ceil(1000) {
            let count = (each - part * 1000).min(1000);
            let batch = (0..count).map(|index| memory(&words, &mut dice, part * 1000 + index)).collect();
            store.memories().save_all(scope, batch).await.unwrap();
        }
    }
    let rate = size as f64 / started.elapsed().as_secs_f64();
    let mut searches = Times::default();
    let mut quietest = f64::INFINITY;
    let mut found = 0;
    for _ in 0..ROUNDS {
        let mut round = Times::default();
        for _ in 0..QUERIES {
            let scope = &scopes[dice.below(users)];
            let search = MemorySearch { query: words.text(&mut dice, 5), limit: 10, kind: None, since: None };
            let started = Instant::now();
            found += store.memories().search(scope, &search).await.unwrap().len();
            round.0.push(started.elapsed().as_secs_f64() * 1e6);
        }
        quietest = quietest.min(round.share(0.99));
        searches.0.extend(round.0);
    }
    assert!(found > 0, "nothing was ever found");
    let mut saves = Times::default();
    for index in 0..SAVES {
        let scope = &scopes[dice.below(users)];
        let memory = memory(&words, &mut dice, each + index);
        let started = Instant::now();
        store.memories().save(scope, memory).await.unwrap();
        saves.0.push(started.elapsed().as_secs_f64() * 1e6);
    }
    println!(
        "memory\t{backend}\t{users}\t{size}\t{:.0}\t{:.0}\t{:.0}\t{:.0}\t{rate:.0}\t{quietest:.0}",
        searches.share(0.5),
        searches.share(0.99),
        saves.share(0.5),
        saves.share(0.99),
    );
}

fn memory(words: &Words, dice: &mut Dice, index: usize) -> NewMemory {
    NewMemory {
        actor: Some(if index.is_multiple_of(2) { "Ann" } else { "Bob" }.to_owned()),
        session: Some(format!("session {}", index / 20)),
        occurred_at: Some(1_700_000_000_000_000 + index as i64 * 60_000_000),
        ..NewMemory::note(&words.text(dice, 12), "bench", "owner")
    }
}

/// Words as often as people use them, stop words left out: fitted to the turns of a public set of conversations, where
/// the commonest word is in a seventh of all turns and the thousandth in one of eight hundred.
struct Words {
    cumulated: Vec<f64>,
}

impl Words {
    const COUNT: usize = 60_000;

    fn new() -> Self {
        let mut sum = 0.0;
        let weight = |rank: usize| 1.0 / (rank as f64 + 9.0);
        let cumulated = (0..Self::COUNT).map(|rank| {
            sum += weight(rank);
            sum
        });
        Self { cumulated: cumulated.collect() }
    }

    fn text(&self, dice: &mut Dice, count: usize) -> String {
        let total = self.cumulated[Self::COUNT - 1];
        let word = |dice: &mut Dice| {
            let at = dice.below(1 << 30) as f64 / f64::from(1 << 30) * total;
            let rank = self.cumulated.partition_point(|sum| *sum < at);
            // Letters only, so that no stemmer joins two of them.
            let letters =
                [rank / 3600 % 60, rank / 60 % 60, rank % 60].map(|part| (b'b' + (part % 20) as u8) as char);
            format!("{}{}{}x{rank}", letters[0], letters[1], letters[2])
        };
        (0..count).map(|_| word(dice)).collect::<Vec<_>>().join(" ")
    }
}

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % limit.max(1)
    }
}

/// Microseconds.
#[derive(Default)]
struct Times(Vec<f64>);

impl Times {
    fn take(&mut self, work: impl FnOnce()) {
        let started = Instant::now();
        work();
        self.0.push(started.elapsed().as_secs_f64() * 1e6);
    }

    /// The time that this share of them does not exceed.
    fn share(&mut self, share: f64) -> f64 {
        self.0.sort_by(f64::total_cmp);
        let last = self.0.len().saturating_sub(1);
        self.0.get((last as f64 * share) as usize).copied().unwrap_or(0.0)
    }
}
