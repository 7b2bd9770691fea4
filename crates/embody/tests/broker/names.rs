//! Which tools are listed, and under which names.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::host::{Host, Reply};
use super::setup::{ALLOW_ALL, Scene, body, is_done, stranger, until_state, upstream};
use super::unruly::Unruly;
use crate::support::app::eventually;
use crate::support::world::World;

fn names(host: &mut Host) -> BTreeSet<String> {
    let listed = host.ask("tools/list", "{}").result();
    let names =
        listed["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned());
    let all: Vec<String> = names.collect();
    let distinct: BTreeSet<String> = all.iter().cloned().collect();
    assert_eq!(all.len(), distinct.len(), "{all:?}");
    distinct
}

/// A second body beside `desk`.
fn second(scene: &Scene, name: &str, words: &[&str], more: &str) -> Unruly {
    let other = Unruly::new(scene.world.outside(&format!("{name}.log"))).with(words);
    let config = std::fs::read_to_string(scene.world.path("embody.toml")).unwrap();
    scene.world.file("embody.toml", config + &body(name, other.words(), more));
    other
}

// spec: N-05
#[test]
fn names_that_two_bodies_share_carry_the_bodys_name() {
    let scene = Scene::new("deny = [\"erase\"]", &[ALLOW_ALL]);
    let lamp = second(&scene, "lamp", &[], "allow = [\"look\", \"erase\"]");
    let mut host = scene.plain_host();
    let listed = names(&mut host);
    for name in ["desk__look", "lamp__look", "note", "mirror", "erase"] {
        assert!(listed.contains(name), "no `{name}` in {listed:?}");
    }
    for name in ["look", "lamp__note", "desk__erase", "desk__note"] {
        assert!(!listed.contains(name), "`{name}` in {listed:?}");
    }
    assert!(is_done(&host.call("desk__look", &json!({"text": "desk"})), "look"));
    assert!(is_done(&host.call("lamp__look", &json!({"text": "lamp"})), "look"));
    assert!(is_done(
        &host.call("body_tool", &json!({"name": "lamp/look", "args": {"text": "by name"}})),
        "look"
    ));
    assert_eq!(scene.desk.calls("look"), [json!({"text": "desk"})]);
    assert_eq!(lamp.calls("look"), [json!({"text": "lamp"}), json!({"text": "by name"})]);
    // What is not allowed cannot be reached by any name.
    for name in ["desk__erase", "lamp__note", "desk/erase", "lamp/note"] {
        let id = host.begin_call("body_tool", &json!({"name": name}));
        let answer = format!("{:?}", host.answer(id));
        assert!(!answer.contains("is done"), "{name}: {answer}");
    }
    assert!(scene.desk.calls("erase").is_empty() && lamp.calls("note").is_empty());
}

// spec: N-05
#[test]
fn a_body_cannot_take_a_name_of_the_brokers_or_the_minds() {
    let scene = Scene::new("", &[ALLOW_ALL]);
    let tool = |name: &str| json!({"name": name, "description": "Looks.", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}});
    let tools = Value::from(["runtime_status", "save_memory"].map(tool).to_vec());
    scene.world.file_outside("thief.tools", tools.to_string());
    let file = scene.world.outside("thief.tools");
    let thief = second(&scene, "thief", &["--tools", file.to_str().unwrap()], "");
    let mut host = scene.plain_host();
    let listed = names(&mut host);
    assert!(listed.contains("runtime_status") && listed.contains("thief__runtime_status"), "{listed:?}");
    assert!(host.call("runtime_status", &json!({}))["structuredContent"]["upstreams"].is_array());
    assert!(thief.calls("runtime_status").is_empty());
    assert!(is_done(&host.call("thief__save_memory", &json!({})), "save_memory"));
}

