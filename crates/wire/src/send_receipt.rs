//! Tracks whether a message has started to be sent: until then it is certain that it was not sent.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use axum::body::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::sync::oneshot;

use crate::error::Error;

type ReceiptSender = oneshot::Sender<Result<(), Error>>;

/// Resolves once the message is sent or has failed.
pub(crate) struct SendReceipt(oneshot::Receiver<Result<(), Error>>);

impl SendReceipt {
    /// Waits until the message is sent, fails, or is cancelled: `None` if it was cancelled before it was sent, and then
    /// it never will be. The inner error means that the sender was dropped.
    pub(crate) async fn unless(
        mut self,
        given_up: impl Future<Output = ()>,
    ) -> Option<Result<Result<(), Error>, oneshot::error::RecvError>> {
        tokio::select! {
            biased;
            sent = &mut self.0 => Some(sent),
            () = given_up => {
                // It may have been sent since the last poll; after this it cannot be.
                self.0.close();
                self.0.try_recv().ok().map(Ok)
            }
        }
    }
}

/// Reports, once, whether the message was sent.
#[derive(Clone)]
pub(crate) struct SendNotifier(Arc<Mutex<Option<ReceiptSender>>>);

impl SendNotifier {
    pub(crate) fn new() -> (Self, SendReceipt) {
        let (sender, receiver) = oneshot::channel();
        (Self(Arc::new(Mutex::new(Some(sender)))), SendReceipt(receiver))
    }

    /// Reports that the message is being sent; returns `false` if the caller has left.
    pub(crate) fn went_out(&self) -> bool {
        self.take().is_none_or(|sender| sender.send(Ok(())).is_ok())
    }

    /// Reports a failure. Returns the error if the message was already sent; otherwise passes it to the caller.
    pub(crate) fn failed(&self, error: Error) -> Option<Error> {
        let Some(sender) = self.take() else { return Some(error) };
        let _ = sender.send(Err(error));
        None
    }

    fn take(&self) -> Option<ReceiptSender> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A message as an HTTP body. hyper polls it once there is a connection to write it to.
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
        // The caller has left and assumes that nothing was sent.
        if self.sent.take().is_some_and(|sent| !sent.went_out()) {
            return Poll::Ready(Some(Err(std::io::Error::other(
                "the sender no longer waits for this message",
            ))));
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
        let (sent, receiver) = SendNotifier::new();
        assert!(receiver.unless(std::future::ready(())).await.is_none());
        assert!(!sent.went_out(), "the caller no longer waits for it");

        // The message is sent just as it is cancelled: after the last poll.
        let (sent, receiver) = SendNotifier::new();
        let given_up = async {
            assert!(sent.went_out());
        };
        assert!(matches!(receiver.unless(given_up).await, Some(Ok(Ok(())))));
    }
}
