//! Three processes on one PostgreSQL, killed repeatedly, while the server's clock is set forward and back across a daylight
//! saving change: no run is repeated or left out, and interrupted runs are listed as unknown. The server's clock decides what
//! is due, so the test sets that one: in its own database `clock_timestamp()` is a function that reads a table.

#[path = "../../../../store/tests/support/postgres.rs"]
mod postgres_server;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use embody_agent::schedule::Timetable;
use embody_store::schedules::{AddScheduleOutcome, NewSchedule, RunOutcome, Schedule};
use embody_store::{DatabaseUrl, Scope, Store};
use jiff::{Timestamp, ToSpan};
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use self::postgres_server::server_url;

/// The minimum number of due runs of one set of schedules in [`HOURS`].
const RUNS_OF_A_SET: usize = 25;
const HOURS: i64 = 5;
/// Concurrent runs of a replica.
const ROOM: usize = 8;
/// Time between an event and its log line or record, on a busy machine.
const MARGIN_MS: u64 = 1000;
/// The expressions of a set, and their misfire policies.
const SET: [(&str, &str, &str); 6] = [
    ("*/20 * * * *", "Europe/Berlin", "all"),
    ("*/20 1-3 * * *", "Europe/Berlin", "all"),
    ("30 2 * * *", "Europe/Berlin", "once"),
    ("*/15 * * * *", "Australia/Lord_Howe", "once"),
    ("@every 25m", "UTC", "all"),
    ("15 2 * * *", "Europe/Berlin", "skip"),
];

/// The number of sets: a hundred due runs over both clock changes, and a thousand in `cargo xtask soak`.
fn sets() -> usize {
    let runs: usize =
        std::env::var("EMBODY_SCHEDULE_RUNS").map_or(100, |text| text.parse().expect("a number of runs"));
    runs.div_ceil(2 * RUNS_OF_A_SET)
}

// spec: S-02
#[tokio::test]
async fn none_is_run_twice_when_the_clocks_go_back() {
    survive("2026-10-24T22:07:00Z", sets()).await;
}

// spec: S-02
#[tokio::test]
async fn none_is_run_twice_when_the_clocks_go_forward() {
    survive("2026-03-28T22:07:00Z", sets()).await;
}

async fn survive(start: &str, sets: usize) {
    let start: Timestamp = start.parse().unwrap();
    let end = start + HOURS.hours();
    let mut stage = Stage::new(start, sets).await;
    let mut replicas: Vec<Replica> = (0..3).map(|name| stage.replica(name)).collect();
    let mut clock = start;
    let mut rounds = 0;
    while clock < end {
        rounds += 1;
        let next = match any(6) {
            0 => (clock - i64::from(any(40)).minutes()).max(start),
            _ => (clock + i64::from(1 + any(30)).minutes()).min(end),
        };
        stage.set_clock(next).await;
        clock = next;
        let victim = any(3) as usize;
        replicas.iter_mut().for_each(Replica::is_there);
        if rounds % 3 == 0 {
            if any(3) > 0 {
                stage.wait_for_a_run_of(&replicas[victim]).await;
            }
            replicas[victim].kill(&stage.log);
            replicas[victim] = stage.replica(victim);
        }
        tokio::time::sleep(Duration::from_millis(u64::from(any(200)))).await;
    }
    stage.wait_until_nothing_is_due(end).await;
    for replica in &mut replicas {
        replica.end();
    }
    stage.check(start, end).await;
}

struct Replica {
    child: Child,
}

