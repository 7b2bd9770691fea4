//! Each degraded mode, entered and left, without a restart.

use std::fs;

use serde_json::json;

use super::host::Answer;
use super::setup::{ALLOW_ALL, Scene, body, decision, degraded, is_done, until_state};
use super::unruly::{Mind, Unruly};

/// The key in `_meta` of a forwarded result.
const KEY: &str = "embody/degraded";

fn is_in(mode: &str, reasons: &[String]) -> bool {
    reasons.iter().any(|reason| reason.starts_with(mode))
}

// spec: N-11, N-13
#[test]
fn an_unavailable_body_affects_no_other_and_recovers() {
    let scene = Scene::new("", &[ALLOW_ALL]);
    let here = scene.world.outside("lamp.here");
    let lamp = Unruly::new(scene.world.outside("lamp.log")).with(&["--while", here.to_str().unwrap()]);
    let config = fs::read_to_string(scene.world.path("embody.toml")).unwrap();
    let more = "allow = [\"look\"]";
    scene.world.file("embody.toml", config + &body("lamp", lamp.words(), more));
    let mut host = scene.plain_host();
    assert!(is_in("body_unavailable: `lamp`", &degraded(&mut host)));
    // The other body and the mind continue, and results report what is wrong.
    let result = host.call("note", &json!({}));
    assert_eq!(result["content"][0]["text"], "note is done", "{result}");
    assert!(result["_meta"][KEY].to_string().contains("lamp"), "{result}");
    let refused = host.call("body_tool", &json!({"name": "lamp/look"}));
    assert_eq!(decision(&refused), "blocked");
    assert!(refused["_meta"]["embody/decision"]["degraded"].to_string().contains("lamp"), "{refused}");
    assert_ne!(host.call("read_memory", &json!({"query": ""}))["isError"], true);
    // A host is notified of changes to the list that it has.
    host.ask("tools/list", "{}").result();
    fs::write(&here, "").unwrap();
    until_state(&mut host, "lamp", "connected");
    host.until("news of the tools", |host| {
        host.notices.iter().any(|notice| notice.method == "notifications/tools/list_changed")
    });
    assert_eq!(degraded(&mut host), [""; 0]);
    assert!(is_done(&host.call("body_tool", &json!({"name": "lamp/look"})), "look"));
    assert!(is_done(&host.call("note", &json!({})), "note"));
    // And away again, in the middle of a call.
    fs::remove_file(&here).unwrap();
    let id = host.begin_call("body_tool", &json!({"name": "lamp/look", "args": {"trick": "crash"}}));
    assert!(!format!("{:?}", host.answer(id)).contains("is done"));
    until_state(&mut host, "lamp", "unavailable");
}

// spec: N-11
#[test]
fn without_the_mind_reads_pass_and_writes_are_blocked() {
    let mind = Mind::new();
    let scene = Scene::new("", &[ALLOW_ALL]);
    mind.serve(&scene.world);
    fs::remove_file(scene.world.outside("mind.here")).unwrap();
    let mut host = scene.plain_host();
    assert!(is_in("mind_unavailable", &degraded(&mut host)));
    let result = host.call("look", &json!({}));
    assert_eq!(result["content"][0]["text"], "look is done", "{result}");
    assert!(result["_meta"][KEY].to_string().contains("mind_unavailable"), "{result}");
    for tool in ["note", "send_note", "erase"] {
        let refused = host.call(tool, &json!({}));
        assert_eq!(decision(&refused), "blocked", "{tool}: {refused}");
        assert!(scene.desk.calls(tool).is_empty());
    }
    scene.world.file_outside("mind.here", "");
    until_state(&mut host, "mind", "connected");
    host.call("runtime_bootstrap", &json!({}));
    for tool in ["look", "note", "send_note", "erase"] {
        let result = host.call(tool, &json!({}));
        assert!(is_done(&result, tool), "{tool}: {result}");
    }
    assert_eq!(degraded(&mut host), [""; 0]);
}

