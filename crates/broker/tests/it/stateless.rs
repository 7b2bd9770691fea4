//! Hosts without a session on the wire also receive the contract, approvals, server requests and changes.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use embody_broker::{Broker, BrokerConfig};
use embody_store::approvals::ApprovalFilter;
use serde_json::{Value, json};

use crate::stage::{ANSWER, Host, Server, body, recorded, result, setup};

const WRITES: &str = r#"{"tools":[{"name":"note_down","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":false,"destructiveHint":false,"openWorldHint":false}},{"name":"send_mail","inputSchema":{"type":"object"}},{"name":"look","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}"#;

/// A body with one tool of each class.
fn desk() -> Server {
    Server::new("desk", r#"{"tools":{"listChanged":true}}"#, |method, _| match method {
        "tools/list" => result(WRITES),
        "tools/call" => result(r#"{"content":[{"type":"text","text":"done"}]}"#),
        _ => None,
    })
}

/// A body whose only tool requests input before it responds, controlled by the test.
fn asking() -> Server {
    let list =
        r#"{"tools":[{"name":"look","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}"#;
    Server::new("asks", r#"{"tools":{}}"#, move |method, _| match method {
        "tools/list" => result(list),
        "tools/call" => Some(crate::stage::Reply::Silence),
        _ => None,
    })
}

async fn broker_before(server: &Server) -> (Arc<Broker>, embody_store::Store) {
    let setup = setup(&Server::silent("mind"), &[(server, body())]).await;
    let store = setup.store.clone();
    (Arc::new(Broker::start(setup)), store)
}

/// Parameters as a stateless host sends them.
fn with_era_meta(params: Value, capabilities: Value) -> String {
    let mut params = params;
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    });
    params.to_string()
}

async fn call(host: &Host, params: Value, capabilities: Value) -> Value {
    serde_json::from_str(&host.result("tools/call", &with_era_meta(params, capabilities)).await).unwrap()
}

fn decision(result: &Value) -> &str {
    result["_meta"]["embody/decision"]["decision"].as_str().unwrap_or_default()
}

