//! `/api/chat`: starts, reads, resumes and cancels a turn of the agent. Its events are sent as server-sent events.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::{ConnectInfo, Path, Query, Request, State};
use axum::http::header::ACCEPT_LANGUAGE;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::sse::{self, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use embody_agent::event::{End, SseEvent, TurnEvent};
use embody_agent::model::ChatMessage;
use embody_agent::turn::{
    MAX_MESSAGE_BYTES, PromptRequest, TurnBody, TurnError, TurnFailure, TurnInput, TurnResult, thread_title,
    to_stored,
};
use embody_agent::web_turns::{Busy, EventSender, Reader, Turn};
use embody_prompt::{Audience, RequestFacts};
use embody_store::threads::{NewMessage, NewThread, Thread};
use embody_store::{Scope, Store};
use futures_util::{StreamExt, stream};
use serde::Deserialize;

use super::WebState;
use super::auth::{self, ApiCaller};
use super::error::ApiError;
use super::threads;
use crate::app;

pub(crate) const WEB: &str = "web";
/// The end of a stored reply that was cancelled.
const STOPPED: &str = "[stopped]";
/// The delay before another attempt when too many turns run.
const RETRY_DELAY: Duration = Duration::from_secs(2);
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// The longest fact about a request in a prompt, in characters.
const FACT_CHARS: usize = 200;
/// The maximum number of messages of one turn that are read.
const TURN_MESSAGES: u32 = 500;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChatRequest {
    thread: Option<String>,
    #[serde(default)]
    text: String,
    /// Tries the last turn of the thread again, which failed; without a text.
    #[serde(default)]
    retry: bool,
    task: Option<String>,
    location: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct ResumeQuery {
    /// For clients that cannot send `Last-Event-ID`.
    after: Option<u64>,
}

pub(super) async fn begin(
    State(web): State<Arc<WebState>>,
    caller: ApiCaller,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
) -> Result<Response, ApiError> {
    let scope = caller.chat_scope(&web)?;
    let mut facts = request_facts(&web, request.headers(), peer);
    let ChatRequest { thread, text, retry, task, location } = auth::json(request).await?;
    facts.location = location.as_deref().and_then(fact);
    match (retry, &thread) {
        (false, _) => check_text(&text)?,
        (true, Some(_)) if text.is_empty() => {}
        (true, _) => return Err(ApiError::bad_request("`retry` needs a `thread` and no `text`")),
    }
    // Without a model no thread is created.
    if !web.agent.has_model() {
        return Ok(ended(&no_model(&web, &scope), None));
    }
    let thread = match &thread {
        Some(id) => {
            let thread = writable(&web.store, &scope, id).await?;
            if thread.external.is_some() {
                // A client of `/v1` does not know the message that follows, so it must not continue this thread.
                web.store.threads().clear_external(scope.user(), &thread.id).await?;
            }
            // The turn checks it again under the thread's lock; a program gets a status here.
            if retry && TurnFailure::last_in(&web.store, &scope, &thread.id).await?.is_none() {
                return Err(ApiError::conflict("the last turn of this conversation did not fail"));
            }
            thread
        }
        None => {
            // Check the capacity before creating a thread.
            web.turns.check_capacity(scope.user()).map_err(busy)?;
            web.store.threads().open(&scope, titled(&text)).await?
        }
    };
    let body = if retry { TurnBody::Retry } else { TurnBody::Message(text) };
    let input = turn_input(&web, scope, &thread, body, task, facts);
    let turn = start(&web, &caller, &thread, input).await?;
    Ok(events(turn.read(0), caller.wait_until_ended(web.store.clone())))
}

pub(super) fn check_text(text: &str) -> Result<(), ApiError> {
    if text.trim().is_empty() {
        return Err(ApiError::bad_request("`text` is empty"));
    }
    if text.len() > MAX_MESSAGE_BYTES {
        return Err(ApiError::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("the message has {} bytes; the limit is {MAX_MESSAGE_BYTES}", text.len()),
        ));
    }
    Ok(())
}

/// Starts the turn of a message that the caller sent. It ends when the caller's token is revoked.
pub(super) async fn start(
    web: &Arc<WebState>,
    caller: &ApiCaller,
    thread: &Thread,
    input: TurnInput,
) -> Result<Arc<Turn>, ApiError> {
    // Turns that resume without a message, as after an approval, do not pass here: they do not change the channel.
    web.store.incoming().set_last_seen_channel(input.scope(), WEB, &thread.id).await?;
    let salt = salt().map_err(ApiError::unavailable)?;
    let turn = web.start_turn(thread, &salt, input).map_err(busy)?;
    tokio::spawn(cancel_on_revocation(Arc::clone(web), caller.clone(), turn.id().to_owned()));
    Ok(turn)
}

/// Resumes a broken stream; a turn that is no longer in memory is read from the thread.
pub(super) async fn resume(
    State(web): State<Arc<WebState>>,
    caller: ApiCaller,
    Path(id): Path<String>,
    Query(query): Query<ResumeQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let scope = caller.chat_scope(&web)?;
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok());
    if let Some(turn) = web.turns.find(scope.user(), &id) {
        let reader = turn.read(last.or(query.after).unwrap_or_default());
        return Ok(events(reader, caller.wait_until_ended(web.store.clone())));
    }
    let (thread, first) = parse_turn_id(&id).ok_or_else(no_turn)?;
    threads::find(&web.store, &scope, thread).await.map_err(|_| no_turn())?;
    let end = stored_end(&web.store, &scope, thread, first).await?.ok_or_else(no_turn)?;
    Ok(ended(&end, Some((&id, thread))))
}

