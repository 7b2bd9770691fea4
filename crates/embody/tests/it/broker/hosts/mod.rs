//! Real hosts that have nothing but the broker's entry: they read, are told the contract, are gated, wait for their owner,
//! send once, and are observed.

mod model;
mod program;

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};

use self::model::{Model, Next, Seen};
use self::program::{Entry, Program};
use super::host::SOON;
use super::setup::Scene;
use super::unruly::Mind;
use crate::peers::Listening;

/// Nobody is at these hosts: the owner is asked elsewhere.
const ELSEWHERE: &str = "[[policy.rule]]\ntools = [\"*\"]\nvia = [\"console\", \"cli\", \"telegram\"]\n";
/// A call waits a moment only, so that it has to be made again.
const SHORT_WAIT: &str = "[policy]\nask_wait_s = 1\nask_timeout_s = 300\n";
/// A host that starts leaves little of the machine to the mind.
const PATIENT: &str = "observe_timeout_ms = 20000\n";
/// A call waits until the owner has answered.
const LONG_WAIT: &str = "[policy]\nask_wait_s = 50\nask_timeout_s = 300\n";

const RULES: &str = "Be honest. The rules of the house.";
const DONE: &str = "The note is sent.";

/// How the host reaches the broker.
#[derive(Debug, Clone, Copy)]
enum Way {
    Pipe,
    Http,
}

// spec: N-16
#[test]
fn codex_on_a_pipe_is_bounced_waits_and_calls_again() {
    calls_again(Program::Codex, Way::Pipe);
}

// spec: N-16
#[test]
fn opencode_by_http_is_bounced_waits_and_calls_again() {
    calls_again(Program::Opencode, Way::Http);
}

// spec: N-16
#[test]
fn codex_by_http_bootstraps_and_waits_within_the_call() {
    waits_within_the_call(Program::Codex, Way::Http);
}

// spec: N-16
#[test]
fn opencode_on_a_pipe_bootstraps_and_waits_within_the_call() {
    waits_within_the_call(Program::Opencode, Way::Pipe);
}

/// With a mind that is a server of its own, which keeps what it hears.
fn calls_again(program: Program, way: Way) {
    let scene = Arc::new(Scene::new("", &[SHORT_WAIT, ELSEWHERE]));
    let mind = Mind::new();
    mind.serve(&scene.world);
    // The mind's section is the last one.
    let config = std::fs::read_to_string(scene.world.path("embody.toml")).unwrap();
    scene.world.file("embody.toml", config + PATIENT);
    let heard = mind.process(&scene.world);
    let owner = Arc::clone(&scene);
    let model = Model::start(move |seen| match seen.results.len() {
        0 => Next::Call("look", json!({})),
        1 | 2 => Next::Call("send_note", note()),
        3 => {
            approve(&owner);
            Next::Call("send_note", note())
        }
        _ => {
            until_observed(&owner);
            Next::Say(DONE)
        }
    });
    let last = visit(program, way, &scene, &model);
    let [look, bounce, pending, sent] = &last.results[..] else { panic!("{last:#?}") };
    assert!(look.contains("look is done"), "{look}");
    assert!(bounce.contains(RULES) && bounce.contains("Speak softly."), "{bounce}");
    assert!(
        pending.contains("the owner has to decide") && !pending.contains("approvals approve"),
        "{pending}"
    );
    assert!(sent.contains("send_note is done"), "{sent}");
    let heard: Vec<Value> =
        heard.calls("observe").into_iter().filter(|one| one["tool_name"] == "send_note").collect();
    let after: Vec<&Value> = heard.iter().filter(|one| one.get("result").is_some()).collect();
    assert!(after.len() == 1 && after[0]["args"] == note(), "{heard:#?}");
    assert!(heard.iter().any(|one| one.get("result").is_none()), "it is asked before: {heard:#?}");
}

