//! Read-only views: memories, audit records, and the agent's prompt.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use embody_agent::turn::PromptRequest;
use embody_prompt::Layout;
use embody_store::Scope;
use embody_store::memories::{FoundMemory, MemoryList, MemorySearch, MemoryStatus};
use serde::Deserialize;
use serde_json::{Value, json};

use super::WebState;
use super::auth::ApiCaller;
use super::chat::WEB;
use super::error::ApiError;
use crate::memory::memory_json;

const MAX_RESULTS: u32 = 500;
const DEFAULT_RESULTS: u32 = 50;
const OPENAPI: &str = include_str!("openapi.json");

#[derive(Deserialize)]
pub(super) struct MemoriesQuery {
    #[serde(default)]
    query: String,
    limit: Option<u32>,
    kind: Option<String>,
    after: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct AuditQuery {
    limit: Option<u32>,
}

#[derive(Deserialize)]
pub(super) struct PromptQuery {
    /// In RFC 3339.
    now: Option<String>,
    layout: Option<String>,
    channel: Option<String>,
    task: Option<String>,
}

/// The agent's memories of this user: those that match a query, or the newest.
pub(super) async fn memories(
    State(web): State<Arc<WebState>>,
    caller: ApiCaller,
    Query(query): Query<MemoriesQuery>,
) -> Result<Json<Value>, ApiError> {
    let scope = Scope::new(&caller.user, web.scope.agent())?;
    let limit = query.limit.unwrap_or(DEFAULT_RESULTS).min(MAX_RESULTS);
    let found: Vec<Value> = if query.query.trim().is_empty() {
        let list = MemoryList {
            status: MemoryStatus::Active,
            kind: query.kind,
            since: None,
            after: query.after,
            limit,
        };
        web.store
            .memories()
            .list(&scope, &list)
            .await?
            .iter()
            .map(|memory| memory_json(memory, None))
            .collect()
    } else {
        let search = MemorySearch { query: query.query, limit, kind: query.kind, since: None };
        let found = web.store.memories().search(&scope, &search).await?;
        found.iter().map(|FoundMemory { memory, score }| memory_json(memory, Some(*score))).collect()
    };
    Ok(Json(json!({ "memories": found })))
}

/// The newest records about this user, in chronological order.
pub(super) async fn audit(
    State(web): State<Arc<WebState>>,
    caller: ApiCaller,
    Query(query): Query<AuditQuery>,
) -> Result<Json<Value>, ApiError> {
    let user = caller.require_operator()?;
    let records =
        web.store.audit().tail(query.limit.unwrap_or(DEFAULT_RESULTS).min(MAX_RESULTS), Some(user)).await?;
    Ok(Json(json!({ "records": records })))
}

/// The prompt of the owner's next turn, and its receipt.
pub(super) async fn prompt(
    State(web): State<Arc<WebState>>,
    caller: ApiCaller,
    Query(query): Query<PromptQuery>,
) -> Result<Json<Value>, ApiError> {
    if caller.require_operator()? != web.scope.user() {
        return Err(ApiError::forbidden("only the owner of this workspace can read its prompt"));
    }
    let known = ["body", "full", "tagged", "channel"];
    if let Some(layout) = query.layout.as_deref().filter(|layout| !known.contains(layout)) {
        return Err(ApiError::bad_request(format!("unknown layout `{layout}`")).hint(known.join(", ")));
    }
    let now = query.now.as_deref().map(str::parse).transpose().map_err(|_| {
        let now = query.now.as_deref().unwrap_or_default();
        ApiError::bad_request(format!("invalid time `{now}` in `now`"))
            .hint("use RFC 3339, such as 2026-11-17T09:00:00Z")
    })?;
    let request = PromptRequest {
        now,
        layout: query.layout.as_deref().and_then(Layout::from_name),
        channel: query.channel.or_else(|| Some(WEB.to_owned())),
        task: query.task,
        ..PromptRequest::new(web.scope.clone())
    };
    let loaded = web.prompts.build_with_known_tools(&request).await;
    let loaded =
        loaded.map_err(|failure| ApiError::from_cli_error(StatusCode::UNPROCESSABLE_ENTITY, &failure))?;
    loaded.log();
    Ok(Json(json!(loaded.report().without_definitions())))
}

pub(super) async fn openapi(_: ApiCaller) -> Response {
    ([(CONTENT_TYPE, "application/json")], OPENAPI).into_response()
}
