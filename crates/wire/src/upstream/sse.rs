//! A server behind legacy HTTP+SSE: one GET stream delivers every message, and its first event names the URL to POST to. The
//! stream is the connection: it is not resumed when it ends. A POST URL of another origin is rejected, because the token
//! would be sent there.

use std::sync::Arc;

use reqwest::header::{ACCEPT, HeaderMap, HeaderValue};
use reqwest::{Method, Url};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::calls::{Calls, MessageSource, WithdrawOnDrop};
use super::inbox::{Inbox, Replies};
use super::{OutgoingCall, PendingCall, ServerMessage};
use crate::error::Error;
use crate::http_client::{Body, EventStream, HttpClient, HttpRequest};
use crate::message::find_id;
use crate::send_receipt::SendNotifier;

/// One legacy connection. Dropping it closes the stream.
pub(super) struct Sse {
    outgoing: Arc<Outgoing>,
    calls: Arc<Calls>,
    reader: JoinHandle<()>,
}

impl Sse {
    pub(super) async fn open(
        client: HttpClient,
        url: &Url,
        calls: Arc<Calls>,
        messages: mpsc::Sender<ServerMessage>,
    ) -> Result<Self, Error> {
        let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("text/event-stream"))]);
        let get = HttpRequest {
            method: Method::GET,
            url,
            headers,
            text: None,
            sent: None,
            reads_error_body: false,
        };
        let http = client.send(get).await?;
        let Body::Events(mut events) = client.body(http)? else {
            return Err(Error::ContentType { content_type: "application/json".to_owned() });
        };
        let outgoing = Arc::new(Outgoing { url: endpoint(&mut events, url, &client).await?, client });
        let inbox = Inbox::new(Arc::clone(&calls), messages);
        let reader = Reader {
            outgoing: Arc::clone(&outgoing),
            calls: Arc::clone(&calls),
            inbox,
            replies: Replies::default(),
        };
        let reader = tokio::spawn(async move {
            tokio::select! {
                cause = reader.read(events) => reader.calls.close(cause),
                _ = reader.calls.until_closed() => {}
            }
        });
        Ok(Self { outgoing, calls, reader })
    }

    /// Sends a call. Returns once the request has been sent.
    pub(super) async fn begin(
        &self,
        call: OutgoingCall<'_>,
        given_up: impl Future<Output = ()>,
    ) -> Result<Option<PendingCall>, Error> {
        let most = self.outgoing.client.limits().calls_max;
        let entered = self.calls.enter(call.method, call.params, most)?;
        let mut running = entered.running;
        let (sent, receipt) = SendNotifier::new();
        let (outgoing, calls) = (Arc::clone(&self.outgoing), Arc::clone(&self.calls));
        let (number, text) = (running.number(), entered.request.print());
        let unsent = WithdrawOnDrop::new(&calls, number);
        running.set_task(&tokio::spawn(async move {
            // Some servers finish the POST only after the response has gone out on the stream.
            let posted = outgoing.post(text, Some(sent.clone())).await;
            match posted {
                Ok(()) => {
                    sent.went_out();
                    unsent.stay();
                }
                Err(error) => {
                    if let Some(error) = sent.failed(error) {
                        calls.fail(number, error);
                    }
                }
            }
        }));
        running.once_sent(receipt, given_up).await
    }

    /// Sends a message without a response.
    pub(super) async fn send(&self, text: String) -> Result<(), Error> {
        if let Some(cause) = self.calls.closed() {
            return Err(Error::Closed(cause));
        }
        let limit = self.outgoing.client.limits().request_timeout;
        tokio::time::timeout(limit, self.outgoing.post(text, None))
            .await
            .unwrap_or_else(|_| Err(Error::timeout("the acceptance of a message", limit)))
    }
}

impl Drop for Sse {
    fn drop(&mut self) {
        self.calls.close(Error::Left);
        self.reader.abort();
    }
}

/// The sending half, shared by callers and the reader's replies.
struct Outgoing {
    client: HttpClient,
    url: Url,
}

impl Outgoing {
    async fn post(&self, text: String, sent: Option<SendNotifier>) -> Result<(), Error> {
        let headers = HeaderMap::new();
        let post = HttpRequest {
            method: Method::POST,
            url: &self.url,
            headers,
            text: Some(text.into()),
            sent,
            reads_error_body: false,
        };
        self.client.send(post).await.map(drop)
    }
}

struct Reader {
    outgoing: Arc<Outgoing>,
    calls: Arc<Calls>,
    inbox: Inbox,
    replies: Replies,
}

impl Reader {
    /// Reads the stream to its end, and returns the reason.
    async fn read(&self, mut events: Box<EventStream>) -> Error {
        let client = &self.outgoing.client;
        loop {
            let event = match events.next().await {
                Ok(Some(event)) => event,
                Ok(None) => return Error::NoAnswer,
                Err(error) => return error,
            };
            if event.name != "message" || event.data.is_empty() {
                continue;
            }
            match client.messages(event.data.as_bytes()) {
                Ok(messages) => {
                    for message in messages {
                        if let Some(reply) = self.inbox.take(message, MessageSource::Shared) {
                            let outgoing = Arc::clone(&self.outgoing);
                            let post = async move { outgoing.post(reply.print(), None).await };
                            self.replies.send(client.limits().courtesy_timeout, post);
                        }
                    }
                }
                // Unreadable messages are skipped; one that can be attributed to a call fails that call.
                Err(error) => {
                    let id = find_id(event.data.as_bytes());
                    if let Some(number) = id.and_then(|id| id.as_json().parse().ok()) {
                        self.calls.fail(number, error);
                    }
                }
            }
        }
    }
}

/// Waits for the `endpoint` event and resolves it against the stream's URL.
async fn endpoint(events: &mut EventStream, base: &Url, client: &HttpClient) -> Result<Url, Error> {
    while let Some(event) = events.next().await? {
        if event.name != "endpoint" {
            continue;
        }
        let mut url = base
            .join(event.data.trim())
            .map_err(|_| Error::Protocol("the server's `endpoint` event does not name a URL"))?;
        if url.origin() != base.origin() {
            let endpoint = client.redactor().quote_url(base, event.data.trim());
            return Err(Error::ForeignEndpoint { endpoint });
        }
        // The credentials come from the operator, never from the server. Both calls fail only for URLs without a host.
        let _ = url.set_username(base.username());
        let _ = url.set_password(base.password());
        return Ok(url);
    }
    Err(Error::Protocol("the stream ended before its `endpoint` event"))
}