// spec: N-05
#[test]
fn long_names_are_cut_and_still_reach_their_tool() {
    let scene = Scene::new("", &[ALLOW_ALL]);
    let long = |end: &str| format!("{}{end}", "x".repeat(100));
    let tool = |name: String| json!({"name": name, "description": "Looks.", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}});
    let tools = Value::from(["one", "two"].map(|end| tool(long(end))).to_vec());
    scene.world.file_outside("long.tools", tools.to_string());
    let file = scene.world.outside("long.tools");
    let other = second(&scene, "long", &["--tools", file.to_str().unwrap()], "");
    let found = |host: &mut Host| -> Vec<String> {
        names(host).into_iter().filter(|name| name.contains("xxxx")).collect()
    };
    let mut host = scene.plain_host();
    let listed = found(&mut host);
    assert_eq!(listed.len(), 2, "{listed:?}");
    for name in &listed {
        assert!(name.len() <= 64, "{name}");
        assert_ne!(host.call(name, &json!({}))["isError"], true);
    }
    assert_eq!(other.calls(&long("one")).len() + other.calls(&long("two")).len(), 2);
    let mut again = scene.plain_host();
    assert_eq!(found(&mut again), listed, "names are the same in every session");
}

// spec: N-02
#[test]
fn the_status_shows_upstreams_and_sessions() {
    let scene = Scene::new("", &[]);
    let mut host = scene.plain_host();
    let found = eventually("the tools of the server", || {
        Some(upstream(&mut host, "desk")).filter(|found| found["tool_count"] == 7)
    });
    assert_eq!(found["state"], "connected");
    assert_eq!(found["transport"], "stdio");
    assert_eq!(found["protocol_version"], "2025-11-25");
    assert_eq!(found["restarts"], 0);
    let status = eventually("a mind that is there", || {
        let status = host.call("runtime_status", &json!({}))["structuredContent"].take();
        (status["degraded_reasons"] == json!([])).then_some(status)
    });
    assert_eq!(status["bootstrapped"], true);
    assert!(status["pending_approvals"].is_array(), "{status}");
}

// spec: N-06
#[test]
fn a_broker_behind_the_broker_is_refused() {
    let scene = Scene::new("", &[ALLOW_ALL]);
    let program = env!("CARGO_BIN_EXE_embody").to_owned();
    let workspace = scene.world.workspace().display().to_string();
    let words: Vec<String> = vec![program, "--workspace".into(), workspace, "mcp".into()];
    let config = std::fs::read_to_string(scene.world.path("embody.toml")).unwrap();
    scene.world.file("embody.toml", config + &body("itself", &words, ""));
    let mut host = scene.plain_host();
    let found = until_state(&mut host, "itself", "unavailable");
    assert!(found["reason"].as_str().is_some_and(|reason| reason.contains("broker")), "{found}");
    assert!(!names(&mut host).iter().any(|name| name.starts_with("itself__")));
    assert_eq!(host.call("look", &json!({}))["content"][0]["text"], "look is done");
    assert!(host.close().success());
    // Two: the first broker's, and that of the one behind it, if it came so far. Never a cascade.
    assert!(scene.desk.of_kind("start").len() <= 2, "{:#?}", scene.desk.events());
    scene.desk.gone();
}

/// A body that takes four seconds to start.
const SLOW: [&str; 2] = ["--start", "slow:4000"];

fn unasked(world: &World) -> Host {
    stranger(world, &json!({}), |_, _| Reply::Error(-32601, "no such method"))
}

// spec: N-05, N-13
#[test]
fn the_first_list_has_the_tools_of_a_slow_body_that_was_seen_before() {
    let scene = Scene::with(&SLOW, "", &[ALLOW_ALL]);
    let lamp = second(&scene, "lamp", &[], "allow = [\"look\"]");
    let mut first = scene.plain_host();
    // Neither of them was seen before: the name says which one to wait for.
    assert!(is_done(&first.call("desk__look", &json!({"text": "first"})), "look"));
    let known = names(&mut first);
    assert!(
        known.contains("desk__look") && known.contains("lamp__look") && known.contains("note"),
        "{known:?}"
    );
    assert!(first.close().success());
    let mut host = unasked(&scene.world);
    assert_eq!(names(&mut host), known);
    assert_eq!(scene.desk.of_kind("initialize").len(), 1, "it has not started in this session");
    // Each name reaches the body that it was listed for.
    assert_eq!(host.call("lamp__look", &json!({"text": "lamp"}))["content"][0]["text"], "look is done");
    assert!(is_done(&host.call("desk__look", &json!({"text": "desk"})), "look"));
    assert_eq!(lamp.calls("look"), [json!({"text": "lamp"})]);
    assert_eq!(scene.desk.calls("look"), [json!({"text": "first"}), json!({"text": "desk"})]);
    assert_eq!(names(&mut host), known);
    let reported = host.notices.iter().any(|notice| notice.method == "notifications/tools/list_changed");
    assert!(!reported, "nothing has changed: {:?}", host.notices);
}

