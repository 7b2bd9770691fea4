//! `/api/chat`: starts, reads, resumes and cancels a turn. Its events are sent as server-sent events.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{ConnectInfo, Path, Query, Request, State};
use axum::http::header::ACCEPT_LANGUAGE;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use embody_agent::model::ChatMessage;
use embody_agent::turn::{Facts, MAX_MESSAGE_BYTES, thread_title};
use embody_agent::web_turns::{Busy, Done, End, Reader, SseEvent};
use embody_store::{NewThread, Scope, Store, Thread};
use futures_util::{StreamExt, stream};
use serde::Deserialize;

use super::WebState;
use super::auth::{self, ApiCaller};
use super::error::ApiError;
use super::threads;
use super::turn::{self, STOPPED, UserMessage, WEB};

/// The interval of keep-alive comments on an idle stream.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// The longest fact about a request in a prompt, in characters.
const FACT: usize = 200;
/// The maximum number of messages of one turn that are read.
const OF_A_TURN: u32 = 500;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Chat {
    thread: Option<String>,
    text: String,
    task: Option<String>,
    location: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Place {
    /// For clients that cannot send `Last-Event-ID`.
    after: Option<u64>,
}

/// Starts a turn and streams its events.
pub(super) async fn begin(
    State(web): State<Arc<WebState>>,
    caller: ApiCaller,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
) -> Result<Response, ApiError> {
    let scope = caller.chat_scope(&web)?;
    let mut facts = about(&web, request.headers(), peer);
    let Chat { thread, text, task, location } = auth::json(request).await?;
    facts.location = location.as_deref().and_then(fact);
    if text.trim().is_empty() {
        return Err(ApiError::bad_request("there is nothing to say: `text` is empty"));
    }
    if text.len() > MAX_MESSAGE_BYTES {
        return Err(ApiError::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("the message has {} bytes; at most {MAX_MESSAGE_BYTES} are taken", text.len()),
        ));
    }
    // Without a model no thread is created.
    if !web.has_model() {
        return Ok(ended(&turn::no_model(&web, &scope), None));
    }
    let thread = match &thread {
        Some(id) => writable(&web.store, &scope, id).await?,
        None => {
            // Check the capacity before creating a thread.
            web.turns.check_capacity(scope.user()).map_err(busy)?;
            web.store.open_thread(&scope, titled(&text)).await?
        }
    };
    // Turns that resume without a message, as after an approval, do not pass here: they do not change the channel.
    web.store.set_last_seen_channel(&scope, WEB, &thread.id).await?;
    let salt = turn::salt().map_err(ApiError::unavailable)?;
    let input = web.input(scope, &thread, UserMessage { text, task, facts });
    let turn = web.start_turn(&thread, &salt, input).map_err(busy)?;
    if caller.token.is_some() {
        tokio::spawn(cancel_on_revocation(Arc::clone(&web), caller.clone(), turn.id().to_owned()));
    }
    Ok(events(turn.read(0), caller.wait_until_revoked(web.store.clone())))
}

/// Resumes a broken stream; a turn that is no longer in memory is read from the thread.
pub(super) async fn resume(
    State(web): State<Arc<WebState>>,
    caller: ApiCaller,
    Path(id): Path<String>,
    Query(place): Query<Place>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let scope = caller.chat_scope(&web)?;
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok());
    if let Some(turn) = web.turns.find(scope.user(), &id) {
        let reader = turn.read(last.or(place.after).unwrap_or_default());
        return Ok(events(reader, caller.wait_until_revoked(web.store.clone())));
    }
    let (thread, begun) = parsed(&id).ok_or_else(no_turn)?;
    threads::find(&web.store, &scope, thread).await.map_err(|_| no_turn())?;
    let end = stored_end(&web.store, &scope, thread, begun).await?.ok_or_else(no_turn)?;
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
        return Err(ApiError::conflict("this turn is over already"));
    }
    Err(no_turn())
}

fn no_turn() -> ApiError {
    ApiError::not_found("there is no such turn")
}

fn busy(busy: Busy) -> ApiError {
    let words = busy.to_string();
    match busy {
        Busy::Thread { turn } => ApiError::conflict(words).with_turn(turn),
        Busy::User { .. } | Busy::All | Busy::Ending => ApiError::unavailable(words),
    }
}

/// A conversation that accepts messages here.
async fn writable(store: &Store, scope: &Scope, id: &str) -> Result<Thread, ApiError> {
    let thread = threads::find(store, scope, id).await?;
    if thread.channel == WEB {
        return Ok(thread);
    }
    Err(ApiError::conflict(format!("this conversation is on `{}`; it goes on there", thread.channel)))
}

