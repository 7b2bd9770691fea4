//! Bodies: JSON, or an event stream that is read out of a lane.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use http_body::Frame;
use tokio::sync::mpsc;

use crate::serve::lane::{Lane, Letter, Next, Reader};
use crate::serve::lines::on_one_line;

/// Events that are on their way to the network.
const AHEAD: usize = 16;

/// A JSON body.
pub(super) fn json(status: StatusCode, text: String) -> Response {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// A status without a body.
pub(super) fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// How events are written.
#[derive(Clone, Copy)]
pub(super) struct Style {
    /// The lane's number in its session: events then carry ids, and the stream can be taken up again.
    pub(super) lane: Option<u64>,
    /// Begin with an empty event that has an id and says when to come back.
    pub(super) primes: bool,
    pub(super) keep_alive: Duration,
}

/// A lane, and how far it was read.
pub(super) struct Source {
    pub(super) lane: Arc<Lane>,
    pub(super) reader: Reader,
    /// What was read already and must be said first.
    pub(super) first: Option<(u64, Letter)>,
}

/// An event stream with what is in the lane. What is held is let go when the stream ends, from whichever side.
pub(super) fn events(source: Source, style: Style, held: impl Send + 'static) -> Response {
    let (sender, receiver) = mpsc::channel(AHEAD);
    tokio::spawn(async move {
        pump(source, style, &sender).await;
        drop(held);
    });
    stream(receiver)
}

/// A response whose body is an event stream.
pub(super) fn stream(receiver: mpsc::Receiver<Bytes>) -> Response {
    let mut response = Response::new(Body::new(Stream(receiver)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}

/// Says the first word before anything else: legacy hosts learn there where to post.
pub(super) fn named(name: &str, data: &str) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

/// Copies the lane to the network until either ends.
async fn pump(source: Source, style: Style, sender: &mpsc::Sender<Bytes>) {
    let Source { lane, mut reader, mut first } = source;
    if let (true, Some(number)) = (style.primes, style.lane) {
        let seen = first.as_ref().map_or(reader.last(), |(number, _)| number - 1);
        let priming = format!("id: {number}-{seen}\nretry: 500\ndata:\n\n");
        if sender.send(Bytes::from(priming)).await.is_err() {
            return;
        }
    }
    loop {
        let next = match first.take() {
            Some((number, letter)) => Ok(Next::Message(number, letter)),
            None => tokio::select! {
                next = tokio::time::timeout(style.keep_alive, lane.next(&mut reader)) => next,
                () = sender.closed() => return,
            },
        };
        let event = match next {
            Ok(Next::Message(number, letter)) => event(style.lane, number, letter.text),
            Ok(Next::Released | Next::Done) => return,
            Err(_) => ":\n\n".to_owned(),
        };
        if sender.send(Bytes::from(event)).await.is_err() {
            return;
        }
    }
}

fn event(lane: Option<u64>, number: u64, text: String) -> String {
    let text = on_one_line(text);
    match lane {
        Some(lane) => format!("id: {lane}-{number}\nevent: message\ndata: {text}\n\n"),
        None => format!("event: message\ndata: {text}\n\n"),
    }
}

/// A body that is written while it is sent.
struct Stream(mpsc::Receiver<Bytes>);

impl http_body::Body for Stream {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.0.poll_recv(context).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}
