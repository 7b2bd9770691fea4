//! A server in this process, called as functions or on a pipe.

use std::sync::Arc;
use std::time::Duration;

use embody_wire::message::{Outcome, Response};
use embody_wire::server::lines::serve;
use embody_wire::server::{CancellationToken, InProcessConnection};
use embody_wire::upstream::{CallEvent, InProcessServer, Link, OutgoingCall, Route, ServerMessage};
use embody_wire::{Error, Limits};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};
use tokio::sync::{mpsc, watch};

use super::{begin, converse, lost, next, open, opening, raw, result, soon};
use crate::server::{self, Seen};

/// The odd service of the server tests, called as functions, and what ends its connections.
fn called() -> (Route, Seen, CancellationToken) {
    let (service, seen) = server::odd();
    let shutdown = CancellationToken::new();
    let token = shutdown.clone();
    let authenticate = move || ("owner".to_owned(), token.clone());
    (Route::InProcess(InProcessServer::new(service, authenticate)), seen, shutdown)
}

async fn until(seen: &mut Seen, wanted: &str) {
    while server::next(seen).await != wanted {}
}

#[tokio::test]
async fn whole_conversations_are_function_calls() {
    let (route, mut seen, _shutdown) = called();
    let (link, mut hears) = open(&opening(route)).await.unwrap();
    assert_eq!((link.transport(), link.protocol_version(), link.pid()), ("embedded", "2025-11-25", None));
    assert_eq!(server::next(&mut seen).await, "notifications/initialized from owner");
    converse(&link).await;
    let mut unasked = begin(&link, "outside").await;
    result(&mut unasked).await;
    assert!(matches!(soon(hears.recv()).await, Some(ServerMessage::Notification(_))));
    let Some(ServerMessage::Request(question)) = soon(hears.recv()).await else { panic!() };
    link.answer(Response::success(question.id, raw(&json!({"roots": []})))).await.unwrap();
    assert_eq!(server::next(&mut seen).await, r#"{"roots":[]}"#);
    link.close().await;
    assert_eq!(link.closed().unwrap().to_string(), "the connection was closed by embody");
    until(&mut seen, "owner is gone").await;
    let late = link.begin(OutgoingCall { method: "echo", params: None }).await;
    assert!(matches!(late, Err(Error::Closed(cause)) if matches!(*cause, Error::Left)));
}

#[tokio::test]
async fn a_service_that_panics_cancels_its_call_and_answers_it() {
    let (route, mut seen, _shutdown) = called();
    let (link, _hears) = open(&opening(route)).await.unwrap();
    let mut panicking = begin(&link, "panic_with_task").await;
    let CallEvent::Done(Outcome::Error(error)) = next(&mut panicking).await else { panic!() };
    assert!(error.get().contains("internal error: the server failed on this request"), "{error}");
    until(&mut seen, "the call of the task is cancelled").await;
    // The connection still serves other calls.
    assert_eq!(result(&mut begin(&link, "number").await).await, r#"{"arrived":3,"number":3}"#);
}

#[tokio::test]
async fn with_two_calls_running_a_question_belongs_to_the_call_that_asks() {
    let (route, _seen, _shutdown) = called();
    let (link, _hears) = open(&opening(route)).await.unwrap();
    let (_waiting, mut asking) = (begin(&link, "wait").await, begin(&link, "ask").await);
    let CallEvent::Request(question) = next(&mut asking).await else { panic!() };
    link.answer(Response::success(question.id, raw(&json!({})))).await.unwrap();
    assert_eq!(result(&mut asking).await, r#"{"answer":{}}"#);
}

#[tokio::test]
async fn a_dropped_call_is_cancelled_and_still_runs_to_its_end() {
    let (route, mut seen, _shutdown) = called();
    let (link, _hears) = open(&opening(route)).await.unwrap();
    let mut waiting = begin(&link, "wait").await;
    assert!(tokio::time::timeout(Duration::from_millis(10), waiting.next()).await.is_err());
    assert_eq!(link.waiting(), 1);
    drop(waiting);
    until(&mut seen, "unwanted, cancelled: true").await;
    assert_eq!(link.waiting(), 0);
    let mut waiting = begin(&link, "wait").await;
    link.cancel(waiting.number(), "the test is over").await.unwrap();
    assert!(
        tokio::time::timeout(Duration::from_millis(10), waiting.next()).await.is_err(),
        "it gets no answer"
    );
    until(&mut seen, "unwanted, cancelled: true").await;
}

#[tokio::test]
async fn a_server_that_goes_away_loses_its_calls_and_refuses_connections() {
    let (route, mut seen, shutdown) = called();
    let (link, _hears) = open(&opening(route.clone())).await.unwrap();
    let mut waiting = begin(&link, "wait").await;
    assert!(tokio::time::timeout(Duration::from_millis(10), waiting.next()).await.is_err());
    shutdown.cancel();
    assert!(matches!(&*soon(link.until_closed()).await, Error::NoAnswer));
    assert!(matches!(lost(&mut waiting).await, Error::Closed(_)));
    drop(waiting);
    until(&mut seen, "owner is gone").await;
    assert!(link.begin_now(OutgoingCall { method: "echo", params: None }).is_err());
    let refused = open(&opening(route)).await.unwrap_err();
    assert!(matches!(refused, Error::Closed(cause) if matches!(*cause, Error::NoAnswer)));
}

#[tokio::test]
async fn a_request_runs_while_its_caller_does_not_poll_it() {
    let (service, mut seen) = server::odd();
    let connection = InProcessConnection::open(service, "owner".to_owned());
    let mut request = Box::pin(connection.request("wait", None));
    assert!(tokio::time::timeout(Duration::from_millis(10), &mut request).await.is_err());
    // Ends the call, which the future above does not poll meanwhile.
    soon(connection.shutdown()).await;
    until(&mut seen, "unwanted, cancelled: false").await;
    let Outcome::Result(result) = soon(request).await else { panic!() };
    assert_eq!(result.get(), r#"{"waited":true}"#);
}

#[tokio::test]
async fn a_dropped_request_is_cancelled_and_a_large_one_is_refused() {
    let (service, mut seen) = server::odd();
    let connection = InProcessConnection::open(service, "owner".to_owned());
    let waiting = connection.request("wait", None);
    assert!(tokio::time::timeout(Duration::from_millis(10), waiting).await.is_err());
    until(&mut seen, "unwanted, cancelled: true").await;
    let large = raw(&json!("x".repeat(Limits::default().message_max_bytes)));
    let Outcome::Error(error) = connection.request("echo", Some(large)).await else { panic!() };
    assert!(error.get().contains("the message has more than"), "{error}");
}

#[tokio::test]
async fn a_call_in_this_process_has_the_bounds_of_the_wire() {
    let (route, _seen, _shutdown) = called();
    let limits = Limits { calls_max: 2, message_max_bytes: 200, ..Limits::default() };
    let (link, _hears) = open(&super::ConnectOptions { limits, ..opening(route) }).await.unwrap();
    let mut failing = begin(&link, "panic").await;
    let CallEvent::Done(Outcome::Error(error)) = next(&mut failing).await else { panic!() };
    assert!(error.get().contains("internal error: the server failed on this request"), "{error}");
    let long = raw(&json!("x".repeat(200)));
    let too_long = link.begin(OutgoingCall { method: "echo", params: Some(&long) }).await;
    assert!(matches!(too_long, Err(Error::TooLarge { max_bytes: 200, .. })));
    let _running = [begin(&link, "wait").await, begin(&link, "wait").await];
    let third = link.begin(OutgoingCall { method: "wait", params: None }).await;
    assert!(matches!(third, Err(Error::Busy { most: 2 })));
}

/// The odd service on a pipe.
fn odd() -> Route {
    let (service, seen) = server::odd();
    let ending = CancellationToken::new();
    let switch = ending.clone();
    // This test does not check what the service receives, but its channels must stay open.
    std::mem::forget((seen, switch));
    Route::InProcess(InProcessServer::on_streams(move || {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let streams = tokio::io::split(theirs);
        let ending = ending.clone();
        tokio::spawn(serve(Arc::clone(&service), "owner".to_owned(), streams, Limits::default(), ending));
        tokio::io::split(ours)
    }))
}

async fn opened() -> (Link, mpsc::Receiver<ServerMessage>) {
    open(&opening(odd())).await.unwrap()
}

#[tokio::test]
async fn whole_conversations_go_over_a_pipe() {
    let (link, _hears) = opened().await;
    assert_eq!((link.transport(), link.protocol_version(), link.pid()), ("embedded", "2025-11-25", None));
    assert!(link.initialize_result().get().contains("protocolVersion"));
    converse(&link).await;
    link.close().await;
    assert_eq!(link.closed().unwrap().to_string(), "the connection was closed by embody");
    soon(link.until_closed()).await;
}

#[tokio::test]
async fn a_request_is_not_sent_as_a_notification() {
    let (link, _hears) = opened().await;
    for method in ["tools/call", "ping", "notifications", ""] {
        assert!(link.notify(method, None).await.is_err(), "{method}");
    }
    link.notify("notifications/x", None).await.unwrap();
    link.close().await;
}

#[tokio::test]
async fn with_two_calls_running_a_question_belongs_to_the_connection() {
    let (link, mut hears) = opened().await;
    let waiting = begin(&link, "wait").await;
    let mut asking = begin(&link, "ask").await;
    let Some(ServerMessage::Request(question)) = soon(hears.recv()).await else { panic!() };
    link.answer(Response::success(question.id, raw(&json!({})))).await.unwrap();
    next(&mut asking).await;
    link.cancel(waiting.number(), "the test is over").await.unwrap();
}

#[tokio::test]
async fn a_call_that_is_given_up_before_it_is_sent_is_never_seen() {
    let (reads, listens) = watch::channel(false);
    let (sees, mut seen) = mpsc::unbounded_channel();
    let route = Route::InProcess(InProcessServer::on_streams(move || {
        let (ours, theirs) = tokio::io::duplex(1 << 10);
        tokio::spawn(deaf(theirs, listens.clone(), sees.clone()));
        tokio::io::split(ours)
    }));
    let (link, _hears) = open(&opening(route)).await.unwrap();
    let filling = async {
        loop {
            link.notify("notifications/fill", None).await.unwrap();
        }
    };
    // Once a write blocks for long, the pipe is full.
    assert!(tokio::time::timeout(Duration::from_millis(200), filling).await.is_err());
    let calling = |method| OutgoingCall { method, params: None };
    let given_up = link.begin_unless(calling("never"), std::future::ready(())).await;
    assert!(given_up.unwrap().is_none());
    reads.send_replace(true);
    let sent = soon(link.begin_unless(calling("last"), std::future::pending())).await;
    assert!(sent.unwrap().is_some());
    loop {
        let line: String = soon(seen.recv()).await.unwrap();
        assert!(!line.contains("never"), "{line}");
        if line.contains("last") {
            return;
        }
    }
}

/// A server that answers `initialize`, and then reads nothing until `listens` is set.
async fn deaf(stream: DuplexStream, mut listens: watch::Receiver<bool>, sees: mpsc::UnboundedSender<String>) {
    let (input, mut output) = tokio::io::split(stream);
    let mut lines = BufReader::with_capacity(64, input).lines();
    let hello: Value = serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap();
    let initialize_result = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "deaf", "version": "1"}});
    let answer = json!({"jsonrpc": "2.0", "id": hello["id"], "result": initialize_result});
    output.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
    listens.wait_for(|listens| *listens).await.unwrap();
    while let Ok(Some(line)) = lines.next_line().await {
        let _ = sees.send(line);
    }
}
