//! Legacy HTTP+SSE: all messages arrive on one stream.

use std::sync::{Arc, Mutex};

use embody_wire::{Error, Kind, Limits};
use tokio::sync::{mpsc, oneshot};

use crate::fake::*;
use crate::raw::{HANG_UP, serve_legacy, serve_raw};

fn answers(seen: &Seen) -> Vec<String> {
    match seen.rpc_method().as_str() {
        "initialize" => vec![initialize_result_of(seen, "2024-11-05")],
        "tools/call" => vec![result_of(seen, r#"{"content":[]}"#)],
        _ => vec![],
    }
}

// spec: B-07
#[tokio::test]
async fn a_tool_call_is_answered_on_the_stream() {
    let (base, log) = serve_legacy("/messages?session=1", answers).await;
    let client = connect_sse(&format!("{base}/sse"), terms()).await.unwrap();
    assert_eq!(client.version().as_str(), "2024-11-05");
    assert_eq!(client.request("tools/call", &no_params()).await.unwrap().get(), r#"{"content":[]}"#);
    client.close().await;
    let post = "POST /messages?session=1";
    assert_eq!(
        log.lines(),
        [
            "GET /sse ".to_owned(),
            format!("{post} initialize"),
            format!("{post} notifications/initialized"),
            format!("{post} tools/call"),
        ]
    );
    for seen in log.all() {
        assert_eq!(seen.header("authorization"), Some(format!("Bearer {TOKEN}").as_str()));
    }
    assert_eq!(log.all()[0].header("accept"), Some("text/event-stream"));
}

#[tokio::test]
async fn the_endpoint_may_be_relative_to_the_stream() {
    let (base, log) = serve_legacy("messages", answers).await;
    connect_sse(&format!("{base}/a/sse"), terms()).await.unwrap();
    assert_eq!(log.lines()[1], "POST /a/messages initialize");
}

#[tokio::test]
async fn an_endpoint_of_another_origin_is_refused() {
    let (elsewhere, seen_elsewhere) = serve(session_with("{}")).await;
    for endpoint in [format!("{elsewhere}/m?key=abcdefgh"), elsewhere.replace("http:", "")] {
        let (base, log) = serve_legacy(&endpoint, answers).await;
        let error = connect_sse(&base, terms()).await.unwrap_err();
        assert_eq!(error.kind(), Kind::Protocol);
        assert!(matches!(&error, Error::ForeignEndpoint { endpoint } if endpoint.starts_with(&elsewhere)));
        assert!(!error.to_string().contains("key="));
        assert_eq!((log.lines().len(), seen_elsewhere.lines().len()), (1, 0));
    }
}

#[tokio::test]
async fn an_endpoint_that_never_comes_meets_the_time_limit_or_the_end() {
    let (base, _) = serve_raw(|_, mut connection| {
        Box::pin(async move {
            connection.open_events().await;
            connection.wait_for_hang_up().await;
        })
    })
    .await;
    let limits = Limits { attempt_timeout: SHORT, ..Limits::default() };
    let error = connect_sse(&base, terms_with(limits)).await.unwrap_err();
    assert_eq!(error.to_string(), "opening the session took longer than 30 ms");
    let (base, _) =
        serve_raw(|_, mut connection| Box::pin(async move { connection.open_events().await })).await;
    let error = connect_sse(&base, terms()).await.unwrap_err();
    assert_eq!(error.to_string(), "the stream ended before its `endpoint` event");
}

#[tokio::test]
async fn a_get_that_brings_no_stream_is_refused() {
    let (base, _) = serve(|_| json("{}")).await;
    let error = connect_sse(&base, terms()).await.unwrap_err();
    assert!(matches!(error, Error::ContentType { .. }));
}

#[tokio::test]
async fn answers_in_another_order_find_their_calls() {
    let held = Mutex::new(None);
    let (base, _) = serve_legacy("/m", move |seen| match seen.rpc_method().as_str() {
        "first" | "second" => {
            let answer = result_of(seen, &format!("\"{}\"", seen.rpc_method()));
            let mut held = held.lock().unwrap();
            match held.take() {
                None => {
                    *held = Some(answer);
                    vec![]
                }
                Some(earlier) => vec![answer, earlier],
            }
        }
        _ => answers(seen),
    })
    .await;
    let client = connect_sse(&base, terms()).await.unwrap();
    let params = no_params();
    let (first, second) = tokio::join!(client.request("first", &params), client.request("second", &params));
    assert_eq!((first.unwrap().get(), second.unwrap().get()), (r#""first""#, r#""second""#));
}

#[tokio::test]
async fn requests_of_the_server_are_answered() {
    let (answered, mut replies) = mpsc::unbounded_channel();
    let (base, _) = serve_legacy("/m", move |seen| match seen.rpc_method().as_str() {
        "tools/call" => vec![
            r#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":"x","method":"sampling/createMessage","params":{}}"#.to_owned(),
            result_of(seen, "{}"),
        ],
        "" => {
            answered.send(seen.body.clone()).unwrap();
            vec![]
        }
        _ => answers(seen),
    })
    .await;
    let client = connect_sse(&base, terms()).await.unwrap();
    client.request("tools/call", &no_params()).await.unwrap();
    let mut both = [replies.recv().await.unwrap(), replies.recv().await.unwrap()];
    both.sort();
    assert!(both[0].contains("-32601"));
    assert_eq!(both[1], r#"{"jsonrpc":"2.0","id":0,"result":{}}"#);
}

#[tokio::test]
async fn an_error_without_an_id_belongs_to_no_call() {
    // Some servers answer a notification in this way.
    let (base, _) = serve_legacy("/m", |seen| match seen.rpc_method().as_str() {
        "tools/call" => {
            let stray = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"what?"}}"#;
            vec![stray.to_owned(), result_of(seen, "{}")]
        }
        _ => answers(seen),
    })
    .await;
    let client = connect_sse(&base, terms()).await.unwrap();
    assert_eq!(client.request("tools/call", &no_params()).await.unwrap().get(), "{}");
}

#[tokio::test]
async fn a_closed_stream_ends_this_call_and_every_later_one() {
    let (base, _) = serve_legacy("/m", |seen| match seen.rpc_method().as_str() {
        "tools/call" => vec![HANG_UP.to_owned()],
        _ => answers(seen),
    })
    .await;
    let client = connect_sse(&base, terms()).await.unwrap();
    for _ in 0..2 {
        let error = client.request("tools/call", &no_params()).await.unwrap_err();
        assert_eq!(error.kind(), Kind::Protocol);
        assert_eq!(error.to_string(), "the connection to the server is closed");
    }
}

#[tokio::test]
async fn a_message_that_is_too_long_closes_the_stream_with_its_reason() {
    let (base, _) = serve_legacy("/m", |seen| match seen.rpc_method().as_str() {
        "tools/call" => vec![result_of(seen, &format!("\"{}\"", "x".repeat(2000)))],
        _ => answers(seen),
    })
    .await;
    let limits = Limits { message_max_bytes: 1000, ..Limits::default() };
    let client = connect_sse(&base, terms_with(limits)).await.unwrap();
    assert_eq!(client.request("tools/call", &no_params()).await.unwrap_err().kind(), Kind::TooLarge);
}

#[tokio::test]
async fn a_call_given_up_leaves_the_session_usable() {
    let (base, _) = serve_legacy("/m", |seen| match seen.rpc_method().as_str() {
        "silent" => vec![],
        "tools/call" => {
            vec![r#"{"jsonrpc":"2.0","id":2,"result":"late"}"#.to_owned(), result_of(seen, "\"own\"")]
        }
        _ => answers(seen),
    })
    .await;
    let client = connect_sse(&base, terms()).await.unwrap();
    let params = no_params();
    assert!(tokio::time::timeout(SHORT, client.request("silent", &params)).await.is_err());
    assert_eq!(client.request("tools/call", &params).await.unwrap().get(), "\"own\"");
}

/// A server that finishes a POST only after its response is sent, and reports when its stream was closed.
async fn serve_holding() -> (String, oneshot::Receiver<()>) {
    let (sender, receiver) = mpsc::unbounded_channel::<String>();
    let (hung_up, hang_up) = oneshot::channel();
    let once = Arc::new(Mutex::new(Some((receiver, hung_up))));
    let (base, _) = serve_raw(move |seen, mut connection| {
        let (sender, once) = (sender.clone(), Arc::clone(&once));
        Box::pin(async move {
            if seen.method == "POST" {
                answers(&seen).into_iter().for_each(|message| sender.send(message).unwrap());
                if seen.rpc_method().starts_with("notifications/") {
                    return connection.status("202 Accepted").await;
                }
                return connection.wait_for_hang_up().await;
            }
            let (mut messages, hung_up) = once.lock().unwrap().take().unwrap();
            connection.open_events().await;
            connection.write("event: endpoint\ndata: /m\n\n").await;
            loop {
                tokio::select! {
                    Some(message) = messages.recv() => connection.event(&message).await,
                    () = connection.wait_for_hang_up() => break,
                }
            }
            hung_up.send(()).unwrap();
        })
    })
    .await;
    (base, hang_up)
}

#[tokio::test]
async fn an_answer_counts_before_its_post_is_through_and_close_hangs_up() {
    let (base, hang_up) = serve_holding().await;
    let client = connect_sse(&base, terms()).await.unwrap();
    client.request("tools/call", &no_params()).await.unwrap();
    client.close().await;
    hang_up.await.unwrap();
}
