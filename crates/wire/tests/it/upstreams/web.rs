//! Servers behind streamable HTTP: complete exchanges, broken streams, lost sessions.

use std::sync::Arc;
use std::time::Duration;

use embody_wire::message::Response;
use embody_wire::upstream::{CallEvent, ConnectOptions, Link, OutgoingCall, ServerMessage, TokenSource};
use embody_wire::{Error, Limits, Secret};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Notify, mpsc};

use super::{begin, converse, http, lost, next, open, opening, raw, result, soon};
use crate::fake::{Log, Seen, initialize_result, result_of};
use crate::raw::{Connection, serve_raw};
use crate::server;

async fn opened(base: &str) -> (Link, mpsc::Receiver<ServerMessage>) {
    open(&opening(http(base))).await.unwrap()
}

/// A server with a session that runs `odd` on a `tools/call`, and on a GET.
async fn serve_odd<F>(odd: impl Fn(Seen, Connection) -> F + Clone + Send + Sync + 'static) -> (String, Log)
where
    F: Future<Output = ()> + Send,
{
    serve_raw(move |seen, mut connection| {
        let odd = odd.clone();
        Box::pin(async move {
            match (seen.method.as_str(), seen.rpc_method().as_str()) {
                (_, "initialize") => {
                    let body = initialize_result(&seen);
                    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nmcp-session-id: s-1";
                    let length = body.len();
                    let head = format!("{head}\r\nconnection: close\r\ncontent-length: {length}");
                    connection.write(&format!("{head}\r\n\r\n{body}")).await;
                }
                ("GET", _) | (_, "tools/call" | "again") => odd(seen, connection).await,
                _ => connection.status("202 Accepted").await,
            }
        })
    })
    .await
}

fn note(method: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{{}}}}"#)
}

fn posts(log: &Log) -> usize {
    log.lines().iter().filter(|line| line.ends_with("tools/call")).count()
}

fn server(served: &server::Served) -> ConnectOptions {
    let tokens = Some(TokenSource::fixed(Secret::new("ann")));
    ConnectOptions { tokens, ..opening(http(&format!("{}/mcp", served.url))) }
}

#[tokio::test]
async fn whole_conversations_go_over_http() {
    let mut served = server::served(Limits::default()).await;
    let (link, _hears) = open(&server(&served)).await.unwrap();
    assert_eq!(link.transport(), "http");
    assert_eq!(server::next(&mut served.seen).await, "notifications/initialized from ann");
    converse(&link).await;
    // Even while another call runs, a server request belongs to the call on whose stream it comes.
    let waiting = begin(&link, "wait").await;
    assert_eq!(server::next(&mut served.seen).await, "waiting");
    let mut asking = begin(&link, "ask").await;
    assert!(matches!(next(&mut asking).await, CallEvent::Request(_)));
    link.cancel(waiting.number(), "the test is over").await.unwrap();
    served.until("unwanted, cancelled: true").await;
    link.close().await;
    served.until("ann is gone").await;
    assert!(matches!(lost(&mut asking).await, Error::Closed(_)));
}

