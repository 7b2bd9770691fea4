//! Idle connections, too many connections, and too many bytes at once.

use std::time::Duration;

use embody_wire::Limits;
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use super::{SOON, Served, modern, served};

fn address(served: &Served) -> &str {
    served.url.strip_prefix("http://").unwrap()
}

/// Reads a connection until the other side closes it.
async fn read_to_close(socket: &mut TcpStream) -> String {
    let mut all = Vec::new();
    // A rejected connection may be reset before its response is read.
    let _ = tokio::time::timeout(SOON, socket.read_to_end(&mut all)).await.expect("it stays open");
    String::from_utf8(all).unwrap()
}

#[tokio::test]
async fn a_connection_that_does_not_say_what_it_wants_is_closed() {
    let served = served(Limits { header_timeout: Duration::from_millis(200), ..Limits::default() }).await;
    for start in ["", "POST /mcp HT", "GET /console HTTP/1.1\r\nhost: localhost\r\n\r\n"] {
        let mut socket = TcpStream::connect(address(&served)).await.unwrap();
        socket.write_all(start.as_bytes()).await.unwrap();
        let answer = read_to_close(&mut socket).await;
        // The last one is answered, and then idle.
        assert_eq!(answer.contains("200 OK"), start.starts_with("GET"), "{start:?}: {answer}");
    }
}

#[tokio::test]
async fn some_connections_are_kept_for_the_console() {
    let limits =
        Limits { connections_max: 9, connections_each_max: 5, connections_reserved: 2, ..Limits::default() };
    let mut served = served(limits).await;
    let post = |method: &str| {
        let request = Client::new().post(format!("{}/mcp", served.url)).bearer_auth("ann");
        let request = request.header("mcp-protocol-version", "2026-07-28").header("mcp-method", method);
        request.json(&modern(1, method))
    };
    let console = || Client::new().get(format!("{}/console", served.url));
    let mut waiting: Vec<_> = (0..3).map(|_| tokio::spawn(post("wait").send())).collect();
    let (call, open, beyond) = (post("whoami"), console(), console());
    let address = address(&served).to_owned();
    for _ in 0..3 {
        served.until("waiting").await;
    }
    let refused = call.send().await.unwrap();
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(refused.text().await.unwrap().contains("too many connections"), "it says why");
    let open = open.send().await.unwrap();
    assert_eq!((open.status(), open.text().await.unwrap().as_str()), (StatusCode::OK, "open"));
    // Any number of idle connections must not block the console.
    let mut silent = Vec::new();
    for _ in 0..20 {
        let mut socket = TcpStream::connect(&address).await.unwrap();
        socket.write_all(b"GET /console HTTP/1.1\r\n").await.unwrap();
        silent.push(socket);
    }
    let answered = beyond.send().await.unwrap();
    assert_eq!(answered.status(), StatusCode::OK);
    waiting.drain(..).for_each(|waiting| waiting.abort());
}

#[tokio::test]
async fn half_sent_heads_keep_neither_hosts_nor_the_console_out() {
    // The timeout must not be what closes them.
    let header_timeout = Duration::from_secs(3_600);
    let served = served(Limits {
        connections_max: 128,
        connections_each_max: 64,
        connections_reserved: 8,
        header_timeout,
        ..Limits::default()
    });
    let served = served.await;
    let mut silent = Vec::new();
    for _ in 0..64 {
        let mut socket = TcpStream::connect(address(&served)).await.unwrap();
        socket.write_all(b"POST /mcp HTTP/1.1\r\n").await.unwrap();
        silent.push(socket);
    }
    let console = Client::new().get(format!("{}/console", served.url)).send().await.unwrap();
    assert_eq!(console.status(), StatusCode::OK);
    let call = Client::new().post(format!("{}/mcp", served.url)).bearer_auth("ann");
    let call = call.header("mcp-protocol-version", "2026-07-28").header("mcp-method", "whoami");
    assert_eq!(call.json(&modern(1, "whoami")).send().await.unwrap().status(), StatusCode::OK);
    // The oldest one was closed for them.
    assert_eq!(read_to_close(&mut silent[0]).await, "");
}

