//! A pipe with one message per line: standard streams, or any pair of byte streams. Ends at the end of the input or at
//! shutdown; then running calls get a grace period, and their responses are still written. An oversized line is answered with
//! an error, with its id if that can be found, and skipped.

use std::future::poll_fn;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::task::ready;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::sync::mpsc;

use tokio_util::sync::CancellationToken;

use super::connection::{Connection, PendingResponses};
use super::errors::{code, failure};
use super::in_flight::{Budget, TOO_MANY_BYTES};
use super::outbound::Outbound;
use super::outbound::OutboundMessage;
use super::oversized_line;
use super::service::{Host, Service};
use crate::limits::Limits;
use crate::message::{self, Message, MessageError, Response};

/// Outbound messages that may queue before a call waits.
const QUEUE: usize = 256;
/// How many bytes of an oversized line are kept from its start and from its end, to find its id: some hosts write it
/// last.
const KEPT_BYTES: usize = 4096;
/// Buffer size for one read or write.
const AT_ONCE: usize = 8 * 1024;

/// How long calls may still run after the host has closed its end.
pub(super) const GRACE: Duration = Duration::from_secs(10);

/// Serves one host until it closes its end or the server shuts down.
pub async fn serve<S, R, W>(
    service: Arc<S>,
    principal: S::Principal,
    streams: (R, W),
    limits: Limits,
    shutdown: CancellationToken,
) -> std::io::Result<()>
where
    S: Service,
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let (input, output) = streams;
    let (queue, lines) = mpsc::channel(QUEUE);
    let mut writer = tokio::spawn(write(output, lines));
    let outbound = Outbound::Pipe(queue);
    let host = Host::session(principal, super::new_session_id(), outbound.clone());
    // When the host closes its end, calls that only wait must stop, as at shutdown.
    let connection = Connection::new(service, host, limits.clone(), CancellationToken::new());
    let budget = Budget::new(&limits);
    let mut input = Lines::new(input, limits);
    let mut is_output_closed = false;
    // Handling a line may wait for a host that does not read; the end of input and shutdown must not.
    let read = tokio::select! {
        read = take_all(&mut input, &connection, &outbound, &budget) => read,
        () = shutdown.cancelled() => Ok(()),
        written = &mut writer => {
            is_output_closed = true;
            written.unwrap_or(Ok(()))
        }
    };
    // The calls of a host that does not read cannot be answered.
    connection.shutdown((!is_output_closed).then_some(GRACE)).await;
    if is_output_closed {
        return read;
    }
    drop((connection, outbound));
    // Running calls hold the queue open, and a host that does not read blocks the writer; neither is awaited beyond the
    // limit.
    if tokio::time::timeout(GRACE, &mut writer).await.is_err() {
        writer.abort();
    }
    read
}

/// Handles lines until the host closes its end.
async fn take_all<S: Service, R: AsyncRead + Unpin>(
    input: &mut Lines<R>,
    connection: &Connection<S>,
    outbound: &Outbound,
    budget: &Arc<Budget<()>>,
) -> std::io::Result<()> {
    while let Some(line) = input.next().await? {
        match line {
            Ok(messages) => {
                let mut share = budget.share(&());
                let fits = share.grow(input.last_bytes).is_ok();
                let pending = PendingResponses::new(messages.len(), None, share);
                for message in messages {
                    match message {
                        // Responses are accepted: the calls that wait for them then release their bytes.
                        Message::Request(request) if !fits => {
                            let refused =
                                Response::failure(request.id, code::INVALID_REQUEST, TOO_MANY_BYTES);
                            let _ = outbound.send(Message::Response(refused)).await;
                        }
                        message => connection.receive(message, outbound, Some(Arc::clone(&pending))).await,
                    }
                }
            }
            Err(unread) => {
                let _ = outbound.send(Message::Response(unread.answer)).await;
            }
        }
    }
    Ok(())
}

/// Reads lines. While idle it holds no buffer: a session has many pipes, and most are idle.
pub(crate) struct Lines<R> {
    input: R,
    limits: Limits,
    /// Bytes read beyond the current line, starting at `at`.
    ahead: Vec<u8>,
    at: usize,
    /// The length of the last line.
    last_bytes: usize,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(crate) fn new(input: R, limits: Limits) -> Self {
        Self { input, limits, ahead: Vec::new(), at: 0, last_bytes: 0 }
    }

