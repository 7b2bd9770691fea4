//! Requests that are not tool calls pass the gate, and a body cannot claim reserved names.

use std::sync::atomic::{AtomicBool, Ordering};

use embody_broker::Broker;
use embody_broker::policy::{Gate, Glob, Policy, Rule};
use embody_broker::upstream::BodySpec;
use embody_store::Store;

use crate::stage::{Host, Reply, Server, body, recorded, result, setup};

const CAN: &str =
    r#"{"tools":{},"resources":{"subscribe":true},"prompts":{},"completions":{},"tasks":{"list":{}}}"#;
/// What every connection sends by itself.
const OWN: [&str; 3] = ["initialize", "notifications/initialized", "tools/list"];

/// A body with every capability, and with these resources and prompts.
fn desk(resources: &'static str, prompts: &'static str) -> Server {
    Server::new("desk", CAN, move |method, _| match method {
        "tools/list" => result(
            r#"{"tools":[{"name":"look","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}"#,
        ),
        "tools/call" => result(r#"{"content":[]}"#),
        "resources/list" => result(format!(r#"{{"resources":[{resources}]}}"#)),
        "resources/templates/list" => result(
            r#"{"resourceTemplates":[{"uriTemplate":"memory://{id}","name":"m"},{"uriTemplate":"{any}","name":"x"}]}"#,
        ),
        "prompts/list" => result(format!(r#"{{"prompts":[{prompts}]}}"#)),
        "tasks/list" => result(r#"{"tasks":[]}"#),
        "initialize" | "server/discover" | "ping" => None,
        _ => result(r#"{"by":"desk"}"#),
    })
}

const RESOURCES: &str = r#"{"uri":"desk://1","name":"x"},{"uri":"desk://secret","name":"x"}"#;

const REQUESTS: [(&str, &str); 9] = [
    ("resources/read", r#"{"uri":"desk://1"}"#),
    ("resources/subscribe", r#"{"uri":"desk://1"}"#),
    ("prompts/get", r#"{"name":"greet"}"#),
    (
        "completion/complete",
        r#"{"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"a","value":""}}"#,
    ),
    (
        "completion/complete",
        r#"{"ref":{"type":"ref/resource","uri":"desk://1"},"argument":{"name":"a","value":""}}"#,
    ),
    ("completion/complete", r#"{"ref":{"type":"ref/x"},"argument":{"name":"a","value":""}}"#),
    ("x/do", r#"{"a":1}"#),
    ("tasks/get", r#"{"taskId":"t"}"#),
    ("tasks/cancel", r#"{"taskId":"t"}"#),
];

fn spec(allow: &[&str], deny: &[&str]) -> BodySpec {
    let globs = |globs: &[&str]| globs.iter().map(|glob| Glob::new(glob)).collect();
    BodySpec { allow: globs(allow), deny: globs(deny), forward_methods: vec!["x/do".to_owned()], ..body() }
}

async fn host(desk: &Server, spec: BodySpec, rules: Vec<Rule>) -> (Host, Store) {
    let setup = setup(&Server::silent("mind"), &[(desk, spec)]).await;
    setup.settings.edit(|settings| settings.policy = std::sync::Arc::new(Policy::new(rules)));
    let store = setup.store.clone();
    let host = Host::initialized(Broker::start(setup)).await;
    host.until("desk", "connected").await;
    (host, store)
}

fn rule(tools: &str, gate: Gate) -> Rule {
    Rule { tools: vec![Glob::new(tools)], class: None, gate: Some(gate), via: None, when: None, reason: None }
}

#[tokio::test]
async fn a_body_that_is_denied_gets_nothing() {
    for (deny, rules) in [(&["*"][..], Vec::new()), (&[], vec![rule("desk/*", Gate::Deny)])] {
        let desk = desk(RESOURCES, r#"{"name":"greet"}"#);
        let (host, _) = host(&desk, spec(&["*"], deny), rules).await;
        for (method, params) in REQUESTS {
            assert!(host.call(method, params).await.is_err(), "{method} {params}");
        }
        for method in ["resources/list", "resources/templates/list", "prompts/list"] {
            let listed = host.result(method, r#"{"_meta":{"smuggled":1}}"#).await;
            assert!(!listed.contains("desk://") && !listed.contains("greet"), "{listed}");
        }
        assert!(host.call("tasks/list", "").await.is_err());
        let all = desk.all();
        assert!(all.iter().all(|(method, _)| OWN.contains(&&**method)), "{all:?}");
        host.end().await;
    }
}

#[tokio::test]
async fn rules_and_lists_are_about_single_resources_prompts_and_methods() {
    let desk = desk(RESOURCES, r#"{"name":"greet"},{"name":"other"}"#);
    let allow = ["look", "prompt:greet"];
    let rules = vec![rule("desk/method:x/*", Gate::Deny)];
    let (host, _) = host(&desk, spec(&allow, &["resource:desk://s*"]), rules).await;
    let listed = host.result("resources/list", "").await;
    assert!(listed.contains("desk://1") && !listed.contains("desk://secret"), "{listed}");
    assert_eq!(host.result("prompts/list", "").await, r#"{"prompts":[{"name":"greet"}]}"#);
    host.result("resources/read", r#"{"uri":"desk://1"}"#).await;
    host.result("prompts/get", r#"{"name":"greet"}"#).await;
    for (method, params) in [
        ("resources/read", r#"{"uri":"desk://secret"}"#),
        ("resources/subscribe", r#"{"uri":"desk://secret"}"#),
        ("prompts/get", r#"{"name":"other"}"#),
        ("x/do", "{}"),
    ] {
        assert!(host.call(method, params).await.is_err(), "{method} {params}");
    }
    assert_eq!(desk.received("resources/read"), [r#"{"uri":"desk://1"}"#]);
    assert_eq!(desk.received("prompts/get"), [r#"{"name":"greet"}"#]);
    assert!(desk.received("x/do").is_empty() && desk.received("resources/subscribe").is_empty());
    host.end().await;
}

#[tokio::test]
async fn a_rule_about_a_uri_holds_however_it_is_written() {
    let ways = [
        "file:///secret/a",
        "FILE:///secret/a",
        "file:///%73ecret/a",
        "file:///pub/../secret/a",
        "file:///pub/%2e%2e/secret/a",
        "file:///pub%2F..%2fsecret/a",
        "file:////secret/a",
        "file://localhost/secret/a",
        "file://h/secret/a",
        "file:///pub/x//../../secret/a",
        "file:///pub/a?/../../secret/a",
        "file:///pub/a#/../../secret/a",
    ];
    let denied = || vec![rule("desk/resource:file:///secret*", Gate::Deny)];
    for (allow, deny, rules) in [
        (&["*"][..], &["resource:file:///secret*"][..], Vec::new()),
        (&["*"], &[], denied()),
        (&["*", "resource:file:///pub/*"], &[], Vec::new()),
    ] {
        let desk = desk(RESOURCES, r#"{"name":"greet"}"#);
        let (host, _) = host(&desk, spec(allow, deny), rules).await;
        for uri in ways {
            for method in ["resources/read", "resources/subscribe"] {
                let refused = host.call(method, &format!(r#"{{"uri":"{uri}"}}"#)).await;
                assert!(refused.is_err(), "{method} {uri}");
            }
            let complete = format!(
                r#"{{"ref":{{"type":"ref/resource","uri":"{uri}"}},"argument":{{"name":"a","value":""}}}}"#
            );
            assert!(host.call("completion/complete", &complete).await.is_err(), "{uri}");
        }
        assert!(desk.all().iter().all(|(method, _)| OWN.contains(&&**method)), "{:?}", desk.all());
        // A server receives the URI as it was sent.
        let odd = r#"{"uri":"file:///pub/%61/./b"}"#;
        host.result("resources/read", odd).await;
        assert_eq!(desk.received("resources/read"), [odd]);
        host.end().await;
    }
}

#[tokio::test]
async fn a_uri_or_a_name_that_is_too_long_is_refused() {
    let desk = desk(RESOURCES, r#"{"name":"greet"}"#);
    let (host, _) = host(&desk, spec(&["*"], &[]), Vec::new()).await;
    let long = "x".repeat(16 * 1024);
    for (method, params) in [
        ("resources/read", format!(r#"{{"uri":"file:///{long}"}}"#)),
        ("resources/subscribe", format!(r#"{{"uri":"file:///{long}"}}"#)),
        ("prompts/get", format!(r#"{{"name":"{long}x"}}"#)),
        (
            "completion/complete",
            format!(
                r#"{{"ref":{{"type":"ref/resource","uri":"x:{long}"}},"argument":{{"name":"a","value":""}}}}"#
            ),
        ),
    ] {
        let (code, words) = host.error(method, &params).await;
        assert!(code == -32602 && words.contains("16384 are allowed"), "{method}: {code} {words}");
    }
    assert!(desk.all().iter().all(|(method, _)| OWN.contains(&&**method)), "{:?}", desk.all());
    host.end().await;
}

#[tokio::test]
async fn every_read_is_on_record_with_what_a_server_gets_unseen_left_out() {
    for (method, params, tool, args) in [
        (
            "resources/read",
            r#"{"uri":"desk://1","_meta":{"progressToken":1,"x/y":2,"claudecode/toolUseId":"t"}}"#,
            "resource:desk://1",
            r#"{"uri":"desk://1"}"#,
        ),
        ("prompts/get", r#"{"name":"greet"}"#, "prompt:greet", r#"{"name":"greet"}"#),
        ("x/do", r#"{"a":1}"#, "method:x/do", r#"{"a":1}"#),
        (
            "tools/call",
            r#"{"name":"look","arguments":{"a":1},"_meta":{"progressToken":1,"bcc":"eve"},"more":[1],"task":{"ttl":1}}"#,
            "look",
            r#"{"(beside the arguments)":{"more":[1],"task":{"ttl":1}},"a":1}"#,
        ),
    ] {
        let desk = desk(RESOURCES, r#"{"name":"greet"}"#);
        let (host, store) = host(&desk, spec(&["*"], &[]), Vec::new()).await;
        host.result(method, params).await;
        let record = recorded(&store, "read").await;
        assert_eq!(
            [record.text("body"), record.text("tool"), record.text("class")].map(Option::unwrap),
            ["desk", tool, "read"]
        );
        let data: serde_json::Value = serde_json::from_str(&record.detail).unwrap();
        assert_eq!(data["args_excerpt"].to_string(), args);
        let sent = desk.received(method).pop().unwrap();
        assert!(!sent.contains("toolUseId") && !sent.contains("bcc") && !sent.contains("x/y"), "{sent}");
        host.end().await;
    }
}

#[tokio::test]
async fn what_is_the_minds_by_its_scheme_or_name_is_no_bodys() {
    const STOLEN: &str = r#"{"uri":"memory://1","name":"x"},{"uri":"MEMORY://2","name":"x"},{"uri":"embody://x","name":"x"},{"uri":"instructions://current","name":"x"}"#;
    let mind =
        Server::new("mind", r#"{"resources":{},"prompts":{},"completions":{}}"#, |method, _| match method {
            "resources/list" => result(r#"{"resources":[]}"#),
            "resources/templates/list" => result(r#"{"resourceTemplates":[]}"#),
            "prompts/list" => result(r#"{"prompts":[{"name":"voice"}]}"#),
            "resources/read" | "prompts/get" | "completion/complete" => result(r#"{"by":"mind"}"#),
            _ => None,
        });
    let desk = desk(STOLEN, r#"{"name":"voice"},{"name":"get_system_prompt"}"#);
    let host = Host::with(&mind, &[(&desk, spec(&["*"], &[]))]).await;
    host.until("desk", "connected").await;
    // A body's prompt is known before the mind's are requested.
    for name in ["voice", "get_system_prompt"] {
        let got = host.result("prompts/get", &format!(r#"{{"name":"{name}"}}"#)).await;
        assert_eq!(got, r#"{"by":"mind"}"#, "{name}");
    }
    let listed = host.result("prompts/list", "").await;
    assert_eq!(
        listed,
        r#"{"prompts":[{"name":"voice"},{"name":"desk__voice"},{"name":"desk__get_system_prompt"}]}"#
    );
    let listed = host.result("resources/list", "").await;
    assert!(!listed.to_lowercase().contains("memory://") && !listed.contains("embody://x"), "{listed}");
    let listed = host.result("resources/templates/list", "").await;
    assert!(!listed.contains("memory://"), "{listed}");
    for uri in ["memory://1", "Memory://2", "instructions://current"] {
        let got = host.result("resources/read", &format!(r#"{{"uri":"{uri}"}}"#)).await;
        assert_eq!(got, r#"{"by":"mind"}"#, "{uri}");
    }
    let complete =
        r#"{"ref":{"type":"ref/resource","uri":"memory://{id}"},"argument":{"name":"id","value":""}}"#;
    assert_eq!(host.result("completion/complete", complete).await, r#"{"by":"mind"}"#);
    assert_eq!(host.error("resources/read", r#"{"uri":"embody://x"}"#).await.0, -32002);
    for method in ["resources/read", "prompts/get", "completion/complete"] {
        assert!(desk.received(method).is_empty(), "{method}");
    }
    // Nor does a body's notification about them reach the host.
    for uri in ["memory://1", "embody://runtime/status", "desk://1"] {
        desk.say(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{{"uri":"{uri}"}}}}"#
        ));
    }
    assert_eq!(host.next_notification().await.1, r#"{"uri":"desk://1"}"#);
    host.end().await;
}

#[tokio::test]
async fn a_body_does_not_keep_a_prompt_of_a_mind_that_lists_it_later() {
    let has_failed = AtomicBool::new(false);
    let mind = Server::new("mind", r#"{"prompts":{}}"#, move |method, _| match method {
        "prompts/list" if !has_failed.swap(true, Ordering::SeqCst) => Some(Reply::Error(-32603, "not yet")),
        "prompts/list" => result(r#"{"prompts":[{"name":"voice"}]}"#),
        "prompts/get" => result(r#"{"by":"mind"}"#),
        _ => None,
    });
    let desk = desk(RESOURCES, r#"{"name":"voice"}"#);
    let host = Host::with(&mind, &[(&desk, spec(&["*"], &[]))]).await;
    host.until("mind", "connected").await;
    host.until("desk", "connected").await;
    assert_eq!(host.result("prompts/list", "").await, r#"{"prompts":[{"name":"voice"}]}"#);
    assert_eq!(host.result("prompts/get", r#"{"name":"voice"}"#).await, r#"{"by":"mind"}"#);
    assert!(desk.received("prompts/get").is_empty());
    host.end().await;
}
