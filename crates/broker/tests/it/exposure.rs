//! What a body answers is text that the owner did not write: the store knows before the first byte is sent.

use embody_broker::Broker;
use embody_broker::upstream::BodySpec;
use embody_store::{Scope, Store};

use crate::stage::{Host, Reply, Server, body, result, setup};

const TOOLS: &str =
    r#"{"tools":[{"name":"look","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}"#;

/// A body that lists everything and answers no request for content.
fn desk() -> Server {
    Server::new("desk", r#"{"tools":{},"resources":{},"prompts":{},"completions":{}}"#, |method, _| {
        match method {
            "tools/list" => result(TOOLS),
            "resources/list" => result(r#"{"resources":[{"uri":"desk://a","name":"a"}]}"#),
            "prompts/list" => result(r#"{"prompts":[{"name":"greet"}]}"#),
            "tools/call" | "resources/read" | "prompts/get" | "completion/complete" | "desk/custom" => {
                Some(Reply::Silence)
            }
            _ => None,
        }
    })
}

async fn stage(desk: &Server, spec: BodySpec) -> (Host, Store) {
    let setup = setup(&Server::silent("mind"), &[(desk, spec)]).await;
    let store = setup.store.clone();
    (Host::greeted(Broker::start(setup)).await, store)
}

async fn is_marked(store: &Store) -> bool {
    let scope = Scope::new("owner", "default").unwrap();
    store.is_exposed(&scope, "default", 1_800_000_000_000_000).await.unwrap()
}

#[tokio::test]
async fn every_request_for_content_is_marked_before_it_is_sent() {
    let observing = BodySpec { observes: true, ..body() };
    let forwarding = BodySpec { forward_methods: vec!["desk/custom".to_owned()], ..body() };
    for (spec, method, params) in [
        (body(), "tools/call", r#"{"name":"look","arguments":{}}"#),
        (observing, "tools/call", r#"{"name":"look","arguments":{}}"#),
        (body(), "resources/read", r#"{"uri":"desk://a"}"#),
        (body(), "prompts/get", r#"{"name":"greet"}"#),
        (
            body(),
            "completion/complete",
            r#"{"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"a","value":""}}"#,
        ),
        (forwarding, "desk/custom", "{}"),
    ] {
        let desk = desk();
        let (host, store) = stage(&desk, spec).await;
        host.until("desk", "connected").await;
        host.result("tools/list", "{}").await;
        host.result("resources/list", "{}").await;
        host.result("prompts/list", "{}").await;
        assert!(!is_marked(&store).await, "definitions are not content");
        host.say(&format!(r#"{{"jsonrpc":"2.0","id":"x","method":"{method}","params":{params}}}"#));
        desk.saw(method, 1).await;
        assert!(is_marked(&store).await, "{method}");
        host.end().await;
    }
}

#[tokio::test]
async fn a_host_cannot_say_what_only_the_broker_says() {
    let mind = Server::new("mind", r#"{"tools":{}}"#, |method, _| match method {
        "tools/list" => {
            result(r#"{"tools":[{"name":"update_instructions","inputSchema":{"type":"object"}}]}"#)
        }
        "tools/call" => result(r#"{"content":[]}"#),
        _ => None,
    });
    let setup = setup(&mind, &[]).await;
    let host = Host::greeted(Broker::start(setup)).await;
    host.until("mind", "connected").await;
    for key in ["embody/approved", "embody/preview", "embody/idempotencyKey"] {
        let call = format!(r#"{{"name":"update_instructions","arguments":{{}},"_meta":{{"{key}":1}}}}"#);
        host.result("tools/call", &call).await;
    }
    let seen = mind.seen("tools/call");
    assert!(seen.iter().any(|call| call.contains("update_instructions")), "{seen:?}");
    assert!(seen.iter().all(|call| !call.contains("\"embody/")), "{seen:?}");
    host.end().await;
}
