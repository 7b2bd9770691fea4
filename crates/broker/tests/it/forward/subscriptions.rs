//! Settings of a connection, which a new connection receives again.

use crate::stage::{Host, Reply, Server, result};

fn logging(name: &'static str) -> Server {
    Server::new(name, r#"{"logging":{},"resources":{"subscribe":true}}"#, |method, _| match method {
        "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe" => result("{}"),
        "resources/list" => result(r#"{"resources":[{"uri":"a://1"},{"uri":"a://2"}]}"#),
        _ => None,
    })
}

#[tokio::test]
async fn a_level_is_for_all_that_log() {
    let (a, b, c) = (logging("a"), Server::silent("b"), logging("c"));
    let host = Host::new(&[&a, &b, &c]).await;
    for name in ["a", "b", "c"] {
        host.until(name, "connected").await;
    }
    assert_eq!(host.result("logging/setLevel", r#"{"level":"warning"}"#).await, "{}");
    for server in [&a, &c] {
        assert_eq!(server.saw("logging/setLevel", 1).await[0], r#"{"level":"warning"}"#);
    }
    assert!(b.received("logging/setLevel").is_empty());
    for params in [r#"{"level":"loud"}"#, r#"{"level":7}"#, "{}"] {
        assert_eq!(host.error("logging/setLevel", params).await.0, -32602, "{params}");
    }
    assert_eq!(a.received("logging/setLevel").len(), 1);
    host.end().await;
}

#[tokio::test]
async fn what_a_server_says_while_it_is_told_reaches_the_host() {
    let a = Server::new("a", r#"{"logging":{}}"#, |method, _| {
        (method == "logging/setLevel").then_some(Reply::Silence)
    });
    let host = Host::new(&[&a]).await;
    host.until("a", "connected").await;
    let level_set = host.result("logging/setLevel", r#"{"level":"debug"}"#);
    let says = async {
        a.saw("logging/setLevel", 1).await;
        a.say(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"so be it"}}"#);
        let (method, params) = host.next_notification().await;
        assert_eq!(method, "notifications/message");
        assert!(params.contains("so be it"), "{params}");
        // Its first request was `initialize`.
        a.say(r#"{"jsonrpc":"2.0","id":2,"result":{}}"#);
    };
    assert_eq!(tokio::join!(level_set, says).0, "{}");
    host.end().await;
}

// spec: N-13
#[tokio::test]
async fn a_new_connection_is_told_again() {
    let a = logging("a");
    let host = Host::new(&[&a]).await;
    host.until("a", "connected").await;
    host.result("logging/setLevel", r#"{"level":"debug"}"#).await;
    host.result("resources/list", "").await;
    for params in [r#"{ "uri":"a://1" }"#, r#"{"uri":"a://2"}"#] {
        host.result("resources/subscribe", params).await;
    }
    host.result("resources/unsubscribe", r#"{"uri":"a://2"}"#).await;
    let before = (a.received("logging/setLevel").len(), a.received("resources/subscribe").len());
    a.close();
    host.until("a", "unavailable").await;
    a.open();
    host.until("a", "connected").await;
    let levels = a.saw("logging/setLevel", before.0 + 1).await;
    assert_eq!(levels.last().unwrap(), r#"{"level":"debug"}"#);
    let watched = a.saw("resources/subscribe", before.1 + 1).await;
    assert_eq!(watched[before.1..], [r#"{"uri":"a://1"}"#]);
    host.end().await;
}

#[tokio::test]
async fn one_that_comes_later_is_told_too() {
    let a = logging("a").closed();
    let host = Host::new(&[&a]).await;
    host.result("logging/setLevel", r#"{"level":"error"}"#).await;
    a.open();
    assert_eq!(a.saw("logging/setLevel", 1).await, [r#"{"level":"error"}"#]);
    host.end().await;
}

#[tokio::test]
async fn a_subscriber_of_the_status_is_notified_of_changes() {
    let a = Server::silent("a");
    let host = Host::new(&[&a]).await;
    host.until("a", "connected").await;
    host.result("resources/subscribe", r#"{"uri":"embody://runtime/status"}"#).await;
    a.close();
    let received = host.next_notification().await;
    assert_eq!(
        received,
        ("notifications/resources/updated".to_owned(), r#"{"uri":"embody://runtime/status"}"#.to_owned())
    );
    host.end().await;
}

#[tokio::test]
async fn a_host_that_listed_without_a_server_hears_when_it_is_there() {
    let a = Server::new("a", r#"{"resources":{},"prompts":{}}"#, |method, _| match method {
        "resources/list" => result(r#"{"resources":[]}"#),
        "prompts/list" => result(r#"{"prompts":[{"name":"late"}]}"#),
        _ => None,
    })
    .closed();
    let b = Server::silent("b").closed();
    let host = Host::new(&[&a, &b]).await;
    host.result("tools/list", "").await;
    host.result("resources/list", "").await;
    host.result("prompts/list", "").await;
    b.open();
    host.until("b", "connected").await;
    a.open();
    assert_eq!(
        host.next_notification().await.0,
        "notifications/prompts/list_changed",
        "`b` has nothing to list"
    );
    assert_eq!(host.next_notification().await.0, "notifications/resources/list_changed");
    assert_eq!(host.result("prompts/list", "").await, r#"{"prompts":[{"name":"late"}]}"#);
    host.end().await;
}
