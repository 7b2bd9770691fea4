//! `POST /mcp`: requests, notifications and responses of both eras. A call that sends nothing before its response is answered
//! with a JSON body. A call that reports progress, sends a server request or takes long is answered with an event stream.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{self, State};
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use http_body::Body as _;

use super::HttpServer;
use super::auth::{Caller, HttpError};
use super::headers;
use super::response::{self, Source, Style};
use super::revocation::StatelessRequest;
use super::sessions::{Session, capacity};
use crate::initialize::InitializeParams;
use crate::initialize::Version;
use crate::message::{self, Id, Message, MessageError, Request};
use crate::server::connection::{IncomingRequest, PendingResponses};
use crate::server::era::{Era, MODERN, RequestMeta, unsupported};
use crate::server::errors::code;
use crate::server::in_flight::{Full, Share, TOO_MANY_BYTES};
use crate::server::lines::unreadable;
use crate::server::outbound::Outbound;
use crate::server::outbound::OutboundMessage;
use crate::server::replay_buffer::{Next, Reader, ReplayBuffer};
use crate::server::service::{Host, Service};

pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");

/// After this time without a response an event stream is started, so that intermediaries do not time out.
const STREAM_AFTER: Duration = Duration::from_secs(5);

/// The bytes of one posted body, counted against its token.
type RequestShare<S> = Share<Caller<<S as Service>::Principal>>;

pub(super) async fn post<S: Service>(
    State(server): State<Arc<HttpServer<S>>>,
    // The whole request: extracting the headers would copy them.
    request: extract::Request,
) -> Result<Response, HttpError> {
    let (Parts { headers, .. }, body) = request.into_parts();
    let by = server.authenticate(&headers).await?;
    let (messages, share) = read(&server, &by, &headers, body).await?;
    match stateless(&headers, messages) {
        Ok((request, meta)) => stateless_request(&server, by, &headers, (request, share), meta).await,
        Err(messages) => in_session(&server, by, &headers, (messages, share)).await,
    }
}

