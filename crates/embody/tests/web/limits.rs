//! Requests and signals that must not stop the process: too many members, too many bytes, an end while it cannot write.

use std::fs;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use crate::support::app::eventually;
use crate::support::served::{Answer, Served, token};
use crate::support::world::World;

/// A host of `embody up`.
struct Host<'a> {
    served: &'a Served,
    headers: Vec<(&'static str, String)>,
    requests: AtomicU32,
}

impl<'a> Host<'a> {
    fn new(served: &'a Served, token: &str) -> Self {
        let headers = vec![
            ("authorization", format!("Bearer {token}")),
            ("accept", "application/json, text/event-stream".to_owned()),
        ];
        let mut host = Self { served, headers, requests: AtomicU32::new(0) };
        let answer = host.ask("initialize", &json!({
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}));
        assert_eq!(answer.status, 200, "{answer:?}");
        host.headers.push(("mcp-session-id", answer.header("mcp-session-id").unwrap().to_owned()));
        host
    }

    fn ask(&self, method: &str, params: &Value) -> Answer {
        let headers: Vec<(&str, &str)> =
            self.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let id = self.requests.fetch_add(1, Ordering::Relaxed);
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.served.ask("POST /mcp", &headers, Some(&message))
    }

    fn read_memory(&self, arguments: &Value) -> Answer {
        self.ask("tools/call", &json!({"name": "read_memory", "arguments": arguments}))
    }
}

/// The most memory that a process has had, in bytes.
fn most_memory(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

#[test]
fn arguments_with_very_many_members_do_not_hold_up_other_calls() {
    let world = World::new();
    let mcp = token(&world, "owner", "mcp");
    let mut served = Served::start(&world);
    let host = Host::new(&served, &mcp);
    let members: Map<String, Value> = (0..350_000).map(|number| (format!("k{number}"), json!(0))).collect();
    let members = Value::from(members);
    let began = Instant::now();
    std::thread::scope(|scope| {
        let hostile: Vec<_> = (0..3).map(|_| scope.spawn(|| host.read_memory(&members))).collect();
        let answer = host.read_memory(&json!({"query": "tea"}));
        assert_eq!(answer.status, 200, "{answer:?}");
        for answer in hostile {
            let answer = answer.join().unwrap();
            assert!(answer.body.contains("an object has more than 10000 members"), "{}", answer.body);
        }
    });
    assert!(began.elapsed() < Duration::from_secs(50), "{:?}", began.elapsed());
    served.signal("-TERM");
    assert!(served.process.wait().unwrap().success());
}

#[test]
fn a_large_call_is_refused_before_it_takes_much_memory() {
    let world = World::new();
    let mcp = token(&world, "owner", "mcp");
    let served = Served::start(&world);
    let host = Host::new(&served, &mcp);
    assert_eq!(host.read_memory(&json!({"query": "tea"})).status, 200);
    let before = most_memory(served.process.id());
    let answer = host.read_memory(&json!({"query": "x".repeat(16_000_000)}));
    assert!(answer.body.contains("they are longer than 4194304 bytes"), "{}", answer.body);
    let taken = most_memory(served.process.id()) - before;
    assert!(taken < 130_000_000, "{taken}");
}

#[test]
fn a_signal_ends_the_process_even_if_its_threads_block() {
    let world = World::new();
    // Its output is never read, so the main thread blocks.
    let (unread, theirs) = UnixStream::pair().unwrap();
    let mut full = theirs.try_clone().unwrap();
    full.set_nonblocking(true).unwrap();
    while full.write(&[b'x'; 4096]).is_ok() {}
    full.set_nonblocking(false).unwrap();
    let mut command = world.command();
    command.arg("--workspace").arg(world.workspace()).args(["up", "--listen", "127.0.0.1:0"]);
    let stdout = Stdio::from(std::os::fd::OwnedFd::from(theirs));
    let mut process = command.stdout(stdout).stderr(Stdio::null()).spawn().unwrap();
    drop(full);
    // It has come so far once the store is there.
    eventually("store", || world.path("embody.db").exists().then_some(()));
    let began = Instant::now();
    let pid = rustix::process::Pid::from_child(&process);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let ended = eventually("end", || process.try_wait().unwrap());
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    assert!(!ended.success());
    drop(unread);
}
