//! Knows whether a message has begun to go out: before that it can still be said that it was not sent.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use axum::body::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::sync::oneshot;

use crate::error::Error;

type Told = oneshot::Sender<Result<(), Error>>;

/// Tells a caller, once, whether its message went out.
#[derive(Clone)]
pub(crate) struct Sent(Arc<Mutex<Option<Told>>>);

impl Sent {
    pub(crate) fn new() -> (Self, oneshot::Receiver<Result<(), Error>>) {
        let (told, heard) = oneshot::channel();
        (Self(Arc::new(Mutex::new(Some(told)))), heard)
    }

    /// It goes out.
    pub(crate) fn went_out(&self) {
        if let Some(told) = self.take() {
            let _ = told.send(Ok(()));
        }
    }

    /// It failed: the error comes back if the message had gone out before, and was told to the caller otherwise.
    pub(crate) fn failed(&self, error: Error) -> Option<Error> {
        let Some(told) = self.take() else { return Some(error) };
        let _ = told.send(Err(error));
        None
    }

    fn take(&self) -> Option<Told> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A message as a body. It is asked for when there is a connection to write it to.
pub(crate) struct Text {
    bytes: Option<Bytes>,
    sent: Option<Sent>,
}

impl Text {
    pub(crate) fn new(text: String, sent: Option<Sent>) -> Self {
        Self { bytes: Some(text.into()), sent }
    }
}

impl Body for Text {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if let Some(sent) = self.sent.take() {
            sent.went_out();
        }
        Poll::Ready(self.bytes.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}
