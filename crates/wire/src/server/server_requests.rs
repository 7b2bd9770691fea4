//! Requests from the server to its host that wait for a response.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::outbound::Outbound;
use super::service::{AskError, HostResponse};
use crate::message::{Id, Message, Notification, Outcome, Request, Response};

/// Open requests to one host.
const MOST: usize = 256;

pub(crate) struct ServerRequests {
    /// Makes the ids unique among the processes that serve the same host.
    mark: String,
    last: AtomicU64,
    open: Mutex<OpenRequests>,
}

impl Default for ServerRequests {
    fn default() -> Self {
        let mark = super::new_session_id().chars().take(8).collect();
        Self { mark, last: AtomicU64::default(), open: Mutex::default() }
    }
}

#[derive(Default)]
struct OpenRequests {
    requests: HashMap<Id, oneshot::Sender<Arrival>>,
    is_closed: bool,
}

/// The host's response, and when it arrived.
type Arrival = (Outcome, Instant);

/// One open request; dropping it closes it and cancels it at the host.
pub(crate) struct PendingServerRequest {
    server_requests: Arc<ServerRequests>,
    id: Id,
    /// Where it was sent, once it was.
    outbound: Option<Outbound>,
    sent: Option<Instant>,
    outcome: oneshot::Receiver<Arrival>,
}

impl ServerRequests {
    /// Opens a request: returns the message to send, and the receiver of its response.
    pub(crate) fn open(
        self: &Arc<Self>,
        method: &str,
        params: Option<Box<RawValue>>,
    ) -> Result<(Request, PendingServerRequest), AskError> {
        // A string id cannot be confused with the host's own ids, which most hosts count as numbers from 0 or 1.
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let id = Id::from(format!("embody-{}-{number}", self.mark).as_str());
        let (sender, outcome) = oneshot::channel();
        let mut open = self.lock();
        if open.is_closed {
            return Err(AskError::Gone);
        }
        if open.requests.len() >= MOST {
            return Err(AskError::TooMany);
        }
        open.requests.insert(id.clone(), sender);
        drop(open);
        let request = Request { id: id.clone(), method: method.to_owned(), params };
        Ok((
            request,
            PendingServerRequest {
                server_requests: Arc::clone(self),
                id,
                outbound: None,
                sent: None,
                outcome,
            },
        ))
    }

    /// Delivers a response; returns it if no request here waits for it.
    pub(crate) fn answer(&self, response: Response) -> Result<(), Response> {
        let asked = response.id.as_ref().and_then(|id| self.lock().requests.remove(id));
        let Some(asked) = asked else { return Err(response) };
        // The asker may have left meanwhile.
        let _ = asked.send((response.outcome, Instant::now()));
        Ok(())
    }

    /// Closes all requests, and rejects new ones.
    pub(crate) fn close(&self) {
        let mut open = self.lock();
        open.is_closed = true;
        open.requests.clear();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    fn lock(&self) -> MutexGuard<'_, OpenRequests> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PendingServerRequest {
    pub(crate) async fn ask(&mut self, request: Request, outbound: &Outbound) -> Result<(), AskError> {
        let sent = outbound.send(Message::Request(request)).await;
        let refused = sent.map_err(|_| AskError::Gone)?;
        self.outbound = Some(outbound.clone());
        self.sent = Some(Instant::now());
        if let Some(refused) = refused {
            let _ = self.server_requests.answer(refused);
        }
        Ok(())
    }

    /// Waits for the response; `None` if the host has disconnected.
    pub(crate) async fn wait(mut self) -> Option<HostResponse> {
        let (outcome, arrived) = (&mut self.outcome).await.ok()?;
        // The host may respond before this task runs again after sending.
        let after = self.sent.map(|sent| arrived.saturating_duration_since(sent));
        Some(HostResponse { outcome, after })
    }
}

impl Drop for PendingServerRequest {
    fn drop(&mut self) {
        let was_open = self.server_requests.lock().requests.remove(&self.id).is_some();
        if let Some(outbound) = self.outbound.as_ref().filter(|_| was_open) {
            // A person may still be looking at the request. If there is no room, the cancellation is not sent.
            outbound.try_send(Message::Notification(cancelled(&self.id)));
        }
    }
}

fn cancelled(id: &Id) -> Notification {
    let params = format!(r#"{{"requestId":{},"reason":"the result is no longer needed"}}"#, id.as_json());
    Notification { method: "notifications/cancelled".to_owned(), params: RawValue::from_string(params).ok() }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_answer_knows_how_long_after_its_question_was_sent_it_came() {
        let server_requests = Arc::new(ServerRequests::default());
        let (queue, _letters) = tokio::sync::mpsc::channel(1);
        let (request, mut answer) = server_requests.open("elicitation/create", None).unwrap();
        let id = Some(request.id.clone());
        tokio::time::advance(Duration::from_secs(5)).await;
        answer.ask(request, &Outbound::Pipe(queue)).await.unwrap();
        tokio::time::advance(Duration::from_millis(499)).await;
        let outcome = Outcome::Result(RawValue::NULL.to_owned());
        server_requests.answer(Response { id, outcome }).unwrap();
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(answer.wait().await.unwrap().after, Some(Duration::from_millis(499)));
    }
}
