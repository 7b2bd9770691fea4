//! Bodies at an address: tokens, redirects, answers that break off.

use serde_json::{Value, json};

use super::host::Reply;
use super::setup::{ALLOW_ALL, decision, host, remote_body, until_state, world};
use super::web::Web;
use crate::support::world::World;

const TOKEN_COMMAND: &str = "trust_annotations = true\ntoken_command = [\"cat\", \"TOKEN\"]";

/// A world with a body at that address, whose token stands in a file.
fn world_with(url: &str, more: &str) -> World {
    let world = world(&[]);
    world.file_outside("token", "first\n");
    let keys = TOKEN_COMMAND.replace("TOKEN", &world.outside("token").display().to_string());
    world.file("embody.toml", format!("{ALLOW_ALL}{}", remote_body("web", url, &format!("{keys}\n{more}"))));
    world
}

fn nothing(_: &str, _: &Value) -> Reply {
    Reply::Error(-32601, "no such method")
}

// spec: N-13
#[test]
fn a_token_that_has_run_out_is_fetched_again_and_the_call_is_made_once() {
    let web = Web::start();
    web.want("first");
    let world = world_with(&web.url("/mcp"), "");
    let mut host = host(&world, &json!({}), nothing);
    assert_eq!(host.call("web_send", &json!({"n": 1}))["content"][0]["text"], "done");
    web.want("second");
    world.file_outside("token", "second\n");
    assert_eq!(host.call("web_send", &json!({"n": 2}))["content"][0]["text"], "done");
    let numbers: Vec<Value> = web.calls().iter().map(|call| call["arguments"]["n"].clone()).collect();
    assert_eq!(numbers, [1, 2]);
    // A token that is wrong and stays wrong: one more try, then an end that tells no secret.
    web.want("third");
    let refused = host.begin_call("web_send", &json!({"n": 3}));
    let answer = format!("{:?}", host.answer(refused));
    assert!(!answer.contains("second"), "{answer}");
    assert_eq!(web.calls().len(), 2);
    assert!(!host.call("runtime_status", &json!({})).to_string().contains("second"));
    assert!(!host.stderr_text().contains("second"));
}

// spec: N-13, N-15
#[test]
fn an_answer_that_breaks_off_ends_the_call_and_nothing_is_sent_again() {
    for trick in ["half_closed", "cut", "fails", "html", "huge", "forgets"] {
        let web = Web::start();
        let world = world_with(&web.url("/mcp"), "");
        let mut host = host(&world, &json!({}), nothing);
        let id = host.begin_call("web_send", &json!({"trick": trick}));
        let answer = format!("{:?}", host.answer(id));
        assert!(!answer.contains("\"done\"") && answer.len() < 10_000, "{trick}: {answer}");
        until_state(&mut host, "web", "connected");
        assert_eq!(host.call("web_look", &json!({}))["content"][0]["text"], "done", "{trick}");
        let sent = web.calls().iter().filter(|call| call["name"] == "web_send").count();
        assert_eq!(sent, 1, "{trick}: {:#?}", web.seen());
    }
}

// spec: N-13
#[test]
fn a_slow_response_does_not_block_others() {
    let web = Web::start();
    let world = world_with(&web.url("/mcp"), "");
    let mut host = host(&world, &json!({}), nothing);
    let slow =
        ["hang", "slow_head", "slow_body"].map(|trick| host.begin_call("web_look", &json!({"trick": trick})));
    assert_eq!(host.call("web_look", &json!({}))["content"][0]["text"], "done");
    for id in slow {
        host.notify("notifications/cancelled", &json!({"requestId": id}));
    }
    assert_eq!(host.call("web_look", &json!({}))["content"][0]["text"], "done");
    assert!(host.close().success());
}

// spec: N-13
#[test]
fn a_token_is_sent_to_no_other_server() {
    let (web, other) = (Web::start(), Web::start());
    web.want("first");
    web.point_to(&other.url("/mcp"));
    let world = world_with(&web.url("/mcp"), "");
    let mut host = host(&world, &json!({}), nothing);
    let id = host.begin_call("web_send", &json!({"trick": "moved"}));
    host.answer(id);
    assert!(other.seen().iter().all(|seen| seen.bearer.is_none()), "{:#?}", other.seen());
}

// spec: N-13
#[test]
fn a_legacy_stream_may_not_send_its_callers_elsewhere() {
    let (web, other) = (Web::start(), Web::start());
    web.want("first");
    web.point_to(&other.url("/mcp"));
    let world = world_with(&web.url("/sse"), "transport = \"sse\"");
    let mut host = host(&world, &json!({}), nothing);
    until_state(&mut host, "web", "unavailable");
    assert!(other.seen().is_empty(), "{:#?}", other.seen());
    let refused = host.call("body_tool", &json!({"name": "web_look"}));
    assert_eq!(decision(&refused), "blocked");
}

// spec: N-10
#[test]
fn a_question_on_a_calls_own_stream_is_answered() {
    let web = Web::start();
    let world = world_with(&web.url("/mcp"), "");
    let mut host = host(&world, &json!({"elicitation": {}}), |_, _| {
        Reply::Result(json!({"action": "accept", "content": {"name": "Ann"}}))
    });
    let result = host.call("web_look", &json!({"trick": "elicit"}));
    assert_eq!(result["structuredContent"]["answer"]["content"]["name"], "Ann", "{result}");
    assert!(host.questions[0].data()["message"].as_str().unwrap().contains("web"));
}

// spec: N-13
#[test]
fn an_unreachable_server_is_shown() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let world = world_with(&format!("http://127.0.0.1:{port}/mcp"), "");
    let mut host = host(&world, &json!({}), nothing);
    let found = until_state(&mut host, "web", "unavailable");
    assert!(found["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{found}");
}

#[test]
fn sessions_are_closed_when_the_host_goes() {
    let web = Web::start();
    let world = world_with(&web.url("/mcp"), "");
    let mut host = host(&world, &json!({}), nothing);
    host.call("web_look", &json!({}));
    assert!(host.close().success());
    assert!(web.seen().iter().any(|seen| seen.line == "DELETE /mcp"), "{:#?}", web.seen());
    assert!(web.seen().iter().all(|seen| seen.status != 401 && seen.method.as_deref() != Some("ping")));
}
