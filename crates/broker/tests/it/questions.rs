//! Requests of servers to the host, and calls while they are open or while a peer does not read.

use std::time::Duration;

use embody_broker::upstream::BodySpec;

use crate::stage::{ANSWER, Host, Reply, Server, body};

/// A server that receives `x/do` and responds by hand.
fn silent(name: &'static str) -> Server {
    Server::new(name, "{}", |method, _| (method == "x/do").then_some(Reply::Silence))
}

async fn host(servers: &[&Server]) -> Host {
    let does = || BodySpec { forward_methods: vec!["x/do".to_owned()], ..body() };
    let bodies: Vec<_> = servers.iter().map(|server| (*server, does())).collect();
    let host = Host::with(&Server::silent("mind"), &bodies).await;
    for server in servers {
        host.until(server.name, "connected").await;
    }
    host
}

fn question(id: u32) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"x/ask","params":{{"n":{id}}}}}"#)
}

/// Responds to every open call at that server.
fn finish(server: &Server) {
    for id in 1..100 {
        server.say(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"done":true}}}}"#));
    }
}

async fn received(host: &Host, params: &str) {
    assert_eq!(host.next_notification().await, ("x/ask".to_owned(), params.to_owned()));
}

/// Forty requests: eight reach the host, the others are rejected, and another server still gets through.
async fn floods(host: &Host, loud: &Server, calm: &Server) {
    for id in 0..40 {
        loud.say(&question(id));
    }
    for refused in loud.saw(ANSWER, 32).await {
        assert!(refused.contains("too many requests of this server are open"), "{refused}");
    }
    for _ in 0..8 {
        assert_eq!(host.next_notification().await.0, "x/ask");
    }
    calm.say(&question(77));
    received(host, r#"{"n":77}"#).await;
    // A server may send another request after a response.
    host.answer(1, r#"{"is":"so"}"#);
    let answered = loud.saw(ANSWER, 33).await;
    assert!(answered[32].contains(r#"{"is":"so"}"#), "{answered:?}");
    loop {
        // Its permit is released shortly after its response is sent.
        let seen = loud.received(ANSWER).len();
        loud.say(&question(78));
        tokio::select! {
            next = host.next_notification() => {
                assert_eq!(next, ("x/ask".to_owned(), r#"{"n":78}"#.to_owned()));
                return;
            }
            _ = loud.saw(ANSWER, seen + 1) => {}
        }
    }
}

#[tokio::test]
async fn questions_outside_calls_are_counted_for_each_server() {
    let (loud, calm) = (silent("loud"), silent("calm"));
    let host = host(&[&loud, &calm]).await;
    floods(&host, &loud, &calm).await;
    host.end().await;
}

#[tokio::test]
async fn questions_inside_a_call_are_counted_for_each_server() {
    let (loud, calm) = (silent("loud"), silent("calm"));
    let host = host(&[&loud, &calm]).await;
    let calling = host.result("x/do", "{}");
    let asking = async {
        loud.saw("x/do", 1).await;
        floods(&host, &loud, &calm).await;
        finish(&loud);
    };
    assert_eq!(tokio::join!(calling, asking).0, r#"{"done":true}"#);
    host.end().await;
}

#[tokio::test]
async fn an_answer_goes_only_where_it_was_asked_for() {
    let a = Server::new("a", "{}", |method, _| (method == "x/do").then(|| Reply::Result("{}".to_owned())));
    let host = host(&[&a]).await;
    a.say(&question(7));
    received(&host, r#"{"n":7}"#).await;
    a.close();
    host.until("a", "unavailable").await;
    a.open();
    host.until("a", "connected").await;
    a.say(&question(7));
    received(&host, r#"{"n":7}"#).await;
    host.answer(1, r#"{"is":"old"}"#);
    // An error in the first response would show by now.
    for _ in 0..10 {
        host.result("x/do", "{}").await;
    }
    host.answer(2, r#"{"is":"new"}"#);
    let answered = a.saw(ANSWER, 1).await;
    assert!(answered[0].contains("new"), "{answered:?}");
    host.end().await;
}

#[tokio::test]
async fn a_server_that_talks_without_end_does_not_stop_the_clock() {
    let a = silent("a").brief();
    let host = host(&[&a]).await;
    let talking = async {
        a.saw("x/do", 1).await;
        loop {
            for _ in 0..50 {
                a.say(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}"#);
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let (_, words) = tokio::select! {
        error = host.error("x/do", "{}") => error,
        () = talking => unreachable!(),
    };
    assert!(words.contains("did not answer in time"), "{words}");
    assert_eq!(a.saw("notifications/cancelled", 1).await.len(), 1);
    host.end().await;
}

#[tokio::test]
async fn a_call_that_waits_for_the_host_has_time() {
    let limit = Duration::from_secs(1);
    let a = silent("a").within(limit);
    let host = host(&[&a]).await;
    let calling = host.result("x/do", "{}");
    let asking = async {
        a.saw("x/do", 1).await;
        a.say(&question(1));
        received(&host, r#"{"n":1}"#).await;
        tokio::time::sleep(limit + limit / 2).await;
        host.answer(1, r#"{"is":"so"}"#);
        a.saw(ANSWER, 1).await;
        finish(&a);
    };
    assert_eq!(tokio::join!(calling, asking).0, r#"{"done":true}"#);
    host.end().await;
}

#[tokio::test]
async fn a_call_is_cancelled_although_its_host_reads_nothing() {
    let a = silent("a");
    let host = host(&[&a]).await;
    host.say(r#"{"jsonrpc":"2.0","id":5000,"method":"x/do","params":{}}"#);
    a.saw("x/do", 1).await;
    host.listen(false);
    let data = "x".repeat(1000);
    for _ in 0..100 {
        for _ in 0..100 {
            a.say(&format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"info","data":"{data}"}}}}"#
            ));
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    host.notify("notifications/cancelled", r#"{"requestId":5000,"reason":"the user pressed \"stop\""}"#);
    let cancelled = a.saw("notifications/cancelled", 1).await;
    assert!(cancelled[0].contains(r#""reason":"the user pressed \"stop\"""#), "{cancelled:?}");
    host.listen(true);
    host.end().await;
}

#[tokio::test]
async fn a_call_that_cannot_be_sent_is_not_waited_for_longer_than_one_that_is() {
    let deaf = silent("deaf").brief();
    let host = host(&[&deaf]).await;
    deaf.listen(false);
    // More than the pipe and its queue hold.
    let large = format!(r#"{{"x":"{}"}}"#, "x".repeat(1000));
    for number in 9000..9400 {
        host.say(&format!(r#"{{"jsonrpc":"2.0","id":{number},"method":"x/do","params":{large}}}"#));
    }
    // The first may still fit.
    while !host.error("x/do", "{}").await.1.contains("could not be sent") {}
    deaf.listen(true);
    host.end().await;
}
