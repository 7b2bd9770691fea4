//! Legacy HTTP+SSE, client side: one GET stream brings every message in, its first event names the URL to POST to.
//!
//! Owns the stream's reader and the calls that wait on it. Refuses a POST URL of another origin: the token would follow.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use reqwest::header::ACCEPT;
use reqwest::{Method, Url};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::error::Error;
use crate::inbound::Inbound;
use crate::link::{Body, EventStream, Link};
use crate::message::{Id, Message, Request, Response};

/// One legacy connection. Dropping it closes the stream.
pub(crate) struct LegacySse {
    outgoing: Outgoing,
    waiting: Arc<Mutex<Waiting>>,
    reader: JoinHandle<()>,
}

impl LegacySse {
    pub(crate) async fn open(link: Link, url: &Url, inbound: Inbound) -> Result<Self, Error> {
        let get = link.request(Method::GET, url).header(ACCEPT, "text/event-stream");
        let http = link.send(get).await?;
        let Body::Events(mut events) = link.body(http)? else {
            return Err(Error::ContentType { content_type: "application/json".to_owned() });
        };
        let outgoing = Outgoing { url: endpoint(&mut events, url, &link).await?, link };
        let waiting = Arc::default();
        let reader = tokio::spawn(
            Reader { outgoing: outgoing.clone(), waiting: Arc::clone(&waiting), inbound }.run(events),
        );
        Ok(Self { outgoing, waiting, reader })
    }

    pub(crate) async fn exchange(&self, request: &Request) -> Result<Response, Error> {
        let (sender, mut answer) = oneshot::channel();
        lock(&self.waiting).enter(request.id.clone(), sender)?;
        // Also when this future is dropped half-way, as by a time limit.
        let _leave = Leave { waiting: &self.waiting, id: &request.id };
        tokio::select! {
            // Some servers finish the POST only after the answer has gone out on the stream.
            answer = &mut answer => return self.arrived(answer.ok()),
            sent = self.outgoing.send(request.print()) => sent?,
        }
        self.arrived(answer.await.ok())
    }

    pub(crate) async fn send(&self, text: String) -> Result<(), Error> {
        self.outgoing.send(text).await
    }

    fn arrived(&self, answer: Option<Response>) -> Result<Response, Error> {
        answer.ok_or_else(|| lock(&self.waiting).closed.clone().map_or(Error::NoAnswer, Error::Closed))
    }
}

impl Drop for LegacySse {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

/// The way out, shared by callers and the reader's replies.
#[derive(Clone)]
struct Outgoing {
    link: Link,
    url: Url,
}

impl Outgoing {
    async fn send(&self, text: String) -> Result<(), Error> {
        self.link.send(self.link.post(&self.url, text)?).await.map(drop)
    }
}

/// The calls that wait for an answer, until the stream closes.
#[derive(Default)]
struct Waiting {
    calls: HashMap<Id, oneshot::Sender<Response>>,
    closed: Option<Arc<Error>>,
}

impl Waiting {
    fn enter(&mut self, id: Id, sender: oneshot::Sender<Response>) -> Result<(), Error> {
        if let Some(cause) = &self.closed {
            return Err(Error::Closed(Arc::clone(cause)));
        }
        self.calls.insert(id, sender);
        Ok(())
    }

    fn claim(&mut self, response: &Response) -> Option<oneshot::Sender<Response>> {
        let id = match &response.id {
            Some(id) => id.clone(),
            // An error without an id belongs to a call for certain only when there is just one.
            None if self.calls.len() == 1 => self.calls.keys().next()?.clone(),
            None => return None,
        };
        self.calls.remove(&id)
    }
}

struct Leave<'a> {
    waiting: &'a Mutex<Waiting>,
    id: &'a Id,
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        lock(self.waiting).calls.remove(self.id);
    }
}

/// Reads the stream to its end and gives every message to whom it belongs.
struct Reader {
    outgoing: Outgoing,
    waiting: Arc<Mutex<Waiting>>,
    inbound: Inbound,
}

impl Reader {
    async fn run(self, events: EventStream) {
        let cause = self.read(events).await.err().unwrap_or(Error::NoAnswer);
        let mut waiting = lock(&self.waiting);
        waiting.closed = Some(Arc::new(cause));
        // Dropping the senders wakes every call.
        waiting.calls.clear();
    }

    async fn read(&self, mut events: EventStream) -> Result<(), Error> {
        while let Some(event) = events.next().await? {
            if event.name != "message" || event.data.is_empty() {
                continue;
            }
            for message in self.outgoing.link.messages(event.data.as_bytes())? {
                self.deliver(message).await;
            }
        }
        Ok(())
    }

    async fn deliver(&self, message: Message) {
        match message {
            Message::Response(response) => {
                let caller = lock(&self.waiting).claim(&response);
                if let Some(caller) = caller {
                    // A caller that has just given up no longer wants it.
                    let _ = caller.send(response);
                }
            }
            message => {
                if let Some(reply) = self.inbound.take(message).await {
                    let limit = self.outgoing.link.limits().courtesy_timeout;
                    let _ = tokio::time::timeout(limit, self.outgoing.send(reply.print())).await;
                }
            }
        }
    }
}

/// Waits for the `endpoint` event and resolves it against the stream's URL.
async fn endpoint(events: &mut EventStream, base: &Url, link: &Link) -> Result<Url, Error> {
    while let Some(event) = events.next().await? {
        if event.name != "endpoint" {
            continue;
        }
        let mut url = base
            .join(event.data.trim())
            .map_err(|_| Error::Protocol("the server's `endpoint` event does not name a URL"))?;
        if url.origin() != base.origin() {
            return Err(Error::ForeignEndpoint {
                endpoint: link.redactor().quote_place(base, event.data.trim()),
            });
        }
        // Who we are is the operator's word, never the server's. Both fail only for URLs without a host.
        let _ = url.set_username(base.username());
        let _ = url.set_password(base.password());
        return Ok(url);
    }
    Err(Error::Protocol("the stream ended before its `endpoint` event"))
}

/// The data are whole after every statement, so a panic elsewhere leaves nothing to fear.
fn lock(waiting: &Mutex<Waiting>) -> MutexGuard<'_, Waiting> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}
