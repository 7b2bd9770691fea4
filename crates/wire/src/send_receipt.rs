//! Knows whether a message has begun to go out: before that it can still be said that it was not sent.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use axum::body::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::sync::oneshot;

use crate::error::Error;

type ReceiptSender = oneshot::Sender<Result<(), Error>>;

/// Where a caller hears whether its message went out.
pub(crate) struct SendReceipt(oneshot::Receiver<Result<(), Error>>);

impl SendReceipt {
    /// Waits until the message goes out, fails, or is given up: `None` if it was given up before it went out, and then it
    /// never will. The inner error is a sender that has left without a word.
    pub(crate) async fn unless(
        mut self,
        given_up: impl Future<Output = ()>,
    ) -> Option<Result<Result<(), Error>, oneshot::error::RecvError>> {
        tokio::select! {
            biased;
            told = &mut self.0 => Some(told),
            () = given_up => {
                // Between the last look and now it may have gone out; after this it cannot.
                self.0.close();
                self.0.try_recv().ok().map(Ok)
            }
        }
    }
}

/// Tells a caller, once, whether its message went out.
#[derive(Clone)]
pub(crate) struct SendNotifier(Arc<Mutex<Option<ReceiptSender>>>);

impl SendNotifier {
    pub(crate) fn new() -> (Self, SendReceipt) {
        let (told, heard) = oneshot::channel();
        (Self(Arc::new(Mutex::new(Some(told)))), SendReceipt(heard))
    }

    /// It goes out; `false` if the caller has left before it did.
    pub(crate) fn went_out(&self) -> bool {
        self.take().is_none_or(|told| told.send(Ok(())).is_ok())
    }

    /// It failed: the error comes back if the message had gone out before, and was told to the caller otherwise.
    pub(crate) fn failed(&self, error: Error) -> Option<Error> {
        let Some(told) = self.take() else { return Some(error) };
        let _ = told.send(Err(error));
        None
    }

    fn take(&self) -> Option<ReceiptSender> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A message as a body. It is asked for when there is a connection to write it to.
pub(crate) struct MessageBody {
    bytes: Option<Bytes>,
    sent: Option<SendNotifier>,
}

impl MessageBody {
    pub(crate) fn new(text: Bytes, sent: Option<SendNotifier>) -> Self {
        Self { bytes: Some(text), sent }
    }
}

impl Body for MessageBody {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        // A caller that has left was told, or will believe, that nothing was sent.
        if self.sent.take().is_some_and(|sent| !sent.went_out()) {
            return Poll::Ready(Some(Err(std::io::Error::other("nobody waits for this message"))));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_given_up_never_goes_out_and_what_went_out_is_not_given_up() {
        let (sent, heard) = SendNotifier::new();
        assert!(heard.unless(std::future::ready(())).await.is_none());
        assert!(!sent.went_out(), "nobody waits for it");

        // It goes out just as it is given up: after the last look at it.
        let (sent, heard) = SendNotifier::new();
        let given_up = async {
            assert!(sent.went_out());
        };
        assert!(matches!(heard.unless(given_up).await, Some(Ok(Ok(())))));
    }
}
