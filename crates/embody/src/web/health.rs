//! Liveness, readiness and status endpoints.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::WebState;
use super::auth::ApiCaller;
use super::error::ApiError;
use crate::cli::status::as_json;

/// Limit for the store in the readiness check.
const READY: Duration = Duration::from_secs(2);

/// Returns success while the process runs.
pub(super) async fn healthz() -> &'static str {
    "ok\n"
}

/// Returns success if the store responds.
pub(super) async fn readyz(State(web): State<Arc<WebState>>) -> Response {
    let looked = tokio::time::timeout(READY, web.store.threads().get("", "")).await;
    match looked {
        Ok(Ok(_)) => "ok\n".into_response(),
        _ => (StatusCode::SERVICE_UNAVAILABLE, "the store does not answer\n").into_response(),
    }
}

/// The running parts, degraded states, and pending approvals.
pub(super) async fn status(
    State(web): State<Arc<WebState>>,
    caller: ApiCaller,
) -> Result<Json<Value>, ApiError> {
    let user = caller.require_operator()?;
    let config = &web.prompts.context().config;
    let status = as_json(&web.store, user, web.scope.user(), config).await;
    let mut status =
        status.map_err(|failure| ApiError::from_cli_error(StatusCode::SERVICE_UNAVAILABLE, &failure))?;
    let tally = web.turns.counters();
    if let Some(members) = status.as_object_mut() {
        members.extend([
            ("model".to_owned(), json!(config.model.model)),
            ("uptime_s".to_owned(), json!(web.since.elapsed().as_secs())),
            ("turns".to_owned(), json!(tally)),
        ]);
    }
    Ok(Json(status))
}