pub(super) async fn cancel(
    State(web): State<Arc<WebState>>,
    caller: ApiCaller,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    let scope = caller.chat_scope(&web)?;
    if web.turns.cancel(scope.user(), &id) {
        return Ok(StatusCode::ACCEPTED);
    }
    if web.turns.find(scope.user(), &id).is_some() {
        return Err(ApiError::conflict("this turn has already ended"));
    }
    Err(no_turn())
}

fn no_turn() -> ApiError {
    ApiError::not_found("unknown turn")
}

pub(super) fn busy(busy: Busy) -> ApiError {
    let message = busy.to_string();
    match busy {
        Busy::Thread { turn } => ApiError::conflict(message).with_turn(turn),
        Busy::User { .. } | Busy::All | Busy::Ending => ApiError::unavailable(message),
    }
}

/// A conversation that accepts messages here.
async fn writable(store: &Store, scope: &Scope, id: &str) -> Result<Thread, ApiError> {
    let thread = threads::find(store, scope, id).await?;
    if thread.channel == WEB {
        return Ok(thread);
    }
    Err(ApiError::conflict(format!(
        "this conversation belongs to the channel `{}`; continue it there",
        thread.channel
    )))
}

pub(super) fn titled(text: &str) -> NewThread {
    NewThread { channel: WEB.to_owned(), external: None, title: thread_title(text) }
}

pub(super) fn request_facts(web: &WebState, headers: &HeaderMap, peer: SocketAddr) -> RequestFacts {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).and_then(fact);
    // The TLS proxy reports the client; its own entry is the last one.
    let forwarded =
        text(HeaderName::from_static("x-forwarded-for")).filter(|_| web.origin_guard.is_behind_tls);
    let forwarded = forwarded.and_then(|all| all.rsplit(',').next().map(|last| last.trim().to_owned()));
    RequestFacts {
        session: None,
        accept_language: text(ACCEPT_LANGUAGE),
        remote_ip: forwarded.or_else(|| Some(peer.ip().to_string())),
        location: None,
    }
}