#[tokio::test]
async fn what_belongs_to_no_call_comes_on_a_stream_of_its_own() {
    let mut served = server::served(Limits::default()).await;
    let (link, mut hears) = open(&server(&served)).await.unwrap();
    assert_eq!(result(&mut begin(&link, "outside").await).await, "{}");
    let Some(ServerMessage::Notification(changed)) = soon(hears.recv()).await else { panic!() };
    assert_eq!(changed.method, "notifications/tools/list_changed");
    let Some(ServerMessage::Request(question)) = soon(hears.recv()).await else { panic!() };
    link.answer(Response::success(question.id, raw(&json!({"roots": []})))).await.unwrap();
    served.until(r#"{"roots":[]}"#).await;
}

#[tokio::test]
async fn what_comes_on_a_calls_stream_is_the_calls_in_order_and_before_the_answer() {
    let (base, _) = serve_odd(|seen, mut connection| async move {
        if seen.method == "GET" {
            return connection.status("405 Method Not Allowed").await;
        }
        connection.open_events().await;
        for message in [
            note("notifications/message"),
            note("notifications/anything"),
            r#"{"jsonrpc":"2.0","id":"q","method":"roots/list"}"#.to_owned(),
            note("notifications/tools/list_changed"),
            r#"{"jsonrpc":"2.0","id":99,"result":"nobody asked"}"#.to_owned(),
            format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{},"x":1}}}}"#,
                seen.rpc_id()
            ),
            result_of(&seen, "1"),
            result_of(&seen, "2"),
        ] {
            connection.event(&message).await;
        }
    })
    .await;
    let (link, mut hears) = opened(&base).await;
    let params = raw(&json!({"_meta": {"progressToken": "mine"}}));
    let mut calls = Vec::new();
    for _ in 0..2 {
        calls.push(link.begin(OutgoingCall { method: "tools/call", params: Some(&params) }).await.unwrap());
    }
    for call in &mut calls {
        for expected in ["notifications/message", "notifications/anything"] {
            let CallEvent::Notification(notification) = next(call).await else { panic!() };
            assert_eq!(notification.method, expected);
        }
        assert!(matches!(next(call).await, CallEvent::Request(question) if question.method == "roots/list"));
        let CallEvent::Notification(progress) = next(call).await else { panic!() };
        assert_eq!(progress.params.unwrap().get(), r#"{"progressToken":"mine","x":1}"#);
        assert_eq!(result(call).await, "1");
        assert!(matches!(lost(call).await, Error::NoAnswer), "an answer comes once");
        let Some(ServerMessage::Notification(changed)) = soon(hears.recv()).await else { panic!() };
        assert_eq!(changed.method, "notifications/tools/list_changed");
    }
}

