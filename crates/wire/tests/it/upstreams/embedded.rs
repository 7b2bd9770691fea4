//! A server in this process, on a pipe.

use std::sync::Arc;
use std::time::Duration;

use embody_wire::Limits;
use embody_wire::message::Response;
use embody_wire::server::CancellationToken;
use embody_wire::server::lines::serve;
use embody_wire::upstream::{Link, OutgoingCall, Route, ServerMessage, StreamConnector};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};
use tokio::sync::{mpsc, watch};

use super::{begin, converse, next, open, opening, raw, soon};
use crate::server;

/// The odd service of the server tests.
fn odd() -> Route {
    let (service, seen) = server::odd();
    let ending = CancellationToken::new();
    let switch = ending.clone();
    // This test does not check what the service receives, but its channels must stay open.
    std::mem::forget((seen, switch));
    Route::Streams(StreamConnector::new(move || {
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
    assert_eq!(link.closed().unwrap().to_string(), "it was closed on purpose");
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
    let route = Route::Streams(StreamConnector::new(move || {
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
    let greeting = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "deaf", "version": "1"}});
    let answer = json!({"jsonrpc": "2.0", "id": hello["id"], "result": greeting});
    output.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
    listens.wait_for(|listens| *listens).await.unwrap();
    while let Ok(Some(line)) = lines.next_line().await {
        let _ = sees.send(line);
    }
}
