//! Legacy HTTP+SSE: a stream at `/sse` that names the URL for POST requests.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::Deserialize;
use tokio::sync::mpsc;

use super::auth::HttpError;
use super::response::Chunk;
use super::sessions::Session;
use super::{HttpServer, post as streamable, response};
use crate::message::Message;
use crate::server::connection::PendingResponses;
use crate::server::lines::on_one_line;
use crate::server::outbound::OutboundMessage;
use crate::server::service::Service;

/// Outbound messages that may queue before a call waits.
const QUEUE: usize = 256;

pub(super) async fn open<S: Service>(
    State(server): State<Arc<HttpServer<S>>>,
    headers: HeaderMap,
) -> Result<Response, HttpError> {
    let by = server.authenticate(&headers).await?;
    let (queue, lines) = mpsc::channel(QUEUE);
    let session = Session::legacy(&server, by, queue);
    if server.shutdown.is_cancelled() || !server.sessions.keep(&session) {
        return Err(HttpError::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "too many sessions are open; try again later",
        ));
    }
    let id = session.connection.host.session.clone().unwrap_or_default();
    let (sender, receiver) = mpsc::channel(1);
    let streaming = session.streaming();
    tokio::spawn(async move {
        let endpoint = response::named("endpoint", &format!("/messages?session={id}"));
        if sender.send(endpoint.into()).await.is_ok() {
            copy(&server, &session, lines, &sender).await;
        }
        // A legacy session ends with its stream.
        server.sessions.close(&session).await;
        drop(streaming);
    });
    Ok(response::stream(receiver))
}

/// Copies the queue to the network until either ends. At shutdown, running calls get a grace period.
async fn copy<S: Service>(
    server: &HttpServer<S>,
    session: &Session<S>,
    mut lines: mpsc::Receiver<OutboundMessage>,
    sender: &mpsc::Sender<Chunk>,
) {
    let ended = async {
        server.shutdown.cancelled().await;
        session.connection.wait_idle(server.limits.courtesy_timeout).await;
    };
    let mut ended = std::pin::pin!(ended);
    loop {
        let line = tokio::select! {
            // Biased, so that the last responses are still sent.
            biased;
            line = tokio::time::timeout(server.limits.keep_alive_interval, lines.recv()) => line,
            () = sender.closed() => return,
            () = session.closed.cancelled() => return,
            () = &mut ended => return,
        };
        let event = match line {
            Ok(Some(outgoing)) => {
                Chunk::new(response::named("message", &on_one_line(outgoing.text)), outgoing.on_flushed)
            }
            Ok(None) => return,
            Err(_) => ":\n\n".to_owned().into(),
        };
        if sender.send(event).await.is_err() {
            return;
        }
    }
}

#[derive(Deserialize)]
pub(super) struct SessionQuery {
    session: String,
}

/// Handles posted messages; responses go out on the stream.
pub(super) async fn post<S: Service>(
    State(server): State<Arc<HttpServer<S>>>,
    place: Result<Query<SessionQuery>, QueryRejection>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, HttpError> {
    let by = server.authenticate(&headers).await?;
    let (messages, share) = streamable::read(&server, &by, &headers, body).await?;
    let session = place.ok().and_then(|Query(place)| server.sessions.find(&place.session, &by));
    let Some((session, outbound)) =
        session.and_then(|session| Some((Arc::clone(&session), session.pipe.clone()?)))
    else {
        return Err(HttpError::new(StatusCode::NOT_FOUND, "unknown session; open a stream at `/sse`"));
    };
    let pending = PendingResponses::new(messages.len(), None, share);
    for message in messages {
        match message {
            Message::Request(request) => {
                session.connection.begin(request, outbound.clone(), Some(Arc::clone(&pending)));
            }
            message => session.connection.receive(message, &outbound, None).await,
        }
    }
    Ok(response::empty(StatusCode::ACCEPTED))
}