#[tokio::test]
async fn a_broken_stream_is_taken_up_where_it_broke_and_the_call_not_sent_again() {
    let (base, log) = serve_odd(|seen, mut connection| async move {
        match (seen.method.as_str(), seen.header("last-event-id")) {
            ("POST", _) => {
                connection.open_events().await;
                connection.write("id: a-1\nretry: 50\ndata:\n\n").await;
                connection.write(&format!("id: a-2\ndata: {}\n\n", note("notifications/one"))).await;
                // A partial event was not delivered, so the server must send it again.
                connection.write(&format!("id: a-3\ndata: {}\n", note("notifications/two"))).await;
            }
            (_, Some("a-2")) => {
                connection.open_events().await;
                connection.write(&format!("id: a-3\ndata: {}\n\n", note("notifications/two"))).await;
            }
            (_, Some("a-3")) => {
                connection.open_events().await;
                connection.event(r#"{"jsonrpc":"2.0","id":2,"result":"at last"}"#).await;
            }
            _ => connection.status("405 Method Not Allowed").await,
        }
    })
    .await;
    let (link, _hears) = opened(&base).await;
    let mut call = begin(&link, "tools/call").await;
    for expected in ["notifications/one", "notifications/two"] {
        let CallEvent::Notification(notification) = next(&mut call).await else { panic!() };
        assert_eq!(notification.method, expected);
    }
    assert_eq!(result(&mut call).await, r#""at last""#);
    assert_eq!(posts(&log), 1);
}

#[tokio::test]
async fn a_stream_that_cannot_be_taken_up_loses_its_call() {
    for (place, expected) in
        [("", "the stream ended without a response"), ("id: a\nretry: 50\ndata:\n\n", "")]
    {
        let (base, log) = serve_odd(move |seen, mut connection| async move {
            if seen.method == "GET" {
                return connection.status("405 Method Not Allowed").await;
            }
            connection.open_events().await;
            connection.write(place).await;
        })
        .await;
        let (link, _hears) = opened(&base).await;
        let error = lost(&mut begin(&link, "tools/call").await).await;
        assert!(matches!(error, Error::NoAnswer) && error.to_string().contains(expected), "{error}");
        assert!(!error.was_not_executed());
        assert!(link.closed().is_none(), "other calls may do better");
        assert_eq!(posts(&log), 1);
    }
}

#[tokio::test]
async fn a_connection_that_breaks_in_the_middle_of_a_call_loses_it() {
    let (base, log) = serve_odd(|seen, mut connection| async move {
        match seen.method.as_str() {
            "GET" => connection.status("405 Method Not Allowed").await,
            // It has read the call, and closes without a response.
            _ => drop(connection),
        }
    })
    .await;
    let (link, _hears) = opened(&base).await;
    let error = lost(&mut begin(&link, "tools/call").await).await;
    assert!(matches!(error, Error::Lost(_)) && !error.was_not_executed(), "{error:?}");
    assert_eq!(posts(&log), 1, "whether it was done nobody knows, so it is not sent again");
}

#[tokio::test]
async fn the_session_is_over_when_the_server_no_longer_knows_it() {
    let gate = Arc::new(Notify::new());
    let (base, log) = serve_odd({
        let gate = Arc::clone(&gate);
        move |seen, mut connection| {
            let gate = Arc::clone(&gate);
            async move {
                match (seen.method.as_str(), seen.rpc_method().as_str()) {
                    ("GET", _) => connection.status("405 Method Not Allowed").await,
                    (_, "again") => connection.status("404 Not Found").await,
                    _ => gate.notified().await,
                }
            }
        }
    })
    .await;
    let (link, _hears) = opened(&base).await;
    let mut other = begin(&link, "tools/call").await;
    let error = lost(&mut begin(&link, "again").await).await;
    assert!(matches!(error, Error::SessionLost) && error.was_not_executed());
    let error = lost(&mut other).await;
    assert!(matches!(&error, Error::Closed(cause) if matches!(**cause, Error::SessionLost)));
    assert!(!error.was_not_executed(), "nobody knows what became of this one");
    assert!(matches!(*soon(link.until_closed()).await, Error::SessionLost));
    link.close().await;
    assert!(!log.lines().iter().any(|line| line.starts_with("DELETE")), "there is nothing left to end");
    gate.notify_waiters();
}

#[tokio::test]
async fn a_listener_notices_a_lost_session() {
    let (base, _) =
        serve_odd(|_, mut connection| async move { connection.status("404 Not Found").await }).await;
    let (link, _hears) = opened(&base).await;
    assert!(matches!(*soon(link.until_closed()).await, Error::SessionLost));
}

#[tokio::test]
async fn the_connections_own_stream_is_taken_up_again_and_without_its_place_if_that_is_gone() {
    let (base, log) = serve_odd(|seen, mut connection| async move {
        match seen.header("last-event-id") {
            None => {
                connection.open_events().await;
                let hello = note("notifications/prompts/list_changed");
                connection.write(&format!("id: g-1\nretry: 50\ndata: {hello}\n\ndata: garbage\n\n")).await;
            }
            Some(_) => connection.status("404 Not Found").await,
        }
    })
    .await;
    let (_link, mut hears) = opened(&base).await;
    for _ in 0..2 {
        assert!(matches!(soon(hears.recv()).await, Some(ServerMessage::Notification(_))));
    }
    let gets: Vec<_> = log.all().into_iter().filter(|seen| seen.method == "GET").collect();
    assert_eq!(gets[0].header("last-event-id"), None);
    assert_eq!(gets[1].header("last-event-id"), Some("g-1"));
    assert_eq!(gets[2].header("last-event-id"), None);
    assert!(gets.iter().all(|seen| seen.header("mcp-session-id") == Some("s-1")));
}

#[tokio::test]
async fn a_call_that_meets_no_server_was_not_sent() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    // Answers `initialize`, and exits.
    let server = tokio::spawn(async move {
        for body in [r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18"}}"#, ""] {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 4096]).await.unwrap();
            let length = body.len();
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
            let text = format!("{head}\r\ncontent-length: {length}\r\n\r\n{body}");
            stream.write_all(text.as_bytes()).await.unwrap();
        }
    });
    let (sender, _) = mpsc::channel(1);
    let link = Link::open(&opening(http(&base)), sender).await.unwrap();
    soon(server).await.unwrap();
    let error = link.begin(OutgoingCall { method: "tools/call", params: None }).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable(_)) && error.was_not_executed(), "{error:?}");
}

