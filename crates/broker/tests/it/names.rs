//! Name resolution while servers start: a server that does not read counts as starting.

use std::time::Duration;

use embody_broker::policy::Glob;
use embody_broker::upstream::BodySpec;
use embody_broker::{Broker, BrokerConfig, Timeouts};
use embody_store::{DatabaseUrl, Store};
use serde_json::{Value, json};

use crate::stage::{Host, Server, body, result, setup};

const CHANGED: &str = "notifications/tools/list_changed";

/// A body with these tools, all of them reads.
fn server(name: &'static str, tools: &[&str]) -> Server {
    let tool = |name: &&str| json!({"name": name, "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}});
    let list = json!({"tools": tools.iter().map(tool).collect::<Vec<_>>()}).to_string();
    Server::new(name, r#"{"tools":{},"prompts":{}}"#, move |method, _| match method {
        "tools/list" => result(list.clone()),
        "tools/call" => result(format!(r#"{{"content":[{{"type":"text","text":"{name}"}}]}}"#)),
        _ => None,
    })
}

/// A body that has not started; `listen(true)` starts it.
fn starting(server: Server) -> Server {
    server.listen(false);
    server
}

async fn store() -> Store {
    Store::open(DatabaseUrl::Memory).await.unwrap()
}

/// A new session with these bodies, which waits only this long for bodies that were never listed.
async fn session(store: &Store, bodies: &[&Server], list: Duration) -> Host {
    let bodies: Vec<_> = bodies.iter().map(|server| (*server, body())).collect();
    let setup = setup(&Server::silent("mind"), &bodies).await;
    let times = Timeouts { list, ..crate::stage::times() };
    setup.settings.edit(|settings| settings.times = times);
    Host::initialized(Broker::start(BrokerConfig { store: store.clone(), ..setup })).await
}

const PATIENT: Duration = Duration::from_secs(30);
const IMPATIENT: Duration = Duration::from_millis(1);

async fn listed(host: &Host) -> Vec<String> {
    let list: Value = serde_json::from_str(&host.result("tools/list", "").await).unwrap();
    let tools = list["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

fn has(list: &[String], name: &str) -> bool {
    list.iter().any(|listed| listed == name)
}

/// The server that responds to a call of this tool, or the reason why none does.
async fn answers(host: &Host, tool: &str, arguments: Value) -> String {
    let params = json!({"name": tool, "arguments": arguments}).to_string();
    match host.call("tools/call", &params).await {
        Ok(text) => {
            let answer: Value = serde_json::from_str(&text).unwrap();
            answer["content"][0]["text"].as_str().unwrap().to_owned()
        }
        Err(error) => error,
    }
}

/// Lists both once.
async fn listed_once(store: &Store, bodies: &[&Server]) -> Vec<String> {
    let host = session(store, bodies, PATIENT).await;
    let list = listed(&host).await;
    for body in bodies {
        host.until(body.name, "connected").await;
    }
    host.end().await;
    list
}

#[tokio::test]
async fn the_first_list_has_the_tools_of_a_body_that_is_still_starting() {
    let (store, desk, lamp) = (store().await, server("desk", &["look", "note"]), server("lamp", &["glow"]));
    let before = listed_once(&store, &[&desk, &lamp]).await;
    let desk = starting(server("desk", &["look", "note"]));
    // However long a list may wait, it does not wait for known servers.
    let host = session(&store, &[&desk, &lamp], PATIENT).await;
    assert_eq!(listed(&host).await, before);
    assert!(desk.received("initialize").is_empty(), "nothing of it was needed");
    let call = answers(&host, "look", json!({}));
    let start = async {
        host.until("lamp", "connected").await;
        host.until("desk", "connecting").await;
        assert!(desk.received("tools/call").is_empty());
        desk.listen(true);
    };
    assert_eq!(tokio::join!(call, start).0, "desk");
    assert_eq!(listed(&host).await, before);
    assert!(
        !host.received_methods().await.iter().any(|method| method == CHANGED),
        "it is the list that it was"
    );
    host.end().await;
}

#[tokio::test]
async fn the_definition_of_a_body_that_was_starting_is_compared_before_the_call() {
    let store = store().await;
    let tool = |hint: bool| {
        let list = json!({"tools": [{"name": "note", "inputSchema": {}, "annotations": {"readOnlyHint": hint, "destructiveHint": false, "openWorldHint": false}}]});
        let list = list.to_string();
        Server::new("desk", r#"{"tools":{}}"#, move |method, _| match method {
            "tools/list" => result(list.clone()),
            "tools/call" => result(r#"{"content":[{"type":"text","text":"done"}]}"#),
            _ => None,
        })
    };
    let first = tool(false);
    listed_once(&store, &[&first]).await;
    let changed = starting(tool(true));
    let host = session(&store, &[&changed], PATIENT).await;
    assert!(has(&listed(&host).await, "note"));
    host.result("tools/call", r#"{"name":"runtime_bootstrap","arguments":{}}"#).await;
    let call = host.result("tools/call", r#"{"name":"note","arguments":{}}"#);
    let start = async {
        host.until("desk", "connecting").await;
        changed.listen(true);
    };
    let (answer, ()) = tokio::join!(call, start);
    assert!(answer.contains("held"), "{answer}");
    assert!(changed.received("tools/call").is_empty());
    host.end().await;
}

#[tokio::test]
async fn names_follow_from_the_pins_and_not_from_who_is_there() {
    let (store, desk, lamp) =
        (store().await, server("desk", &["look", "note"]), server("lamp", &["look", "glow"]));
    let before = listed_once(&store, &[&desk, &lamp]).await;
    assert!(has(&before, "desk__look") && has(&before, "lamp__look") && !has(&before, "look"), "{before:?}");
    for (slow, fast) in [("desk", "lamp"), ("lamp", "desk")] {
        let bodies = [server("desk", &["look", "note"]), server("lamp", &["look", "glow"])];
        let [desk, lamp] = bodies;
        let late = if slow == "desk" { &desk } else { &lamp };
        late.listen(false);
        let host = session(&store, &[&desk, &lamp], PATIENT).await;
        host.until(fast, "connected").await;
        assert_eq!(listed(&host).await, before, "while {slow} starts");
        let bare = answers(&host, "look", json!({})).await;
        assert!(bare.contains("desk__look") && bare.contains("lamp__look"), "{bare}");
        assert_eq!(answers(&host, &format!("{fast}__look"), json!({})).await, fast);
        let (name, inner) = (format!("{slow}__look"), json!({"name": format!("{slow}/look")}));
        let (call, through) = (answers(&host, &name, json!({})), answers(&host, "body_tool", inner));
        let start = async {
            host.until(slow, "connecting").await;
            late.listen(true);
        };
        let (call, through, ()) = tokio::join!(call, through, start);
        assert_eq!((&*call, &*through), (slow, slow));
        host.end().await;
    }
}

#[tokio::test]
async fn a_call_waits_for_a_body_that_was_never_seen_and_could_have_the_tool() {
    for (tools, expected) in [(&["look"][..], "lamp__look"), (&["note"][..], "lamp")] {
        let (store, lamp) = (store().await, server("lamp", &["look"]));
        let desk = starting(server("desk", tools));
        let host = session(&store, &[&lamp, &desk], IMPATIENT).await;
        host.until("lamp", "connected").await;
        // A name with a body's prefix does not wait for other bodies.
        assert_eq!(answers(&host, "lamp__look", json!({})).await, "lamp");
        let call = answers(&host, "look", json!({}));
        let start = async {
            host.until("desk", "connecting").await;
            assert_eq!(lamp.received("tools/call").len(), 1, "nobody knows yet whose it is");
            desk.listen(true);
        };
        let (answer, ()) = tokio::join!(call, start);
        assert!(answer.contains(expected), "{answer}");
        assert!(desk.received("tools/call").is_empty());
        host.end().await;
    }
}

#[tokio::test]
async fn a_name_that_was_listed_keeps_its_tool_when_another_body_comes_with_the_same() {
    let (store, lamp) = (store().await, server("lamp", &["look"]));
    listed_once(&store, &[&lamp]).await;
    let desk = starting(server("desk", &["look"]));
    let host = session(&store, &[&desk, &lamp], IMPATIENT).await;
    host.until("lamp", "connected").await;
    let first = listed(&host).await;
    assert!(has(&first, "look") && !has(&first, "lamp__look"), "{first:?}");
    assert_eq!(answers(&host, "look", json!({})).await, "lamp", "it does not wait for anybody");
    desk.listen(true);
    host.receive_until(CHANGED).await;
    for (name, whose) in [("look", "lamp"), ("lamp__look", "lamp"), ("desk__look", "desk")] {
        assert_eq!(answers(&host, name, json!({})).await, whose, "{name}");
    }
    let second = listed(&host).await;
    assert!(has(&second, "lamp__look") && has(&second, "desk__look"), "{second:?}");
    assert_eq!(answers(&host, "look", json!({})).await, "lamp", "also after the second list");
    host.end().await;
}

#[tokio::test]
async fn of_two_bodies_that_were_never_seen_neither_has_a_bare_name_by_being_faster() {
    for (slow, fast) in [("desk", "lamp"), ("lamp", "desk")] {
        for (tools, is_shared) in [(&["look"][..], true), (&["note"][..], false)] {
            let (store, late) = (store().await, starting(server(slow, tools)));
            let quick = server(fast, &["look"]);
            let bodies = if slow == "desk" { [&late, &quick] } else { [&quick, &late] };
            let host = session(&store, &bodies, IMPATIENT).await;
            host.until(fast, "connected").await;
            let first = listed(&host).await;
            let full = format!("{fast}__look");
            assert!(has(&first, &full) && !has(&first, "look"), "{first:?}");
            assert_eq!(answers(&host, &full, json!({})).await, fast);
            late.listen(true);
            host.receive_until(CHANGED).await;
            let second = listed(&host).await;
            assert_eq!(has(&second, "look"), !is_shared, "{second:?}");
            assert_eq!(answers(&host, &full, json!({})).await, fast);
            let bare = answers(&host, "look", json!({})).await;
            match is_shared {
                true => assert!(bare.contains("desk__look") && bare.contains("lamp__look"), "{bare}"),
                false => assert_eq!(bare, fast),
            }
            host.end().await;
        }
    }
}

#[tokio::test]
async fn a_name_does_not_lead_to_another_body_while_one_that_never_started_may_have_it() {
    let (store, lamp) = (store().await, server("lamp", &["look", "glow"]));
    let desk = server("desk", &["look"]).closed();
    let narrow = BodySpec { allow: vec![Glob::new("lo*")], ..body() };
    let setup = setup(&Server::silent("mind"), &[(&desk, narrow), (&lamp, body())]).await;
    let host = Host::initialized(Broker::start(BrokerConfig { store: store.clone(), ..setup })).await;
    host.until("desk", "unavailable").await;
    host.until("lamp", "connected").await;
    let list = listed(&host).await;
    assert!(has(&list, "lamp__look") && has(&list, "glow") && !has(&list, "look"), "{list:?}");
    for (tool, arguments) in [("look", json!({})), ("body_tool", json!({"name": "look"}))] {
        let refused = answers(&host, tool, arguments).await;
        assert!(refused.contains("`lamp__look`") && refused.contains("`desk`"), "{refused}");
    }
    assert!(lamp.received("tools/call").is_empty());
    for name in ["lamp__look", "glow"] {
        assert_eq!(answers(&host, name, json!({})).await, "lamp", "{name}");
    }
    host.end().await;
    // In the next session `look` belongs to the lamp, also for this host when the desk gets one too.
    let desk = desk.clone();
    let host = session(&store, &[&desk, &lamp], IMPATIENT).await;
    host.until("desk", "unavailable").await;
    assert!(has(&listed(&host).await, "look"));
    assert_eq!(answers(&host, "look", json!({})).await, "lamp");
    desk.open();
    host.until("desk", "connected").await;
    assert_eq!(answers(&host, "desk__look", json!({})).await, "desk");
    assert_eq!(answers(&host, "look", json!({})).await, "lamp");
    host.end().await;
}

/// A body with a prompt `greet` that responds to every read.
fn library(name: &'static str) -> Server {
    Server::new(name, r#"{"prompts":{},"resources":{},"completions":{}}"#, move |method, _| match method {
        "prompts/list" => result(r#"{"prompts":[{"name":"greet"}]}"#),
        "resources/list" => result(r#"{"resources":[]}"#),
        "prompts/get" | "resources/read" | "completion/complete" => result(format!(r#"{{"by":"{name}"}}"#)),
        _ => None,
    })
}

const READS: [(&str, &str); 3] = [
    ("resources/read", r#"{"uri":"file:///a"}"#),
    ("prompts/get", r#"{"name":"greet"}"#),
    (
        "completion/complete",
        r#"{"ref":{"type":"ref/resource","uri":"file:///{x}"},"argument":{"name":"x","value":""}}"#,
    ),
];

#[tokio::test]
async fn prompts_and_resources_wait_for_a_body_that_is_still_starting() {
    for (method, params) in READS {
        let (store, lamp, desk) = (store().await, library("lamp"), starting(library("desk")));
        let host = session(&store, &[&desk, &lamp], IMPATIENT).await;
        host.until("lamp", "connected").await;
        let start = async {
            host.until("desk", "connecting").await;
            assert!(lamp.received(method).is_empty(), "it is not known yet whose it is");
            desk.listen(true);
        };
        let (answer, ()) = tokio::join!(host.call(method, params), start);
        match method {
            "prompts/get" => {
                let refused = answer.unwrap_err();
                assert!(refused.contains("desk__greet") && refused.contains("lamp__greet"), "{refused}");
            }
            _ => assert_eq!(answer.unwrap(), r#"{"by":"desk"}"#),
        }
        assert!(lamp.received(method).is_empty());
        host.end().await;
    }
}

#[tokio::test]
async fn what_may_be_of_a_body_that_does_not_start_is_no_other_bodys() {
    for is_closed in [false, true] {
        let (store, lamp) = (store().await, library("lamp"));
        let desk = starting(library("desk")).starting_within(Duration::from_millis(50));
        let desk = if is_closed { desk.closed() } else { desk };
        let host = session(&store, &[&desk, &lamp], IMPATIENT).await;
        host.until("lamp", "connected").await;
        for _ in 0..2 {
            for (method, params) in READS {
                let (code, words) = host.error(method, params).await;
                assert_eq!(code, -32603);
                assert!(words.starts_with("`desk` has not started yet"), "{method}: {words}");
                assert!(lamp.received(method).is_empty(), "{method}");
            }
        }
        // A name with a prefix, and a name that the host has received, do not wait for other bodies.
        assert!(host.result("prompts/get", r#"{"name":"lamp__greet"}"#).await.contains("lamp"));
        host.result("prompts/list", "").await;
        assert!(host.result("prompts/get", r#"{"name":"greet"}"#).await.contains("lamp"));
        host.end().await;
    }
}

#[tokio::test]
async fn a_prompt_waits_for_every_body_whose_name_its_name_begins_with() {
    let desk = Server::new("desk", r#"{"prompts":{}}"#, |method, _| match method {
        "prompts/list" => result(r#"{"prompts":[{"name":"left__greet"}]}"#),
        "prompts/get" => result(r#"{"by":"desk"}"#),
        _ => None,
    });
    let left = starting(library("desk__left")).starting_within(Duration::from_millis(50));
    for bodies in [[&desk, &left], [&left, &desk]] {
        let host = session(&store().await, &bodies, IMPATIENT).await;
        host.until("desk", "connected").await;
        let (code, words) = host.error("prompts/get", r#"{"name":"desk__left__greet"}"#).await;
        assert_eq!(code, -32603);
        assert!(words.starts_with("`desk__left` has not started yet"), "{words}");
        assert!(desk.received("prompts/get").is_empty());
        host.end().await;
    }
}

#[tokio::test]
async fn nothing_is_said_to_have_changed_before_the_first_list() {
    let (store, desk) = (store().await, server("desk", &["look"]));
    let host = session(&store, &[&desk], PATIENT).await;
    host.until("desk", "connected").await;
    desk.say(r#"{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}"#);
    desk.say(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"last"}}"#);
    let before = host.receive_until("notifications/message").await;
    assert_eq!(before, [""; 0], "before the host has asked for anything");
    assert!(has(&listed(&host).await, "look"));
    assert_eq!(host.receive_until("notifications/prompts/list_changed").await, [""; 0], "what was held back");
    host.end().await;
}

#[tokio::test]
async fn a_host_that_never_lists_again_finds_what_came_later_and_calls_it() {
    let (store, desk) = (store().await, starting(server("desk", &["take_a_look"])));
    let host = session(&store, &[&desk], IMPATIENT).await;
    let list = listed(&host).await;
    assert!(has(&list, "find_tools") && has(&list, "body_tool") && !has(&list, "take_a_look"), "{list:?}");
    desk.listen(true);
    host.receive_until(CHANGED).await;
    for query in ["take_a_look", "desk__take_a_look"] {
        let found = answers(&host, "find_tools", json!({"query": query})).await;
        let found: Value = serde_json::from_str(&found).unwrap();
        assert_eq!(found["tools"][0]["name"], "take_a_look", "{query}: {found}");
    }
    assert_eq!(answers(&host, "body_tool", json!({"name": "take_a_look"})).await, "desk");
    assert_eq!(answers(&host, "take_a_look", json!({})).await, "desk");
    host.end().await;
}

#[tokio::test]
async fn a_body_that_lists_in_another_order_than_it_is_remembered_is_no_news() {
    let (store, desk) = (store().await, server("desk", &["look", "note"]));
    listed_once(&store, &[&desk]).await;
    let desk = starting(server("desk", &["note", "look"]));
    let host = session(&store, &[&desk], PATIENT).await;
    listed(&host).await;
    desk.listen(true);
    assert_eq!(answers(&host, "look", json!({})).await, "desk");
    assert!(!host.received_methods().await.iter().any(|method| method == CHANGED));
    host.end().await;
}
