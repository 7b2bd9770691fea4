//! The official Inspector and the Python client list and call every tool of the mind, over every transport.

use std::process::Command;

use serde_json::{Map, Value, json};

use super::{TOOLS, names};
use crate::mcp_peers::{Era, Listening, Mode, Place, Target, follow, inspect};
use crate::support::world::World;

/// A call of each tool that succeeds in an empty mind; `forget_memory` needs the id of what was saved, and comes last.
fn calls() -> Vec<(&'static str, Value)> {
    vec![
        ("bootstrap_session", json!({"session_id": "mine"})),
        // Before anything is read: afterwards the owner would be asked first.
        ("update_instructions", json!({"instructions": "Be brief."})),
        ("save_memory", json!({"text": "Ann likes green tea", "actor": "Ann"})),
        ("read_memory", json!({"query": "tea"})),
        ("recall", json!({"query": "what does Ann drink?", "k": 3})),
        ("list_memory_files", json!({})),
        ("observe", json!({"tool_name": "send_email", "args": {"to": "ann@example.com"}})),
        ("reflect", json!({"observation": "I'll call Ann tomorrow."})),
        ("context", json!({})),
        ("get_system_prompt", json!({})),
    ]
}

/// The id of what was saved, given the results of [`calls`] in their order.
fn saved_id(results: &[Value]) -> String {
    let saved = calls().iter().zip(results).find(|((tool, _), _)| *tool == "save_memory").unwrap().1;
    saved["structuredContent"]["id"].as_str().unwrap().to_owned()
}

fn over_stdio(world: &World) -> Target {
    let mut words = vec![env!("CARGO_BIN_EXE_embody").to_owned()];
    words.extend(["mind", "--log", "error", "--workspace"].map(str::to_owned));
    words.push(world.workspace().display().to_string());
    Place::Command(words).into()
}

/// A mind on a port, and its two addresses.
fn listening(world: &World) -> (Listening, [Target; 2]) {
    let made = world.run(&["token", "add", "--user", "ann", "--scope", "mcp", "--json"]).ok().json();
    let token = Some(made["token"].as_str().unwrap().to_owned());
    let mut command: Command = world.command();
    command.arg("--workspace").arg(world.workspace()).args([
        "mind",
        "--listen",
        "127.0.0.1:0",
        "--log",
        "error",
    ]);
    let server = Listening::start(&mut command);
    let sse = server.url.replace("/mcp", "/sse");
    let places = [Place::Http(server.url.clone()), Place::Sse(sse)];
    (server, places.map(|place| Target { token: token.clone(), ..place.into() }))
}

fn inspector_calls_everything(target: &Target, era: Era) {
    let listed = inspect(target, era, &["--method", "tools/list", "--strict"]).unwrap();
    assert_eq!(names(&listed["tools"]), TOOLS);
    let results: Vec<Value> =
        calls().iter().map(|(tool, arguments)| inspector_calls(target, era, tool, arguments)).collect();
    let id = saved_id(&results);
    let forgotten = inspector_calls(target, era, "forget_memory", &json!({"id": id}));
    assert_eq!(forgotten["structuredContent"]["id"], *id);
}

fn inspector_calls(target: &Target, era: Era, tool: &str, arguments: &Value) -> Value {
    let arguments: Vec<String> =
        arguments.as_object().unwrap().iter().map(|(name, value)| argument(name, value)).collect();
    let mut question = vec!["--method", "tools/call", "--tool-name", tool];
    for argument in &arguments {
        question.extend(["--tool-arg", argument]);
    }
    let result =
        inspect(target, era, &question).unwrap_or_else(|(code, said)| panic!("{tool}: {code} {said}"));
    assert!(result["structuredContent"].is_object(), "{tool}: {result}");
    result
}

fn argument(name: &str, value: &Value) -> String {
    match value {
        Value::String(text) => format!("{name}={text}"),
        other => format!("{name}={other}"),
    }
}

fn python_calls_everything(target: &Target, mode: Mode, version: &str) {
    let seen = python_calls(target, mode, &calls());
    assert_eq!(seen["version"], version);
    let mut tools: Vec<&str> =
        seen["tools"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    tools.sort_unstable();
    assert_eq!(tools, TOOLS);
    let id = saved_id(seen["results"].as_array().unwrap());
    let seen = python_calls(target, mode, &[("forget_memory", json!({"id": id}))]);
    assert_eq!(seen["results"][0]["structuredContent"]["id"], *id);
}

fn python_calls(target: &Target, mode: Mode, calls: &[(&str, Value)]) -> Value {
    let plan: Vec<Value> =
        calls.iter().map(|(name, arguments)| json!({"name": name, "arguments": arguments})).collect();
    let seen = follow(target, mode, Map::from_iter([("calls".to_owned(), json!(plan))]));
    let results = seen["results"].as_array().unwrap();
    assert_eq!(results.len(), plan.len());
    for (call, result) in plan.iter().zip(results) {
        // The client checks structured results against their schemas, and would have failed.
        assert_ne!(result["isError"], true, "{call}: {result}");
        assert!(result["structuredContent"].is_object(), "{call}: {result}");
    }
    seen
}

#[test]
fn no_tool_is_left_out() {
    let calls = calls();
    let mut called: Vec<&str> = calls.iter().map(|(tool, _)| *tool).chain(["forget_memory"]).collect();
    called.sort_unstable();
    assert_eq!(called, TOOLS);
}

#[test]
fn the_inspector_over_stdio() {
    inspector_calls_everything(&over_stdio(&World::new()), Era::Session);
    inspector_calls_everything(&over_stdio(&World::new()), Era::Stateless);
}

#[test]
fn the_inspector_over_http_and_sse() {
    for (place, era) in [(0, Era::Session), (0, Era::Stateless), (1, Era::Session)] {
        // A mind of its own for each: what one host has read, the next has read too if neither has a session.
        let world = World::new();
        let (_server, targets) = listening(&world);
        inspector_calls_everything(&targets[place], era);
    }
}

#[test]
fn the_python_client_over_every_transport() {
    python_calls_everything(&over_stdio(&World::new()), Mode::Legacy, "2025-11-25");
    python_calls_everything(&over_stdio(&World::new()), Mode::Modern, "2026-07-28");
    let world = World::new();
    let (_server, [http, sse]) = listening(&world);
    python_calls_everything(&http, Mode::Legacy, "2025-11-25");
    python_calls_everything(&http, Mode::Auto, "2026-07-28");
    python_calls_everything(&sse, Mode::Legacy, "2025-11-25");
}
