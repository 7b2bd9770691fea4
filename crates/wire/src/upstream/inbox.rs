//! What a server says, given to whom it belongs: a call, or whoever listens to the connection.
//!
//! Never waits: a server that talks without end must not stop the answers. What finds no room is dropped, but for what
//! says that something has changed: that is said once more when there is room, once for all.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use super::Said;
use super::calls::{Calls, Stream};
use crate::message::{Message, Notification, Request, Response};
use crate::serve::code;

/// Different changes that may wait for room. There are three lists; the rest is for resources.
const LATE_MOST: usize = 256;

/// Where the messages of one connection arrive.
#[derive(Clone)]
pub(super) struct Inbox {
    calls: Arc<Calls>,
    said: mpsc::Sender<Said>,
    /// Changes that wait for room. Somebody waits with them as long as there are any.
    late: Arc<Mutex<Vec<Notification>>>,
}

impl Inbox {
    pub(super) fn new(calls: Arc<Calls>, said: mpsc::Sender<Said>) -> Self {
        Self { calls, said, late: Arc::default() }
    }

    /// Takes a message in. Returns what must be sent back.
    pub(super) fn take(&self, message: Message, stream: Stream) -> Option<Response> {
        match message {
            Message::Response(response) => {
                self.calls.answer(response, stream);
                None
            }
            Message::Notification(notification) => {
                if let Some(notification) = self.calls.note(notification, stream) {
                    self.tell(notification);
                }
                None
            }
            Message::Request(request) if request.method == "ping" => Some(pong(request)),
            Message::Request(request) => {
                let request = self.calls.ask(request, stream)?;
                // A question that finds no place is answered, so that the server does not wait for good.
                match self.said.try_send(Said::Request(request)) {
                    Err(
                        TrySendError::Full(Said::Request(request))
                        | TrySendError::Closed(Said::Request(request)),
                    ) => Some(Response::failure(request.id, code::INTERNAL_ERROR, "nobody can be asked")),
                    _ => None,
                }
            }
        }
    }

    fn tell(&self, notification: Notification) {
        let mut late = self.late.lock().unwrap_or_else(PoisonError::into_inner);
        let is_change = is_change(&notification.method);
        // What has changed twice is said once, and after what waits already.
        if is_change && !late.is_empty() {
            return keep(&mut late, notification);
        }
        let Err(TrySendError::Full(Said::Notification(notification))) =
            self.said.try_send(Said::Notification(notification))
        else {
            return;
        };
        if is_change {
            keep(&mut late, notification);
            tokio::spawn(tell_late(self.said.clone(), Arc::clone(&self.late)));
        }
    }
}

fn keep(late: &mut Vec<Notification>, notification: Notification) {
    let text = |one: &Notification| one.params.as_deref().map(|params| params.get().to_owned());
    let is_same = |one: &Notification| one.method == notification.method && text(one) == text(&notification);
    if late.len() < LATE_MOST && !late.iter().any(is_same) {
        late.push(notification);
    }
}

async fn tell_late(said: mpsc::Sender<Said>, late: Arc<Mutex<Vec<Notification>>>) {
    // Nobody listens any more: then nobody is told.
    while let Ok(place) = said.reserve().await {
        let mut late = late.lock().unwrap_or_else(PoisonError::into_inner);
        if late.is_empty() {
            return;
        }
        place.send(Said::Notification(late.remove(0)));
        if late.is_empty() {
            return;
        }
    }
}

/// Says that something that was read before is another now. It is the connection's, whichever way it comes.
pub(super) fn is_change(method: &str) -> bool {
    method.ends_with("/list_changed") || method == "notifications/resources/updated"
}

fn pong(request: Request) -> Response {
    match RawValue::from_string("{}".to_owned()) {
        Ok(empty) => Response::success(request.id, empty),
        Err(_) => Response::failure(request.id, code::INTERNAL_ERROR, "no pong"),
    }
}
