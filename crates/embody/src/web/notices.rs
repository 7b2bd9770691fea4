//! Notices of the caller's user: a list, marking as read, and a stream that announces new ones.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Query, Request, State};
use axum::response::Response;
use axum::response::sse::{Event, KeepAlive, Sse};
use embody_store::notices::{NoticeFilter, UnreadNotices};
use embody_store::{Changes, Topic};
use futures_util::{StreamExt, stream};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::WebState;
use super::auth::{self, ApiCaller};
use super::chat::{KEEP_ALIVE, as_events};
use super::error::ApiError;
use crate::notices::NoticeJson;

/// The unread ones first; more are on the command line.
const LIMIT: u32 = 100;
/// Streams at the same time, of all users.
static STREAMS: Semaphore = Semaphore::const_new(512);

#[derive(Deserialize)]
pub(super) struct ListQuery {
    #[serde(default)]
    unread: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadRequest {
    ids: Option<Vec<String>>,
    #[serde(default)]
    all: bool,
}

pub(super) async fn list(
    State(web): State<Arc<WebState>>,
    caller: ApiCaller,
    Query(query): Query<ListQuery>,
) -> Result<Json<Value>, ApiError> {
    let filter = if query.unread { NoticeFilter::Unread } else { NoticeFilter::All };
    let found = web.store.notices().list(&caller.user, filter, LIMIT).await?;
    let unread = web.store.notices().unread(&caller.user).await?.count;
    let notices: Vec<NoticeJson> = found.iter().map(NoticeJson::new).collect();
    Ok(Json(json!({ "notices": notices, "unread": unread })))
}

pub(super) async fn read(
    State(web): State<Arc<WebState>>,
    caller: ApiCaller,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    let read = match auth::json(request).await? {
        ReadRequest { ids: Some(ids), all: false } => {
            web.store.notices().mark_read(&caller.user, ids).await?
        }
        ReadRequest { ids: None, all: true } => web.store.notices().mark_all_read(&caller.user).await?,
        _ => return Err(ApiError::bad_request("either `ids` or `\"all\": true` is required")),
    };
    let unread = web.store.notices().unread(&caller.user).await?.count;
    Ok(Json(json!({ "read": read, "unread": unread })))
}

struct Watch {
    web: Arc<WebState>,
    user: String,
    changes: Changes,
    sent: Option<UnreadNotices>,
    _permit: SemaphorePermit<'static>,
}

/// Sends the number of unread notices at once, and again whenever it or the newest of them differs.
pub(super) async fn events(
    State(web): State<Arc<WebState>>,
    caller: ApiCaller,
) -> Result<Response, ApiError> {
    let permit = STREAMS.try_acquire().map_err(|_| {
        ApiError::unavailable("too many streams of notices are open").hint("GET /api/notices lists them")
    })?;
    let watch = Watch {
        web: Arc::clone(&web),
        user: caller.user.clone(),
        changes: web.store.changes(Topic::Notices),
        sent: None,
        _permit: permit,
    };
    let events = stream::unfold(watch, |mut watch| async {
        let event = watch.next().await?;
        Some((Ok::<Event, Infallible>(event), watch))
    });
    let ending = web.ending.clone();
    let ended = caller.wait_until_ended(web.store.clone());
    let over = async move {
        tokio::select! {
            () = ending.cancelled() => {}
            () = ended => {}
        }
    };
    let events = events.take_until(Box::pin(over));
    Ok(as_events(Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE))))
}

impl Watch {
    async fn next(&mut self) -> Option<Event> {
        loop {
            if self.sent.is_some() {
                self.changes.changed().await.ok()?;
            }
            match self.web.store.notices().unread(&self.user).await {
                Ok(unread) if self.sent.as_ref() != Some(&unread) => {
                    let data = json!({ "unread": unread.count }).to_string();
                    self.sent = Some(unread);
                    return Some(Event::default().event("notices").data(data));
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(reason = %error, "unread notices cannot be counted");
                    return None;
                }
            }
        }
    }
}