/// A connection on which the console waits for the rest of a body.
async fn half_sent_body(served: &Served) -> TcpStream {
    const HEAD: &[u8] =
        b"POST /console HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\nexpect: 100-continue\r\n\r\n";
    const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
    let mut socket = TcpStream::connect(address(served)).await.unwrap();
    socket.write_all(HEAD).await.unwrap();
    let mut answer = [0; CONTINUE.len()];
    tokio::time::timeout(SOON, socket.read_exact(&mut answer)).await.expect("silence").unwrap();
    assert_eq!(answer, CONTINUE, "the body is not read");
    socket.write_all(b"{").await.unwrap();
    socket
}

#[tokio::test]
async fn half_sent_bodies_keep_neither_hosts_nor_the_console_out() {
    let served = served(Limits {
        connections_max: 128,
        connections_each_max: 64,
        connections_reserved: 8,
        ..Limits::default()
    });
    let served = served.await;
    let mut silent = Vec::new();
    for _ in 0..64 {
        silent.push(half_sent_body(&served).await);
    }
    let console = Client::new().get(format!("{}/console", served.url)).send().await.unwrap();
    assert_eq!(console.status(), StatusCode::OK);
    let call = Client::new().post(format!("{}/mcp", served.url)).bearer_auth("ann");
    let call = call.header("mcp-protocol-version", "2026-07-28").header("mcp-method", "whoami");
    assert_eq!(call.json(&modern(1, "whoami")).send().await.unwrap().status(), StatusCode::OK);
    assert_eq!(read_to_close(&mut silent[0]).await, "", "the oldest was closed for them");
}

#[tokio::test]
async fn a_kept_connection_waits_for_a_body_only_briefly() {
    let served = served(Limits {
        connections_max: 3,
        connections_each_max: 3,
        connections_reserved: 1,
        body_timeout: Duration::from_millis(50),
        ..Limits::default()
    });
    let served = served.await;
    // Streams occupy the other connections.
    let stream = || Client::new().get(format!("{}/sse", served.url)).bearer_auth("ann").send();
    let streams = [stream().await.unwrap(), stream().await.unwrap()];
    assert!(streams.iter().all(|stream| stream.status() == StatusCode::OK));
    let answer = read_to_close(&mut half_sent_body(&served).await).await;
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
}

#[tokio::test]
async fn an_answer_that_is_read_slowly_is_not_cut_off_for_silent_connections() {
    const SIZE: usize = 14_000_000;
    let limits =
        Limits { connections_max: 8, connections_each_max: 8, connections_reserved: 2, ..Limits::default() };
    let served = served(limits).await;
    let mut message = modern(1, "echo");
    message["params"]["x"] = json!("y".repeat(SIZE));
    let message = message.to_string();
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(65_536).unwrap();
    let mut slow = socket.connect(address(&served).parse().unwrap()).await.unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer ann\r\nmcp-protocol-version: 2026-07-28\r\n\
         mcp-method: echo\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        address(&served),
        message.len(),
    );
    slow.write_all(head.as_bytes()).await.unwrap();
    slow.write_all(message.as_bytes()).await.unwrap();
    let mut status = [0; 12];
    tokio::time::timeout(SOON, slow.read_exact(&mut status)).await.expect("silence").unwrap();
    assert_eq!(&status, b"HTTP/1.1 200");
    let mut silent = Vec::new();
    for _ in 0..20 {
        silent.push(TcpStream::connect(address(&served)).await.unwrap());
    }
    assert_eq!(read_to_close(&mut silent[10]).await, "", "those that say nothing are closed");
    let answer = read_to_close(&mut slow).await;
    assert!(answer.len() > SIZE, "{} bytes have come", answer.len());
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
    assert!(refused.text().await.unwrap().contains("too large in total"), "it says why");
    assert_eq!(post("ann", &modern(2, "whoami")).await.unwrap().status(), StatusCode::OK, "small ones pass");
    assert_eq!(post("bob", &large("echo")).await.unwrap().status(), StatusCode::OK, "others are not held up");
    let other_token = post("ann/2", &large("echo")).await.unwrap();
    assert_eq!(other_token.status(), StatusCode::OK, "nor is another token of the same person");
    waiting.abort();
    super::eventually(async || post("ann", &large("echo")).await.unwrap().status() == StatusCode::OK).await;
}
