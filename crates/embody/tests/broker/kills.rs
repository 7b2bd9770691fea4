//! `kill -9` in the middle of writes: no write without an intent, none sent twice, each one done or unknown. And no body
//! is left behind.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::host::{Host, Reply, SOON};
use super::setup::{ALLOW_ALL, Scene, body, broker, host, is_done};
use super::unruly::{Unruly, is_alive};
use crate::support::world::World;

/// Writes that are under way when the broker is killed.
const WRITES: usize = 8;

/// How often each of the three tests kills: a hundred times together, and more in `cargo xtask soak`.
fn kills() -> usize {
    let all: usize =
        std::env::var("EMBODY_BROKER_KILLS").map_or(100, |text| text.parse().expect("a number of kills"));
    all.div_ceil(3)
}

// spec: N-14, N-15
#[test]
fn killed_while_writes_are_sent() {
    survive(kills(), |_, scene, before| {
        // As soon as the body has the first of them.
        scene.desk.until("call", before + 1);
    });
}

// spec: N-14, N-15
#[test]
fn killed_while_writes_are_begun() {
    survive(kills(), |_, _, _| {});
}

// spec: N-14, N-15
#[test]
fn killed_while_writes_are_answered() {
    survive(kills(), |host, _, _| {
        host.until("an answer", |host| host.has_any_answer());
    });
}

/// One that heeds neither the end of its input nor a polite signal, and has started another.
fn stubborn() -> (World, Unruly) {
    let world = World::with_body("Be honest.");
    let desk = Unruly::new(world.outside("desk.log")).with(&["--stays", "--child"]);
    let deaf = ["sh", "-c", "trap '' HUP INT TERM; exec \"$@\"", "sh"].map(str::to_owned);
    let words: Vec<String> = deaf.into_iter().chain(desk.words().iter().cloned()).collect();
    world.file("embody.toml", format!("{ALLOW_ALL}{}", body("desk", &words, "")));
    (world, desk)
}

// spec: N-13
#[test]
fn killed_it_leaves_no_body_behind() {
    let (world, desk) = stubborn();
    for round in 1..=10 {
        let mut host = host(&world, &json!({}), |_, _| Reply::Error(-32601, "no such method"));
        assert!(is_done(&host.call("note", &json!({})), "note"));
        assert_eq!(desk.of_kind("start").len(), round);
        let guard = guard_of(&host);
        host.kill();
        desk.gone();
        gone(guard);
    }
    // Killed while it starts them: none is left, whether it was begun or not.
    for _ in 0..10 {
        let mut host = Host::start(broker(&world));
        host.initialize(&json!({}));
        host.kill();
    }
    desk.gone();
}

// spec: N-13
#[test]
fn ended_politely_it_leaves_no_guard_behind() {
    let (world, desk) = stubborn();
    let mut host = host(&world, &json!({}), |_, _| Reply::Error(-32601, "no such method"));
    assert!(is_done(&host.call("note", &json!({})), "note"));
    let guard = guard_of(&host);
    assert!(host.close().success());
    desk.gone();
    gone(guard);
}

// spec: N-13
#[test]
fn a_guard_that_was_killed_is_replaced() {
    let (world, desk) = stubborn();
    let clock = Unruly::new(world.outside("clock.log")).with(&["--stays"]);
    let config = std::fs::read_to_string(world.path("embody.toml")).unwrap();
    world.file("embody.toml", config + &body("clock", clock.words(), "allow = [\"mirror\"]"));
    let mut host = host(&world, &json!({}), |_, _| Reply::Error(-32601, "no such method"));
    clock.until("start", 1);
    assert!(is_done(&host.call("note", &json!({})), "note"));
    let guard = guard_of(&host);
    kill_process(Pid::from_raw(guard.try_into().unwrap()).unwrap(), Signal::KILL).unwrap();
    gone(guard);
    // Another one stands in for it, which knows of those that run, and of those that are started later.
    assert_ne!(guard_of(&host), guard);
    host.call("clock__mirror", &json!({"trick": "crash"}));
    clock.until("start", 2);
    host.kill();
    desk.gone();
    clock.gone();
}

