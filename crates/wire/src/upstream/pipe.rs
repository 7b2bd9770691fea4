//! A server on a pipe: one message per line, both ways.

use std::sync::Arc;

use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncWrite, BufReader};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::task::JoinHandle;

use super::calls::Calls;
use super::{Calling, Running, Said};
use crate::error::Error;
use crate::limits::Limits;
use crate::message::{Message, Notification, Response};
use crate::serve::code;
use crate::serve::lines::{Lines, write};

/// Messages on their way out before a caller waits.
const QUEUE: usize = 256;

/// A connection to a server on a pipe. Dropping it closes both ends.
#[derive(Debug)]
pub struct Pipe {
    calls: Arc<Calls>,
    out: mpsc::Sender<String>,
    reader: JoinHandle<()>,
    limits: Limits,
}

impl Pipe {
    /// Speaks with a server over a pair of byte streams. What it says on its own goes to `said`.
    pub fn new<R, W>(streams: (R, W), limits: Limits, said: mpsc::Sender<Said>) -> Self
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let (input, output) = streams;
        let calls = Arc::new(Calls::default());
        let (out, lines) = mpsc::channel(QUEUE);
        let writer = tokio::spawn(write(output, lines));
        let reader = Reader { calls: Arc::clone(&calls), said, out: out.downgrade() };
        let lines = Lines::new(BufReader::new(input), limits.clone());
        let reader = tokio::spawn(async move {
            let cause = reader.read(lines).await;
            reader.calls.close(cause);
            writer.abort();
        });
        Self { calls, out, reader, limits }
    }

    /// Sends a call.
    ///
    /// # Errors
    /// When it was not sent: the connection is over, or too many calls run.
    pub async fn begin(&self, calling: Calling<'_>) -> Result<Running, Error> {
        let entered = self.calls.enter(calling.method, calling.params, self.limits.calls_max)?;
        self.send(entered.request.print()).await?;
        Ok(entered.running)
    }

    /// Tells the server something.
    ///
    /// # Errors
    /// When the connection is over.
    pub async fn notify(&self, method: &str, params: Option<&RawValue>) -> Result<(), Error> {
        let params = params.map(ToOwned::to_owned);
        self.send(Notification { method: method.to_owned(), params }.print()).await
    }

    /// Tells the server that nobody waits for a call any more.
    ///
    /// # Errors
    /// When the connection is over.
    pub async fn cancel(&self, number: u64, reason: &str) -> Result<(), Error> {
        let params = serde_json::json!({"requestId": number, "reason": reason});
        let params = serde_json::value::to_raw_value(&params).ok();
        self.notify("notifications/cancelled", params.as_deref()).await
    }

    /// Answers a question of the server.
    ///
    /// # Errors
    /// When the connection is over.
    pub async fn answer(&self, response: Response) -> Result<(), Error> {
        self.send(response.print()).await
    }

    /// Why the connection is over, if it is.
    #[must_use]
    pub fn closed(&self) -> Option<Arc<Error>> {
        self.calls.closed()
    }

    async fn send(&self, line: String) -> Result<(), Error> {
        if line.len() > self.limits.message_max_bytes {
            return Err(Error::TooLarge { what: "the message", max_bytes: self.limits.message_max_bytes });
        }
        self.out.send(line).await.map_err(|_| self.calls.closed().map_or(Error::NoAnswer, Error::Closed))
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        self.reader.abort();
        self.calls.close(Error::NoAnswer);
    }
}

struct Reader {
    calls: Arc<Calls>,
    said: mpsc::Sender<Said>,
    out: mpsc::WeakSender<String>,
}

impl Reader {
    /// Reads until the pipe ends; why it did.
    async fn read<R: AsyncRead + Unpin>(&self, mut lines: Lines<R>) -> Error {
        loop {
            match lines.next().await {
                Err(error) => return Error::Pipe(error),
                Ok(None) => return Error::NoAnswer,
                Ok(Some(Ok(messages))) => {
                    for message in messages {
                        self.deliver(message).await;
                    }
                }
                // Garbage on its own is skipped; what can be told to belong to a call ends that call.
                Ok(Some(Err(unread))) => {
                    if let Some(number) = unread.id.and_then(|id| id.as_json().parse().ok()) {
                        self.calls.fail(
                            number,
                            Error::Protocol("the answer is longer than allowed, or cannot be read"),
                        );
                    }
                }
            }
        }
    }

    async fn deliver(&self, message: Message) {
        let said = match message {
            Message::Response(response) => return self.calls.answer(response),
            Message::Notification(notification) => self.calls.note(notification).map(Said::Notification),
            Message::Request(request) if request.method == "ping" => {
                let pong =
                    RawValue::from_string("{}".to_owned()).map(|empty| Response::success(request.id, empty));
                if let (Ok(pong), Some(out)) = (pong, self.out.upgrade()) {
                    // A server that does not read its own pongs gets none.
                    let _ = out.try_send(pong.print());
                }
                return;
            }
            Message::Request(request) => self.calls.ask(request).map(Said::Request),
        };
        // A full queue is somebody not listening; a server that talks without end must not stop the answers. A question
        // that finds no place is answered, so that the server does not wait for good.
        let refused = said.and_then(|said| self.said.try_send(said).err()).map(|error| match error {
            TrySendError::Full(said) | TrySendError::Closed(said) => said,
        });
        if let (Some(Said::Request(request)), Some(out)) = (refused, self.out.upgrade()) {
            let _ = out
                .try_send(Response::failure(request.id, code::INTERNAL_ERROR, "nobody can be asked").print());
        }
    }
}