    /// The messages of the next non-empty line, or the error response to one that cannot be read.
    pub(crate) async fn next(&mut self) -> std::io::Result<Option<Result<Vec<message::Message>, Unread>>> {
        loop {
            let (mut line, mut tail) = (Vec::new(), Vec::new());
            let is_whole = self.read_line(&mut line, &mut tail).await?;
            if line.is_empty() {
                return Ok(None);
            }
            if line.iter().all(u8::is_ascii_whitespace) && is_whole {
                continue;
            }
            if is_whole {
                self.last_bytes = line.len();
                let read = message::parse_frame(&line, &self.limits);
                return Ok(Some(
                    read.map_err(|error| Unread { answer: unreadable(&line, &error), is_long_answer: false }),
                ));
            }
            let error = MessageError::TooLong { max_bytes: self.limits.message_max_bytes };
            let mut answer = unreadable(&line, &error);
            answer.id = answer.id.or_else(|| oversized_line::id_at_end(&tail));
            return Ok(Some(Err(Unread { answer, is_long_answer: oversized_line::is_answer(&line) })));
        }
    }

    /// Reads to the end of the line. For an oversized line, keeps only the start and the end and returns `false`.
    async fn read_line(&mut self, line: &mut Vec<u8>, tail: &mut Vec<u8>) -> std::io::Result<bool> {
        let mut is_whole = true;
        loop {
            if self.at >= self.ahead.len() {
                // Freed before waiting for more input, which may take long.
                (self.ahead, self.at) = (Vec::new(), 0);
                self.ahead = read_some(&mut self.input).await?;
            }
            let bytes = self.ahead.get(self.at..).unwrap_or_default();
            if bytes.is_empty() {
                return Ok(is_whole);
            }
            let end = memchr::memchr(b'\n', bytes);
            let taken = end.map_or(bytes.len(), |end| end + 1);
            let kept = if is_whole { &mut *line } else { &mut *tail };
            if kept.is_empty() && taken == self.ahead.len() {
                // The common case: exactly one line was read.
                *kept = std::mem::take(&mut self.ahead);
            } else {
                kept.extend_from_slice(bytes.get(..taken).unwrap_or(bytes));
                self.at += taken;
            }
            if is_whole && line.len() > self.limits.message_max_bytes {
                is_whole = false;
                tail.clone_from(line);
                line.truncate(KEPT_BYTES);
            }
            if !is_whole {
                tail.drain(..tail.len().saturating_sub(KEPT_BYTES));
            }
            if end.is_some() {
                return Ok(is_whole);
            }
        }
    }
}

/// Waits for input and returns what is available; empty at the end.
async fn read_some(input: &mut (impl AsyncRead + Unpin)) -> std::io::Result<Vec<u8>> {
    poll_fn(|context| {
        // On the stack, so that it exists only during a read.
        let mut space = [MaybeUninit::uninit(); AT_ONCE];
        let mut read = ReadBuf::uninit(&mut space);
        ready!(Pin::new(&mut *input).poll_read(context, &mut read))?;
        Ok(read.filled().to_vec()).into()
    })
    .await
}

#[derive(Debug)]
pub(crate) struct Unread {
    pub(crate) answer: Response,
    /// Whether the line is a response that is only too long.
    pub(crate) is_long_answer: bool,
}

/// The error response to text that is not a message.
pub(crate) fn unreadable(bytes: &[u8], error: &MessageError) -> Response {
    let code = match error {
        MessageError::NotJson(_) => code::PARSE_ERROR,
        _ => code::INVALID_REQUEST,
    };
    Response { id: message::find_id(bytes), outcome: failure(code, error.to_string()) }
}

/// Writes each message as a line, and batches those that are already queued. While idle it holds no buffer.
pub(crate) async fn write<W: AsyncWrite + Unpin>(
    mut output: W,
    mut lines: mpsc::Receiver<OutboundMessage>,
) -> std::io::Result<()> {
    let mut waiting = Vec::new();
    while let Some(outgoing) = lines.recv().await {
        let text = on_one_line(outgoing.text);
        if waiting.len() + text.len() >= AT_ONCE {
            output.write_all(&std::mem::take(&mut waiting)).await?;
        }
        if text.len() >= AT_ONCE {
            output.write_all(text.as_bytes()).await?;
        } else if waiting.is_empty() {
            waiting = text.into_bytes();
        } else {
            waiting.extend_from_slice(text.as_bytes());
        }
        // Runs before the newline is written, because a host that has read the line may already send the next request.
        // If the newline cannot be written, the host is gone and no message follows.
        outgoing.on_flushed.run();
        waiting.push(b'\n');
        if lines.is_empty() {
            output.write_all(&std::mem::take(&mut waiting)).await?;
            output.flush().await?;
        }
    }
    output.write_all(&waiting).await?;
    output.flush().await
}

/// Puts a message on one line. JSON allows line breaks only between tokens, where a space is equivalent.
pub(crate) fn on_one_line(text: String) -> String {
    let bytes = text.as_bytes();
    if bytes.contains(&b'\n') || bytes.contains(&b'\r') { text.replace(['\n', '\r'], " ") } else { text }
}

#[cfg(test)]
mod tests;
