//! A server in this process, on a pipe.

use std::sync::Arc;

use embody_wire::Limits;
use embody_wire::message::Response;
use embody_wire::serve::Ending;
use embody_wire::serve::lines::serve;
use embody_wire::upstream::{Connect, Link, Route, Said};
use serde_json::json;
use tokio::sync::mpsc;

use super::{begin, converse, next, open, opening, raw, soon};
use crate::faces;

/// The odd service of the faces' tests.
fn odd() -> Route {
    let (service, seen) = faces::odd();
    let (switch, ending) = Ending::new();
    // What the service sees is nobody's concern here, but it must not fail to say it; nor does it end.
    std::mem::forget((seen, switch));
    Route::Streams(Connect::new(move || {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let streams = tokio::io::split(theirs);
        let ending = ending.clone();
        tokio::spawn(serve(Arc::clone(&service), "owner".to_owned(), streams, Limits::default(), ending));
        tokio::io::split(ours)
    }))
}

async fn opened() -> (Link, mpsc::Receiver<Said>) {
    open(&opening(odd())).await.unwrap()
}

#[tokio::test]
async fn whole_conversations_go_over_a_pipe() {
    let (link, _hears) = opened().await;
    assert_eq!((link.transport(), link.version().as_str(), link.pid()), ("embedded", "2025-11-25", None));
    assert!(link.greeting().get().contains("protocolVersion"));
    converse(&link).await;
    link.close().await;
    assert_eq!(link.closed().unwrap().to_string(), "the connection to the server was closed");
    soon(link.until_closed()).await;
}

#[tokio::test]
async fn with_two_calls_running_a_question_belongs_to_the_connection() {
    let (link, mut hears) = opened().await;
    let waiting = begin(&link, "wait").await;
    let mut asking = begin(&link, "ask").await;
    let Some(Said::Request(question)) = soon(hears.recv()).await else { panic!() };
    link.answer(Response::success(question.id, raw(&json!({})))).await.unwrap();
    next(&mut asking).await;
    link.cancel(waiting.number(), "the test is over").await.unwrap();
}
