//! `DELETE /mcp`: a host ends its session.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;

use super::HttpServer;
use super::auth::HttpError;
use super::post::SESSION_ID;
use super::response;
use crate::server::service::Service;

pub(super) async fn delete<S: Service>(
    State(server): State<Arc<HttpServer<S>>>,
    headers: HeaderMap,
) -> Result<Response, HttpError> {
    let by = server.authenticate(&headers).await?;
    let Some(id) = headers.get(SESSION_ID).and_then(|id| id.to_str().ok()) else {
        // The stateless era has no sessions, so there is nothing to delete.
        return Err(HttpError::new(StatusCode::METHOD_NOT_ALLOWED, "`Mcp-Session-Id` is missing"));
    };
    let Some(session) = server.session(id, &by).await else {
        return Err(HttpError::new(StatusCode::NOT_FOUND, "there is no such session"));
    };
    if let Some(service) = server.service.replicated() {
        service.on_session_deleted(&session.connection.host).await;
    }
    server.sessions.close(&session).await;
    Ok(response::empty(StatusCode::NO_CONTENT))
}
