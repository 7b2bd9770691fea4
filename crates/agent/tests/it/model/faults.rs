//! Servers that misbehave on the wire.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use embody_agent::event::TurnEvent;
use embody_agent::model::{ChatResponse, ModelError, ModelSettings, ModelTimes, Provider, TimeoutStage};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::scripted::Scripted;
use super::{request, settings, text_of, user};

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
const SAID: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hel\"}}]}\n\n";
const STOPPED: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";

/// A server that answers each connection with these bytes, and then runs `after`.
async fn raw<F: Future<Output = ()> + Send>(
    bytes: String,
    after: impl Fn(TcpStream) -> F + Copy + Send + Sync + 'static,
) -> (String, Arc<AtomicU32>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&asked);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::Relaxed);
            let bytes = bytes.clone();
            tokio::spawn(async move {
                read_request(&mut stream).await;
                // The client may have closed the connection.
                let _ = stream.write_all(bytes.as_bytes()).await;
                after(stream).await;
            });
        }
    });
    (url, asked)
}

async fn read_request(stream: &mut TcpStream) {
    let mut read = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let count = stream.read(&mut piece).await.unwrap_or(0);
        read.extend_from_slice(&piece[..count]);
        let text = String::from_utf8_lossy(&read);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let head = head.to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
        if body.len() >= length.parse().unwrap() || count == 0 {
            return;
        }
    }
}

async fn end(mut stream: TcpStream) {
    let _ = stream.shutdown().await;
}

async fn hang(_stream: TcpStream) {
    std::future::pending().await
}

fn hasty(url: &str) -> ModelSettings {
    let times = ModelTimes {
        first_byte: Duration::from_millis(300),
        idle: Duration::from_millis(300),
        ..ModelTimes::default()
    };
    ModelSettings { times, ..settings(Provider::OpenAi, url) }
}

async fn answer(url: &str) -> (Result<ChatResponse, ModelError>, Vec<TurnEvent>) {
    request(settings(Provider::OpenAi, url), &[user("hi")], &[]).await
}

