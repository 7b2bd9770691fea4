//! What a client does with a message it did not wait for: answers the server's requests, hands notifications on.
//!
//! Refuses every server request but `ping`: a client that declared no capabilities owes no more.

use serde_json::value::RawValue;
use tokio::sync::mpsc;

use crate::message::{Message, Notification, Request, Response};

const METHOD_NOT_FOUND: i64 = -32601;

/// Where notifications go.
#[derive(Debug, Clone, Default)]
pub(crate) struct Inbound {
    notices: Option<mpsc::Sender<Notification>>,
}

impl Inbound {
    pub(crate) fn new(notices: Option<mpsc::Sender<Notification>>) -> Self {
        Self { notices }
    }

    /// Takes a message in; returns what must be sent back, if anything.
    ///
    /// Waits while the queue of notifications is full: they are neither dropped nor reordered.
    pub(crate) async fn take(&self, message: Message) -> Option<Response> {
        match message {
            Message::Request(request) => Some(answer(request)),
            Message::Notification(notification) => {
                if let Some(notices) = &self.notices {
                    // A receiver that is gone no longer wants them.
                    let _ = notices.send(notification).await;
                }
                None
            }
            // The answer to a call that was given up.
            Message::Response(_) => None,
        }
    }
}

fn answer(request: Request) -> Response {
    match (request.method.as_str(), RawValue::from_string("{}".to_owned())) {
        ("ping", Ok(empty)) => Response::success(request.id, empty),
        _ => Response::failure(request.id, METHOD_NOT_FOUND, "method not found"),
    }
}
