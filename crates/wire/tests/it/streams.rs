//! Event streams over streamable HTTP, written byte by byte: messages before, within and instead of the response.

use std::sync::Arc;

use embody_wire::{Client, ClientOptions, Error, Kind, Limits};
use tokio::sync::Notify;

use crate::fake::*;
use crate::raw::{Connection, serve_raw};

/// How the stream of a tool call is written.
#[derive(Clone, Copy)]
enum Stream {
    OddChunks,
    Progress,
    NoAnswer,
    Truncated,
    Cut,
    NotUtf8,
    LongBody,
    Silence,
}

async fn write(stream: Stream, seen: &Seen, mut connection: Connection) {
    let answer = result_of(seen, r#"{"text":"é€🦀"}"#);
    match stream {
        Stream::OddChunks => {
            connection.open_chunked("text/event-stream").await;
            let text = format!("\u{feff}: hi\r\n\r\nid: 1\rdata: \r\rdata: {answer}\r\n\r\n");
            for bytes in text.as_bytes().chunks(3) {
                connection.chunk(bytes).await;
            }
            connection.wait_for_hang_up().await;
        }
        Stream::Progress => {
            connection.open_events().await;
            for step in 1..=3 {
                let params = format!(r#"{{"progressToken":"t","progress":{step},"total":1e400}}"#);
                connection
                    .event(&format!(
                        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{params}}}"#
                    ))
                    .await;
            }
            connection.event(&answer).await;
        }
        Stream::NoAnswer => {
            connection.open_events().await;
            connection.event(r#"{"jsonrpc":"2.0","id":77,"result":{}}"#).await;
        }
        Stream::Truncated => {
            connection.open_events().await;
            connection.write(&format!("data: {answer}\n")).await;
        }
        Stream::Cut => {
            connection.open_chunked("text/event-stream").await;
            connection.chunk(b": hi\n\n").await;
        }
        Stream::NotUtf8 => {
            connection.open_chunked("text/event-stream").await;
            connection.chunk(b"data: \xFF\n\n").await;
            connection.wait_for_hang_up().await;
        }
        Stream::LongBody => {
            connection.open_chunked("application/json").await;
            for _ in 0..20 {
                connection.chunk(&[b' '; 100]).await;
            }
            connection.wait_for_hang_up().await;
        }
        Stream::Silence => connection.wait_for_hang_up().await,
    }
}

async fn client(stream: Stream, terms: ClientOptions) -> Client {
    let (base, _) = serve_raw(move |seen, mut connection| {
        Box::pin(async move {
            match seen.rpc_method().as_str() {
                "initialize" => connection.json(&initialize_result(&seen)).await,
                "tools/call" => write(stream, &seen, connection).await,
                _ => connection.status("202 Accepted").await,
            }
        })
    })
    .await;
    connect_http(&base, terms).await.unwrap()
}

async fn failure(stream: Stream, limits: Limits) -> Error {
    client(stream, terms_with(limits)).await.request("tools/call", &no_params()).await.unwrap_err()
}

#[tokio::test]
async fn an_answer_in_odd_chunks_is_put_together() {
    let client = client(Stream::OddChunks, terms()).await;
    assert_eq!(client.request("tools/call", &no_params()).await.unwrap().get(), r#"{"text":"é€🦀"}"#);
}

#[tokio::test]
async fn unrequested_progress_is_ignored() {
    let client = client(Stream::Progress, terms()).await;
    client.request("tools/call", &no_params()).await.unwrap();
}

#[tokio::test]
async fn a_stream_that_ends_without_the_answer_is_told() {
    let cases = [
        (Stream::NoAnswer, Kind::Protocol, "the stream ended without a response"),
        (Stream::Truncated, Kind::Protocol, "the stream was cut off within an event"),
        (Stream::Cut, Kind::Unreachable, "the connection was lost"),
        (Stream::NotUtf8, Kind::Protocol, "the server sent an unreadable event stream"),
    ];
    for (stream, kind, expected) in cases {
        let error = failure(stream, Limits::default()).await;
        assert_eq!((error.kind(), error.to_string().as_str()), (kind, expected));
    }
}

#[tokio::test]
async fn a_body_without_a_length_is_bounded_as_it_comes() {
    let error = failure(Stream::LongBody, Limits { message_max_bytes: 1000, ..Limits::default() }).await;
    assert_eq!(
        (error.kind(), error.to_string().as_str()),
        (Kind::TooLarge, "the answer is larger than 1000 bytes")
    );
}

#[tokio::test]
async fn a_server_that_never_answers_meets_the_time_limit() {
    let error = failure(Stream::Silence, Limits { request_timeout: SHORT, ..Limits::default() }).await;
    assert_eq!(error.kind(), Kind::Timeout);
    assert_eq!(error.to_string(), "the answer to `tools/call` took longer than 30 ms");
}

#[tokio::test]
async fn requests_of_the_server_are_answered_while_the_call_goes_on() {
    let replied = Arc::new(Notify::new());
    let (base, log) = serve_raw(move |seen, mut connection| {
        let replied = Arc::clone(&replied);
        Box::pin(async move {
            match seen.rpc_method().as_str() {
                "initialize" => connection.json(&initialize_result(&seen)).await,
                "tools/call" => {
                    connection.open_events().await;
                    connection.event(r#"{"jsonrpc":"2.0","id":"p-1","method":"ping"}"#).await;
                    replied.notified().await;
                    connection.event(r#"{"jsonrpc":"2.0","id":5,"method":"roots/list"}"#).await;
                    replied.notified().await;
                    connection.event(&result_of(&seen, "{}")).await;
                }
                "" => {
                    connection.status("202 Accepted").await;
                    replied.notify_one();
                }
                _ => connection.status("202 Accepted").await,
            }
        })
    })
    .await;
    let client = connect_http(&base, terms()).await.unwrap();
    client.request("tools/call", &no_params()).await.unwrap();
    let bodies: Vec<_> = log.all().into_iter().map(|seen| seen.body).collect();
    assert_eq!(bodies[3], r#"{"jsonrpc":"2.0","id":"p-1","result":{}}"#);
    assert_eq!(bodies[4], r#"{"jsonrpc":"2.0","id":5,"error":{"code":-32601,"message":"method not found"}}"#);
}
