//! Routes the messages of a server to their call, or to the listener of the connection. Never waits, so that a server that
//! floods the connection cannot delay responses. Messages that do not fit (in number or in bytes) are dropped, except change
//! notifications: these are merged and delivered once there is room.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Semaphore, mpsc};

use super::ServerMessage;
use super::calls::{Calls, MessageSource};
use crate::error::Error;
use crate::message::{Message, Notification, Request, Response};
use crate::server::code;

/// Distinct change notifications that may wait for room. Three are for lists; the rest is for resources.
const LATE_MOST: usize = 256;
/// A change notification holds at most a URI. A longer one is dropped like any other message.
const CHANGE_MOST_BYTES: usize = 16 * 1024;
/// Bytes that may wait in one stream. A message that finds the stream empty may be larger.
pub(super) const UNREAD_BYTES: usize = 4 * 1024 * 1024;

/// Replies in flight. A server that sends requests faster than it reads gets no further replies, and its requests time
/// out.
const REPLIES_MOST: usize = 16;

#[derive(Clone)]
pub(super) struct Inbox {
    calls: Arc<Calls>,
    messages: mpsc::Sender<ServerMessage>,
    waiting: Arc<Mutex<Waiting>>,
}

#[derive(Default)]
struct Waiting {
    unread: Unread,
    /// Change notifications that wait for room. While there are any, a task waits to deliver them.
    late: Vec<Notification>,
}

impl Inbox {
    pub(super) fn new(calls: Arc<Calls>, messages: mpsc::Sender<ServerMessage>) -> Self {
        Self { calls, messages, waiting: Arc::default() }
    }

    /// Routes a message. Returns the response to send back, if any.
    pub(super) fn take(&self, message: Message, stream: MessageSource) -> Option<Response> {
        match message {
            Message::Response(response) => {
                self.calls.answer(response, stream);
                None
            }
            Message::Notification(notification) => {
                if let Some(notification) = self.calls.note(notification, stream) {
                    self.deliver(notification);
                }
                None
            }
            Message::Request(request) if request.method == "ping" => Some(pong(request)),
            Message::Request(request) => {
                let request = self.calls.ask(request, stream)?;
                self.ask(request)
            }
        }
    }

    /// Rejects a request that does not fit, so that the server does not wait for ever.
    fn ask(&self, request: Request) -> Option<Response> {
        let no_receiver = |request: Request| {
            Response::failure(request.id, code::INTERNAL_ERROR, "no host can receive this request")
        };
        let mut waiting = self.waiting();
        let size = size(&request.method, request.params.as_deref());
        if !waiting.unread.has_room(&self.messages, size) {
            return Some(no_receiver(request));
        }
        match self.messages.try_send(ServerMessage::Request(request)) {
            Err(
                TrySendError::Full(ServerMessage::Request(request))
                | TrySendError::Closed(ServerMessage::Request(request)),
            ) => Some(no_receiver(request)),
            _ => {
                waiting.unread.add(size);
                None
            }
        }
    }