/// Reads a body into messages. The share is held until they are answered.
pub(super) async fn read<S: Service>(
    server: &HttpServer<S>,
    by: &Caller<S::Principal>,
    headers: &HeaderMap,
    body: Body,
) -> Result<(Vec<Message>, RequestShare<S>), HttpError> {
    let has = |name, wanted: &str| {
        let value = headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        let is_wanted = |one: &str| {
            let kind = one.split(';').next().unwrap_or_default().trim();
            kind.eq_ignore_ascii_case(wanted) || kind == "*/*"
        };
        value.is_none_or(|value| value.split(',').any(is_wanted))
    };
    if !has(CONTENT_TYPE, "application/json") {
        let message = "the body must be `application/json`";
        return Err(HttpError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
    }
    if !has(ACCEPT, "application/json") && !has(ACCEPT, "text/event-stream") {
        let message = "accept `application/json` and `text/event-stream`";
        return Err(HttpError::new(StatusCode::NOT_ACCEPTABLE, message));
    }
    let (max_bytes, limit) = (server.limits.message_max_bytes, server.limits.body_timeout);
    let mut share = server.budget.share(by);
    let Ok(bytes) = tokio::time::timeout(limit, collect(body, max_bytes, &mut share)).await else {
        let message = format!("the body took longer than {} ms", limit.as_millis());
        return Err(HttpError::new(StatusCode::REQUEST_TIMEOUT, message));
    };
    let bytes = bytes?;
    let messages = message::parse_frame(&bytes, &server.limits).map_err(|error| {
        let response = unreadable(&bytes, &error);
        HttpError::with(StatusCode::BAD_REQUEST, response.id, response.outcome)
    })?;
    // Responses and notifications are accepted: the calls that wait for them then release their bytes.
    if let Some(id) = first_request(&messages)
        && !share.is_within_bound()
    {
        return Err(too_many_bytes().about(Some(id)));
    }
    Ok((messages, share))
}

fn first_request(messages: &[Message]) -> Option<Id> {
    messages.iter().find_map(|message| match message {
        Message::Request(request) => Some(request.id.clone()),
        _ => None,
    })
}

fn too_many_bytes() -> HttpError {
    HttpError::new(StatusCode::TOO_MANY_REQUESTS, TOO_MANY_BYTES)
}

/// Reads the whole body. Each chunk is counted before it is stored.
async fn collect<P: PartialEq + Clone>(
    mut body: Body,
    max_bytes: usize,
    share: &mut Share<P>,
) -> Result<Vec<u8>, HttpError> {
    let too_long = || {
        let message = MessageError::TooLong { max_bytes }.to_string();
        HttpError::new(StatusCode::PAYLOAD_TOO_LARGE, message)
    };
    let expected = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if expected > max_bytes {
        return Err(too_long());
    }
    let mut bytes = Vec::with_capacity(expected);
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        let Ok(frame) = frame else {
            return Err(HttpError::new(StatusCode::BAD_REQUEST, "the request body could not be read"));
        };
        let Ok(piece) = frame.into_data() else { continue };
        if bytes.len() + piece.len() > max_bytes {
            return Err(too_long());
        }
        share.grow_if_small(piece.len()).map_err(|Full| too_many_bytes())?;
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

/// Returns the single request of the stateless era, or the messages if they are not one.
fn stateless(headers: &HeaderMap, messages: Vec<Message>) -> Result<(Request, RequestMeta), Vec<Message>> {
    let mut messages = messages;
    match messages.pop() {
        Some(Message::Request(request)) if messages.is_empty() => {
            let meta = RequestMeta::read(&request);
            let is_foreign = headers::version(headers)
                .is_some_and(|version| version == MODERN || Version::parse(version).is_none());
            if meta.is_stateless(&request.method) || is_foreign {
                return Ok((request, meta));
            }
            Err(vec![Message::Request(request)])
        }
        last => {
            messages.extend(last);
            Err(messages)
        }
    }
}

async fn stateless_request<S: Service>(
    server: &Arc<HttpServer<S>>,
    by: Caller<S::Principal>,
    headers: &HeaderMap,
    (request, share): (Request, RequestShare<S>),
    meta: RequestMeta,
) -> Result<Response, HttpError> {
    let param_headers = headers::check(headers, &request, &meta)
        .map_err(|error| HttpError::with(StatusCode::BAD_REQUEST, Some(request.id.clone()), error))?;
    let Caller { principal, bearer } = by;
    let Some(place) = StatelessSlot::take(server, &principal) else {
        let message =
            format!("{} requests are already running; wait for one to end", server.limits.calls_max);
        return Err(HttpError::new(StatusCode::TOO_MANY_REQUESTS, message).about(Some(request.id)));
    };
    let buffer = Arc::new(ReplayBuffer::new(capacity(&server.limits, false)));
    let host = Host::stateless(principal, InitializeParams::default(), Arc::clone(&server.arrived))
        .with_bearer(bearer);
    let connection = Arc::new(server.connection(host));
    let pending = PendingResponses::new(1, Some(Arc::clone(&buffer)), share);
    let reader = buffer.read_on();
    let arrived = IncomingRequest { request, param_headers: Some(param_headers) };
    connection.begin_stateless(arrived, meta, Outbound::Buffer(Arc::clone(&buffer)), Some(pending));
    // A host that closes the connection cancels its request.
    let held = (StatelessRequest::new(server, connection, Arc::clone(&buffer)), place);
    let style = Style { buffer: None, primes: false, keep_alive: server.limits.keep_alive_interval };
    Ok(reply(buffer, reader, style, held, (STREAM_AFTER, status_of)).await)
}

/// A slot among the stateless requests of one principal.
struct StatelessSlot<S: Service>(Arc<HttpServer<S>>, S::Principal);

impl<S: Service> StatelessSlot<S> {
    fn take(server: &Arc<HttpServer<S>>, principal: &S::Principal) -> Option<Self> {
        let mut counts = server.stateless_counts.lock().unwrap_or_else(PoisonError::into_inner);
        match counts.iter_mut().find(|(other, _)| other == principal) {
            Some((_, count)) if *count >= server.limits.calls_max => return None,
            Some((_, count)) => *count += 1,
            None => counts.push((principal.clone(), 1)),
        }
        drop(counts);
        Some(Self(Arc::clone(server), principal.clone()))
    }
}

impl<S: Service> Drop for StatelessSlot<S> {
    fn drop(&mut self) {
        let mut counts = self.0.stateless_counts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, count)) = counts.iter_mut().find(|(other, _)| *other == self.1) {
            *count = count.saturating_sub(1);
        }
        counts.retain(|(_, count)| *count > 0);
    }
}

