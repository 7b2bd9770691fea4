//! Connections that say nothing, too many of them, and too many bytes at once.

use std::time::Duration;

use embody_wire::Limits;
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{SOON, Served, modern, served};

fn address(served: &Served) -> &str {
    served.url.strip_prefix("http://").unwrap()
}

/// What comes on a connection until the other side closes it.
async fn rest(socket: &mut TcpStream) -> String {
    let mut all = Vec::new();
    // A connection that is refused may be reset before its answer is read.
    let _ = tokio::time::timeout(SOON, socket.read_to_end(&mut all)).await.expect("it stays open");
    String::from_utf8(all).unwrap()
}

#[tokio::test]
async fn a_connection_that_does_not_say_what_it_wants_is_closed() {
    let served = served(Limits { header_timeout: Duration::from_millis(200), ..Limits::default() }).await;
    for start in ["", "POST /mcp HT", "GET /console HTTP/1.1\r\nhost: localhost\r\n\r\n"] {
        let mut socket = TcpStream::connect(address(&served)).await.unwrap();
        socket.write_all(start.as_bytes()).await.unwrap();
        let answer = rest(&mut socket).await;
        // The last one is answered, and then idle.
        assert_eq!(answer.contains("200 OK"), start.starts_with("GET"), "{start:?}: {answer}");
    }
}

#[tokio::test]
async fn some_connections_are_kept_for_the_console() {
    let limits =
        Limits { connections_max: 9, connections_each_max: 5, connections_kept: 2, ..Limits::default() };
    let served = served(limits).await;
    let mut silent = Vec::new();
    for _ in 0..3 {
        let mut socket = TcpStream::connect(address(&served)).await.unwrap();
        socket.write_all(b"POST /mcp HTTP/1.1\r\n").await.unwrap();
        silent.push(socket);
    }
    let call =
        || Client::new().post(format!("{}/mcp", served.url)).bearer_auth("ann").json(&modern(1, "whoami"));
    let refused = call().send().await.unwrap();
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(refused.text().await.unwrap().contains("too many connections"), "it says why");
    let console = Client::new().get(format!("{}/console", served.url)).send().await.unwrap();
    assert_eq!((console.status(), console.text().await.unwrap().as_str()), (StatusCode::OK, "open"));
    // Those of one address are bounded too, the kept ones included; they do not wait for long.
    for _ in 0..2 {
        silent.push(TcpStream::connect(address(&served)).await.unwrap());
    }
    let mut beyond = TcpStream::connect(address(&served)).await.unwrap();
    let answer = rest(&mut beyond).await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 503"), "{answer}");
    silent.clear();
    super::eventually(async || call().send().await.is_ok_and(|answer| answer.status() != 503)).await;
}

#[tokio::test]
async fn the_bytes_that_wait_for_an_answer_are_bounded() {
    let limits =
        Limits { in_flight_max_bytes: 300_000, in_flight_each_max_bytes: 150_000, ..Limits::default() };
    let mut served = served(limits).await;
    let large = |method: &str| {
        let mut message: Value = modern(1, method);
        message["params"]["x"] = json!("y".repeat(100_000));
        message
    };
    let url = format!("{}/mcp", served.url);
    let post = |token: &str, message: &Value| {
        let url = url.clone();
        let request = Client::new().post(url).bearer_auth(token).header("mcp-protocol-version", "2026-07-28");
        let method = message["method"].as_str().unwrap();
        request.header("mcp-method", method).json(message).send()
    };
    let waiting = tokio::spawn(post("ann", &large("wait")));
    served.until("waiting").await;
    let refused = post("ann", &large("echo")).await.unwrap();
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(refused.text().await.unwrap().contains("too many bytes"), "it says why");
    assert_eq!(post("ann", &modern(2, "whoami")).await.unwrap().status(), StatusCode::OK, "small ones pass");
    assert_eq!(post("bob", &large("echo")).await.unwrap().status(), StatusCode::OK, "others are not held up");
    waiting.abort();
    super::eventually(async || post("ann", &large("echo")).await.unwrap().status() == StatusCode::OK).await;
}