// spec: N-11
#[test]
fn without_the_mind_writes_pass_if_configured() {
    let mind = Mind::new();
    let scene = Scene::new("", &["[policy]\nmind_down = \"warn\"\n", ALLOW_ALL]);
    mind.serve(&scene.world);
    fs::remove_file(scene.world.outside("mind.here")).unwrap();
    let mut host = scene.plain_host();
    for tool in ["note", "send_note"] {
        let result = host.call(tool, &json!({}));
        assert_eq!(result["content"][0]["text"], format!("{tool} is done"), "{result}");
        assert!(result["_meta"][KEY].to_string().contains("mind_unavailable"), "{result}");
    }
}

// spec: N-07, N-11
#[test]
fn a_mind_that_does_not_answer_slows_no_read() {
    let mind = Mind::new().replying("observe", &json!({"trick": "hang"}));
    let scene = Scene::new("", &[ALLOW_ALL]);
    mind.serve(&scene.world);
    let mut host = scene.plain_host();
    for _ in 0..20 {
        assert_eq!(host.call("look", &json!({}))["content"][0]["text"], "look is done");
    }
    // What others will see waits for the mind as long as it may, and then does not happen.
    assert_eq!(decision(&host.call("send_note", &json!({}))), "blocked");
    assert!(is_in("observe_unavailable", &degraded(&mut host)));
    let result = host.call("look", &json!({}));
    assert!(result["_meta"][KEY].to_string().contains("observe_unavailable"), "{result}");
    Mind::new().reply(&scene.world);
    // It is connected again when it answers.
    assert!(host.call("send_note", &json!({}))["content"][0]["text"] == "send_note is done");
    assert!(!is_in("observe_unavailable", &degraded(&mut host)));
}

// spec: N-11, N-12
#[test]
fn a_missing_bootstrap_is_shown_and_made_up_for() {
    let mind = Mind::new().replying("bootstrap_session", &json!({"trick": "error"}));
    let scene = Scene::new("", &[ALLOW_ALL]);
    mind.serve(&scene.world);
    let mut host = scene.plain_host();
    assert!(is_in("bootstrap_missing", &degraded(&mut host)));
    Mind::new().reply(&scene.world);
    host.call("runtime_bootstrap", &json!({}));
    assert_eq!(degraded(&mut host), [""; 0]);
    assert!(is_done(&host.call("note", &json!({})), "note"));
}