    fn deliver(&self, notification: Notification) {
        let mut waiting = self.waiting();
        let size = size(&notification.method, notification.params.as_deref());
        let is_change = is_change(&notification.method) && size <= CHANGE_MOST_BYTES;
        // Repeated changes are merged, and queue behind those that already wait.
        if is_change && !waiting.late.is_empty() {
            return keep(&mut waiting.late, notification);
        }
        if !waiting.unread.has_room(&self.messages, size) && !is_change {
            return;
        }
        match self.messages.try_send(ServerMessage::Notification(notification)) {
            Ok(()) => waiting.unread.add(size),
            Err(TrySendError::Full(ServerMessage::Notification(notification))) if is_change => {
                keep(&mut waiting.late, notification);
                tokio::spawn(send_late(self.messages.clone(), Arc::clone(&self.waiting)));
            }
            Err(_) => {}
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn keep(late: &mut Vec<Notification>, notification: Notification) {
    let text = |one: &Notification| one.params.as_deref().map(|params| params.get().to_owned());
    let is_same = |one: &Notification| one.method == notification.method && text(one) == text(&notification);
    if late.len() < LATE_MOST && !late.iter().any(is_same) {
        late.push(notification);
    }
}

async fn send_late(messages: mpsc::Sender<ServerMessage>, waiting: Arc<Mutex<Waiting>>) {
    // Without a listener the changes are discarded.
    while let Ok(place) = messages.reserve().await {
        let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.late.is_empty() {
            return;
        }
        let notification = waiting.late.remove(0);
        waiting.unread.add(size(&notification.method, notification.params.as_deref()));
        place.send(ServerMessage::Notification(notification));
        if waiting.late.is_empty() {
            return;
        }
    }
}

/// The sizes of the messages in a stream that are not read yet, oldest first.
#[derive(Debug, Default)]
pub(super) struct Unread {
    sizes: VecDeque<usize>,
    bytes: usize,
}

impl Unread {
    /// Whether a message of `size` bytes fits into the stream.
    pub(super) fn has_room<T>(&mut self, stream: &mpsc::Sender<T>, size: usize) -> bool {
        // The reader does not report; the messages that the stream no longer holds have been read.
        let held = stream.max_capacity().saturating_sub(stream.capacity());
        while self.sizes.len() > held {
            self.bytes = self.bytes.saturating_sub(self.sizes.pop_front().unwrap_or_default());
        }
        self.sizes.is_empty() || self.bytes.saturating_add(size) <= UNREAD_BYTES
    }

    pub(super) fn add(&mut self, size: usize) {
        self.sizes.push_back(size);
        self.bytes = self.bytes.saturating_add(size);
    }
}

/// The size of a message for the byte limit.
pub(super) fn size(method: &str, params: Option<&RawValue>) -> usize {
    method.len() + params.map_or(0, |params| params.get().len())
}

/// Whether a notification says that previously read data has changed. It belongs to the connection, whichever stream it
/// comes on.
pub(super) fn is_change(method: &str) -> bool {
    method.ends_with("/list_changed") || method == "notifications/resources/updated"
}

fn pong(request: Request) -> Response {
    match RawValue::from_string("{}".to_owned()) {
        Ok(empty) => Response::success(request.id, empty),
        Err(_) => Response::failure(request.id, code::INTERNAL_ERROR, "no pong"),
    }
}

/// Immediate replies to a server that do not block its reader, limited in number.
pub(super) struct Replies(Arc<Semaphore>);

impl Default for Replies {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(REPLIES_MOST)))
    }
}

impl Replies {
    /// Sends a reply within the time limit, if there is capacity.
    pub(super) fn send(
        &self,
        limit: Duration,
        reply: impl Future<Output = Result<(), Error>> + Send + 'static,
    ) {
        if let Ok(place) = Arc::clone(&self.0).try_acquire_owned() {
            tokio::spawn(async move {
                let _ = tokio::time::timeout(limit, reply).await;
                drop(place);
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(method: &str, bytes: usize) -> Message {
        let params = RawValue::from_string(format!(r#"{{"data":"{}"}}"#, "x".repeat(bytes))).unwrap();
        Message::Notification(Notification { method: method.to_owned(), params: Some(params) })
    }

    fn question(bytes: usize) -> Message {
        let params = RawValue::from_string(format!("\"{}\"", "x".repeat(bytes))).unwrap();
        Message::Request(Request { id: 1.into(), method: "roots/list".to_owned(), params: Some(params) })
    }

    #[test]
    fn unread_messages_are_bounded_in_bytes() {
        let (messages, mut says) = mpsc::channel(256);
        let inbox = Inbox::new(Arc::default(), messages);
        for _ in 0..50 {
            inbox.take(note("notifications/message", 1024 * 1024), MessageSource::Shared);
        }
        assert!(
            inbox.take(question(2 * 1024 * 1024), MessageSource::Shared).is_some(),
            "it is answered, as there is no room"
        );
        inbox.take(note("notifications/tools/list_changed", 3), MessageSource::Shared);
        let received: Vec<ServerMessage> = std::iter::from_fn(|| says.try_recv().ok()).collect();
        assert_eq!(received.len(), 4, "three notifications and the change");
        assert!(
            matches!(received.last(), Some(ServerMessage::Notification(note)) if is_change(&note.method))
        );
        // Once everything is read, the stream accepts messages again, even a large one.
        assert!(inbox.take(question(UNREAD_BYTES + 1), MessageSource::Shared).is_none());
        inbox.take(note("notifications/message", 3), MessageSource::Shared);
        assert!(matches!(says.try_recv(), Ok(ServerMessage::Request(_))));
        assert!(says.try_recv().is_err());
    }
}
