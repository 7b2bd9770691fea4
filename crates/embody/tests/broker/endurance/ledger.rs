//! Every write, what its host saw of it, what the bodies have executed, and what is on record. In the end all of it must
//! agree.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::super::host::SOON;
use super::server::Server;

/// How every write's text begins.
const MARK: &str = "write ";

/// What a host saw of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SeenOutcome {
    /// The body's own answer.
    Done,
    /// The body's own answer, which is that it went wrong.
    Failed,
    /// The broker reported that it was not made.
    Refused,
    /// The broker reported an unknown outcome.
    Unknown,
    /// No answer: the broker was killed, or the host did not wait.
    Nothing,
}

/// Which broker made a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Writer {
    /// The shared broker, by its number. Each is killed before the next one starts.
    Up(usize),
    /// A host's own.
    Pipe { is_killed: bool },
}

/// A write, as its host has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Write {
    maker: Writer,
    seen: SeenOutcome,
}

/// The writes that were ever begun, by their texts.
#[derive(Default)]
pub(super) struct Ledger {
    writes: Mutex<BTreeMap<String, Write>>,
    under_way: AtomicUsize,
}

/// A write that is under way.
pub(super) struct Entry<'a> {
    ledger: &'a Ledger,
    pub(super) text: String,
}

impl Entry<'_> {
    /// Its host saw this.
    pub(super) fn record_seen(&self, seen: SeenOutcome) {
        self.ledger.writes.lock().unwrap().get_mut(&self.text).unwrap().seen = seen;
    }
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        self.ledger.under_way.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Ledger {
    /// Begins a write with this unused name.
    pub(super) fn begin(&self, maker: Writer, name: &str) -> Entry<'_> {
        let text = format!("{MARK}{name}");
        let write = Write { maker, seen: SeenOutcome::Nothing };
        let twice = self.writes.lock().unwrap().insert(text.clone(), write);
        assert_eq!(twice, None, "{text}");
        self.under_way.fetch_add(1, Ordering::AcqRel);
        Entry { ledger: self, text }
    }

    pub(super) fn under_way(&self) -> usize {
        self.under_way.load(Ordering::Acquire)
    }

    /// How many writes came to what, for their hosts.
    pub(super) fn counts(&self) -> BTreeMap<SeenOutcome, usize> {
        let mut counts = BTreeMap::new();
        for write in self.writes.lock().unwrap().values() {
            *counts.entry(write.seen).or_default() += 1;
        }
        counts
    }

    /// Compares what hosts saw with what was executed and what is on record. How many outcomes were lost with their broker:
    /// they join the next commit, and nobody waits for it.
    pub(super) fn check(&self, server: &Server) -> usize {
        let executed = executed(server);
        let twice: Vec<_> = executed.iter().filter(|(_, count)| **count > 1).collect();
        assert!(twice.is_empty(), "executed more than once: {twice:?}");
        let recorded = recorded(server);
        let writes = self.writes.lock().unwrap();
        for text in executed.keys() {
            assert!(writes.contains_key(text), "nobody has asked for `{text}`");
            assert!(recorded.contains_key(text), "`{text}` was executed without a record");
        }
        let (last, mut lost) = (server.address().0, 0);
        for (text, write) in &*writes {
            let (is_executed, outcome) = (executed.contains_key(text), recorded.get(text));
            let outcome = outcome.map(|outcome| outcome.as_deref().expect("a record without an end"));
            if compare(write.seen, is_executed, outcome) {
                continue;
            }
            let was_killed = match write.maker {
                Writer::Up(number) => number < last,
                Writer::Pipe { is_killed } => is_killed,
            };
            let may_be_lost = was_killed
                && outcome == Some("unknown")
                && is_executed == matches!(write.seen, SeenOutcome::Done | SeenOutcome::Failed);
            assert!(may_be_lost, "`{text}`: {write:?}, executed {is_executed}, recorded {outcome:?}");
            lost += 1;
        }
        lost
    }
}

/// Whether what a host saw, what was executed and what is on record agree.
fn compare(seen: SeenOutcome, is_executed: bool, outcome: Option<&str>) -> bool {
    match seen {
        SeenOutcome::Done => is_executed && outcome == Some("done"),
        SeenOutcome::Failed => is_executed && outcome == Some("failed"),
        SeenOutcome::Refused => !is_executed && [None, Some("denied")].contains(&outcome),
        SeenOutcome::Unknown => outcome == Some("unknown"),
        SeenOutcome::Nothing => match outcome {
            Some("done" | "failed") => is_executed,
            Some("unknown") => true,
            _ => !is_executed,
        },
    }
}

/// How often each write was executed, as the bodies have it.
fn executed(server: &Server) -> HashMap<String, usize> {
    let mut executed = HashMap::new();
    let calls = server.bodies.iter().flat_map(|unruly| unruly.of_kind("call"));
    for text in calls.filter_map(|call| marked(&call["params"]["arguments"]["text"])) {
        *executed.entry(text).or_default() += 1;
    }
    executed
}

fn marked(text: &Value) -> Option<String> {
    text.as_str().filter(|text| text.starts_with(MARK)).map(str::to_owned)
}

/// The outcome of each write on record, once every write has one: those of processes that were killed are closed by one
/// that lives.
fn recorded(server: &Server) -> HashMap<String, Option<String>> {
    let deadline = Instant::now() + SOON;
    loop {
        let records = read(server);
        let open = records.values().filter(|outcome| outcome.is_none()).count();
        if open == 0 {
            return records;
        }
        assert!(Instant::now() < deadline, "{open} writes stay open: {records:#?}");
        std::thread::sleep(Duration::from_millis(500));
    }
}

fn read(server: &Server) -> HashMap<String, Option<String>> {
    let exported = server.world.run(&["audit", "export"]).ok().stdout;
    let (mut intents, mut outcomes) = (HashMap::new(), HashMap::new());
    for line in exported.lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        let detail = &record["detail"];
        let id = detail["call_id"].as_str().unwrap_or_default().to_owned();
        match record["event"].as_str().unwrap() {
            "intent" => {
                // One of the mind's or of the embedded body has no mark, and must end all the same.
                let text = marked(&detail["args_excerpt"]["text"]).unwrap_or_else(|| format!("other {id}"));
                assert_eq!(intents.insert(text, id), None, "two intents for one call: {detail}");
            }
            "outcome" => {
                let outcome = detail["outcome"].as_str().unwrap().to_owned();
                // The process that made it knows more than the one that gave it up.
                let before = outcomes.insert(id, outcome);
                assert!(before.is_none_or(|one| one == "unknown"), "two outcomes for one call: {detail}");
            }
            _ => {}
        }
    }
    intents.into_iter().map(|(text, id)| (text, outcomes.get(&id).cloned())).collect()
}
