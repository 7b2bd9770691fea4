//! Legacy HTTP+SSE: a stream at `/sse` that says where to post, and a place to post at. A pipe in two halves.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::Deserialize;
use tokio::sync::mpsc;

use super::answer::Chunk;
use super::door::Refused;
use super::sessions::Session;
use super::{Face, answer, post as streamable};
use crate::message::Message;
use crate::serve::conversation::Pending;
use crate::serve::lane::Letter;
use crate::serve::lines::on_one_line;
use crate::serve::service::Service;

/// Messages on their way out before a call waits.
const QUEUE: usize = 256;

/// Opens the stream.
pub(super) async fn open<S: Service>(
    State(face): State<Arc<Face<S>>>,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    let by = face.admit(&headers).await?;
    let (queue, lines) = mpsc::channel(QUEUE);
    let session = Session::legacy(&face, by, queue);
    if face.ending.has_begun() || !face.sessions.keep(&session) {
        return Err(Refused::new(StatusCode::SERVICE_UNAVAILABLE, "no more sessions can be opened now"));
    }
    let id = session.conversation.host.session.clone().unwrap_or_default();
    let (sender, receiver) = mpsc::channel(1);
    let streaming = session.streaming();
    tokio::spawn(async move {
        let endpoint = answer::named("endpoint", &format!("/messages?session={id}"));
        if sender.send(endpoint.into()).await.is_ok() {
            copy(&face, &session, lines, &sender).await;
        }
        // With its stream a legacy session is over.
        face.sessions.close(&session).await;
        drop(streaming);
    });
    Ok(answer::stream(receiver))
}

/// Copies the queue to the network until either ends. When the server is ending, running calls get a moment to finish.
async fn copy<S: Service>(
    face: &Face<S>,
    session: &Session<S>,
    mut lines: mpsc::Receiver<Letter>,
    sender: &mpsc::Sender<Chunk>,
) {
    let mut ending = face.ending.clone();
    let ended = async {
        ending.wait().await;
        session.conversation.rest(face.limits.courtesy_timeout).await;
    };
    let mut ended = std::pin::pin!(ended);
    loop {
        let line = tokio::select! {
            // In this order: what was answered last is still said.
            biased;
            line = tokio::time::timeout(face.limits.keep_alive_interval, lines.recv()) => line,
            () = sender.closed() => return,
            () = session.closed.wait() => return,
            () = &mut ended => return,
        };
        let event = match line {
            Ok(Some(letter)) => {
                Chunk::new(answer::named("message", &on_one_line(letter.text)), letter.written)
            }
            Ok(None) => return,
            Err(_) => ":\n\n".to_owned().into(),
        };
        if sender.send(event).await.is_err() {
            return;
        }
    }
}

/// Where to post.
#[derive(Deserialize)]
pub(super) struct Place {
    session: String,
}

/// Takes what was posted; answers go out on the stream.
pub(super) async fn post<S: Service>(
    State(face): State<Arc<Face<S>>>,
    place: Result<Query<Place>, QueryRejection>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refused> {
    let by = face.admit(&headers).await?;
    let (messages, share) = streamable::read(&face, &by, &headers, body).await?;
    let session = place.ok().and_then(|Query(place)| face.sessions.find(&place.session, &by));
    let Some((session, way)) =
        session.and_then(|session| Some((Arc::clone(&session), session.pipe.clone()?)))
    else {
        return Err(Refused::new(StatusCode::NOT_FOUND, "there is no such session: open a stream at `/sse`"));
    };
    let pending = Pending::new(messages.len(), None, share);
    for message in messages {
        match message {
            Message::Request(request) => {
                session.conversation.begin(request, way.clone(), Some(Arc::clone(&pending)));
            }
            message => session.conversation.take(message, &way, None).await,
        }
    }
    Ok(answer::empty(StatusCode::ACCEPTED))
}
