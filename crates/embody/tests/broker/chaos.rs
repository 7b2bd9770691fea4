//! Bodies that hang, crash, flood and lie: the call ends with a clear error, nothing is sent twice, others are not affected.

use std::time::Instant;

use serde_json::{Value, json};

use super::host::{Answer, Host, SOON};
use super::setup::{ALLOW_ALL, Scene, body, is_done, until_state, upstream};
use super::unruly::Unruly;

/// `desk` beside a body that behaves.
fn beside_a_calm_one(words: &[&str]) -> (Scene, Unruly) {
    let scene = Scene::with(words, "", &[ALLOW_ALL]);
    let calm = Unruly::new(scene.world.outside("calm.log")).with(&["--child"]);
    let config = std::fs::read_to_string(scene.world.path("embody.toml")).unwrap();
    // Its one tool has a name of its own.
    scene.world.file("embody.toml", config + &body("calm", calm.words(), "allow = [\"mirror\"]"));
    (scene, calm)
}

fn calm_answers(host: &mut Host) {
    let params = r#"{"name":"calm__mirror","arguments":{"result":{"content":[],"calm":1.0}}}"#;
    let Answer::Result(text) = host.ask("tools/call", params) else { panic!("an error") };
    // Only that the other one is away may stand before it.
    assert!(text.ends_with(r#""content":[],"calm":1.0}"#), "{text}");
    assert!(
        text.starts_with(r#"{"content""#) || text.starts_with(r#"{"_meta":{"embody/degraded""#),
        "{text}"
    );
}

/// Waits until the body is there again.
fn recovered(host: &mut Host) {
    let deadline = Instant::now() + SOON;
    while !is_done(&host.call("look", &json!({"text": "again"})), "look") {
        assert!(Instant::now() < deadline, "it does not come back: {}", upstream(host, "desk"));
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

// spec: N-13
#[test]
fn noise_around_an_answer_does_not_matter() {
    let (scene, calm) = beside_a_calm_one(&["--start", "garbage", "--start", "stderr:1000000", "--child"]);
    let mut host = scene.plain_host();
    for (trick, amount) in [
        ("garbage", 0),
        ("stderr", 8_000_000),
        ("twice", 0),
        ("wrong_id", 0),
        ("flood", 20_000),
        ("drip", 300),
    ] {
        let result = host.call("note", &json!({"trick": trick, "amount": amount}));
        assert!(is_done(&result, "note"), "{trick}: {result}");
        calm_answers(&mut host);
    }
    assert_eq!(scene.desk.calls("note").len(), 6);
    assert_eq!(upstream(&mut host, "desk")["restarts"], 0);
    assert!(host.close().success());
    scene.desk.gone();
    calm.gone();
}

// spec: N-13, N-15
#[test]
fn a_crash_in_a_call_ends_the_call_and_nothing_is_sent_again() {
    for trick in ["crash", "half"] {
        let (scene, _calm) = beside_a_calm_one(&[]);
        let mut host = scene.plain_host();
        let id = host.begin_call("note", &json!({"trick": trick}));
        let answer = host.answer(id);
        assert!(!format!("{answer:?}").contains("note is done"), "{trick}: {answer:?}");
        calm_answers(&mut host);
        recovered(&mut host);
        assert_eq!(scene.desk.calls("note").len(), 1, "{trick}");
        assert!(upstream(&mut host, "desk")["restarts"].as_u64().unwrap() >= 1);
        assert!(host.close().success());
        let exported = scene.world.run(&["audit", "export"]).ok().stdout;
        let records = exported.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let outcomes: Vec<Value> = records
            .filter(|one| one["event"] == "outcome")
            .map(|one| one["detail"]["outcome"].clone())
            .collect();
        assert_eq!(outcomes, ["unknown"], "{trick}");
    }
}

// spec: N-13
#[test]
fn a_line_of_100_megabytes_is_a_clear_error_of_one_call() {
    let (scene, _calm) = beside_a_calm_one(&[]);
    let mut host = scene.plain_host();
    let id = host.begin_call("look", &json!({"trick": "huge", "amount": 100 * 1024 * 1024}));
    calm_answers(&mut host);
    let answer = format!("{:?}", host.answer(id));
    assert!(answer.len() < 10_000, "{} bytes", answer.len());
    calm_answers(&mut host);
    recovered(&mut host);
}

// spec: N-13
#[test]
fn a_hanging_body_does_not_block_others() {
    let (scene, calm) = beside_a_calm_one(&["--stays", "--child"]);
    let mut host = scene.plain_host();
    let hanging: Vec<u64> = (0..20).map(|_| host.begin_call("look", &json!({"trick": "hang"}))).collect();
    scene.desk.until("call", 20);
    calm_answers(&mut host);
    assert!(is_done(&host.call("look", &json!({})), "look"));
    let unanswered = host.begin_call("look", &json!({"trick": "only_wrong_id"}));
    calm_answers(&mut host);
    assert!(hanging.iter().all(|id| !host.has_answer(*id)) && !host.has_answer(unanswered));
    // Nobody waits for them at the end either, and no process is left.
    assert!(host.close().success());
    scene.desk.gone();
    calm.gone();
}

// spec: N-13
#[test]
fn a_body_that_does_not_start_well_is_shown_and_tried_again() {
    for start in ["silent", "wrong_id", "refuses", "exit"] {
        let (scene, _calm) = beside_a_calm_one(&["--start", start]);
        let mut host = scene.plain_host();
        calm_answers(&mut host);
        let state = upstream(&mut host, "desk");
        assert_ne!(state["state"], "connected", "{start}: {state}");
        if ["refuses", "exit"].contains(&start) {
            until_state(&mut host, "desk", "unavailable");
            scene.desk.until("start", 3);
        }
        calm_answers(&mut host);
        assert!(host.close().success());
        scene.desk.gone();
    }
}

// spec: N-13
#[test]
fn a_slow_start_is_waited_for_in_the_background() {
    let (scene, _calm) = beside_a_calm_one(&["--start", "slow:4000"]);
    let mut host = scene.plain_host();
    calm_answers(&mut host);
    // A host is notified of changes to the list that it has.
    host.ask("tools/list", "{}").result();
    until_state(&mut host, "desk", "connected");
    host.until("news of the tools", |host| {
        host.notices.iter().any(|notice| notice.method == "notifications/tools/list_changed")
    });
    assert!(is_done(&host.call("body_tool", &json!({"name": "look"})), "look"));
}

// spec: N-13
#[test]
fn nothing_is_left_when_the_host_goes() {
    let (scene, calm) = beside_a_calm_one(&["--stays", "--child"]);
    let mut host = scene.plain_host();
    calm_answers(&mut host);
    assert!(host.close().success());
    scene.desk.gone();
    calm.gone();
}
