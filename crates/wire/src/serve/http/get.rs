//! `GET /mcp`: the stream of a session for what belongs to no request, or a broken stream taken up again.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::ACCEPT;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;

use super::Face;
use super::answer::{self, Source, Style};
use super::door::Refused;
use super::headers;
use super::post::SESSION_ID;
use super::sessions::GENERAL;
use crate::serve::era::MODERN;
use crate::serve::service::Service;

/// Opens or takes up a stream.
pub(super) async fn get<S: Service>(
    State(face): State<Arc<Face<S>>>,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    let by = face.admit(&headers).await?;
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if headers::version(&headers) == Some(MODERN) {
        let message = "this protocol version has no stream to open: listen with `subscriptions/listen`";
        return Err(Refused::new(StatusCode::METHOD_NOT_ALLOWED, message));
    }
    let accepts = |accept: &str| accept.contains("text/event-stream") || accept.contains("*/*");
    if !text(ACCEPT.as_str()).is_some_and(accepts) {
        return Err(Refused::new(StatusCode::NOT_ACCEPTABLE, "accept `text/event-stream`"));
    }
    let Some(id) = text(SESSION_ID.as_str()) else {
        return Err(Refused::new(StatusCode::BAD_REQUEST, "`Mcp-Session-Id` is missing"));
    };
    let found = face.session(id, &by).await.filter(|session| session.pipe.is_none());
    let Some(session) = found else {
        return Err(Refused::new(StatusCode::NOT_FOUND, "there is no such session"));
    };
    let place = text("last-event-id").map(|id| {
        let (lane, last) = id.split_once('-')?;
        Some((lane.parse::<u64>().ok()?, last.parse::<u64>().ok()?))
    });
    let found = match place {
        None => session.lane(GENERAL).map(|lane| (GENERAL, lane.read_on(), lane)),
        Some(place) => place.and_then(|(number, last)| {
            let lane = session.lane(number)?;
            let is_resumed = session.conversation.host.is_resumed();
            // What followed it in another process is not known here; what comes from now on is.
            let read_on = || (number == GENERAL && is_resumed).then(|| lane.read_on());
            Some((number, lane.read_after(last).or_else(read_on)?, lane))
        }),
    };
    let Some((number, reader, lane)) = found else {
        return Err(Refused::new(StatusCode::NOT_FOUND, "what followed that event is no longer kept"));
    };
    let style = Style { lane: Some(number), primes: false, keep_alive: face.limits.keep_alive_interval };
    Ok(answer::events(Source { lane, reader, first: None }, style, session.streaming()))
}
