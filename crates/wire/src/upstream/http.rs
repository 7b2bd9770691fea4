//! A server behind streamable HTTP: every message is a separate POST. Messages on the response stream of a POST belong to its
//! call; others arrive on a GET stream, if the server offers one and the connection has a listener. A call is sent once. When
//! its stream breaks, it is resumed if the server sent an event id; otherwise the call is lost.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use reqwest::header::{ACCEPT, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Response, StatusCode, Url};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::calls::{Calls, MessageSource, WithdrawOnDrop};
use super::inbox::{Inbox, Replies};
use super::{OutgoingCall, PendingCall, ServerMessage};
use crate::error::Error;
use crate::http_client::{Body, EventStream, HttpClient, HttpRequest, ResumePoint};
use crate::initialize::Version;
use crate::message::{Message, Outcome};
use crate::send_receipt::SendNotifier;
use crate::server::MODERN;

const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const SESSION_ID_MAX_BYTES: usize = 1024;
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Delay before a stream is resumed, if the server does not send `retry`.
const PAUSE: Duration = Duration::from_secs(1);
/// Bounds on the `retry` delay that a server may ask for.
const PAUSE_LEAST: Duration = Duration::from_millis(50);
const PAUSE_MOST: Duration = Duration::from_secs(30);
/// Consecutive failures before a call's stream is abandoned.
const FAILURES_MOST: u32 = 5;

/// A connection over streamable HTTP. Dropping it leaves the session to expire on the server.
pub(super) struct Http {
    shared: Arc<Shared>,
    messages: mpsc::Sender<ServerMessage>,
    listener: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    client: HttpClient,
    url: Url,
    calls: Arc<Calls>,
    inbox: Inbox,
    replies: Replies,
    /// The `Mcp-Session-Id` from the `initialize` response.
    session: OnceLock<HeaderValue>,
    version: OnceLock<Version>,
    is_stateless: AtomicBool,
}

impl Http {
    pub(super) fn new(
        client: HttpClient,
        url: Url,
        calls: Arc<Calls>,
        messages: mpsc::Sender<ServerMessage>,
    ) -> Self {
        let inbox = Inbox::new(Arc::clone(&calls), messages.clone());
        let (session, version) = (OnceLock::new(), OnceLock::new());
        Self {
            shared: Arc::new(Shared {
                client,
                url,
                calls,
                inbox,
                replies: Replies::default(),
                session,
                version,
                is_stateless: AtomicBool::new(false),
            }),
            messages,
            listener: Mutex::default(),
        }
    }

    /// Sets whether later messages follow the stateless era.
    pub(super) fn set_stateless(&self, on: bool) {
        self.shared.is_stateless.store(on, Ordering::Release);
    }

    /// Fixes the protocol version that every later message names.
    pub(super) fn agree(&self, version: Version) {
        let _ = self.shared.version.set(version);
    }

    /// Opens the GET stream for messages that belong to no call, if the connection has a listener.
    pub(super) fn listen(&self) {
        if self.messages.is_closed() {
            return;
        }
        let (shared, messages) = (Arc::clone(&self.shared), self.messages.clone());
        let listener = tokio::spawn(async move {
            tokio::select! {
                () = shared.read_get_stream() => {}
                () = messages.closed() => {}
                _ = shared.calls.until_closed() => {}
            }
        });
        *self.listener.lock().unwrap_or_else(PoisonError::into_inner) = Some(listener);
    }

    /// Sends a call. Returns once the request has been sent.
    pub(super) async fn begin(
        &self,
        call: OutgoingCall<'_>,
        param_headers: HeaderMap,
        given_up: impl Future<Output = ()>,
    ) -> Result<Option<PendingCall>, Error> {
        let most = self.shared.client.limits().calls_max;
        let entered = self.shared.calls.enter(call.method, call.params, most)?;
        let mut running = entered.running;
        let (sent, receipt) = SendNotifier::new();
        let shared = Arc::clone(&self.shared);
        let (number, text) = (running.number(), entered.request.print());
        // Created here, so that a task aborted before its first poll also withdraws the call.
        let leave = WithdrawOnDrop::new(&shared.calls, number);
        running.set_task(&tokio::spawn(async move {
            let _leave = leave;
            tokio::select! {
                result = shared.send_call(number, text, param_headers, &sent) => {
                    if let Err(error) = result {
                        shared.fail(number, &sent, error);
                    }
                }
                _ = shared.calls.until_closed() => {}
            }
        }));
        running.once_sent(receipt, given_up).await
    }

    /// Sends a message without a response, and waits until the server has accepted it.
    pub(super) async fn send(&self, text: String) -> Result<(), Error> {
        self.shared.send(text).await
    }

    /// Ends the session, if there is one. A failed DELETE is not retried.
    pub(super) async fn close(&self) {
        let is_lost = self.shared.calls.closed().is_some();
        self.shared.calls.close(Error::Left);
        if self.shared.session.get().is_some() && !is_lost {
            let deleted = self.shared.ask(Method::DELETE, HeaderMap::new(), None, None);
            let _ = tokio::time::timeout(self.shared.client.limits().courtesy_timeout, deleted).await;
        }
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        self.shared.calls.close(Error::Left);
        if let Some(listener) = self.listener.lock().unwrap_or_else(PoisonError::into_inner).take() {
            listener.abort();
        }
    }
}

