//! Notifications outside calls.

use std::sync::{Arc, OnceLock};

use crate::stage::{Host, Reply, Server};

fn note(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#)
}

#[tokio::test]
async fn what_a_server_says_reaches_the_host_as_it_is_and_in_order() {
    let a = Server::silent("a");
    let host = Host::new(&[&a]).await;
    host.result("tools/list", "").await;
    host.until("a", "connected").await;
    // These contain ids and tokens of the server, which the host would take for its own.
    a.say(&note("notifications/cancelled", r#"{"requestId":1}"#));
    a.say(&note("notifications/progress", r#"{"progressToken":1,"progress":1}"#));
    let notifications = [
        ("notifications/message", r#"{ "level":"info","data":{"n":1.0,"x":null} }"#),
        ("notifications/resources/updated", r#"{"uri":"a://1"}"#),
        ("notifications/resources/list_changed", r#"{"_meta":{"a":12345678901234567890}}"#),
        ("notifications/prompts/list_changed", "{}"),
        ("notifications/tasks/status", r#"{"taskId":"t","n":1.0}"#),
    ];
    // MCP does not define this notification, so a host's reaction is unknown.
    a.say(&note("notifications/x/unknown", "[1.0, null]"));
    a.say(&note("tools/call", r#"{"name":"look"}"#));
    for (method, params) in notifications {
        a.say(&note(method, params));
    }
    for (method, params) in notifications {
        assert_eq!(host.next_notification().await, (method.to_owned(), params.to_owned()));
    }
    host.end().await;
}

#[tokio::test]
async fn only_listed_notifications_of_a_host_reach_servers_and_without_its_bytes() {
    let (mind, a) = (Server::silent("mind"), Server::silent("a"));
    let host = Host::with(&mind, &[(&a, crate::stage::body())]).await;
    host.until("mind", "connected").await;
    host.until("a", "connected").await;
    for method in ["cancelled", "progress", "message", "x", "tools/list_changed", "tasks/status"] {
        host.notify(&format!("notifications/{method}"), r#"{"requestId":77,"smuggled":1}"#);
    }
    for method in ["tools/call", "x/y", "ping"] {
        host.notify(method, r#"{"name":"look","arguments":{},"smuggled":1}"#);
    }
    host.notify("notifications/roots/list_changed", r#"{ "_meta":{"smuggled":1} }"#);
    for server in [&mind, &a] {
        assert_eq!(server.saw("notifications/roots/list_changed", 1).await, [""]);
        assert_eq!(server.received("notifications/initialized").len(), 1, "its own");
        let all = server.all();
        assert!(all.iter().all(|(_, params)| !params.contains("smuggled")), "{all:?}");
        let own = [
            "initialize",
            "notifications/initialized",
            "tools/list",
            "notifications/roots/list_changed",
            "tools/call",
        ];
        assert!(all.iter().all(|(method, _)| own.contains(&&**method)), "{all:?}");
    }
    host.end().await;
}

#[tokio::test]
async fn what_a_server_logs_before_its_greeting_is_over_reaches_the_host() {
    let itself = Arc::new(OnceLock::<Server>::new());
    let a = Server::new("a", r#"{"logging":{}}"#, {
        let itself = Arc::clone(&itself);
        move |method, _| {
            if method == "initialize" {
                let log = note("notifications/message", r#"{ "level":"debug","data":"I start" }"#);
                itself.get().unwrap().say(&log);
            }
            None
        }
    });
    assert!(itself.set(a.clone()).is_ok());
    let host = Host::new(&[&a]).await;
    let received = host.next_notification().await;
    assert_eq!(received.1, r#"{ "level":"debug","data":"I start" }"#, "{}", received.0);
    host.end().await;
}

#[tokio::test]
async fn one_that_talks_without_end_does_not_silence_another() {
    let (loud, calm) = (Server::silent("loud"), Server::silent("calm"));
    let host = Host::new(&[&loud, &calm]).await;
    host.until("loud", "connected").await;
    host.until("calm", "connected").await;
    for number in 0..20_000 {
        loud.say(&note("notifications/message", &format!(r#"{{"n":{number}}}"#)));
    }
    calm.say(&note("notifications/resources/updated", r#"{"uri":"calm://1"}"#));
    loop {
        let (method, params) = host.next_notification().await;
        if method == "notifications/resources/updated" {
            assert_eq!(params, r#"{"uri":"calm://1"}"#);
            break;
        }
    }
    host.result("ping", "").await;
    host.end().await;
}

#[tokio::test]
async fn a_list_does_not_wait_for_ever_for_one_that_hangs() {
    let hangs = Server::new("hangs", r#"{"prompts":{}}"#, |method, _| match method {
        "prompts/list" => Some(Reply::Silence),
        _ => None,
    })
    .brief();
    let fine = Server::new("fine", r#"{"prompts":{}}"#, |method, _| match method {
        "prompts/list" => crate::stage::result(r#"{"prompts":[{"name":"p"}]}"#),
        _ => None,
    });
    let host = Host::new(&[&hangs, &fine]).await;
    assert_eq!(host.result("prompts/list", "").await, r#"{"prompts":[{"name":"p"}]}"#);
    host.end().await;
}

#[tokio::test]
async fn one_that_does_not_read_keeps_nothing_from_another() {
    let (deaf, fine) = (Server::silent("deaf"), Server::silent("fine"));
    let host = Host::new(&[&deaf, &fine]).await;
    host.until("deaf", "connected").await;
    host.until("fine", "connected").await;
    deaf.listen(false);
    let large = format!(r#"{{"x":"{}"}}"#, "x".repeat(1_000));
    for _ in 0..500 {
        host.notify("notifications/roots/list_changed", &large);
    }
    assert!(!fine.saw("notifications/roots/list_changed", 1).await.is_empty());
    host.result("ping", "").await;
    deaf.listen(true);
    host.end().await;
}