/// A fact about a request, suitable for one line of a prompt.
fn fact(text: &str) -> Option<String> {
    let text: String = text.chars().filter(|c| !c.is_control()).take(FACT_CHARS).collect();
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Parses a turn id: the thread, and the turn's first message there.
pub(super) fn parse_turn_id(id: &str) -> Option<(&str, i64)> {
    let (rest, _) = id.rsplit_once('.')?;
    let (thread, first) = rest.rsplit_once('.')?;
    Some((thread, first.parse().ok().filter(|first| *first > 0)?))
}

async fn stored_end(store: &Store, scope: &Scope, thread: &str, first: i64) -> Result<Option<End>, ApiError> {
    let messages = store.threads().messages(scope.user(), thread, first - 1, TURN_MESSAGES).await?;
    let mut messages = messages.iter().map(|message| &message.message);
    let read = |message: &NewMessage| serde_json::from_str::<ChatMessage>(&message.content).ok();
    // A turn that tries another one again begins at its failure.
    let begins = |message: &NewMessage| {
        TurnFailure::read(message).is_some() || matches!(read(message), Some(ChatMessage::User { .. }))
    };
    if !messages.next().is_some_and(begins) {
        return Ok(None);
    }
    // Text without a call ends a turn, and a failure does. Calls that were approved later may follow.
    let mut rest = messages.take_while(|message| !matches!(read(message), Some(ChatMessage::User { .. })));
    let is_end = |message: &&NewMessage| {
        TurnFailure::read(message).is_some()
            || matches!(read(message), Some(ChatMessage::Assistant { calls, .. }) if calls.is_empty())
    };
    let end = rest.find(is_end);
    if let Some(TurnFailure { message, hint }) = end.and_then(TurnFailure::read) {
        return Ok(Some(End::Failed { message, hint }));
    }
    Ok(Some(match end.and_then(read) {
        Some(ChatMessage::Assistant { text, .. }) if text.ends_with(STOPPED) => End::Cancelled,
        Some(ChatMessage::Assistant { text, .. }) => {
            let reply = Some(text).filter(|text| !text.trim().is_empty());
            End::Done(TurnResult { reply, ..TurnResult::default() })
        }
        _ => End::Failed {
            message: "no reply: the agent did not answer, or the turn was stopped".to_owned(),
            hint: Some("calls that were made before stay made".to_owned()),
        },
    }))
}

/// Cancels a turn when the token or session that started it is revoked.
async fn cancel_on_revocation(web: Arc<WebState>, caller: ApiCaller, turn: String) {
    let user = caller.user.clone();
    let Some(running) = web.turns.find(&user, &turn) else { return };
    let mut reader = running.read(u64::MAX);
    drop(running);
    let over = async { while reader.next().await.is_some() {} };
    tokio::select! {
        () = over => {}
        () = caller.wait_until_revoked(web.store.clone()) => {
            web.turns.cancel(&user, &turn);
        }
    }
}

/// Streams the events until the reader's token or session ends.
fn events(reader: Reader, ended: impl Future<Output = ()> + Send + 'static) -> Response {
    let events = stream::unfold(reader, async |mut reader: Reader| {
        let event = reader.next().await?;
        Some((wire_event(event), reader))
    });
    let events = events.take_until(Box::pin(ended));
    as_events(Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)))
}

/// Only the end event; with the turn's ids, if there was a turn.
fn ended(end: &End, turn: Option<(&str, &str)>) -> Response {
    let events = match turn {
        Some((turn, thread)) => {
            let started = TurnEvent::Started { turn: turn.to_owned(), thread: thread.to_owned() };
            vec![started.to_sse(1), end.to_sse(2)]
        }
        None => vec![end.to_sse(1)],
    };
    as_events(Sse::new(stream::iter(events.into_iter().map(wire_event))))
}

fn wire_event(SseEvent { id, name, data }: SseEvent) -> Result<sse::Event, Infallible> {
    Ok(sse::Event::default().id(id.to_string()).event(name).data(data))
}

pub(super) fn as_events(events: impl IntoResponse) -> Response {
    let mut response = events.into_response();
    // A buffering proxy would delay every event.
    response
        .headers_mut()
        .insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}

/// The end of a turn without a model.
pub(super) fn no_model(web: &WebState, scope: &Scope) -> End {
    // Only the owner sees details of the configuration.
    let is_owner = scope.user() == web.scope.user();
    if let Some(unnamed) = app::missing_model_name(&web.prompts.settings().config).filter(|_| is_owner) {
        let (message, hint) = unnamed.summary();
        return End::Failed { message, hint: Some(hint) };
    }
    let error = TurnError::NoModel;
    End::Failed { message: error.to_string(), hint: error.hint() }
}

