//! What models used, for operators: the owner sees all users, others themselves.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::Value;

use super::WebState;
use super::auth::ApiCaller;
use super::error::ApiError;
use crate::usage::{UsageBy, UsageQuery, usage_report};

#[derive(Deserialize)]
pub(super) struct UsageParams {
    by: Option<String>,
    since: Option<String>,
    until: Option<String>,
}

pub(super) async fn usage(
    State(web): State<Arc<WebState>>,
    caller: ApiCaller,
    Query(params): Query<UsageParams>,
) -> Result<Json<Value>, ApiError> {
    let user = caller.require_operator()?;
    let by = params.by.as_deref().unwrap_or(UsageBy::Day.name());
    let by = UsageBy::from_name(by).ok_or_else(|| {
        ApiError::bad_request(format!("unknown `by`: `{}`", by.escape_debug()))
            .hint(UsageBy::NAMES.join(", "))
    })?;
    let query = UsageQuery {
        by,
        since: params.since.as_deref(),
        until: params.until.as_deref(),
        user: Some(user.to_owned()).filter(|user| user != web.scope.user()),
    };
    let settings = web.prompts.settings();
    let config = &settings.config;
    let report = usage_report(&web.store, config, &web.prompts.owner_zone(), query).await;
    let report = report.map_err(|failure| {
        // A wrong value is the caller's mistake; anything else is the store's.
        let status =
            if failure.is_usage() { StatusCode::BAD_REQUEST } else { StatusCode::SERVICE_UNAVAILABLE };
        ApiError::from_cli_error(status, &failure)
    })?;
    Ok(Json(report.json()))
}
