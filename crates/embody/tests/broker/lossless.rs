//! What passes through is not touched: results, arguments, errors, notifications, in their order.

use serde_json::json;

use super::host::Answer;
use super::setup::{ALLOW_ALL, Scene};

/// Results that another writer of JSON would change.
const RESULTS: [&str; 8] = [
    r#"{"content":[]}"#,
    r#"{ "content" : [ ] , "structuredContent":{"big":123456789012345678901234567890,"f":1.0,"e":1E+2,"n":null} }"#,
    r#"{"z":1,"a":2,"content":[{"type":"hologram","data":"\u00e9\ud83e\udded\/"}],"isError":false}"#,
    r#"{"content":[{"type":"resource_link","uri":"x://y","name":"n","_meta":{"k":[]}}],"_meta":{"a/b":{"c":0.10}}}"#,
    r#"{"tools":[{"name":"not a list"}],"content":[]}"#,
    r#"{"content":[{"type":"audio","data":"AAAA","mimeType":"audio/wav"}],"nextCursor":"x","resultType":"odd"}"#,
    r#"{"content":[{"type":"text","text":"a\u2028b\u0000c\ufeff"}],"unknown":{"deep":{"deeper":[[],{}]}}}"#,
    r#"{"content":[],"isError":true,"structuredContent":null}"#,
];

// spec: N-05
#[test]
fn a_result_passes_byte_for_byte() {
    let scene = Scene::new("", &[]);
    let mut host = scene.plain_host();
    for result in RESULTS {
        let direct = format!(r#"{{"name":"mirror","arguments":{{"result":{result}}}}}"#);
        assert_eq!(host.ask("tools/call", &direct), Answer::Result(result.to_owned()));
        let by_name =
            format!(r#"{{"name":"body_tool","arguments":{{"name":"mirror","args":{{"result":{result}}}}}}}"#);
        assert_eq!(host.ask("tools/call", &by_name), Answer::Result(result.to_owned()));
    }
}

// spec: N-05
#[test]
fn params_pass_but_for_the_name() {
    let scene = Scene::new("", &[]);
    let mut host = scene.plain_host();
    let params = r#"{ "_meta":{"baggage":"a=1.0", "x/y":1.0} , "name":"look","arguments":{"b":1.50,"a":[12345678901234567890,-0.0]},"more":null }"#;
    host.ask("tools/call", params).result();
    let log = std::fs::read_to_string(scene.world.outside("desk.log")).unwrap();
    assert!(log.contains(r#""arguments":{"b":1.50,"a":[12345678901234567890,-0.0]}"#), "{log}");
    assert!(log.contains(r#""baggage":"a=1.0""#) && log.contains(r#""more":null"#), "{log}");
    assert!(!log.contains("x/y"), "keys that hosts add for themselves are left out: {log}");
}

// spec: N-05, N-15
#[test]
fn arguments_that_two_readers_could_read_differently_go_nowhere() {
    let scene = Scene::new("", &[ALLOW_ALL]);
    let mut host = scene.plain_host();
    let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
    for arguments in [
        r#"{"to":"ann","to":"bob"}"#,
        r#"{"a":{"x":1,"\u0078":2}}"#,
        r#"{"a":"\ud800"}"#,
        &format!(r#"{{"a":{deep}}}"#),
    ] {
        let answer = host.ask("tools/call", &format!(r#"{{"name":"note","arguments":{arguments}}}"#));
        assert_eq!(answer.error()["code"], -32602, "{arguments}");
    }
    assert!(scene.desk.calls("note").is_empty());
}

// spec: N-05
#[test]
fn a_bodys_own_error_stays_its_own() {
    let scene = Scene::new("", &[]);
    let mut host = scene.plain_host();
    let answer = host.ask("tools/call", r#"{"name":"look","arguments":{"trick":"error"}}"#);
    assert_eq!(answer, Answer::Error(r#"{"code":-32000,"message":"unruly will not"}"#.to_owned()));
}

// spec: N-05
#[test]
fn progress_keeps_its_token_and_comes_before_the_result() {
    let scene = Scene::new("", &[]);
    let mut host = scene.plain_host();
    for token in [r#""a \u00e4""#, "7", "0"] {
        host.notices.clear();
        let params = format!(
            r#"{{"name":"look","arguments":{{"trick":"progress","amount":500}},"_meta":{{"progressToken":{token}}}}}"#
        );
        host.ask("tools/call", &params).result();
        let steps: Vec<_> = host
            .notices
            .iter()
            .filter(|notice| notice.method == "notifications/progress")
            .map(|notice| notice.data())
            .collect();
        let token: serde_json::Value = serde_json::from_str(token).unwrap();
        assert!(steps.iter().all(|step| step["progressToken"] == token), "{token}");
        let numbers: Vec<u64> = steps.iter().map(|step| step["progress"].as_u64().unwrap()).collect();
        assert_eq!(numbers, (1..=500).collect::<Vec<u64>>());
    }
    // Messages of a body about an ended call are dropped.
    host.call("look", &json!({}));
    assert!(host.notices.iter().all(|notice| notice.data()["progress"] != 501), "{:?}", host.notices.last());
}

#[test]
fn a_cancelled_call_is_cancelled_at_the_body() {
    let scene = Scene::new("", &[]);
    let mut host = scene.plain_host();
    let id = host.begin_call("look", &json!({"trick": "hang"}));
    scene.desk.until("call", 1);
    host.notify("notifications/cancelled", &json!({"requestId": id, "reason": "enough"}));
    let deadline = std::time::Instant::now() + super::host::SOON;
    let is_told = || {
        scene.desk.of_kind("notification").iter().any(|event| event["method"] == "notifications/cancelled")
    };
    while !is_told() {
        assert!(std::time::Instant::now() < deadline, "{:#?}", scene.desk.events());
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(host.call("look", &json!({}))["content"].is_array());
    assert!(!host.has_answer(id), "a cancelled request is not answered");
}

#[test]
fn unknown_methods_pass_where_the_body_lists_them() {
    let scene = Scene::new("forward_methods = [\"x/known\"]", &[]);
    let mut host = scene.plain_host();
    let params = r#"{"a": 1.0,"b":[null]}"#;
    assert_eq!(host.ask("x/known", params), Answer::Result(params.to_owned()));
    assert_eq!(host.ask("x/unknown", params).error()["code"], -32601);
    assert_eq!(scene.desk.of_kind("request").len(), 1);
}

#[test]
fn notifications_of_a_body_reach_the_host() {
    let scene = Scene::new("", &[]);
    let mut host = scene.plain_host();
    host.call("look", &json!({"trick": "flood", "amount": 200}));
    let data: Vec<u64> = host
        .notices
        .iter()
        .filter(|notice| notice.method == "notifications/message")
        .map(|notice| notice.data()["data"].as_u64().unwrap())
        .collect();
    assert_eq!(data, (0..200).collect::<Vec<u64>>());
}
