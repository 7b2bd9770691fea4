//! A server that writes raw bytes, for behaviour that no framework produces: one request per connection.

use std::pin::Pin;
use std::sync::{Arc, Mutex};

use axum::http::HeaderMap;
use axum::http::header::{HeaderName, HeaderValue};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use crate::fake::{Log, Seen};

type Handling = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A connection on which one request has been read and nothing written.
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
}

impl Connection {
    pub(crate) async fn write(&mut self, text: &str) {
        // The test checks for a client that has closed the connection, not the server.
        let _ = self.stream.write_all(text.as_bytes()).await;
        let _ = self.stream.flush().await;
    }

    /// A complete response without a body.
    pub(crate) async fn status(&mut self, line: &str) {
        self.write(&format!("HTTP/1.1 {line}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")).await;
    }

    /// A complete JSON response.
    pub(crate) async fn json(&mut self, text: &str) {
        let length = text.len();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n";
        self.write(&format!("{head}content-length: {length}\r\n\r\n{text}")).await;
    }

    /// The head of an event stream that ends with the connection.
    pub(crate) async fn open_events(&mut self) {
        self.write("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n").await;
    }

    /// The head of an event stream in chunks.
    pub(crate) async fn open_chunked(&mut self, content_type: &str) {
        self.write(&format!(
            "HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ntransfer-encoding: chunked\r\n\r\n"
        ))
        .await;
    }

    pub(crate) async fn chunk(&mut self, bytes: &[u8]) {
        self.write(&format!("{:x}\r\n", bytes.len())).await;
        let _ = self.stream.write_all(bytes).await;
        self.write("\r\n").await;
    }

    pub(crate) async fn event(&mut self, message: &str) {
        self.write(&format!("event: message\ndata: {message}\n\n")).await;
    }

    /// Waits until the client closes the connection.
    pub(crate) async fn wait_for_hang_up(&mut self) {
        let _ = self.stream.read(&mut [0]).await;
    }
}

/// Starts a server; every connection's request goes to `handle`, and the connection closes when it returns.
pub(crate) async fn serve_raw(
    handle: impl Fn(Seen, Connection) -> Handling + Send + Sync + 'static,
) -> (String, Log) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let log = Log::default();
    let kept = log.clone();
    let handle = Arc::new(handle);
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            stream.set_nodelay(true).unwrap();
            let (log, handle) = (kept.clone(), Arc::clone(&handle));
            tokio::spawn(async move {
                let mut stream = BufReader::new(stream);
                if let Some(seen) = read_request(&mut stream).await {
                    log.push(seen.clone());
                    handle(seen, Connection { stream }).await;
                }
            });
        }
    });
    (base, log)
}

async fn read_request(stream: &mut BufReader<TcpStream>) -> Option<Seen> {
    let mut first = String::new();
    stream.read_line(&mut first).await.ok()?;
    let mut words = first.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = HeaderMap::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.append(HeaderName::try_from(name).unwrap(), HeaderValue::try_from(value).unwrap());
    }
    let length = headers.get("content-length").map_or(0, |value| value.to_str().unwrap().parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some(Seen { method, path, headers, body: String::from_utf8(body).unwrap() })
}

/// A legacy server: a GET opens the stream, which names `endpoint`; the result of `answer` for a POST there goes out on
/// it.
pub(crate) async fn serve_legacy(
    endpoint: &str,
    answer: impl Fn(&Seen) -> Vec<String> + Send + Sync + 'static,
) -> (String, Log) {
    let (sender, receiver) = mpsc::unbounded_channel::<String>();
    let receiver = Arc::new(Mutex::new(Some(receiver)));
    let endpoint = endpoint.to_owned();
    let answer = Arc::new(answer);
    serve_raw(move |seen, mut connection| {
        let (sender, answer) = (sender.clone(), Arc::clone(&answer));
        let (receiver, endpoint) = (Arc::clone(&receiver), endpoint.clone());
        Box::pin(async move {
            if seen.method == "POST" && !seen.path.ends_with(&endpoint) {
                return connection.status("404 Not Found").await;
            }
            if seen.method == "POST" {
                answer(&seen).into_iter().for_each(|message| sender.send(message).unwrap());
                return connection.status("202 Accepted").await;
            }
            let Some(mut messages) = receiver.lock().unwrap().take() else {
                return connection.status("409 Conflict").await;
            };
            connection.open_events().await;
            connection.write(&format!(": hello\r\nevent: endpoint\r\ndata: {endpoint}\r\n\r\n")).await;
            while let Some(message) = messages.recv().await {
                if message == HANG_UP {
                    return;
                }
                connection.event(&message).await;
            }
        })
    })
    .await
}

/// As a message of [`serve_legacy`], ends the stream.
pub(crate) const HANG_UP: &str = "hang up";
