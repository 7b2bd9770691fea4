//! Response bodies: JSON, or an event stream that reads from a replay buffer.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use http_body::{Frame, SizeHint};
use tokio::sync::mpsc;

use crate::server::lines::on_one_line;
use crate::server::outbound::OnFlushed;
use crate::server::outbound::OutboundMessage;
use crate::server::replay_buffer::{Next, Reader, ReplayBuffer};

/// Events that may queue for the network.
const AHEAD: usize = 16;

pub(super) fn json(status: StatusCode, text: String) -> Response {
    whole(status, Body::from(text))
}

/// A response message as a JSON body.
pub(super) fn outgoing(status: StatusCode, outgoing: OutboundMessage) -> Response {
    let OutboundMessage { text, on_flushed, .. } = outgoing;
    whole(status, Body::new(Once(Some(Chunk::new(text, on_flushed)))))
}

fn whole(status: StatusCode, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

pub(super) fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

#[derive(Clone, Copy)]
pub(super) struct Style {
    /// The buffer's number in its session: events then carry ids, and the stream can be resumed.
    pub(super) buffer: Option<u64>,
    /// Start with an empty event that carries an id and `retry`.
    pub(super) primes: bool,
    pub(super) keep_alive: Duration,
}

/// A replay buffer, and the position of the reader.
pub(super) struct Source {
    pub(super) buffer: Arc<ReplayBuffer>,
    pub(super) reader: Reader,
    /// A message that is already read and must be sent first.
    pub(super) first: Option<(u64, OutboundMessage)>,
}

/// An event stream of the buffer's messages. `held` is dropped when the stream ends, on either side.
pub(super) fn events(source: Source, style: Style, held: impl Send + 'static) -> Response {
    let (sender, receiver) = mpsc::channel(AHEAD);
    tokio::spawn(async move {
        pump(source, style, &sender).await;
        drop(held);
    });
    stream(receiver)
}

pub(super) fn stream(receiver: mpsc::Receiver<Chunk>) -> Response {
    let mut response = Response::new(Body::new(Stream(receiver)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}

/// An event with a name: legacy hosts read from the first one where to post.
pub(super) fn named(name: &str, data: &str) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

/// Copies the buffer to the network until either ends.
async fn pump(source: Source, style: Style, sender: &mpsc::Sender<Chunk>) {
    let Source { buffer, mut reader, mut first } = source;
    if let (true, Some(number)) = (style.primes, style.buffer) {
        let seen = first.as_ref().map_or(reader.last(), |(number, _)| number - 1);
        let priming = format!("id: {number}-{seen}\nretry: 500\ndata:\n\n");
        if sender.send(priming.into()).await.is_err() {
            return;
        }
    }
    loop {
        let next = match first.take() {
            Some((number, outgoing)) => Ok(Next::Message(number, outgoing)),
            None => tokio::select! {
                next = tokio::time::timeout(style.keep_alive, buffer.next(&mut reader)) => next,
                () = sender.closed() => return,
            },
        };
        let event = match next {
            Ok(Next::Message(number, outgoing)) => event(style.buffer, number, outgoing),
            Ok(Next::Released | Next::Done) => return,
            Err(_) => ":\n\n".to_owned().into(),
        };
        if sender.send(event).await.is_err() {
            return;
        }
    }
}

fn event(buffer: Option<u64>, number: u64, outgoing: OutboundMessage) -> Chunk {
    let text = on_one_line(outgoing.text);
    let text = match buffer {
        Some(buffer) => format!("id: {buffer}-{number}\nevent: message\ndata: {text}\n\n"),
        None => format!("event: message\ndata: {text}\n\n"),
    };
    Chunk::new(text, outgoing.on_flushed)
}

/// A part of a body, and the callbacks to run when HTTP takes it.
pub(super) struct Chunk {
    bytes: Bytes,
    on_flushed: OnFlushed,
}

impl Chunk {
    pub(super) fn new(text: String, on_flushed: OnFlushed) -> Self {
        Self { bytes: text.into(), on_flushed }
    }

    fn hand_over(self) -> Frame<Bytes> {
        self.on_flushed.run();
        Frame::data(self.bytes)
    }
}

impl From<String> for Chunk {
    fn from(text: String) -> Self {
        Self::new(text, OnFlushed::default())
    }
}

struct Once(Option<Chunk>);

impl http_body::Body for Once {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Poll::Ready(self.0.take().map(|chunk| Ok(chunk.hand_over())))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, |chunk| chunk.bytes.len() as u64))
    }
}

/// A body that is produced while it is sent.
struct Stream(mpsc::Receiver<Chunk>);

impl http_body::Body for Stream {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.0.poll_recv(context).map(|chunk| chunk.map(|chunk| Ok(chunk.hand_over())))
    }
}
