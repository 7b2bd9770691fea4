//! The workspace with its bodies, and the shared broker process, which is killed and restarted.

use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::super::host::SOON;
use super::super::pins::tool;
use super::super::setup::{ALLOW_ALL, body};
use super::super::unruly::{Unruly, is_alive};
use crate::support::served::{Reading, Served, begin, send, token};
use crate::support::world::World;

/// The idle time after which bodies are stopped.
const IDLE_STOP: &str = "start = \"lazy\"\nidle_stop_s = 2";
/// How many of the bodies are killed, from the first.
const KILLED: usize = 4;
/// While this is there, `late` is.
const LATE: &str = "late.here";

/// Everything but the hosts.
pub(super) struct Server {
    pub(super) world: World,
    /// All that write down what they do.
    pub(super) bodies: Vec<Unruly>,
    broker: Mutex<Served>,
    /// How often there was another broker, and where it is.
    address: Mutex<(usize, String)>,
    pub(super) token: String,
    operate: String,
    /// Sessions whose host has vanished.
    lost: Mutex<Vec<String>>,
    pub(super) bodies_killed: AtomicUsize,
}

impl Server {
    /// | body | is |
    /// |---|---|
    /// | `good` | as it should be, with a child of its own |
    /// | `slow` | late with its answers, or never there with them; stopped when idle |
    /// | `mortal` | ends in the middle of calls, and leaves a child behind |
    /// | `loud` | complains, floods, answers with a lot; stopped when idle |
    /// | `late` | was there once, and never starts again |
    /// | `deaf` | never there with its answers, and never killed; stopped when idle |
    /// | `absent` | no program at all |
    pub(super) fn open() -> Self {
        let world = World::with_body("Be honest. The rules of the house.");
        let here = world.outside(LATE).display().to_string();
        world.file_outside(LATE, "");
        let unruly: Vec<(&str, Unruly, &str)> = [
            ("good", vec!["--child"], ""),
            ("slow", vec!["--stays"], IDLE_STOP),
            ("mortal", vec!["--child"], ""),
            ("loud", vec!["--start", "garbage", "--start", "stderr:100000"], IDLE_STOP),
            ("late", vec!["--while", &here], "start = \"lazy\""),
            ("deaf", vec![], IDLE_STOP),
        ]
        .into_iter()
        .map(|(name, words, more)| {
            let tools = format!("{name}.tools");
            world.file_outside(&tools, tools_of(name).to_string());
            let log = world.outside(&format!("{name}.log"));
            let unruly = Unruly::new(log).with(&["--name", name, "--tools"]);
            let unruly = unruly.with(&[&world.outside(&tools).display().to_string()]).with(&words);
            (name, unruly, more)
        })
        .collect();
        let absent = world.outside("absent").display().to_string();
        // Only such tools: it never starts, and could otherwise have one of any name.
        let mut config = ALLOW_ALL.to_owned() + &body("absent", &[absent], "allow = [\"absent_*\"]\n");
        config.extend(unruly.iter().map(|(name, unruly, more)| body(name, unruly.words(), more)));
        world.file("embody.toml", config);
        let (token, operate) = (token(&world, "owner", "mcp"), token(&world, "owner", "operate"));
        let broker = Served::start(&world);
        let address = Mutex::new((0, broker.host.clone()));
        let bodies = unruly.into_iter().map(|(_, unruly, _)| unruly).collect();
        let (broker, lost, bodies_killed) = (Mutex::new(broker), Mutex::default(), AtomicUsize::new(0));
        Self { world, bodies, broker, address, token, operate, lost, bodies_killed }
    }

    /// From now on `late` does not start.
    pub(super) fn end_slowly(&self) {
        std::fs::remove_file(self.world.outside(LATE)).unwrap();
    }

    /// Which broker there is, and where.
    pub(super) fn address(&self) -> (usize, String) {
        self.address.lock().unwrap().clone()
    }

    /// The broker's process.
    pub(super) fn process(&self) -> u32 {
        self.broker.lock().unwrap().process.id()
    }

    /// `kill -9`, and another in its place on the same store.
    pub(super) fn kill(&self) {
        let mut broker = self.broker.lock().unwrap();
        broker.signal("-9");
        broker.process.wait().unwrap();
        *broker = Served::start(&self.world);
        self.lost.lock().unwrap().clear();
        let mut address = self.address.lock().unwrap();
        *address = (address.0 + 1, broker.host.clone());
    }