pub(super) fn turn_input(
    web: &WebState,
    scope: Scope,
    thread: &Thread,
    body: TurnBody,
    task: Option<String>,
    facts: RequestFacts,
) -> TurnInput {
    let is_owner = scope.user() == web.scope.user();
    let prompt = PromptRequest {
        channel: Some(WEB.to_owned()),
        audience: if is_owner { Audience::Owner } else { Audience::User },
        task,
        facts,
        ..PromptRequest::new(scope)
    };
    TurnInput { prompt, thread: thread.id.clone(), body }
}

impl WebState {
    /// Starts a turn, which continues without readers.
    fn start_turn(&self, thread: &Thread, salt: &str, input: TurnInput) -> Result<Arc<Turn>, Busy> {
        // A retry stores no message of the user: it begins at the failure, the last message.
        let first = thread.messages + i64::from(input.message().is_some());
        let id = format!("{}.{first}.{salt}", thread.id);
        let at = (input.scope().user().to_owned(), thread.id.clone());
        let (agent, store, (user, thread)) = (self.agent.clone(), self.store.clone(), at.clone());
        let partial_reply = Arc::<PartialReply>::default();
        let reply = Arc::clone(&partial_reply);
        let work = |events: EventSender| async move {
            let mut on = |event| {
                reply.record(&event);
                events.send(event);
            };
            match agent.run_turn(input, &mut on).await {
                Ok(result) => End::Done(result),
                Err(error) => failed(&error),
            }
        };
        let close = async move |end: End| {
            if end == End::Cancelled {
                partial_reply.save(&store, &at).await;
            }
            end
        };
        self.turns.begin(id, (&user, &thread), work, close)
    }

    /// Resumes a thread after a waiting call was decided, as soon as no other turn runs in it.
    pub(crate) async fn resume_thread(&self, input: TurnInput) {
        loop {
            let thread = match self.store.threads().get(input.scope().user(), &input.thread).await {
                Ok(Some(thread)) => thread,
                Ok(None) => return,
                Err(error) => return tracing::error!(reason = %error, "a conversation cannot be resumed"),
            };
            let Ok(salt) = salt() else { return };
            match self.start_turn(&thread, &salt, input.clone()) {
                Err(Busy::Thread { turn }) => {
                    let Some(turn) = self.turns.find(input.scope().user(), &turn) else { continue };
                    let mut reader = turn.read(u64::MAX);
                    while reader.next().await.is_some() {}
                }
                Err(Busy::User { .. } | Busy::All) => tokio::time::sleep(RETRY_DELAY).await,
                Ok(_) | Err(Busy::Ending) => return,
            }
        }
    }
}

/// The text of the running reply. The thread stores it only when it is complete or cancelled.
#[derive(Default)]
struct PartialReply(Mutex<String>);

impl PartialReply {
    fn record(&self, event: &TurnEvent) {
        let mut text = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            TurnEvent::Text(more) => text.push_str(more),
            TurnEvent::Tool { .. } => text.clear(),
            TurnEvent::Started { .. }
            | TurnEvent::ToolDone { .. }
            | TurnEvent::Starting { .. }
            | TurnEvent::Missing { .. }
            | TurnEvent::Waiting { .. } => {}
        }
    }

    async fn save(&self, store: &Store, (user, thread): &(String, String)) {
        let text = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        if text.trim().is_empty() {
            return;
        }
        let reply =
            ChatMessage::Assistant { text: format!("{} {STOPPED}", text.trim_end()), calls: Vec::new() };
        if let Err(error) = store.threads().append(user, thread, vec![to_stored(&reply)]).await {
            tracing::warn!(reason = %error, "the partial reply of a cancelled turn is not stored");
        }
    }
}

/// Distinguishes turns that start at the same message, when the first one failed.
fn salt() -> Result<String, &'static str> {
    let mut bytes = [0u8; 4];
    getrandom::fill(&mut bytes).map_err(|_| "the system returned no random bytes")?;
    Ok(format!("{:08x}", u32::from_le_bytes(bytes)))
}

fn failed(error: &TurnError) -> End {
    if let Some(source) = std::error::Error::source(error) {
        tracing::warn!(reason = %source, "a turn failed: {error}");
    }
    End::Failed { message: error.to_string(), hint: error.hint() }
}