fn why(answer: Result<ChatResponse, ModelError>) -> String {
    match answer {
        Err(ModelError::Broken { why }) => why,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_stream_without_its_end_mark_is_an_error_and_not_asked_again() {
    let (url, asked) = raw(format!("{HEAD}{SAID}"), end).await;
    let (result, told) = answer(&url).await;
    assert_eq!(why(result), "the stream ended before the response was complete");
    assert_eq!(text_of(&told), "Hel");
    assert_eq!(asked.load(Ordering::Relaxed), 1);

    let chunked = HEAD.replace("connection: close", "transfer-encoding: chunked");
    let (url, asked) = raw(format!("{chunked}{:x}\r\n{SAID}\r\n", SAID.len()), end).await;
    let (result, told) = answer(&url).await;
    assert!(why(result).starts_with("the stream was cut off"));
    assert_eq!(text_of(&told), "Hel");
    assert_eq!(asked.load(Ordering::Relaxed), 1);

    let server = Scripted::start(&json!([{"reply": {"text": "half of it", "cut": true}}]));
    for provider in [Provider::OpenAi, Provider::Anthropic] {
        let (result, told) = request(settings(provider, &server.url), &[user("hi")], &[]).await;
        assert_eq!(why(result), "the stream ended before the response was complete");
        assert_eq!(text_of(&told), "half of it");
    }
    assert_eq!(server.log().len(), 2);
}

#[tokio::test]
async fn an_answer_that_ended_is_whole_without_the_last_mark() {
    let (url, _) = raw(format!("{HEAD}{SAID}{STOPPED}"), end).await;
    assert_eq!(answer(&url).await.0.unwrap().text, "Hel");
    // The server never closes the connection; that must not matter.
    let (url, _) = raw(format!("{HEAD}{SAID}{STOPPED}"), hang).await;
    assert_eq!(answer(&url).await.0.unwrap().text, "Hel");
}

#[tokio::test]
async fn a_server_that_says_nothing_or_stops_midway_runs_out_of_time() {
    for (bytes, expected) in [
        (String::new(), TimeoutStage::FirstByte),
        (HEAD.to_owned(), TimeoutStage::FirstByte),
        (format!("{HEAD}{SAID}"), TimeoutStage::FurtherByte),
    ] {
        let (url, asked) = raw(bytes, hang).await;
        let (result, _) = request(hasty(&url), &[user("hi")], &[]).await;
        let error = result.unwrap_err();
        assert!(matches!(&error, ModelError::Timeout { what, .. } if *what == expected), "{error:?}");
        assert_eq!(asked.load(Ordering::Relaxed), 1, "a slow model is not asked twice");
    }
}

#[tokio::test]
async fn a_connection_that_takes_too_long_is_tried_again_and_says_which_time_to_raise() {
    // It accepts the connection and never starts TLS.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut settings = hasty(&format!("https://{}", listener.local_addr().unwrap()));
    settings.times.connect = Duration::from_millis(50);
    settings.times.first_byte = Duration::from_secs(60);
    settings.times.attempts = Some(2);
    let (result, told) = request(settings, &[user("hi")], &[]).await;
    let error = result.unwrap_err();
    assert!(
        error.to_string().ends_with("/v1/chat/completions` is not available: no connection within 50ms"),
        "{error}"
    );
    assert!(error.hint().unwrap().contains("`connect_timeout_s`"), "{error:?}");
    assert!(matches!(told.as_slice(), [TurnEvent::Waiting { .. }]), "{told:?}");
}

#[tokio::test]
async fn a_trickle_ends_with_the_whole_time() {
    let (url, _) = raw(HEAD.to_owned(), async |mut stream: TcpStream| {
        while stream.write_all(b": wait\n").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    let mut settings = hasty(&url);
    settings.times.total = Duration::from_millis(500);
    let (result, _) = request(settings, &[user("hi")], &[]).await;
    let error = result.unwrap_err();
    assert!(matches!(error, ModelError::Timeout { what: TimeoutStage::WholeAnswer, .. }), "{error:?}");
}

#[tokio::test]
async fn a_line_without_end_is_not_kept() {
    let (url, _) = raw(HEAD.to_owned(), async |mut stream: TcpStream| {
        let piece = [b'x'; 65536];
        while stream.write_all(&piece).await.is_ok() {}
    })
    .await;
    assert_eq!(why(answer(&url).await.0), "an event is longer than 2097152 bytes");
}

#[tokio::test]
async fn an_answer_without_end_is_not_kept() {
    let (url, _) = raw(HEAD.to_owned(), async |mut stream: TcpStream| {
        let said = SAID.replace("Hel", &"x".repeat(65536));
        while stream.write_all(said.as_bytes()).await.is_ok() {}
    })
    .await;
    assert_eq!(why(answer(&url).await.0), "the answer is longer than 4194304 bytes");
}

#[tokio::test]
async fn a_page_is_no_answer() {
    let page = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 5\r\n\r\n<html";
    let (url, _) = raw(page.to_owned(), end).await;
    assert_eq!(why(answer(&url).await.0), "its content type is `text/html`, not an event stream");
}

#[tokio::test]
async fn an_overload_within_the_stream_is_asked_again_only_before_the_first_word() {
    let overloaded = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
    let text = "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hel\"}}\n\n";
    for (said, is_again) in [("", true), (text, false)] {
        let (url, asked) = raw(format!("{HEAD}{said}{overloaded}"), end).await;
        let mut settings = settings(Provider::Anthropic, &url);
        settings.times.retrying = Duration::from_millis(600);
        let (result, _) = request(settings, &[user("hi")], &[]).await;
        assert!(matches!(result, Err(ModelError::Unavailable { .. })), "{result:?}");
        assert_eq!(asked.load(Ordering::Relaxed) > 1, is_again);
    }
}

#[tokio::test]
async fn a_connection_that_closes_before_a_word_is_tried_again() {
    let (url, asked) = raw(String::new(), end).await;
    let mut settings = settings(Provider::OpenAi, &url);
    settings.times.retrying = Duration::from_millis(600);
    let (result, _) = request(settings, &[user("hi")], &[]).await;
    assert!(matches!(result, Err(ModelError::Unavailable { .. })), "{result:?}");
    assert!(asked.load(Ordering::Relaxed) > 1);
}

#[tokio::test]
async fn dropping_the_question_ends_the_connection() {
    let (gone, mut seen) = tokio::sync::mpsc::channel::<()>(1);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_request(&mut stream).await;
        stream.write_all(format!("{HEAD}{SAID}").as_bytes()).await.unwrap();
        while stream.read(&mut [0; 64]).await.is_ok_and(|count| count > 0) {}
        gone.send(()).await.unwrap();
    });
    let model = embody_agent::model::ChatModel::new(settings(Provider::OpenAi, &url)).unwrap();
    let (told, mut telling) = tokio::sync::mpsc::unbounded_channel();
    let asking = tokio::spawn(async move {
        let messages = [user("hi")];
        let request =
            embody_agent::model::ChatRequest { system: "", stable_len: 0, messages: &messages, tools: &[] };
        model.complete(request, &mut |delta| told.send(delta).unwrap()).await
    });
    assert_eq!(telling.recv().await, Some(TurnEvent::Text("Hel".to_owned())));
    asking.abort();
    seen.recv().await.unwrap();
}
