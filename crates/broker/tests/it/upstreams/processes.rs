//! Real processes that crash, flood, stay silent or do not exit.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use embody_broker::upstream::{Backoff, Health};
use embody_wire::Limits;
use embody_wire::upstream::{CallEvent, ChildSpec, OutgoingCall, Route};
use tokio::time::timeout;

use super::scripted::{SOON, names, start, still, until};

/// The example program that cargo has built next to the tests.
fn program() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let program = tests.parent().unwrap().parent().unwrap().join("examples/wayward");
    assert!(program.exists(), "{} is missing: build with `cargo test --no-run`", program.display());
    program
}

/// A server that misbehaves in this way, and the mark of its processes.
fn wayward(way: &str) -> (Route, String) {
    let mark = format!("mark-{way}-{}-{}", std::process::id(), random());
    let spec = ChildSpec {
        program: program().into(),
        arguments: vec![OsString::from(way), OsString::from(&mark)],
        environment: vec![("PATH".into(), std::env::var_os("PATH").unwrap_or_default())],
        folder: None,
        secrets: Vec::new(),
        reaper: None,
        stderr: None,
    };
    (Route::Child(spec), mark)
}

fn random() -> String {
    use std::hash::{BuildHasher, RandomState};
    format!("{:x}", RandomState::new().hash_one(0))
}

/// The processes with a mark. A zombie has no command line.
fn marked(mark: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if String::from_utf8_lossy(&command).contains(mark) {
            found.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    found
}

/// The running processes of a group.
fn in_group(group: u32) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        // After the name, which may contain anything: state, parent, group.
        let rest: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
        if rest.len() > 2 && rest[2] == group.to_string() && rest[0] != "Z" {
            found.push(stat.clone());
        }
    }
    found
}

/// Waits until none of these processes is left: killing takes a moment.
async fn gone(left: impl Fn() -> Vec<String>) {
    let gone = async {
        while !left().is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    if timeout(SOON, gone).await.is_err() {
        panic!("left: {:?}", left());
    }
}

// spec: N-13
#[tokio::test]
async fn a_process_that_crashes_in_a_call_loses_the_call_and_is_started_again() {
    let (route, mark) = wayward("crash");
    let (upstream, mut events) = start(route, Limits::default(), still());
    timeout(SOON, upstream.wait_settled()).await.unwrap();
    let link = upstream.lease().await.unwrap();
    let first = upstream.status().pid.unwrap();
    let mut running = link.begin(OutgoingCall { method: "tools/call", params: None }).await.unwrap();
    assert!(matches!(timeout(SOON, running.next()).await.unwrap(), CallEvent::Lost(_)));
    until(&mut events, || upstream.status().health == Health::Unavailable).await;
    assert_eq!(names(&upstream), ["stray"], "kept while it is away");
    timeout(SOON, upstream.lease()).await.unwrap().unwrap();
    let state = upstream.status();
    assert_eq!((state.health, state.restarts), (Health::Connected, 1));
    assert_eq!(state.stderr, ["going down"], "the last words of the one before");
    assert!(state.pid.is_some_and(|pid| pid != first));
    timeout(SOON, upstream.shutdown()).await.unwrap();
    assert_eq!(marked(&mark), [""; 0]);
}

#[tokio::test]
async fn a_flood_on_stderr_is_read_and_only_its_end_is_kept() {
    let (route, mark) = wayward("noisy");
    let (upstream, _hears) = start(route, Limits::default(), still());
    timeout(SOON, upstream.wait_settled()).await.unwrap();
    let state = upstream.status();
    assert_eq!((state.health, state.transport), (Health::Connected, Some("stdio")));
    assert!(state.stderr.len() <= 50 && state.stderr.iter().all(|line| line.len() <= 1000));
    timeout(SOON, upstream.shutdown()).await.unwrap();
    assert_eq!(marked(&mark), [""; 0]);
}

#[tokio::test]
async fn a_process_that_never_answers_is_given_up_and_gone() {
    let (route, mark) = wayward("deaf");
    let limits = Limits { attempt_timeout: Duration::from_millis(20), ..Limits::default() };
    let (upstream, _hears) = start(route, limits, still());
    timeout(SOON, upstream.wait_settled()).await.unwrap();
    let reason = upstream.status().reason.unwrap();
    assert!(reason.contains("took longer than 240 ms"), "a process has more time for its start: {reason}");
    gone(|| marked(&mark)).await;
    timeout(SOON, upstream.shutdown()).await.unwrap();
}

// spec: N-13
#[tokio::test]
async fn a_process_without_sessions_that_hangs_is_found_although_it_is_listened_to() {
    let (route, mark) = wayward("hung");
    let soon = Duration::from_millis(20);
    let pace = Backoff { ping_interval: soon, ping_timeout: soon, ..still() };
    let (upstream, mut events) = start(route, Limits::default(), pace);
    until(&mut events, || names(&upstream) == ["stray"]).await;
    until(&mut events, || upstream.status().health == Health::Unavailable).await;
    let reason = upstream.status().reason.unwrap();
    assert!(reason.contains("health checks"), "{reason}");
    timeout(SOON, upstream.shutdown()).await.unwrap();
    gone(|| marked(&mark)).await;
}

#[tokio::test]
async fn a_process_that_is_being_started_is_gone_when_it_is_ended() {
    let (route, mark) = wayward("deaf");
    let (upstream, _hears) = start(route, Limits::default(), still());
    while marked(&mark).is_empty() {
        tokio::task::yield_now().await;
    }
    timeout(SOON, upstream.shutdown()).await.unwrap();
    gone(|| marked(&mark)).await;
}

// spec: N-13
#[tokio::test]
async fn a_process_that_does_not_want_to_go_goes_with_everything_it_started() {
    let (route, mark) = wayward("stubborn");
    let limits = Limits { courtesy_timeout: Duration::from_millis(50), ..Limits::default() };
    let (upstream, _hears) = start(route, limits, still());
    timeout(SOON, upstream.wait_settled()).await.unwrap();
    let group = upstream.status().pid.unwrap();
    assert!(in_group(group).len() >= 2, "it and its child");
    timeout(SOON, upstream.shutdown()).await.unwrap();
    gone(|| marked(&mark)).await;
    gone(|| in_group(group)).await;
}

#[tokio::test]
async fn a_program_that_is_not_there_is_said_by_name() {
    let spec = ChildSpec {
        program: "no-such-program".into(),
        arguments: Vec::new(),
        environment: Vec::new(),
        folder: None,
        secrets: Vec::new(),
        reaper: None,
        stderr: None,
    };
    let (upstream, _hears) = start(Route::Child(spec), Limits::default(), still());
    timeout(SOON, upstream.wait_settled()).await.unwrap();
    assert!(upstream.status().reason.unwrap().contains("no-such-program"));
    assert!(timeout(SOON, upstream.lease()).await.unwrap().is_err());
}