// spec: N-06
#[test]
fn the_mind_observes_each_call_before_and_after() {
    let mind = Mind::new();
    let scene = Scene::new("", &[ALLOW_ALL]);
    mind.serve(&scene.world);
    let mut host = scene.plain_host();
    let structured = json!({"content": [], "structuredContent": {"a": 1.5}});
    let as_json = json!({"content": [{"type": "text", "text": "{\"b\":2}"}]});
    host.call("mirror", &json!({"result": structured}));
    host.call("mirror", &json!({"result": as_json}));
    host.call("send_note", &json!({"text": "hello"}));
    let failing = host.begin_call("send_note", &json!({"trick": "error"}));
    assert!(matches!(host.answer(failing), Answer::Error(_)));
    let process = mind.process(&scene.world);
    let received = || process.calls("observe");
    let deadline = std::time::Instant::now() + super::host::SOON;
    while received().iter().filter(|one| one.get("result").is_some()).count() < 4 {
        assert!(std::time::Instant::now() < deadline, "{:#?}", received());
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let results: Vec<_> = received().iter().filter_map(|one| one.get("result").cloned()).collect();
    for expected in [json!({"a": 1.5}), json!({"b": 2}), json!({"value": "send_note is done"})] {
        assert_eq!(
            results.iter().filter(|result| **result == expected).count(),
            1,
            "{expected}: {results:?}"
        );
    }
    assert!(results.iter().any(|result| result["error"].is_string() && result["error_type"].is_string()));
    let before = received().into_iter().filter(|one| one.get("result").is_none());
    assert_eq!(before.filter(|one| one["tool_name"] == "send_note").count(), 2);
    assert!(received().iter().all(|one| one["tool_name"] != "observe"), "{:#?}", received());
}

// spec: N-06
#[test]
fn a_body_that_observes_by_itself_is_not_observed_twice() {
    let mind = Mind::new();
    let scene = Scene::new("observes = true", &[ALLOW_ALL]);
    mind.serve(&scene.world);
    let mut host = scene.plain_host();
    assert!(is_done(&host.call("send_note", &json!({})), "send_note"));
    assert!(is_done(&host.call("look", &json!({})), "look"));
    assert!(host.close().success());
    assert!(mind.process(&scene.world).calls("observe").is_empty());
}

/// The mind's observations after calls with this text.
fn heard_after(mind: &Mind, scene: &Scene, text: &str) -> usize {
    let calls = mind.process(&scene.world).calls("observe").into_iter();
    calls.filter(|one| one.get("result").is_some() && one["args"]["text"] == text).count()
}

// spec: N-06
#[test]
fn a_session_that_ends_right_after_a_write_is_still_observed() {
    let mind = Mind::new();
    let scene = Scene::new("", &[ALLOW_ALL]);
    mind.serve(&scene.world);
    for text in ["one", "two", "three"] {
        let mut host = scene.plain_host();
        assert!(is_done(&host.call("note", &json!({"text": text})), "note"));
        assert!(host.close().success());
        assert_eq!(heard_after(&mind, &scene, text), 1, "{text}");
    }
    assert_eq!(scene.world.run(&["status", "--json"]).ok().json()["observations_waiting"], 0);
}

// spec: N-06
#[test]
fn a_mind_that_hangs_does_not_hold_up_the_end_of_a_session() {
    let mind = Mind::new();
    let scene = Scene::new("", &["[policy]\nmind_down = \"warn\"\n", ALLOW_ALL]);
    mind.serve(&scene.world);
    let mut host = scene.plain_host();
    Mind::new().replying("observe", &json!({"trick": "hang"})).reply(&scene.world);
    assert!(is_done(&host.call("note", &json!({"text": "late"})), "note"));
    let began = std::time::Instant::now();
    assert!(host.close().success());
    assert!(began.elapsed() < std::time::Duration::from_secs(9), "{:?}", began.elapsed());
    // The next process tells it, and need not wait for what the first one had claimed.
    mind.reply(&scene.world);
    let before = heard_after(&mind, &scene, "late");
    let second = scene.plain_host();
    super::setup::until("the mind to hear of it", || heard_after(&mind, &scene, "late") > before);
    assert!(second.close().success());
}

// spec: N-06
#[test]
fn observations_of_a_killed_process_are_delivered_by_the_next_one() {
    let mind = Mind::new();
    let scene = Scene::new("", &[ALLOW_ALL]);
    mind.serve(&scene.world);
    let mut first = scene.plain_host();
    Mind::new().replying("observe", &json!({"trick": "hang"})).reply(&scene.world);
    assert!(is_done(&first.call("note", &json!({"text": "remember me"})), "note"));
    // The process is killed while it waits for the mind: the delivery is not confirmed.
    super::setup::until("the mind to be told", || heard_after(&mind, &scene, "remember me") == 1);
    first.kill();
    mind.reply(&scene.world);
    let began = std::time::Instant::now();
    let second = scene.plain_host();
    super::setup::until("the mind to be told again", || heard_after(&mind, &scene, "remember me") == 2);
    assert!(began.elapsed() < std::time::Duration::from_secs(40), "{:?}", began.elapsed());
    assert!(second.close().success());
}

// spec: N-06
#[test]
fn observations_for_an_unavailable_mind_are_delivered_later_and_once() {
    let mind = Mind::new();
    let scene = Scene::new("", &["[policy]\nmind_down = \"warn\"\n", ALLOW_ALL]);
    mind.serve(&scene.world);
    fs::remove_file(scene.world.outside("mind.here")).unwrap();
    let mut first = scene.plain_host();
    first.call("note", &json!({"text": "remember me"}));
    // It joins the next commit, which the answer does not wait for.
    let waits = || scene.world.run(&["status", "--json"]).ok().json()["observations_waiting"] == 1;
    let deadline = std::time::Instant::now() + super::host::SOON;
    while !waits() {
        assert!(std::time::Instant::now() < deadline, "it is not in the outbox");
    }
    first.kill();
    scene.world.file_outside("mind.here", "");
    let mut second = scene.plain_host();
    until_state(&mut second, "mind", "connected");
    let received = || {
        let calls = mind.process(&scene.world).calls("observe").into_iter();
        calls.filter(|one| one["args"]["text"] == "remember me").count()
    };
    let deadline = std::time::Instant::now() + super::host::SOON;
    while received() == 0 {
        assert!(std::time::Instant::now() < deadline, "the mind never heard of it");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert!(second.close().success());
    assert_eq!(received(), 1);
}
