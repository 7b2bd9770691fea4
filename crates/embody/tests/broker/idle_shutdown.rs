//! Bodies that run only while they are needed: real processes, which log when they start and end.

use std::fs;

use serde_json::{Value, json};

use super::host::{Host, Reply, elicited};
use super::pins::tool;
use super::setup::{ALLOW_ALL, Scene, body, decision, degraded, host, is_done, until_state, upstream};
use super::unruly::Unruly;
use crate::support::world::World;

const LAZY: &str = "start = \"lazy\"";
const BRIEF: &str = "idle_stop_s = 1";

fn listed(host: &mut Host) -> Vec<String> {
    let list = host.ask("tools/list", "{}").result();
    let tools = list["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

fn starts(scene: &Scene) -> usize {
    scene.desk.of_kind("start").len()
}

#[test]
fn a_lazy_body_is_listed_from_its_pins_and_started_by_the_first_call() {
    let scene = Scene::new(LAZY, &[ALLOW_ALL]);
    // Nobody has seen its tools: it has to be started once.
    let mut first = scene.plain_host();
    let names = listed(&mut first);
    assert!(names.contains(&"look".to_owned()), "{names:?}");
    assert_eq!(starts(&scene), 1);
    assert!(first.close().success());
    let mut second = scene.plain_host();
    assert_eq!(listed(&mut second), names, "the same list in the same order");
    second.notices.clear();
    let state = upstream(&mut second, "desk");
    assert_eq!((&state["state"], &state["tool_count"]), (&json!("idle"), &json!(7)), "{state}");
    assert!(!degraded(&mut second).iter().any(|reason| reason.contains("desk")));
    second.ask("resources/list", "{}").result();
    second.ask("prompts/list", "{}").result();
    assert_eq!(starts(&scene), 1, "nothing of this starts it");
    assert!(is_done(&second.call("look", &json!({})), "look"));
    assert_eq!(starts(&scene), 2);
    assert_eq!(upstream(&mut second, "desk")["state"], "connected");
    assert_eq!(listed(&mut second), names);
    let reported = second.notices.iter().any(|notice| notice.method == "notifications/tools/list_changed");
    assert!(!reported, "nothing has changed: {:?}", second.notices);
    assert!(second.close().success());
    let mut third = scene.plain_host();
    let through = json!({"name": "desk/note", "args": {"text": "x"}});
    assert!(is_done(&third.call("body_tool", &through), "note"));
    assert_eq!((starts(&scene), scene.desk.calls("note").len()), (3, 1));
}

#[test]
fn an_idle_body_is_stopped_with_everything_it_started_and_comes_back() {
    let scene = Scene::with(&["--child"], BRIEF, &[ALLOW_ALL]);
    let mut host = scene.plain_host();
    assert!(is_done(&host.call("look", &json!({})), "look"));
    let state = until_state(&mut host, "desk", "idle");
    assert_eq!((&state["restarts"], &state["idle_stops"]), (&json!(0), &json!(1)), "{state}");
    scene.desk.gone();
    assert!(!degraded(&mut host).iter().any(|reason| reason.contains("desk")));
    let whoami = host.call("look", &json!({}));
    assert!(is_done(&whoami, "look"), "nothing is degraded: {whoami}");
    assert_eq!((starts(&scene), scene.desk.calls("look").len()), (2, 2));
    until_state(&mut host, "desk", "idle");
    assert!(host.close().success());
    scene.desk.gone();
}

/// A world with a desk that may be idle for a second, and a clock beside it by which it is known that this has passed.
fn with_clock(parts: &[&str]) -> (World, Unruly, Unruly) {
    let world = World::with_body("Be honest. The rules of the house.");
    let desk = Unruly::new(world.outside("desk.log"));
    let clock = Unruly::new(world.outside("clock.log"));
    let bodies = [
        body("desk", desk.words(), BRIEF),
        body("clock", clock.words(), "idle_stop_s = 2\nallow = [\"mirror\"]"),
    ];
    world.file("embody.toml", format!("{}{}", parts.concat(), bodies.concat()));
    (world, desk, clock)
}

#[test]
fn a_body_that_works_or_waits_for_a_person_is_not_stopped() {
    let (world, desk, clock) = with_clock(&[]);
    let mut host = host(&world, &json!({"elicitation": {}}), |_, _| Reply::Silence);
    let slow = host.begin_call("look", &json!({"trick": "slow", "amount": 3500}));
    clock.until("end", 1);
    let asked = host.begin_call("send_note", &json!({"text": "hello"}));
    assert!(is_done(&host.answer(slow).result(), "look"));
    host.until("the question", |host| !host.questions.is_empty());
    // The clock starts, and has stopped again before the person answers.
    assert!(is_done(&host.call("clock__mirror", &json!({})), "mirror"));
    clock.until("end", 2);
    assert_eq!(desk.of_kind("end").len(), 0, "{:?}", desk.events());
    let question = host.questions[0].clone();
    host.reply(&question, &elicited("accept"));
    assert!(is_done(&host.answer(asked).result(), "send_note"));
    assert_eq!((desk.of_kind("start").len(), desk.calls("send_note").len()), (1, 1));
    until_state(&mut host, "desk", "idle");
}

#[test]
fn the_gates_hold_for_a_body_that_has_to_be_started() {
    let scene = Scene::new(LAZY, &["[policy]\nask_wait_s = 0\n"]);
    listed(&mut scene.plain_host());
    let mut stranger = super::setup::stranger(&scene.world, &json!({}), |_, _| Reply::Silence);
    assert_eq!(decision(&stranger.call("note", &json!({}))), "bounce");
    let mut host = scene.plain_host();
    assert_eq!(decision(&host.call("send_note", &json!({"text": "hello"}))), "pending");
    assert_eq!(decision(&host.call("erase", &json!({}))), "pending");
    assert!(scene.desk.of_kind("call").is_empty());
    assert!(is_done(&host.call("note", &json!({})), "note"));
}

fn tools(description: &str, names: &[&str]) -> String {
    let write = json!({"readOnlyHint": false, "destructiveHint": false, "openWorldHint": false});
    let made = |name: &&str| {
        let hints = if name.starts_with("look") { json!({"readOnlyHint": true}) } else { write.clone() };
        tool(name, description, &hints)
    };
    Value::from(names.iter().map(made).collect::<Vec<_>>()).to_string()
}

/// A lazy body whose tools stand in a file.
fn lazy_scene(tools: &str, more: &str) -> Scene {
    let scene = super::pins::scene(tools);
    let config = fs::read_to_string(scene.world.path("embody.toml")).unwrap();
    scene.world.file("embody.toml", format!("{config}{LAZY}\n{more}\n"));
    scene
}

#[test]
fn a_definition_that_changed_while_it_was_stopped_is_noticed_before_the_call() {
    let scene = lazy_scene(&tools("First.", &["look", "note"]), BRIEF);
    let mut first = scene.plain_host();
    assert!(is_done(&first.call("note", &json!({})), "note"));
    until_state(&mut first, "desk", "idle");
    fs::write(scene.world.outside("desk.tools"), tools("Second.", &["look", "note"])).unwrap();
    // In the session that knew it, and in one that knows it by its pins.
    assert_eq!(decision(&first.call("note", &json!({}))), "held");
    let mut second = scene.plain_host();
    assert_eq!(upstream(&mut second, "desk")["state"], "idle");
    assert_eq!(decision(&second.call("note", &json!({}))), "held");
    let read = second.call("look", &json!({}));
    assert_eq!(read["content"][0]["text"], "look is done");
    let reported = read["_meta"]["embody/degraded"].to_string();
    assert!(reported.contains("definition_changed"), "{read}");
    assert_eq!(scene.desk.calls("note").len(), 1);
    assert!(scene.world.run(&["pins", "list"]).ok().stdout.contains("note"));
    // What waits for the operator still does while it does not run.
    let mut third = scene.plain_host();
    assert_eq!(decision(&third.call("note", &json!({}))), "held");
}

#[test]
fn tools_that_a_lazy_body_no_longer_has_are_listed_until_it_was_started() {
    let scene = lazy_scene(&tools("First.", &["look", "look_back"]), "");
    assert!(listed(&mut scene.plain_host()).contains(&"look_back".to_owned()));
    fs::write(scene.world.outside("desk.tools"), tools("First.", &["look", "look_out"])).unwrap();
    let mut host = scene.plain_host();
    assert!(listed(&mut host).contains(&"look_back".to_owned()), "nobody can know");
    let gone = host.begin_call("look_back", &json!({}));
    assert!(host.answer(gone).error()["message"].as_str().unwrap().contains("Unknown tool"));
    host.until("the news", |host| {
        host.notices.iter().any(|notice| notice.method == "notifications/tools/list_changed")
    });
    let now = listed(&mut host);
    assert!(now.contains(&"look_out".to_owned()) && !now.contains(&"look_back".to_owned()), "{now:?}");
    assert!(host.close().success());
    let next = listed(&mut scene.plain_host());
    assert!(next.contains(&"look_out".to_owned()) && !next.contains(&"look_back".to_owned()), "{next:?}");
    assert_eq!(starts(&scene), 2);
}

#[test]
fn a_lazy_body_that_cannot_be_started_says_so_when_it_is_called() {
    let scene = Scene::new(LAZY, &[ALLOW_ALL]);
    listed(&mut scene.plain_host());
    let config = fs::read_to_string(scene.world.path("embody.toml")).unwrap();
    scene.world.file("embody.toml", config.replace("\"--log\"", "\"--start\",\"exit\",\"--log\""));
    let mut host = scene.plain_host();
    assert_eq!(upstream(&mut host, "desk")["state"], "idle");
    assert_eq!(decision(&host.call("look", &json!({}))), "blocked");
    assert!(degraded(&mut host).iter().any(|reason| reason.contains("body_unavailable: `desk`")));
}
