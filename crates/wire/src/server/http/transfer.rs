//! The bytes of one connection: request bodies, response bodies and writes. Each reports the progress of a request to
//! the connection's [`ConnectionSlot`], which makes the decisions.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{self, Poll};

use axum::body::{Body, Bytes};
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::connections::{ConnectionSlot, Exchange};

type Polled = Poll<Option<Result<Frame<Bytes>, axum::Error>>>;

/// The body of a request. Once it has arrived, or its reader drops it, the request counts as being served.
pub(super) struct RequestBody {
    body: Incoming,
    /// Weak: a body that outlives the response has no effect.
    exchange: Weak<Exchange>,
}

impl RequestBody {
    pub(super) fn new(body: Incoming, exchange: &Arc<Exchange>) -> Self {
        Self { body, exchange: Arc::downgrade(exchange) }
    }

    /// Returns `false` if the connection was closed for another.
    fn report(&self, is_over: bool) -> bool {
        let Some(exchange) = self.exchange.upgrade() else { return true };
        if is_over { exchange.serve() } else { exchange.progress() }
    }
}

impl http_body::Body for RequestBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Polled {
        let this = self.get_mut();
        let frame = task::ready!(Pin::new(&mut this.body).poll_frame(cx));
        let is_over = this.body.is_end_stream() || !matches!(frame, Some(Ok(_)));
        if !this.report(is_over) {
            return Poll::Ready(Some(Err(axum::Error::new(io::Error::from(
                io::ErrorKind::ConnectionAborted,
            )))));
        }
        Poll::Ready(frame.map(|frame| frame.map_err(axum::Error::new)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        self.report(true);
    }
}

/// The body of a response. The exchange ends with it.
pub(super) struct ResponseBody {
    body: Body,
    _exchange: Arc<Exchange>,
}

impl ResponseBody {
    pub(super) fn new(body: Body, exchange: Arc<Exchange>) -> Self {
        Self { body, _exchange: exchange }
    }
}

impl http_body::Body for ResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Polled {
        Pin::new(&mut self.get_mut().body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Records whether the last write had to wait for the peer to read. For hyper, a body ends when its last frame is
/// queued; the bytes may still have to be written.
pub(super) struct TrackedStream {
    stream: TcpStream,
    slot: Arc<ConnectionSlot>,
}

impl TrackedStream {
    pub(super) fn new(stream: TcpStream, slot: Arc<ConnectionSlot>) -> Self {
        Self { stream, slot }
    }
}

impl AsyncRead for TrackedStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut task::Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for TrackedStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut task::Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(cx, bytes);
        this.slot.set_write_blocked(written.is_pending());
        written
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut task::Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write_vectored(cx, slices);
        this.slot.set_write_blocked(written.is_pending());
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
