//! `GET /mcp`: the stream of a session for messages that belong to no request, or a resumed stream.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::ACCEPT;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;

use super::HttpServer;
use super::auth::HttpError;
use super::headers;
use super::post::SESSION_ID;
use super::response::{self, Source, Style};
use super::sessions::GENERAL;
use crate::server::era::MODERN;
use crate::server::service::Service;

pub(super) async fn get<S: Service>(
    State(server): State<Arc<HttpServer<S>>>,
    headers: HeaderMap,
) -> Result<Response, HttpError> {
    let by = server.authenticate(&headers).await?;
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if headers::version(&headers) == Some(MODERN) {
        let message = "this protocol version has no GET stream; use `subscriptions/listen`";
        return Err(HttpError::new(StatusCode::METHOD_NOT_ALLOWED, message));
    }
    let accepts = |accept: &str| accept.contains("text/event-stream") || accept.contains("*/*");
    if !text(ACCEPT.as_str()).is_some_and(accepts) {
        return Err(HttpError::new(StatusCode::NOT_ACCEPTABLE, "accept `text/event-stream`"));
    }
    let Some(id) = text(SESSION_ID.as_str()) else {
        return Err(HttpError::new(StatusCode::BAD_REQUEST, "`Mcp-Session-Id` is missing"));
    };
    let found = server.session(id, &by).await.filter(|session| session.pipe.is_none());
    let Some(session) = found else {
        return Err(HttpError::new(StatusCode::NOT_FOUND, "unknown session"));
    };
    let place = text("last-event-id").map(|id| {
        let (buffer, last) = id.split_once('-')?;
        Some((buffer.parse::<u64>().ok()?, last.parse::<u64>().ok()?))
    });
    let found = match place {
        None => session.buffer(GENERAL).map(|buffer| (GENERAL, buffer.read_on(), buffer)),
        Some(place) => place.and_then(|(number, last)| {
            let buffer = session.buffer(number)?;
            let is_resumed = session.connection.host.is_resumed();
            // Events after that id in another process are unknown here; the stream continues with new ones.
            let read_on = || (number == GENERAL && is_resumed).then(|| buffer.read_on());
            Some((number, buffer.read_after(last).or_else(read_on)?, buffer))
        }),
    };
    let Some((number, reader, buffer)) = found else {
        return Err(HttpError::new(
            StatusCode::NOT_FOUND,
            "the messages after this event are no longer stored",
        ));
    };
    let style = Style { buffer: Some(number), primes: false, keep_alive: server.limits.keep_alive_interval };
    Ok(response::events(Source { buffer, reader, first: None }, style, session.streaming()))
}