fn titled(text: &str) -> NewThread {
    NewThread { channel: WEB.to_owned(), external: None, title: thread_title(text) }
}

fn about(web: &WebState, headers: &HeaderMap, peer: SocketAddr) -> Facts {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).and_then(fact);
    // The TLS proxy reports the client; its own entry is the last one.
    let forwarded =
        text(HeaderName::from_static("x-forwarded-for")).filter(|_| web.origin_guard.is_behind_tls);
    let forwarded = forwarded.and_then(|all| all.rsplit(',').next().map(|last| last.trim().to_owned()));
    Facts {
        session: None,
        accept_language: text(ACCEPT_LANGUAGE),
        remote_ip: forwarded.or_else(|| Some(peer.ip().to_string())),
        location: None,
    }
}

/// A fact about a request, suitable for one line of a prompt.
fn fact(text: &str) -> Option<String> {
    let text: String = text.chars().filter(|c| !c.is_control()).take(FACT).collect();
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Parses a turn id: the thread, and the turn's first message there.
pub(super) fn parsed(id: &str) -> Option<(&str, i64)> {
    let (rest, _) = id.rsplit_once('.')?;
    let (thread, begun) = rest.rsplit_once('.')?;
    Some((thread, begun.parse().ok().filter(|begun| *begun > 0)?))
}

/// The stored end of the turn that began at this message.
async fn stored_end(store: &Store, scope: &Scope, thread: &str, begun: i64) -> Result<Option<End>, ApiError> {
    let messages = store.messages(scope.user(), thread, begun - 1, OF_A_TURN).await?;
    let mut said = messages.iter().filter_map(|message| serde_json::from_str(&message.message.content).ok());
    if !matches!(said.next(), Some(ChatMessage::User { .. })) {
        return Ok(None);
    }
    // Text without a call ends a turn. Calls that were approved later may follow.
    let mut of_the_turn = said.take_while(|message| !matches!(message, ChatMessage::User { .. }));
    let reply = of_the_turn
        .find(|message| matches!(message, ChatMessage::Assistant { calls, .. } if calls.is_empty()));
    Ok(Some(match reply {
        Some(ChatMessage::Assistant { text, .. }) if text.ends_with(STOPPED) => End::Cancelled,
        Some(ChatMessage::Assistant { text, .. }) => {
            End::Done(Done { reply: Some(text).filter(|text| !text.trim().is_empty()), ..Done::default() })
        }
        _ => End::Failed {
            message: "there was no reply: the agent kept silent, or the turn was broken off".to_owned(),
            hint: Some("what was done by then is done".to_owned()),
        },
    }))
}

/// Cancels a turn when the token that started it is revoked.
async fn cancel_on_revocation(web: Arc<WebState>, caller: ApiCaller, turn: String) {
    let user = caller.user.clone();
    let Some(begun) = web.turns.find(&user, &turn) else { return };
    let mut reader = begun.read(u64::MAX);
    drop(begun);
    let over = async { while reader.next().await.is_some() {} };
    tokio::select! {
        () = over => {}
        () = caller.wait_until_revoked(web.store.clone()) => {
            web.turns.cancel(&user, &turn);
        }
    }
}

/// Streams the events until the reader's token is revoked.
fn events(reader: Reader, revoked: impl Future<Output = ()> + Send + 'static) -> Response {
    let told = stream::unfold(reader, async |mut reader: Reader| {
        let SseEvent { id, name, data } = reader.next().await?;
        Some((Ok::<_, Infallible>(Event::default().id(id.to_string()).event(name).data(data)), reader))
    });
    let told = told.take_until(Box::pin(revoked));
    as_events(Sse::new(told).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)))
}

/// Only the end event; with the turn's ids, if there was a turn.
fn ended(end: &End, turn: Option<(&str, &str)>) -> Response {
    let first =
        turn.map(|(turn, thread)| ("turn", serde_json::json!({"turn": turn, "thread": thread}).to_string()));
    let all = first.into_iter().chain([end.to_sse()]).enumerate();
    let told = all.map(|(at, (name, data))| {
        Ok::<_, Infallible>(Event::default().id((at + 1).to_string()).event(name).data(data))
    });
    as_events(Sse::new(stream::iter(told.collect::<Vec<_>>())))
}

fn as_events(events: impl IntoResponse) -> Response {
    let mut response = events.into_response();
    // A buffering proxy would delay every event.
    response
        .headers_mut()
        .insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}