/// With the embedded mind, and an owner who answers while the call waits.
fn waits_within_the_call(program: Program, way: Way) {
    let scene = Arc::new(Scene::new("", &[LONG_WAIT, ELSEWHERE, "[mind]\n", PATIENT]));
    let owner = Arc::clone(&scene);
    let model = Model::start(move |seen| match seen.results.len() {
        0 => Next::Call("runtime_bootstrap", json!({})),
        1 => Next::Call("look", json!({})),
        2 => {
            let owner = Arc::clone(&owner);
            std::thread::spawn(move || approve(&owner));
            Next::Call("send_note", note())
        }
        _ => {
            until_observed(&owner);
            Next::Say(DONE)
        }
    });
    let last = visit(program, way, &scene, &model);
    let [packet, look, sent] = &last.results[..] else { panic!("{last:#?}") };
    assert!(packet.contains(RULES), "{packet}");
    assert!(look.contains("look is done"), "{look}");
    assert!(sent.contains("send_note is done"), "{sent}");
}

fn note() -> Value {
    json!({"text": "hello"})
}

/// Runs the host; gives what the model saw last. What was done is the same in every story.
fn visit(program: Program, way: Way, scene: &Scene, model: &Model) -> Seen {
    let world = &scene.world;
    let mut command = world.command();
    command.arg("--workspace").arg(world.workspace()).args(["--log", "error", "mcp"]);
    let (entry, _server) = match way {
        Way::Pipe => {
            let words = std::iter::once(command.get_program()).chain(command.get_args());
            (Entry::Command(words.map(|word| word.to_str().unwrap().to_owned()).collect()), None)
        }
        Way::Http => {
            let made =
                world.run(&["token", "add", "--user", "owner", "--scope", "mcp", "--json"]).ok().json();
            let server = Listening::start(command.args(["--listen", "127.0.0.1:0"]));
            let token = made["token"].as_str().unwrap().to_owned();
            (Entry::Http { url: server.url.clone(), token }, Some(server))
        }
    };
    let output = program.run(world, model, &entry);
    assert!(output.contains(DONE), "{output}");
    let last = model.seen().pop().unwrap();
    assert!(last.context.contains(RULES), "the model never saw the contract");
    assert_eq!(scene.desk.calls("look"), [json!({})]);
    assert_eq!(scene.desk.calls("send_note"), [note()], "it is sent, and once");
    recorded(scene);
    last
}

/// What the record says of the note: it was approved, meant, and done.
fn recorded(scene: &Scene) {
    let exported = scene.world.run(&["audit", "export"]).ok().stdout;
    let records: Vec<Value> = exported.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |event: &str| -> Vec<Value> {
        records.iter().filter(|one| one["event"] == event).map(|one| one["detail"].clone()).collect()
    };
    let [intent] = &of("intent")[..] else { panic!("{exported}") };
    assert_eq!((&intent["tool"], &intent["args_excerpt"]), (&json!("send_note"), &note()), "{intent}");
    let [granted] = &of("operator").into_iter().filter(|one| one["note"] == "cli").collect::<Vec<_>>()[..]
    else {
        panic!("{exported}")
    };
    assert_eq!(granted["action"], "approval_granted", "{granted}");
    assert_eq!(granted["subject"], intent["approval"], "{intent}");
    let [outcome] = &of("outcome")[..] else { panic!("{exported}") };
    assert_eq!((&outcome["call_id"], &outcome["outcome"]), (&intent["call_id"], &json!("done")), "{outcome}");
    scene.world.run(&["audit", "verify"]).ok();
}

/// The owner at a terminal: waits to be asked, and says yes.
fn approve(scene: &Scene) {
    let deadline = Instant::now() + SOON;
    loop {
        let listed = scene.world.run(&["approvals", "list", "--json"]).ok().json();
        if let Some(id) = listed["approvals"][0]["id"].as_str() {
            scene.world.run(&["approvals", "approve", id]).ok();
            return;
        }
        assert!(Instant::now() < deadline, "nobody is asked");
    }
}

/// Waits until the mind has heard of everything.
fn until_observed(scene: &Scene) {
    let deadline = Instant::now() + SOON;
    while scene.world.run(&["status", "--json"]).ok().json()["observations_waiting"] != 0 {
        assert!(Instant::now() < deadline, "the mind has not heard of it");
    }
}