impl Shared {
    async fn send(&self, text: String) -> Result<(), Error> {
        if let Some(cause) = self.calls.closed() {
            return Err(Error::Closed(cause));
        }
        let limit = self.client.limits().request_timeout;
        let posted = tokio::time::timeout(limit, self.post(text, HeaderMap::new(), None)).await;
        let posted = posted.unwrap_or_else(|_| Err(Error::timeout("the acceptance of a message", limit)));
        posted.inspect_err(|error| self.note_loss(error)).map(drop)
    }

    fn fail(&self, number: u64, sent: &SendNotifier, error: Error) {
        let is_lost = matches!(error, Error::SessionLost);
        if let Some(error) = sent.failed(error) {
            self.calls.fail(number, error);
        }
        // After the call itself, because the call was rejected while the outcome of all others is unknown.
        if is_lost {
            self.calls.close(Error::SessionLost);
        }
    }

    /// Sends a call and reads its stream to the end.
    async fn send_call(
        self: &Arc<Self>,
        number: u64,
        text: String,
        param_headers: HeaderMap,
        sent: &SendNotifier,
    ) -> Result<(), Error> {
        let http = self.post(text, param_headers, Some(sent.clone())).await?;
        sent.went_out();
        if self.version.get().is_none()
            && !self.is_stateless()
            && let Some(given) = http.headers().get(SESSION_ID)
        {
            let _ = self.session.set(session_id(given)?);
        }
        if http.status() == StatusCode::ACCEPTED {
            return Err(Error::NoAnswer);
        }
        if !http.status().is_success() {
            return self.read_rejection(http, number).await;
        }
        match self.client.body(http)? {
            Body::Json(http) => {
                for message in self.client.read_json(http).await? {
                    self.receive(message, MessageSource::Call(number));
                }
                if self.calls.has(number) { Err(Error::NoAnswer) } else { Ok(()) }
            }
            Body::Events(events) => self.read_call_stream(events, number).await,
        }
    }

    /// Handles a rejected call: the body is an error response to it, or only the status says why.
    async fn read_rejection(self: &Arc<Self>, http: Response, number: u64) -> Result<(), Error> {
        let status = http.status().as_u16();
        let mut detail = String::new();
        for message in self.client.read_json(http).await.unwrap_or_default() {
            detail = self.client.reason(&message);
            if matches!(&message, Message::Response(response) if matches!(response.outcome, Outcome::Error(_)))
            {
                self.receive(message, MessageSource::Call(number));
            }
        }
        if self.calls.has(number) { Err(Error::Status { status, detail }) } else { Ok(()) }
    }

    fn receive(self: &Arc<Self>, message: Message, stream: MessageSource) {
        if let Some(reply) = self.inbox.take(message, stream) {
            let shared = Arc::clone(self);
            let limit = self.client.limits().courtesy_timeout;
            self.replies.send(limit, async move {
                shared.post(reply.print(), HeaderMap::new(), None).await.map(drop)
            });
        }
    }

    async fn post(
        &self,
        text: String,
        mut headers: HeaderMap,
        sent: Option<SendNotifier>,
    ) -> Result<Response, Error> {
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        self.ask(Method::POST, headers, Some(text.into()), sent).await
    }

    async fn ask(
        &self,
        method: Method,
        mut headers: HeaderMap,
        text: Option<Bytes>,
        sent: Option<SendNotifier>,
    ) -> Result<Response, Error> {
        if let Some(session) = self.session.get() {
            headers.insert(SESSION_ID, session.clone());
        }
        if self.is_stateless() {
            headers.insert(PROTOCOL_VERSION, HeaderValue::from_static(MODERN));
        } else if let Some(version) = self.version.get() {
            headers.insert(PROTOCOL_VERSION, HeaderValue::from_static(version.as_str()));
        }
        let reads_error_body = sent.is_some() && self.is_stateless();
        match self
            .client
            .send(HttpRequest { method, url: &self.url, headers, text, sent, reads_error_body })
            .await
        {
            Err(Error::Status { status: 404, .. }) if self.session.get().is_some() => Err(Error::SessionLost),
            sent => sent,
        }
    }

    fn is_stateless(&self) -> bool {
        self.is_stateless.load(Ordering::Acquire)
    }

    /// Closes the connection when the server no longer knows the session.
    fn note_loss(&self, error: &Error) {
        if matches!(error, Error::SessionLost) {
            self.calls.close(Error::SessionLost);
        }
    }
}

fn session_id(value: &HeaderValue) -> Result<HeaderValue, Error> {
    let bytes = value.as_bytes();
    if bytes.is_empty() || bytes.len() > SESSION_ID_MAX_BYTES || !bytes.iter().all(u8::is_ascii_graphic) {
        return Err(Error::Protocol("the server's session id is empty, too long or not visible ASCII"));
    }
    let mut value = value.clone();
    value.set_sensitive(true);
    Ok(value)
}