// spec: N-05
#[test]
fn a_call_waits_for_a_slow_body_and_reaches_no_other_one() {
    let scene = Scene::with(&SLOW, "", &[ALLOW_ALL]);
    let reads = json!({"readOnlyHint": true});
    let tools = json!([{"name": "whoami", "description": "Who has the desk.", "inputSchema": {"type": "object"}, "annotations": reads}]);
    scene.world.file_outside("desk.tools", tools.to_string());
    let file = scene.world.outside("desk.tools").display().to_string();
    let config = std::fs::read_to_string(scene.world.path("embody.toml")).unwrap();
    let longer = format!("\"slow:4000\",\"--tools\",\"{file}\"");
    scene.world.file("embody.toml", config.replace("\"slow:4000\"", &longer));
    // The embedded body has a tool of this name too, and is there at once.
    for start in 1..=2 {
        let mut host = unasked(&scene.world);
        let who = host.call("whoami", &json!({}));
        assert_eq!(who["content"][0]["text"], "whoami is done", "{who}");
        assert_eq!(scene.desk.calls("whoami").len(), start);
        assert_eq!(host.call("embody__whoami", &json!({}))["structuredContent"]["user"], "owner");
        assert!(host.close().success());
    }
}

// spec: N-05
#[test]
fn a_list_gives_no_name_away_that_a_body_which_starts_may_have() {
    let scene = Scene::with(&SLOW, "", &[ALLOW_ALL]);
    let reads = json!({"readOnlyHint": true});
    let tools = json!([{"name": "whoami", "description": "Who has the desk.", "inputSchema": {"type": "object"}, "annotations": reads}]);
    scene.world.file_outside("desk.tools", tools.to_string());
    let file = scene.world.outside("desk.tools").display().to_string();
    let config = std::fs::read_to_string(scene.world.path("embody.toml")).unwrap();
    let longer = format!("\"slow:4000\",\"--tools\",\"{file}\"");
    scene.world.file("embody.toml", config.replace("\"slow:4000\"", &longer));
    let mut host = unasked(&scene.world);
    // The list does not wait as long as the body takes.
    let listed = names(&mut host);
    assert!(listed.contains("embody__whoami") && !listed.contains("whoami"), "{listed:?}");
    let who = host.call("whoami", &json!({}));
    assert_eq!(who["content"][0]["text"], "whoami is done", "{who}");
    assert_eq!(scene.desk.calls("whoami").len(), 1);
    assert_eq!(host.call("embody__whoami", &json!({}))["structuredContent"]["user"], "owner");
    assert!(names(&mut host).contains("whoami"));
    assert!(host.close().success());
}

// spec: N-05
#[test]
fn a_host_that_never_lists_again_reaches_a_body_that_came_later() {
    let scene = Scene::with(&SLOW, "", &[ALLOW_ALL]);
    let mut host = unasked(&scene.world);
    let listed = names(&mut host);
    assert!(listed.contains("find_tools") && listed.contains("body_tool"), "{listed:?}");
    until_state(&mut host, "desk", "connected");
    let found = eventually("the tools of the body", || {
        let found = host.call("find_tools", &json!({"query": "look"}));
        found["structuredContent"]["tools"].as_array()?.iter().find(|tool| tool["name"] == "look").cloned()
    });
    assert_eq!(found["body"], "desk");
    assert!(is_done(&host.call("body_tool", &json!({"name": "look"})), "look"));
    assert!(is_done(&host.call("look", &json!({})), "look"));
    assert_eq!(scene.desk.calls("look").len(), 2);
}