#[tokio::test]
async fn a_slow_server_delays_only_its_own_calls() {
    let hung_up = Arc::new(Notify::new());
    let (base, _) = serve_odd({
        let hung_up = Arc::clone(&hung_up);
        move |seen, mut connection| {
            let hung_up = Arc::clone(&hung_up);
            async move {
                match (seen.method.as_str(), seen.rpc_method().as_str()) {
                    // Sends not even a response head.
                    ("GET", _) => connection.wait_for_hang_up().await,
                    (_, "again") => connection.json(&result_of(&seen, "{}")).await,
                    _ => {
                        if seen.rpc_id() == "2" {
                            connection.write("HTTP/1.1 200 OK\r\ncontent-type: applica").await;
                        } else {
                            connection.open_chunked("application/json").await;
                            connection.chunk(b"{").await;
                        }
                        connection.wait_for_hang_up().await;
                        hung_up.notify_one();
                    }
                }
            }
        }
    })
    .await;
    let (link, _hears) = opened(&base).await;
    for number in 2..=3 {
        let slow = begin(&link, "tools/call").await;
        assert_eq!(slow.number(), number);
        // The caller has left: the connection closes with the call.
        drop(slow);
        soon(hung_up.notified()).await;
    }
    assert_eq!(result(&mut begin(&link, "again").await).await, "{}");
}

#[tokio::test]
async fn a_server_that_never_greets_meets_the_time_limit() {
    let (base, _) =
        serve_raw(|_, mut connection| Box::pin(async move { connection.wait_for_hang_up().await })).await;
    let mut opening = opening(http(&base));
    opening.limits.attempt_timeout = Duration::from_millis(50);
    let error = open(&opening).await.unwrap_err();
    assert_eq!(error.to_string(), "opening the session took longer than 50 ms");
}

#[tokio::test]
async fn a_flood_on_a_calls_stream_does_not_drown_its_answer() {
    let (base, _) = serve_odd(|seen, mut connection| async move {
        if seen.method == "GET" {
            return connection.status("405 Method Not Allowed").await;
        }
        connection.open_events().await;
        for number in 0..5000 {
            // Server requests too: those that do not fit are rejected, a few at a time.
            let message = match number % 2 {
                0 => note("notifications/message"),
                _ => format!(r#"{{"jsonrpc":"2.0","id":{number},"method":"ping"}}"#),
            };
            connection.event(&message).await;
        }
        connection.event(&result_of(&seen, "{}")).await;
    })
    .await;
    let (link, _hears) = opened(&base).await;
    let mut call = begin(&link, "tools/call").await;
    let mut count = 0;
    let end = loop {
        match next(&mut call).await {
            CallEvent::Notification(_) => count += 1,
            other => break other,
        }
    };
    assert!(matches!(end, CallEvent::Done(_)), "{end:?}");
    assert!(count <= 2500);
}

#[tokio::test]
async fn an_answer_beyond_the_bound_is_not_read() {
    let (base, _) = serve_odd(|seen, mut connection| async move {
        if seen.method == "GET" {
            return connection.status("405 Method Not Allowed").await;
        }
        connection.open_events().await;
        connection.write("data: ").await;
        let chunk = "x".repeat(1 << 20);
        for _ in 0..100 {
            connection.write(&chunk).await;
        }
        connection.write("\n\n").await;
    })
    .await;
    let (link, _hears) = opened(&base).await;
    let error = lost(&mut begin(&link, "tools/call").await).await;
    assert_eq!(error.kind(), embody_wire::Kind::TooLarge);
}

#[tokio::test]
async fn a_caller_that_leaves_before_its_call_goes_out_has_not_sent_it() {
    let (base, log) = serve_odd(|seen, mut connection| async move {
        match seen.method.as_str() {
            "GET" => connection.status("405 Method Not Allowed").await,
            _ => connection.json(&result_of(&seen, "{}")).await,
        }
    })
    .await;
    let vault = Arc::new(Notify::new());
    let kept = Arc::clone(&vault);
    let asked = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let tokens = Some(TokenSource::new(move |_| {
        let vault = Arc::clone(&kept);
        // Those of `initialize` and of the listener are available at once.
        let is_late = asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 2;
        async move {
            if is_late {
                vault.notified().await;
            }
            Ok(Secret::new("t-1"))
        }
    }));
    let (sender, _) = mpsc::channel(1);
    let link = Link::open(&ConnectOptions { tokens, ..opening(http(&base)) }, sender).await.unwrap();
    let calling = OutgoingCall { method: "tools/call", params: None };
    assert!(tokio::time::timeout(Duration::from_millis(20), link.begin(calling)).await.is_err());
    vault.notify_one();
    assert_eq!(result(&mut begin(&link, "again").await).await, "{}");
    assert_eq!(posts(&log), 0);
}