async fn in_session<S: Service>(
    server: &Arc<HttpServer<S>>,
    by: Caller<S::Principal>,
    headers: &HeaderMap,
    (messages, share): (Vec<Message>, RequestShare<S>),
) -> Result<Response, HttpError> {
    let first_id = first_request(&messages);
    let refuse = |status, message: &str| Err(HttpError::new(status, message).about(first_id.clone()));
    let is_unknown = |version: &&str| *version != MODERN && Version::parse(version).is_none();
    if let Some(version) = headers::version(headers).filter(is_unknown) {
        return Err(HttpError::with(StatusCode::BAD_REQUEST, first_id, unsupported(version)));
    }
    let is_initialize =
        matches!(messages.as_slice(), [Message::Request(request)] if request.method == "initialize");
    let session = if is_initialize {
        let session = Session::streamable(server, by);
        if server.shutdown.is_cancelled() || !server.sessions.keep(&session) {
            return refuse(StatusCode::SERVICE_UNAVAILABLE, "too many sessions are open; try again later");
        }
        session
    } else {
        let Some(id) = headers.get(SESSION_ID).and_then(|id| id.to_str().ok()) else {
            return refuse(
                StatusCode::BAD_REQUEST,
                "`Mcp-Session-Id` is missing: open a session with `initialize`",
            );
        };
        match server.session(id, &by).await.filter(|session| session.pipe.is_none()) {
            Some(session) => session,
            None => {
                return refuse(StatusCode::NOT_FOUND, "unknown session; open one with `initialize`");
            }
        }
    };
    // Whether there is a session is known only once `initialize` is answered.
    let limit = if is_initialize { server.limits.request_timeout } else { STREAM_AFTER };
    let mut response = run(server, &session, (messages, share), limit).await;
    if is_initialize {
        if session.connection.host.era() == Era::Session(None) {
            // The service rejected `initialize`, so the session is dropped.
            Box::pin(server.sessions.close(&session)).await;
        } else if let Some(id) = session.connection.host.session.as_deref()
            && let Ok(id) = HeaderValue::from_str(id)
        {
            response.headers_mut().insert(SESSION_ID, id);
        }
    }
    Ok(response)
}

/// Forwards a host's message to the other processes, in the background.
fn forward_to_replicas<S: Service>(server: &HttpServer<S>, session: &Session<S>, message: Message) {
    if server.service.replicated().is_none() {
        return;
    }
    let (service, host) = (Arc::clone(&server.service), Arc::clone(&session.connection.host));
    tokio::spawn(async move {
        if let Some(service) = service.replicated() {
            service.forward(&host, message).await;
        }
    });
}

async fn run<S: Service>(
    server: &HttpServer<S>,
    session: &Arc<Session<S>>,
    (messages, share): (Vec<Message>, RequestShare<S>),
    limit: Duration,
) -> Response {
    let mut requests = Vec::new();
    for message in messages {
        match message {
            Message::Request(request) => requests.push(request),
            Message::Notification(notification) => {
                Box::pin(session.connection.on_notification(notification.clone())).await;
                // Notifications about the host itself concern every process that serves it.
                if notification.method != "notifications/initialized" {
                    forward_to_replicas(server, session, Message::Notification(notification));
                }
            }
            Message::Response(response) => {
                if let Err(response) = session.connection.host.server_requests.answer(response) {
                    forward_to_replicas(server, session, Message::Response(response));
                }
            }
        }
    }
    if requests.is_empty() {
        return response::empty(StatusCode::ACCEPTED);
    }
    let is_batch = requests.len() > 1;
    let (number, buffer) = session.open_buffer(&server.limits);
    let pending = PendingResponses::new(requests.len(), Some(Arc::clone(&buffer)), share);
    let reader = buffer.read_on();
    for request in requests {
        session.connection.begin(request, Outbound::Buffer(Arc::clone(&buffer)), Some(Arc::clone(&pending)));
    }
    let version = match session.connection.host.era() {
        Era::Session(version) => version,
        Era::Stateless => None,
    };
    let style = Style {
        buffer: Some(number),
        // Older hosts treat an event without data as a malformed message.
        primes: version >= Some(Version::V2025_11_25),
        keep_alive: server.limits.keep_alive_interval,
    };
    let held = session.streaming();
    if is_batch {
        return response::events(Source { buffer, reader, first: None }, style, held);
    }
    let forget = Arc::clone(session);
    let plain = move |_| {
        forget.drop_buffer(number);
        StatusCode::OK
    };
    reply(buffer, reader, style, held, (limit, plain)).await
}

/// A JSON body if the response is the first message, an event stream otherwise.
async fn reply(
    buffer: Arc<ReplayBuffer>,
    mut reader: Reader,
    style: Style,
    held: impl Send + 'static,
    (limit, plain): (Duration, impl FnOnce(i64) -> StatusCode),
) -> Response {
    let first = match tokio::time::timeout(limit, buffer.next(&mut reader)).await {
        Ok(Next::Message(_, outgoing @ OutboundMessage { answer: Some(code), .. })) => {
            return response::outgoing(plain(code), outgoing);
        }
        Ok(Next::Message(number, outgoing)) => Some((number, outgoing)),
        Ok(Next::Released | Next::Done) | Err(_) => None,
    };
    response::events(Source { buffer, reader, first }, style, held)
}

/// The HTTP status for an error code of the stateless era.
fn status_of(code: i64) -> StatusCode {
    match code {
        code::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        code::HEADER_MISMATCH | code::MISSING_CAPABILITY | code::UNSUPPORTED_VERSION => {
            StatusCode::BAD_REQUEST
        }
        _ => StatusCode::OK,
    }
}