struct StreamEnd {
    /// Why the stream broke; `None` if it ended normally.
    fault: Option<Error>,
    is_empty: bool,
}

impl Shared {
    /// Reads a call's stream, and resumes it when it breaks, until the response has arrived.
    async fn read_call_stream(
        self: &Arc<Self>,
        mut events: Box<EventStream>,
        number: u64,
    ) -> Result<(), Error> {
        let mut place = ResumePoint::default();
        loop {
            let read = self.read_stream(&mut events, MessageSource::Call(number)).await;
            if !self.calls.has(number) {
                return Ok(());
            }
            let fault = read.fault.unwrap_or(Error::NoAnswer);
            place = later(place, events.resume_point());
            if !matches!(fault, Error::NoAnswer | Error::Truncated | Error::Lost(_)) {
                return Err(fault);
            }
            let Some(id) = place.id.as_deref() else { return Err(fault) };
            match self.resume(id, &place).await {
                Some(resumed) => events = resumed,
                // The reason it broke is more useful than the reason it could not be resumed.
                None => return Err(fault),
            }
        }
    }

    async fn resume(&self, id: &str, place: &ResumePoint) -> Option<Box<EventStream>> {
        for failures in 0..FAILURES_MOST {
            sleep(pause(place, failures)).await;
            match self.get(Some(id)).await {
                Ok(events) => return Some(events),
                Err(error) if is_final(&error) => return None,
                Err(_) => {}
            }
        }
        None
    }

    /// Reads the GET stream until the connection closes or the server turns out to have no such stream.
    async fn read_get_stream(self: &Arc<Self>) {
        let (mut place, mut failures) = (ResumePoint::default(), 0_u32);
        loop {
            match self.get(place.id.as_deref()).await {
                Ok(mut events) => {
                    let read = self.read_stream(&mut events, MessageSource::Apart).await;
                    failures = if read.is_empty { failures.saturating_add(1) } else { 0 };
                    place = later(place, events.resume_point());
                }
                // The events after that id may be gone while the session still exists.
                Err(error) if is_final(&error) && place.id.is_some() => place.id = None,
                Err(error) if is_final(&error) => return self.note_loss(&error),
                Err(_) => failures = failures.saturating_add(1),
            }
            sleep(pause(&place, failures)).await;
        }
    }

    /// Routes every message until the stream ends or its call is answered.
    async fn read_stream(self: &Arc<Self>, events: &mut EventStream, stream: MessageSource) -> StreamEnd {
        let mut is_empty = true;
        let fault = loop {
            let event = match events.next().await {
                Ok(Some(event)) => event,
                Ok(None) => break None,
                Err(error) => break Some(error),
            };
            is_empty = false;
            // An event without data only marks a point to resume from.
            if event.name != "message" || event.data.is_empty() {
                continue;
            }
            match self.client.messages(event.data.as_bytes()) {
                Ok(messages) => {
                    for message in messages {
                        self.receive(message, stream);
                    }
                }
                // On the stream of a call, the unreadable message may have been the response.
                Err(error) if stream != MessageSource::Apart => break Some(error),
                Err(_) => {}
            }
            if matches!(stream, MessageSource::Call(number) if !self.calls.has(number)) {
                break None;
            }
        };
        StreamEnd { fault, is_empty }
    }

    async fn get(&self, last: Option<&str>) -> Result<Box<EventStream>, Error> {
        let mut headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("text/event-stream"))]);
        if let Some(last) = last {
            let id = HeaderValue::from_bytes(last.as_bytes()).map_err(|_| {
                Error::Protocol("the id of an event contains characters that are not allowed in a header")
            })?;
            headers.insert(LAST_EVENT_ID, id);
        }
        // Some servers send no headers before their first event.
        match self.client.body(self.ask(Method::GET, headers, None, None).await?)? {
            Body::Events(events) => Ok(events),
            Body::Json(_) => Err(Error::ContentType { content_type: "application/json".to_owned() }),
        }
    }
}

/// Merges resume points: a resumed stream may not send an event id of its own.
fn later(before: ResumePoint, after: &ResumePoint) -> ResumePoint {
    ResumePoint { id: after.id.clone().or(before.id), retry: after.retry.or(before.retry) }
}

fn pause(place: &ResumePoint, failures: u32) -> Duration {
    let pause = place.retry.unwrap_or(PAUSE).clamp(PAUSE_LEAST, PAUSE_MOST);
    pause.saturating_mul(1 << failures.min(5)).min(PAUSE_MOST)
}

fn is_final(error: &Error) -> bool {
    match error {
        Error::Unreachable(_) | Error::Proxy { .. } | Error::Lost(_) => false,
        Error::Timeout { .. } | Error::NoToken { .. } => false,
        Error::Unauthorized { status } => *status != 401,
        // A server that allows one stream may not have noticed that the last one broke.
        Error::Status { status, .. } => !matches!(status, 408 | 409 | 429 | 500 | 502..=599),
        _ => true,
    }
}