/// The one process that stands guard over all bodies.
fn guard_of(host: &Host) -> u64 {
    let deadline = Instant::now() + SOON;
    loop {
        match *guards_of(host.process.id()) {
            [only] => return only,
            // What is listed is not one moment: one may come or go meanwhile.
            ref others => assert!(Instant::now() < deadline, "{others:?}"),
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn guards_of(broker: u32) -> Vec<u64> {
    let is_guard = |id: &u64| {
        let words = std::fs::read_to_string(format!("/proc/{id}/cmdline")).unwrap_or_default();
        is_alive(*id) && words.split('\0').nth(1) == Some("__guard")
    };
    let tasks = std::fs::read_dir(format!("/proc/{broker}/task")).unwrap();
    let started: String = tasks
        .map(|task| std::fs::read_to_string(task.unwrap().path().join("children")).unwrap_or_default())
        .collect();
    started.split_whitespace().map(|id| id.parse().unwrap()).filter(is_guard).collect()
}

fn gone(process: u64) {
    let deadline = Instant::now() + SOON;
    while is_alive(process) {
        assert!(Instant::now() < deadline, "process {process} is left");
        std::thread::sleep(Duration::from_millis(5));
    }
}

// spec: N-14
#[test]
fn a_host_without_a_session_that_comes_back_does_not_hide_what_was_lost() {
    let scene = Scene::new("", &[ALLOW_ALL]);
    let call = |name: &str, arguments: Value| {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        });
        json!({"name": name, "arguments": arguments, "_meta": meta}).to_string()
    };
    let mut host = Host::start(broker(&scene.world));
    host.ask("tools/call", &call("runtime_bootstrap", json!({}))).result();
    host.begin("tools/call", &call("note", json!({"text": "lost", "trick": "hang"})));
    scene.desk.until("call", 1);
    host.kill();
    // The same host, by the same session, in another process that stays.
    let mut host = Host::start(broker(&scene.world));
    let deadline = Instant::now() + SOON;
    loop {
        host.ask("tools/call", &call("look", json!({}))).result();
        let (intents, outcomes) = recorded(&scene);
        if let Some(outcome) = outcomes.get(&intents["lost"]) {
            return assert_eq!(outcome, "unknown");
        }
        assert!(Instant::now() < deadline, "a write without an outcome");
        std::thread::sleep(Duration::from_millis(500));
    }
}

fn survive(rounds: usize, mut until: impl FnMut(&mut Host, &Scene, usize)) {
    let scene = Scene::new("", &[ALLOW_ALL]);
    for round in 0..rounds {
        let mut host = scene.plain_host();
        let before = scene.desk.of_kind("call").len();
        let lines: Vec<String> = (0..WRITES)
            .map(|write| {
                let arguments = json!({"text": format!("{round}-{write}"), "trick": "slow", "amount": write});
                let params = json!({"name": "note", "arguments": arguments});
                json!({"jsonrpc": "2.0", "id": 1000 + write, "method": "tools/call", "params": params})
                    .to_string()
            })
            .collect();
        host.write_all(1000 + WRITES as u64, &lines.join("\n"));
        until(&mut host, &scene, before);
        host.kill();
    }
    scene.desk.gone();
    // A running broker closes the calls of killed ones.
    let mut last = scene.plain_host();
    let result = last.call("note", &json!({"text": "the last"}));
    assert!(is_done(&result, "note"), "{result}");
    check(&scene, rounds);
    assert!(last.close().success());
    scene.world.run(&["audit", "verify"]).ok();
}

fn check(scene: &Scene, rounds: usize) {
    let executed: Vec<String> =
        scene.desk.calls("note").iter().map(|call| call["text"].as_str().unwrap().to_owned()).collect();
    let distinct: BTreeSet<&String> = executed.iter().collect();
    assert_eq!(executed.len(), distinct.len(), "sent twice");
    let deadline = Instant::now() + SOON;
    let (intents, outcomes) = loop {
        let (intents, outcomes) = recorded(scene);
        if intents.values().all(|id| outcomes.contains_key(id)) {
            break (intents, outcomes);
        }
        assert!(Instant::now() < deadline, "writes without an outcome: {intents:#?}\n{outcomes:#?}");
        std::thread::sleep(Duration::from_millis(100));
    };
    for text in &executed {
        let id = intents.get(text).unwrap_or_else(|| panic!("`{text}` was made without an intent"));
        assert!(["done", "unknown"].contains(&&*outcomes[id]), "`{text}`: {}", outcomes[id]);
    }
    // What is on record as done was done.
    for (text, id) in &intents {
        assert!(outcomes[id] != "done" || distinct.contains(text), "`{text}` was never made");
    }
    assert!(!executed.is_empty() && executed.len() <= rounds * WRITES + 1, "{}", executed.len());
}

/// Text → call, and call → outcome.
fn recorded(scene: &Scene) -> (BTreeMap<String, String>, BTreeMap<String, String>) {
    let exported = scene.world.run(&["audit", "export"]).ok().stdout;
    let (mut intents, mut outcomes) = (BTreeMap::new(), BTreeMap::new());
    for line in exported.lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        let detail = &record["detail"];
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        match record["event"].as_str().unwrap() {
            "intent" => {
                let twice = intents.insert(text(&detail["args_excerpt"]["text"]), text(&detail["call_id"]));
                assert_eq!(twice, None, "two intents for one call: {detail}");
            }
            "outcome" => {
                let twice = outcomes.insert(text(&detail["call_id"]), text(&detail["outcome"]));
                assert_eq!(twice, None, "two outcomes for one call: {detail}");
            }
            _ => {}
        }
    }
    (intents, outcomes)
}
