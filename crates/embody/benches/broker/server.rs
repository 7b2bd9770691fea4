//! The server behind everybody: it does as little as one can on an asynchronous runtime, as servers do. It reads a message,
//! finds the id, and writes the answer; over stdio, or over HTTP with nobody in between.

use std::fmt::Write as _;
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;

use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::pipe::{Receiver, Sender};

use crate::http;

/// Tools that every server has.
pub(crate) const READ: &str = "echo";
pub(crate) const WRITE: &str = "note";

/// Serves over stdio until the input ends.
pub(crate) fn over_stdio(tools: usize) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        let (input, mut output) = standard();
        let mut input = tokio::io::BufReader::new(input);
        let mut line = String::new();
        while input.read_line(&mut line).await.unwrap() > 0 {
            if let Some(answer) = answer(&line, tools) {
                output.write_all(answer.as_bytes()).await.unwrap();
            }
            line.clear();
        }
    });
}

/// Serves over HTTP until it is ended.
pub(crate) fn over_http(port: u16) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.set_nodelay(true).unwrap();
            tokio::spawn(async move {
                let mut buffer = Vec::new();
                loop {
                    let Some(request) = http::message(&buffer) else {
                        match stream.read_buf(&mut buffer).await {
                            Ok(1..) => continue,
                            _ => return,
                        }
                    };
                    let answer = answer(&request.body, 2);
                    let status = if answer.is_some() { "200 OK" } else { "202 Accepted" };
                    let answer = answer.unwrap_or_default();
                    let mut response = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n", answer.len());
                    let _ = write!(response, "Content-Type: application/json\r\n\r\n{answer}");
                    buffer.drain(..request.length);
                    if stream.write_all(response.as_bytes()).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
}

fn answer(message: &str, tools: usize) -> Option<String> {
    let message: Message<'_> = serde_json::from_str(message).unwrap();
    let id = message.id?;
    let outcome = result(&message, tools).map_or_else(
        || r#""error":{"code":-32601,"message":"not here"}"#.to_owned(),
        |result| format!("\"result\":{result}"),
    );
    Some(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},{outcome}}}\n"))
}

fn result(message: &Message<'_>, tools: usize) -> Option<String> {
    Some(match message.method {
        "initialize" => {
            r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"echo","version":"1"}}"#
                .to_owned()
        }
        "tools/list" => list(tools),
        "ping" => "{}".to_owned(),
        "tools/call" => {
            format!(r#"{{"content":[{{"type":"text","text":{}}}]}}"#, message.params.arguments.text.unwrap())
        }
        _ => return None,
    })
}

fn list(tools: usize) -> String {
    let mut list = format!(
        r#"{{"tools":[{{"name":"{READ}","description":"Says it again.","inputSchema":{{"type":"object"}},"annotations":{{"readOnlyHint":true}}}},{{"name":"{WRITE}","description":"Writes it down.","inputSchema":{{"type":"object"}}}}"#
    );
    for number in 2..tools {
        let _ = write!(
            list,
            r#",{{"name":"tool_{number}","description":"Looks something up, the way that tool number {number} does it.","inputSchema":{{"type":"object","properties":{{"query":{{"type":"string","description":"What to look for"}},"limit":{{"type":"integer"}}}},"required":["query"]}},"annotations":{{"readOnlyHint":true}}}}"#
        );
    }
    list.push_str("]}");
    list
}

/// The standard streams, which the runtime waits for: pipes, or the sockets that some start their servers with.
pub(crate) fn standard() -> (Input, Output) {
    let input = std::io::stdin().as_fd().try_clone_to_owned().unwrap();
    let output = std::io::stdout().as_fd().try_clone_to_owned().unwrap();
    let socket = |one: OwnedFd| {
        let stream = std::os::unix::net::UnixStream::from(one);
        stream.set_nonblocking(true).unwrap();
        UnixStream::from_std(stream).unwrap()
    };
    let is_socket = |fd: &str| std::fs::metadata(fd).unwrap().file_type().is_socket();
    let input: Input = if is_socket("/dev/fd/0") {
        Box::new(socket(input))
    } else {
        Box::new(Receiver::from_owned_fd(input).unwrap())
    };
    let output: Output = if is_socket("/dev/fd/1") {
        Box::new(socket(output))
    } else {
        Box::new(Sender::from_owned_fd(output).unwrap())
    };
    (input, output)
}

pub(crate) type Input = Box<dyn AsyncRead + Send + Unpin>;
pub(crate) type Output = Box<dyn AsyncWrite + Send + Unpin>;

/// As much of a message as is needed to answer it or to pass it on.
#[derive(serde::Deserialize)]
pub(crate) struct Message<'a> {
    #[serde(borrow, default)]
    pub(crate) id: Option<&'a RawValue>,
    #[serde(default)]
    method: &'a str,
    #[serde(borrow, default)]
    params: Params<'a>,
}

#[derive(serde::Deserialize, Default)]
struct Params<'a> {
    #[serde(borrow, default)]
    arguments: Arguments<'a>,
}

#[derive(serde::Deserialize, Default)]
struct Arguments<'a> {
    #[serde(borrow, default)]
    text: Option<&'a RawValue>,
}