    /// Ends the broker with a signal; returns whether it exits with success.
    pub(super) fn close(&self) -> bool {
        let mut broker = self.broker.lock().unwrap();
        broker.signal("-TERM");
        let deadline = Instant::now() + SOON;
        loop {
            if let Some(status) = broker.process.try_wait().unwrap() {
                return status.success();
            }
            assert!(Instant::now() < deadline, "it does not end");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// `kill -9` of a body: of this session, or of the next that runs.
    pub(super) fn kill_a_body(&self, which: usize) {
        let mortals = &self.bodies[..KILLED];
        let bodies = mortals.iter().cycle().skip(which).take(KILLED);
        let Some(id) = bodies.filter_map(youngest).next() else { return };
        let killed = Command::new("kill").args(["-9", &id.to_string()]).output().unwrap();
        self.bodies_killed.fetch_add(usize::from(killed.status.success()), Ordering::Relaxed);
    }

    /// Records a session whose host disappeared.
    pub(super) fn abandon(&self, session: String) {
        self.lost.lock().unwrap().push(session);
    }

    /// Hosts that had vanished are back, and leave properly.
    pub(super) fn end_abandoned(&self) {
        for session in std::mem::take(&mut *self.lost.lock().unwrap()) {
            // Or it expired.
            let status = self.end_session(&session).unwrap();
            assert!([204, 404].contains(&status), "{status}");
        }
    }

    /// Ends a session; the status.
    pub(super) fn end_session(&self, session: &str) -> std::io::Result<u16> {
        let bearer = format!("Bearer {}", self.token);
        let headers = [("authorization", &*bearer), ("mcp-session-id", session)];
        Ok(Reading::new(send(&self.address().1, "DELETE /mcp", &headers, None)?)?.status)
    }

    /// The numbers of the broker.
    pub(super) fn numbers(&self) -> Numbers {
        let bearer = format!("Bearer {}", self.operate);
        let answer = begin(&self.address().1, "GET /metrics", &[("authorization", &bearer)], None).whole();
        assert_eq!(answer.status, 200, "{answer:?}");
        Numbers(answer.body)
    }
}

/// The process of a body that was started last and still runs.
fn youngest(unruly: &Unruly) -> Option<u64> {
    let log = unruly.words()[2].as_bytes();
    // The pid of an ended process may have been reused.
    let is_it = |id: &u64| {
        let words = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        is_alive(*id) && words.split(|byte| *byte == 0).any(|word| word == log)
    };
    let started = unruly.of_kind("start").into_iter().rev();
    started.filter_map(|start| start["pid"].as_u64()).find(is_it)
}

/// The values of `/metrics`.
pub(super) struct Numbers(String);

impl Numbers {
    /// One of them, by its name and labels as they are written.
    pub(super) fn get(&self, series: &str) -> usize {
        let name = series.split('{').next().unwrap();
        assert!(self.0.contains(&format!("# TYPE {name} ")), "there is no `{name}`:\n{}", self.0);
        let value = self.0.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        // A label without a sample is absent.
        value.map_or(0, |value| value.parse().unwrap_or_else(|_| panic!("`{series}` is {value}")))
    }

    /// Those that are not zero and whose names begin like this.
    pub(super) fn about(&self, names: &str) -> String {
        let is_it =
            |line: &&str| line.starts_with(names) && !line.ends_with(" 0") && !line.contains("_bucket");
        self.0.lines().filter(is_it).collect::<Vec<_>>().join("\n")
    }

    /// Sessions of an era that are open.
    pub(super) fn sessions(&self, era: &str) -> usize {
        self.get(&format!("embody_sessions{{era=\"{era}\"}}"))
    }

    /// Connections to a body that are there or are being made.
    pub(super) fn connected(&self, body: &str) -> usize {
        let of = |state| self.get(&format!("embody_upstreams{{body=\"{body}\",state=\"{state}\"}}"));
        of("connected") + of("connecting")
    }
}

/// A read and a write, called after the body so that every name is one body's.
fn tools_of(name: &str) -> Value {
    let write = json!({"readOnlyHint": false, "destructiveHint": false, "openWorldHint": false});
    json!([
        tool(&format!("{name}_peek"), "Looks.", &json!({"readOnlyHint": true})),
        tool(&format!("{name}_keep"), "Writes something down.", &write),
    ])
}
