//! Notifications that belong to no call.

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
    // Ids and tokens in these are the server's; the host would take them for its own.
    a.say(&note("notifications/cancelled", r#"{"requestId":1}"#));
    a.say(&note("notifications/progress", r#"{"progressToken":1,"progress":1}"#));
    let said = [
        ("notifications/message", r#"{ "level":"info","data":{"n":1.0,"x":null} }"#),
        ("notifications/resources/updated", r#"{"uri":"a://1"}"#),
        ("notifications/resources/list_changed", r#"{"_meta":{"a":12345678901234567890}}"#),
        ("notifications/prompts/list_changed", "{}"),
        ("notifications/x/unknown", "[1.0, null]"),
    ];
    for (method, params) in said {
        a.say(&note(method, params));
    }
    for (method, params) in said {
        assert_eq!(host.hears().await, (method.to_owned(), params.to_owned()));
    }
    host.end().await;
}

#[tokio::test]
async fn what_a_host_says_reaches_every_server_as_it_is_and_in_order() {
    let (mind, a) = (Server::silent("mind"), Server::silent("a"));
    let host = Host::with(&mind, &[(&a, crate::stage::body())]).await;
    host.until("mind", "connected").await;
    host.until("a", "connected").await;
    host.notify("notifications/cancelled", r#"{"requestId":77}"#);
    host.notify("notifications/roots/list_changed", r#"{ "_meta":{"n":1.0} }"#);
    host.notify("notifications/x", "[null]");
    for server in [&mind, &a] {
        assert_eq!(server.saw("notifications/x", 1).await, ["[null]"]);
        assert_eq!(server.seen("notifications/roots/list_changed"), [r#"{ "_meta":{"n":1.0} }"#]);
        assert_eq!(server.seen("notifications/initialized").len(), 1, "its own");
        assert!(server.seen("notifications/cancelled").is_empty());
    }
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
        let (method, params) = host.hears().await;
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
        host.notify("notifications/x", &large);
    }
    assert_eq!(fine.saw("notifications/x", 500).await.last(), Some(&large));
    host.result("ping", "").await;
    deaf.listen(true);
    host.end().await;
}
