//! A server on a pipe: one message per line, in both directions.

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::calls::{Calls, MessageSource};
use super::child::ProcessExit;
use super::inbox::Inbox;
use super::{Carrier, OutgoingCall, PendingCall, ServerMessage};
use crate::error::Error;
use crate::limits::Limits;
use crate::server::OutboundMessage;
use crate::server::lines::{Lines, write};

/// Outbound messages that may queue before a caller waits.
const QUEUE: usize = 256;

/// A connection to a server on a pipe. Dropping it closes both ends.
pub(super) struct Pipe {
    calls: Arc<Calls>,
    /// [`Pipe::close`] drops the sender; then the server sees the end of its input.
    out: std::sync::Mutex<Option<mpsc::Sender<OutboundMessage>>>,
    reader: JoinHandle<()>,
    limits: Limits,
}

impl Pipe {
    /// Connects to a server over a pair of byte streams; `exit` reports the exit of its process, if it has one.
    pub(super) fn open<R, W>(
        streams: (R, W),
        limits: Limits,
        (calls, messages): (Arc<Calls>, mpsc::Sender<ServerMessage>),
        exit: Option<watch::Receiver<Option<ProcessExit>>>,
    ) -> Self
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let (input, output) = streams;
        let (out, lines) = mpsc::channel(QUEUE);
        let mut writer = tokio::spawn(write(output, lines));
        let inbox = Inbox::new(Arc::clone(&calls), messages);
        let reader = Reader { calls: Arc::clone(&calls), inbox, out: out.downgrade() };
        let lines = Lines::new(input, limits.clone());
        let grace = limits.courtesy_timeout;
        let reader = tokio::spawn(async move {
            let mut reading = std::pin::pin!(reader.read(lines));
            let cause = tokio::select! {
                cause = &mut reading => cause,
                // A server that no longer reads may still write.
                written = &mut writer => {
                    let cause = written.ok().and_then(Result::err).map_or(Error::Left, Error::Pipe);
                    let _ = timeout(grace, &mut reading).await;
                    cause
                }
                // The same holds for a process that has exited; but another process may hold its end of the pipe open.
                exit = ended(exit.clone()) => {
                    let _ = timeout(grace, &mut reading).await;
                    exit
                }
            };
            let cause = match (cause, exit) {
                // The exit status of the process explains best why the pipe closed.
                (cause @ (Error::NoAnswer | Error::Pipe(_)), Some(exit)) => {
                    timeout(grace, ended(Some(exit))).await.unwrap_or(cause)
                }
                (cause, _) => cause,
            };
            reader.calls.close(cause);
            writer.abort();
        });
        Self { calls, out: std::sync::Mutex::new(Some(out)), reader, limits }
    }

    pub(super) async fn begin(
        &self,
        call: OutgoingCall<'_>,
        given_up: impl Future<Output = ()>,
    ) -> Result<Option<PendingCall>, Error> {
        let permit = tokio::select! {
            biased;
            permit = self.reserve() => permit?,
            () = given_up => return Ok(None),
        };
        self.enter(call, permit).map(Some)
    }

    /// Sends a call if there is room for it.
    pub(super) fn begin_now(&self, call: OutgoingCall<'_>) -> Result<Option<PendingCall>, Error> {
        match self.out()?.try_reserve_owned() {
            Ok(permit) => self.enter(call, permit).map(Some),
            Err(mpsc::error::TrySendError::Full(_)) => Ok(None),
            Err(mpsc::error::TrySendError::Closed(_)) => Err(self.closed_error()),
        }
    }

    /// Does not wait, so a registered call is always sent.
    fn enter(
        &self,
        call: OutgoingCall<'_>,
        permit: mpsc::OwnedPermit<OutboundMessage>,
    ) -> Result<PendingCall, Error> {
        let mut entered = self.calls.enter(call.method, call.params, self.limits.calls_max)?;
        let line = entered.request.print();
        if let Err(error) = self.check(&line) {
            self.calls.withdraw(entered.running.number());
            return Err(error);
        }
        let out = permit.send(line.into());
        // The protocol does not allow `initialize` to be cancelled.
        if call.method != "initialize" {
            entered.running.carrier = Carrier::Pipe(out.downgrade());
        }
        Ok(entered.running)
    }

    /// Closes the connection: queued messages are written, then the server sees the end of its input.
    pub(super) fn close(&self) {
        self.calls.close(Error::Left);
        self.out.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
    }

    /// Sends a message without a response.
    pub(super) async fn send(&self, line: String) -> Result<(), Error> {
        self.check(&line)?;
        self.reserve().await?.send(line.into());
        Ok(())
    }

    fn check(&self, line: &str) -> Result<(), Error> {
        let max_bytes = self.limits.message_max_bytes;
        if line.len() > max_bytes {
            return Err(Error::TooLarge { what: "the message to send", max_bytes });
        }
        Ok(())
    }

    async fn reserve(&self) -> Result<mpsc::OwnedPermit<OutboundMessage>, Error> {
        self.out()?.reserve_owned().await.map_err(|_| self.closed_error())
    }

    fn out(&self) -> Result<mpsc::Sender<OutboundMessage>, Error> {
        let out = self.out.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
        out.ok_or_else(|| self.closed_error())
    }

    /// Why nothing can be sent any more.
    fn closed_error(&self) -> Error {
        self.calls.closed().map_or(Error::NoAnswer, Error::Closed)
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        self.reader.abort();
        self.calls.close(Error::Left);
    }
}

/// Waits for the process to exit and returns an error that says how.
async fn ended(exit: Option<watch::Receiver<Option<ProcessExit>>>) -> Error {
    let Some(mut exit) = exit else { return std::future::pending().await };
    match exit.wait_for(Option::is_some).await.map(|exit| exit.clone()) {
        Ok(Some(ProcessExit { how, last_line })) => Error::Ended { how, last_line },
        // The watching task is gone, and the process with it.
        _ => Error::Left,
    }
}

struct Reader {
    calls: Arc<Calls>,
    inbox: Inbox,
    out: mpsc::WeakSender<OutboundMessage>,
}

impl Reader {
    /// Reads until the pipe ends, and returns the reason.
    async fn read<R: AsyncRead + Unpin>(&self, mut lines: Lines<R>) -> Error {
        loop {
            match lines.next().await {
                Err(error) => return Error::Pipe(error),
                Ok(None) => return Error::NoAnswer,
                Ok(Some(Ok(messages))) => {
                    for message in messages {
                        if let (Some(reply), Some(out)) =
                            (self.inbox.take(message, MessageSource::Shared), self.out.upgrade())
                        {
                            // A server that does not read its responses gets none.
                            let _ = out.try_send(reply.print().into());
                        }
                    }
                }
                // Many servers write other text to stdout, so unreadable lines are skipped. But a response that is too
                // long fails its call, which would otherwise wait for ever.
                Ok(Some(Err(unread))) if unread.is_long_answer => {
                    let number = match unread.answer.id {
                        Some(id) => id.as_json().parse().ok(),
                        None => self.calls.only(),
                    };
                    if let Some(number) = number {
                        self.calls.fail(number, Error::Protocol("the answer is longer than allowed"));
                    }
                }
                Ok(Some(Err(_))) => {}
            }
        }
    }
}
