//! `DELETE /mcp`: a host ends its session.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;

use super::Face;
use super::answer;
use super::door::Refused;
use super::post::SESSION_ID;
use crate::serve::service::Service;

/// Ends a session.
pub(super) async fn delete<S: Service>(
    State(face): State<Arc<Face<S>>>,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    let by = face.admit(&headers).await?;
    let Some(id) = headers.get(SESSION_ID).and_then(|id| id.to_str().ok()) else {
        // The stateless era knows no sessions, so there is nothing that could be deleted.
        return Err(Refused::new(StatusCode::METHOD_NOT_ALLOWED, "`Mcp-Session-Id` is missing"));
    };
    let Some(session) = face.session(id, &by).await else {
        return Err(Refused::new(StatusCode::NOT_FOUND, "there is no such session"));
    };
    face.service.left(&session.conversation.host).await;
    face.sessions.close(&session).await;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}