// spec: N-12
#[tokio::test]
async fn the_contract_is_read_once_in_each_conversation() {
    let desk = desk();
    let (broker, store) = broker_before(&desk).await;
    let host = Host::stateless(&broker);
    let found: Value =
        serde_json::from_str(&host.result("server/discover", &with_era_meta(json!({}), json!({}))).await)
            .unwrap();
    assert_eq!(found["supportedVersions"][0], "2026-07-28");
    let listed: Value =
        serde_json::from_str(&host.result("tools/list", &with_era_meta(json!({}), json!({}))).await).unwrap();
    assert!(listed["ttlMs"].is_number() && listed["resultType"] == "complete");
    let write = || json!({"name": "note_down", "arguments": {"x": 1}});
    let bounced = call(&host, write(), json!({})).await;
    assert_eq!(decision(&bounced), "bounce");
    assert!(bounced["content"][0]["text"].as_str().unwrap().ends_with("be kind"), "{bounced}");
    assert!(desk.received("tools/call").is_empty());
    let done = call(&host, write(), json!({})).await;
    assert_eq!((&done["content"][0]["text"], &done["resultType"]), (&json!("done"), &json!("complete")));
    assert_eq!(
        desk.received("tools/call"),
        [r#"{"arguments":{"x":1},"name":"note_down"}"#],
        "nothing of the era is passed on"
    );
    // Another host has not read it.
    let other = json!({"elicitation": {}});
    assert_eq!(decision(&call(&host, write(), other).await), "bounce");
    // Another process on the same store serves another conversation: a host starts one process each.
    let second =
        BrokerConfig { store: store.clone(), ..setup(&Server::silent("mind"), &[(&desk, body())]).await };
    let second = Arc::new(Broker::start(second));
    let elsewhere = Host::stateless(&second);
    assert_eq!(decision(&call(&elsewhere, write(), json!({})).await), "bounce");
    assert_eq!(call(&elsewhere, write(), json!({})).await["content"][0]["text"], "done");
    elsewhere.end().await;
    host.end().await;
}

// spec: N-10
#[tokio::test]
async fn an_approval_is_asked_by_the_answer_and_given_by_the_next_request() {
    let desk = desk();
    let (broker, _) = broker_before(&desk).await;
    let host = Host::stateless(&broker);
    let forms = || json!({"elicitation": {}});
    let send = || json!({"name": "send_mail", "arguments": {"to": "bob", "text": "hi"}});
    assert_eq!(decision(&call(&host, send(), forms()).await), "bounce");
    let asks = call(&host, send(), forms()).await;
    assert_eq!(asks["resultType"], "input_required", "{asks}");
    let (key, question) = asks["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert_eq!(question["method"], "elicitation/create");
    assert!(question["params"]["message"].as_str().unwrap().contains("bob"));
    let state = asks["requestState"].as_str().unwrap();
    let again = |mut call: Value, state: &str, action: &str| {
        call["requestState"] = state.into();
        call["inputResponses"] = json!({key.as_str(): {"action": action, "content": {}}});
        with_era_meta(call, forms())
    };
    // It is valid only for this call, unchanged.
    let forged = state.replace(['0', 'a'], "b");
    let (code, words) = host.error("tools/call", &again(send(), &forged, "accept")).await;
    assert!(code == -32602 && words.contains("requestState"), "{words}");
    let mut other = send();
    other["arguments"]["to"] = "eve".into();
    assert_eq!(host.error("tools/call", &again(other, state, "accept")).await.0, -32602);
    assert!(desk.received("tools/call").is_empty());
    // An approval counts if a person had the time to read.
    tokio::time::sleep(Duration::from_millis(510)).await;
    let sent = host.result("tools/call", &again(send(), state, "accept")).await;
    assert!(sent.contains("done"), "{sent}");
    assert_eq!(desk.received("tools/call").len(), 1);
    // It is valid once.
    assert_eq!(host.error("tools/call", &again(send(), state, "accept")).await.0, -32602);
    // The same holds for a denial.
    let asks = call(&host, send(), forms()).await;
    tokio::time::sleep(Duration::from_millis(510)).await;
    let denied =
        host.result("tools/call", &again(send(), asks["requestState"].as_str().unwrap(), "decline")).await;
    assert_eq!(decision(&serde_json::from_str(&denied).unwrap()), "deny", "{denied}");
    assert_eq!(desk.received("tools/call").len(), 1);
    host.end().await;
}

// spec: N-10
#[tokio::test]
async fn a_dismissed_form_answers_pending_at_once_and_leaves_the_approval_open() {
    let desk = desk();
    let (broker, store) = broker_before(&desk).await;
    let host = Host::stateless(&broker);
    let forms = || json!({"elicitation": {}});
    let send = |number: usize| json!({"name": "send_mail", "arguments": {"to": "bob", "number": number}});
    assert_eq!(decision(&call(&host, send(0), forms()).await), "bounce");
    let dismiss = async |number, action: &str| {
        let asks = call(&host, send(number), forms()).await;
        let mut again = send(number);
        again["requestState"] = asks["requestState"].clone();
        again["inputResponses"] = json!({"approval": {"action": action}});
        call(&host, again, forms()).await
    };
    let cancelled = dismiss(0, "cancel").await;
    assert_eq!(decision(&cancelled), "pending", "{cancelled}");
    let text = cancelled["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("the embody console") && text.contains("Telegram"), "{text}");
    assert_eq!(decision(&dismiss(1, "what?").await), "pending");
    // So does a decline that arrives faster than a person reads; a slower machine proves nothing.
    let is_fast = async |number| {
        let began = Instant::now();
        let declined = dismiss(number, "decline").await;
        let is_fast = began.elapsed() < Duration::from_millis(500);
        is_fast.then(|| assert_eq!(decision(&declined), "pending", "{declined}")).is_some()
    };
    let mut number = 2;
    while !is_fast(number).await {
        number += 1;
        assert!(number < 12, "the machine takes half a second for each call");
    }
    let open = store.approvals().list("owner", ApprovalFilter::Pending, 100).await.unwrap();
    assert_eq!(open.len(), 3);
    assert!(desk.received("tools/call").is_empty());
    host.end().await;
}

#[tokio::test]
async fn a_server_with_sessions_asks_a_host_without() {
    let asks = asking();
    let (broker, _) = broker_before(&asks).await;
    let host = Arc::new(Host::stateless(&broker));
    let forms = || json!({"elicitation": {}});
    let look = || json!({"name": "look", "arguments": {}, "_meta": {}});
    let waiting = tokio::spawn({
        let host = Arc::clone(&host);
        async move { call(&host, look(), forms()).await }
    });
    asks.saw("tools/call", 1).await;
    asks.say(r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"who?","requestedSchema":{}}}"#);
    let asked = waiting.await.unwrap();
    let (key, question) = asked["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert!(question["params"]["message"].as_str().unwrap().ends_with("who?"));
    // An unanswered request is sent again.
    let mut again = look();
    again["requestState"] = asked["requestState"].clone();
    let once_more = call(&host, again.clone(), forms()).await;
    assert_eq!(once_more["inputRequests"], asked["inputRequests"]);
    again["requestState"] = once_more["requestState"].clone();
    again["inputResponses"] = json!({key.as_str(): {"action": "accept", "content": {"name": "Ann"}}});
    let waiting = tokio::spawn({
        let host = Arc::clone(&host);
        async move { call(&host, again, forms()).await }
    });
    let answers = asks.saw(ANSWER, 1).await;
    assert!(answers[0].contains(r#""id":"q""#) && answers[0].contains("Ann"), "{answers:?}");
    assert_eq!(asks.received("tools/call").len(), 1, "the call was made once, and waited");
    // The ids of its calls are the broker's: `initialize`, the list, the call.
    asks.say(r#"{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"hello Ann"}]}}"#);
    assert_eq!(waiting.await.unwrap()["content"][0]["text"], "hello Ann");
    broker.shutdown().await;
}

#[tokio::test]
async fn what_only_sessions_have_is_not_there() {
    let desk = desk();
    let (broker, _) = broker_before(&desk).await;
    let host = Host::stateless(&broker);
    for method in ["initialize", "ping", "logging/setLevel", "resources/subscribe"] {
        assert_eq!(
            host.error(method, &with_era_meta(json!({"uri": "x"}), json!({}))).await.0,
            -32601,
            "{method}"
        );
    }
    let missing = with_era_meta(json!({"uri": "test://nothing"}), json!({}));
    assert_eq!(host.error("resources/read", &missing).await.0, -32602, "the code of this era");
    host.end().await;
}

#[tokio::test]
async fn a_listener_is_told_of_no_change_before_the_first_list() {
    let list = Arc::new(Mutex::new(WRITES));
    let shown = Arc::clone(&list);
    let desk = Server::new("desk", r#"{"tools":{"listChanged":true}}"#, move |method, _| match method {
        "tools/list" => result(*shown.lock().unwrap()),
        "tools/call" => result(r#"{"content":[{"type":"text","text":"done"}]}"#),
        _ => None,
    });
    desk.listen(false);
    let (broker, _) = broker_before(&desk).await;
    let host = Arc::new(Host::stateless(&broker));
    let filter = json!({"notifications": {"toolsListChanged": true}});
    let listening = tokio::spawn({
        let (host, filter) = (Arc::clone(&host), with_era_meta(filter, json!({})));
        async move { host.call("subscriptions/listen", &filter).await }
    });
    host.receive_until("notifications/subscriptions/acknowledged").await;
    desk.listen(true);
    // Its tools are listed by now, and the listener has not requested the list: no notification is needed.
    call(&host, json!({"name": "look", "arguments": {}}), json!({})).await;
    assert_eq!(host.received_methods().await, [""; 0]);
    let answer = host.result("tools/list", &with_era_meta(json!({}), json!({}))).await;
    assert!(answer.contains("note_down"), "{answer}");
    // A later change is notified.
    *list.lock().unwrap() = r#"{"tools":[{"name":"new","inputSchema":{"type":"object"}}]}"#;
    desk.say(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    host.receive_until("notifications/tools/list_changed").await;
    broker.shutdown().await;
    listening.abort();
}

// spec: N-13
#[tokio::test]
async fn a_host_with_changing_names_gets_a_bounded_number_of_sessions() {
    let desk = desk();
    let (broker, _) = broker_before(&desk).await;
    let host = Host::stateless(&broker);
    for number in 1..=70 {
        let capabilities = json!({"experimental": {"number": number}});
        let listed = host.result("tools/list", &with_era_meta(json!({}), capabilities)).await;
        assert!(listed.contains("note_down"), "{listed}");
    }
    desk.saw("initialize", 70).await;
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while desk.connected() > 64 {
        assert!(std::time::Instant::now() < deadline, "{} connections", desk.connected());
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    // The first session is new again, and the last one is still open.
    host.result("tools/list", &with_era_meta(json!({}), json!({"experimental": {"number": 70}}))).await;
    assert_eq!(desk.received("initialize").len(), 70);
    host.result("tools/list", &with_era_meta(json!({}), json!({"experimental": {"number": 1}}))).await;
    desk.saw("initialize", 71).await;
    host.end().await;
}

#[tokio::test]
async fn between_two_sides_with_sessions_these_words_say_nothing() {
    let task_result = r#"{"resultType":"task","taskId":"t","content":[]}"#;
    let desk = Server::new("desk", r#"{"tools":{}}"#, move |method, _| match method {
        "tools/list" => result(WRITES),
        "tools/call" => result(task_result),
        _ => None,
    });
    let (broker, store) = broker_before(&desk).await;
    let host = Host::stateless(&broker);
    let hello =
        r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}"#;
    host.result("initialize", hello).await;
    host.notify("notifications/initialized", "{}");
    let write = r#"{"name":"note_down","arguments":{"x":1}}"#;
    assert!(host.result("tools/call", write).await.contains("bounce"));
    assert!(host.result("tools/call", write).await.contains(r#""taskId":"t""#));
    let outcome = recorded(&store, "outcome").await;
    assert_eq!((outcome.text("outcome").as_deref(), outcome.text("detail")), (Some("done"), None));
    host.end().await;
}

// spec: N-13
#[tokio::test]
async fn many_hosts_of_many_users_lock_out_no_host() {
    let desk = desk();
    let (broker, _) = broker_before(&desk).await;
    let mut hosts = Vec::new();
    // More than the limit for all principals, but below the limit for each.
    for user in 0..17 {
        let host = Host::stateless_as(&format!("user-{user}"), &broker);
        for number in 0..61 {
            let capabilities = json!({"experimental": {"number": number}});
            let listed = host.result("resources/list", &with_era_meta(json!({}), capabilities)).await;
            assert!(listed.contains("resources"), "{listed}");
        }
        hosts.push(host);
    }
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while desk.connected() > 1024 {
        assert!(std::time::Instant::now() < deadline, "{} connections", desk.connected());
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    broker.shutdown().await;
}

// spec: N-10
#[tokio::test]
async fn a_server_neither_asks_nor_makes_tasks_past_the_broker() {
    let list = r#"{"tools":[{"name":"ask","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},{"name":"make","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}"#;
    let asks = r#"{"resultType":"input_required","inputRequests":{"approval":{"method":"elicitation/create","params":{"message":"Approve?"}}},"requestState":"s","content":[]}"#;
    let sly = Server::new("sly", r#"{"tools":{}}"#, move |method, params| match method {
        "tools/list" => result(list),
        "tools/call" if params.contains("\"ask\"") => result(asks),
        "tools/call" => result(r#"{"resultType":"task","taskId":"t","status":"working"}"#),
        _ => None,
    });
    let (broker, _) = broker_before(&sly).await;
    let host = Host::stateless(&broker);
    let able = || json!({"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}});
    let asked = call(&host, json!({"name": "ask", "arguments": {}}), able()).await;
    assert_eq!(asked["resultType"], "complete", "{asked}");
    let made = call(&host, json!({"name": "make", "arguments": {}}), able()).await;
    assert_eq!((&made["resultType"], decision(&made)), (&json!("complete"), "timeout"), "{made}");
    assert_eq!(made["_meta"]["embody/decision"]["outcome_unknown"], true, "{made}");
    let (code, words) = host.error("tasks/get", &with_era_meta(json!({"taskId": "t"}), able())).await;
    assert!(code == -32602 && words.contains("`t`"), "{words}");
    assert!(sly.received("tasks/get").is_empty());
    host.end().await;
}
