//! Servers behind legacy HTTP+SSE, and the detection of the transport.

use std::sync::Arc;

use embody_wire::upstream::{CallEvent, ConnectOptions, Route, ServerMessage, TokenSource};
use embody_wire::{Error, Limits, Secret, Url};
use tokio::sync::Notify;

use super::{begin, converse, lost, next, open, opening, result, soon};
use crate::fake::{initialize_result, result_of};
use crate::raw::{HANG_UP, serve_legacy, serve_raw};
use crate::server;

fn sse(base: &str) -> Route {
    Route::Sse { url: Url::parse(&format!("{base}/sse")).unwrap() }
}

fn as_ann(route: Route) -> ConnectOptions {
    ConnectOptions { tokens: Some(TokenSource::fixed(Secret::new("ann"))), ..opening(route) }
}

#[tokio::test]
async fn whole_conversations_go_over_the_legacy_pair() {
    let mut served = server::served(Limits::default()).await;
    let (link, mut hears) = open(&as_ann(sse(&served.url))).await.unwrap();
    assert_eq!(link.transport(), "sse");
    converse(&link).await;
    // The server answers before it sends the notification: the server request that follows may arrive while no call
    // runs.
    assert_eq!(result(&mut begin(&link, "outside").await).await, "{}");
    assert!(matches!(soon(hears.recv()).await, Some(ServerMessage::Notification(_))));
    link.close().await;
    served.until("ann is gone").await;
}

#[tokio::test]
async fn a_url_is_guessed() {
    let served = server::served(Limits::default()).await;
    for (path, transport) in [("", "http"), ("/mcp", "http"), ("/sse", "sse")] {
        let url = Url::parse(&format!("{}{path}", served.url)).unwrap();
        let (link, _hears) = open(&as_ann(Route::Probe { url })).await.unwrap();
        assert_eq!(link.transport(), transport, "{path}");
        link.close().await;
    }
    let url = Url::parse("ftp://h/x").unwrap();
    for route in [Route::Probe { url: url.clone() }, Route::Http { url: url.clone() }, Route::Sse { url }] {
        assert!(matches!(open(&opening(route)).await.unwrap_err(), Error::Url { .. }));
    }
}

#[tokio::test]
async fn garbage_and_strange_ids_stop_nothing_and_the_end_of_the_stream_ends_the_link() {
    let (base, log) = serve_legacy("/m", |seen| match seen.rpc_method().as_str() {
        "initialize" => vec![initialize_result(seen)],
        "a" => vec![
            "garbage".to_owned(),
            r#"{"jsonrpc":"2.0","id":77,"result":{}}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":"2","result":"not a number"}"#.to_owned(),
            r#"{"jsonrpc":"2.0","method":"notifications/message"}"#.to_owned(),
            result_of(seen, "1"),
            result_of(seen, "2"),
        ],
        "b" => vec![HANG_UP.to_owned()],
        _ => vec![],
    })
    .await;
    let (link, _hears) = open(&opening(sse(&base))).await.unwrap();
    let mut call = begin(&link, "a").await;
    assert!(matches!(next(&mut call).await, CallEvent::Notification(_)));
    assert_eq!(result(&mut call).await, "1");
    let error = lost(&mut begin(&link, "b").await).await;
    assert!(matches!(error, Error::Closed(_)) && !error.was_not_executed());
    assert!(matches!(*soon(link.until_closed()).await, Error::NoAnswer));
    assert!(matches!(link.notify("notifications/x", None).await, Err(Error::Closed(_))));
    assert_eq!(log.lines().iter().filter(|line| line.ends_with(" b")).count(), 1);
}

#[tokio::test]
async fn a_call_whose_post_is_refused_is_over() {
    let await_result = Arc::new(Notify::new());
    let (base, _) = serve_raw(move |seen, mut connection| {
        let await_result = Arc::clone(&await_result);
        Box::pin(async move {
            match (seen.method.as_str(), seen.rpc_method().as_str()) {
                ("GET", _) => {
                    connection.open_events().await;
                    connection.write("event: endpoint\ndata: /m\n\n").await;
                    await_result.notified().await;
                    let initialize_result =
                        r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2024-11-05"}}"#;
                    connection.event(initialize_result).await;
                    connection.wait_for_hang_up().await;
                }
                (_, "initialize") => {
                    await_result.notify_one();
                    connection.status("202 Accepted").await;
                }
                (_, "refused") => connection.status("429 Too Many Requests").await,
                _ => connection.status("202 Accepted").await,
            }
        })
    })
    .await;
    let (link, _hears) = open(&opening(sse(&base))).await.unwrap();
    let error = lost(&mut begin(&link, "refused").await).await;
    assert!(matches!(error, Error::Status { status: 429, .. }) && error.was_not_executed());
    assert!(link.closed().is_none());
}