impl Replica {
    /// Kills it like a power cut.
    fn kill(&mut self, log: &Path) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        note(log, &format!("KILL {}", self.child.id()));
    }

    fn is_there(&mut self) {
        let ended = self.child.try_wait().unwrap();
        assert!(ended.is_none(), "a replica ended by itself ({ended:?}): see its words above");
    }

    fn end(&mut self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").arg(pid).status().unwrap().success());
        assert!(self.child.wait().unwrap().success(), "a replica failed: see its words above");
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Stage {
    folder: tempfile::TempDir,
    log: PathBuf,
    url: String,
    conn: PgConnection,
    store: Store,
    schedules: Vec<Schedule>,
}

impl Stage {
    async fn new(start: Timestamp, sets: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let url = database().await;
        let place =
            DatabaseUrl::Postgres { url: url.clone(), direct_url: None, keys: folder.path().join("keys") };
        Store::open(place.clone()).await.unwrap().close().await;
        let mut conn = PgConnection::connect(&url).await.unwrap();
        let (_, name) = url.rsplit_once('/').unwrap();
        let settable = format!(
            "CREATE TABLE test_clock (shown timestamptz NOT NULL, since timestamptz NOT NULL); \
             INSERT INTO test_clock VALUES ('{start}', pg_catalog.clock_timestamp()); \
             CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS \
             'SELECT shown + (pg_catalog.clock_timestamp() - since) FROM public.test_clock'; \
             ALTER DATABASE {name} SET search_path = public, pg_catalog"
        );
        sqlx::raw_sql(AssertSqlSafe(settable)).execute(&mut conn).await.unwrap();
        let store = Store::open(place).await.unwrap();
        let shown = store.clock().await.unwrap() - start.as_microsecond();
        assert!((0..60_000_000).contains(&shown), "the clock cannot be set: {shown}");
        let mut stage = Self { folder, log, url, conn, store, schedules: Vec::new() };
        for set in 0..sets {
            for (cron, zone, misfire) in SET {
                let new = NewSchedule {
                    scope: Scope::new(&format!("user {set}"), "assistant").unwrap(),
                    cron: cron.into(),
                    timezone: zone.into(),
                    channel: "scheduled".into(),
                    prompt: "read the news".into(),
                    misfire: misfire.into(),
                    next_at: Timetable::parse(cron, zone).unwrap().next_after(start.as_microsecond()),
                    origin: embody_store::schedules::ScheduleOrigin::Owner,
                    origins: Vec::new(),
                    quarantined: false,
                };
                let AddScheduleOutcome::Added(added) = stage.store.schedules().add(new).await.unwrap() else {
                    panic!("full")
                };
                stage.schedules.push(*added);
            }
        }
        stage
    }

    fn replica(&self, name: usize) -> Replica {
        let keys = self.folder.path().join(format!("replica {name}"));
        std::fs::create_dir_all(&keys).unwrap();
        let child = Command::new(program()).arg(&self.url).arg(keys).arg(&self.log).spawn().unwrap();
        Replica { child }
    }

    async fn set_clock(&mut self, to: Timestamp) {
        let before = self.store.clock().await.unwrap();
        let set = format!("UPDATE test_clock SET shown = '{to}', since = pg_catalog.clock_timestamp()");
        sqlx::raw_sql(AssertSqlSafe(set)).execute(&mut self.conn).await.unwrap();
        // Leases expire when the clock is set forward; set back, they last longer.
        if to.as_microsecond() > before {
            note(&self.log, "FORWARD 0");
        }
    }

    /// Waits until this replica is in the middle of a run, at most for a second: nothing may be due for it.
    async fn wait_for_a_run_of(&self, replica: &Replica) {
        let deadline = tokio::time::Instant::now() + Duration::from_secs(1);
        let pid = replica.child.id();
        while tokio::time::Instant::now() < deadline {
            let ran = Ran::read(&self.log);
            if ran.started.values().any(|run| run.pid == pid && run.ended.is_none()) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// The leases of killed replicas expire as soon as the clock says so. It stops well before anything new is due.
    async fn wait_until_nothing_is_due(&mut self, end: Timestamp) {
        for step in 1..=6 {
            for _ in 0..40 {
                if self.is_quiet().await {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            self.set_clock(end + (step * 31).seconds()).await;
        }
        let next: Vec<_> = self.schedules().await.into_iter().map(|one| (one.cron, one.next_at)).collect();
        panic!("something is still due: {next:?}");
    }

    async fn is_quiet(&self) -> bool {
        let now = self.store.clock().await.unwrap();
        for schedule in self.schedules().await {
            let runs = self.store.schedules().runs(&schedule.user, &schedule.id, 10_000).await.unwrap();
            let is_due = schedule.next_at.is_some_and(|next| next <= now);
            if is_due || runs.iter().any(|run| run.finished_at.is_none()) {
                return false;
            }
        }
        true
    }

    async fn schedules(&self) -> Vec<Schedule> {
        let mut found = Vec::new();
        for schedule in &self.schedules {
            found.push(self.store.schedules().get(&schedule.user, &schedule.id).await.unwrap().unwrap());
        }
        found
    }

    async fn check(&self, start: Timestamp, end: Timestamp) {
        let ran = Ran::read(&self.log);
        let listed: BTreeSet<(String, i64)> = self
            .store
            .schedules()
            .list_unknown_runs(100_000)
            .await
            .unwrap()
            .into_iter()
            .map(|run| (run.schedule, run.due_at))
            .collect();
        let (mut all, mut unknown, mut killed) = (BTreeSet::new(), 0, 0);
        for schedule in &self.schedules {
            let table = Timetable::parse(&schedule.cron, &schedule.timezone).unwrap();
            let times = times(&table, start.as_microsecond(), end.as_microsecond());
            let runs = self.store.schedules().runs(&schedule.user, &schedule.id, 10_000).await.unwrap();
            let due: BTreeSet<i64> = runs.iter().map(|run| run.due_at).collect();
            match &*schedule.misfire {
                "all" => assert_eq!(due, times, "{}", schedule.cron),
                _ => assert!(due.is_subset(&times), "{}: {due:?} of {times:?}", schedule.cron),
            }
            if schedule.cron == "30 2 * * *" {
                assert_eq!(due.len(), 1, "a time that is skipped or shown twice is run once");
            }
            for run in runs {
                let key = (run.schedule, run.due_at);
                match run.outcome {
                    Some(RunOutcome::Done) => assert!(ran.started[&key].ended.is_some(), "{key:?}"),
                    Some(RunOutcome::Unknown) => {
                        assert!(listed.contains(&key), "{key:?} is not listed");
                        match ran.cut_short_by(&key) {
                            Some(Cut::Kill) => killed += 1,
                            Some(Cut::Clock) => {}
                            None => panic!("{key:?} is unknown, and nothing happened to it"),
                        }
                        unknown += 1;
                    }
                    other => panic!("{key:?} ended as {other:?}: {:?}", run.output),
                }
                all.insert(key);
            }
        }
        assert!(ran.started.keys().all(|key| all.contains(key)), "run without a record");
        assert!(all.len() >= self.schedules.len() / SET.len() * RUNS_OF_A_SET, "{} runs", all.len());
        assert_eq!(listed.len(), unknown);
        let kills = ran.kills.len();
        assert!(killed <= kills * ROOM, "{kills} kills cannot have cut {killed} runs short");
        eprintln!("{} runs, {unknown} unknown, {killed} of them by {kills} kills", all.len());
    }
}

/// All due times of a timetable after `from`, up to `to`.
fn times(table: &Timetable, from: i64, to: i64) -> BTreeSet<i64> {
    std::iter::successors(table.next_after(from), |at| table.next_after(*at))
        .take_while(|at| *at <= to)
        .collect()
}

/// What the replicas logged.
#[derive(Default)]
struct Ran {
    started: BTreeMap<(String, i64), Run>,
    kills: Vec<(u32, u64)>,
    forward: Vec<u64>,
}

/// What can leave a run without a recorded end.
enum Cut {
    Kill,
    /// Set forward, the clock ended the lease, and another replica claimed the schedule before the end was recorded.
    Clock,
}

struct Run {
    pid: u32,
    began: u64,
    ended: Option<u64>,
}

impl Ran {
    fn read(log: &Path) -> Self {
        let mut ran = Self::default();
        for line in std::fs::read_to_string(log).unwrap_or_default().lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let (pid, at) = (words[1].parse().unwrap(), words.last().unwrap().parse().unwrap());
            let key = || (words[2].to_owned(), words[3].parse().unwrap());
            match words[0] {
                "START" => {
                    let twice = ran.started.insert(key(), Run { pid, began: at, ended: None });
                    assert!(twice.is_none(), "run twice: {line}");
                }
                "END" => ran.started.get_mut(&key()).unwrap().ended = Some(at),
                "KILL" => ran.kills.push((pid, at)),
                _ => ran.forward.push(at),
            }
        }
        ran
    }

    /// What interrupted the run, or prevented the record of its end.
    fn cut_short_by(&self, key: &(String, i64)) -> Option<Cut> {
        // Killed between the record and the first log line of the run.
        let Some(run) = self.started.get(key) else { return Some(Cut::Kill) };
        let killed =
            |last: u64| self.kills.iter().any(|(pid, at)| *pid == run.pid && (run.began..=last).contains(at));
        // Runs are shorter than the time in which a lost lease is noticed: only a killed process logs no end.
        let Some(ended) = run.ended else { return killed(u64::MAX).then_some(Cut::Kill) };
        let last = ended + MARGIN_MS;
        if killed(last) {
            return Some(Cut::Kill);
        }
        // The lease is older than the first log line.
        let first = run.began - MARGIN_MS;
        self.forward.iter().any(|at| (first..=last).contains(at)).then_some(Cut::Clock)
    }
}

fn note(log: &Path, words: &str) {
    let millis = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    let mut file = std::fs::OpenOptions::new().append(true).create(true).open(log).unwrap();
    file.write_all(format!("{words} {millis}\n").as_bytes()).unwrap();
}

/// Cargo builds the examples with the tests, in a sibling directory.
fn program() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let program = tests.parent().unwrap().parent().unwrap().join("examples/replica");
    assert!(program.exists(), "{} is missing: build with `cargo test --no-run`", program.display());
    program
}

/// The URL of a new, empty database on the test server.
async fn database() -> String {
    let server = server_url("EMBODY_TEST_POSTGRES");
    let name = format!("replicas_{}_{}", std::process::id(), any(u32::MAX));
    let mut admin = PgConnection::connect(&server).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(format!("CREATE DATABASE {name}"))).execute(&mut admin).await.unwrap();
    let (base, _) = server.rsplit_once('/').unwrap();
    format!("{base}/{name}")
}

/// A random number below `limit`: the moment of the kill must not be fixed.
fn any(limit: u32) -> u32 {
    let mut bytes = [0; 4];
    getrandom::fill(&mut bytes).unwrap();
    u32::from_le_bytes(bytes) % limit
}
