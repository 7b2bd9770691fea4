//! What is remembered, what was done, and what the agent is told: to read, not to change.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use embody_store::{FoundMemory, MemoryList, MemorySearch, MemoryStatus, Scope};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Web;
use super::access::Visitor;
use super::refusal::Refused;
use crate::cli::Who;
use crate::cli::memory::as_json;
use crate::cli::prompt::PromptReport;
use crate::compose::PromptArgs;

/// The most of anything.
const MOST: u32 = 500;
const USUAL: u32 = 50;
const OPENAPI: &str = include_str!("openapi.json");

#[derive(Deserialize)]
pub(super) struct Memories {
    #[serde(default)]
    query: String,
    limit: Option<u32>,
    kind: Option<String>,
    after: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Audit {
    limit: Option<u32>,
}

#[derive(Deserialize)]
pub(super) struct Prompt {
    layout: Option<String>,
    channel: Option<String>,
    task: Option<String>,
}

/// What the agent remembers of this user: what fits a query, or the newest.
pub(super) async fn memories(
    State(web): State<Arc<Web>>,
    visitor: Visitor,
    Query(wanted): Query<Memories>,
) -> Result<Json<Value>, Refused> {
    let scope = Scope::new(&visitor.user, web.scope.agent())?;
    let limit = wanted.limit.unwrap_or(USUAL).min(MOST);
    let found: Vec<Value> = if wanted.query.trim().is_empty() {
        let list = MemoryList {
            status: MemoryStatus::Active,
            kind: wanted.kind,
            since: None,
            after: wanted.after,
            limit,
        };
        web.store.list_memories(&scope, &list).await?.iter().map(|memory| as_json(memory, None)).collect()
    } else {
        let search = MemorySearch { query: wanted.query, limit, kind: wanted.kind, since: None };
        let found = web.store.search_memories(&scope, &search).await?;
        found.iter().map(|FoundMemory { memory, score }| as_json(memory, Some(*score))).collect()
    };
    Ok(Json(json!({ "memories": found })))
}

/// The newest records about this user, the oldest of them first.
pub(super) async fn audit(
    State(web): State<Arc<Web>>,
    visitor: Visitor,
    Query(wanted): Query<Audit>,
) -> Result<Json<Value>, Refused> {
    let user = visitor.operates()?;
    let records = web.store.audit_tail(wanted.limit.unwrap_or(USUAL).min(MOST), Some(user)).await?;
    Ok(Json(json!({ "records": records })))
}

/// The prompt that the owner's next turn would have, and the account of its bytes.
pub(super) async fn prompt(
    State(web): State<Arc<Web>>,
    visitor: Visitor,
    Query(wanted): Query<Prompt>,
) -> Result<Json<Value>, Refused> {
    if visitor.operates()? != web.scope.user() {
        return Err(Refused::forbidden("only the owner of this workspace sees its prompt"));
    }
    let known = ["body", "full", "tagged", "channel"];
    if let Some(layout) = wanted.layout.as_deref().filter(|layout| !known.contains(layout)) {
        return Err(Refused::wrong(format!("`{layout}` is no layout")).hint(known.join(", ")));
    }
    let who = Who { user: Some(visitor.user), agent: Some(web.scope.agent().to_owned()) };
    let channel = wanted.channel.or_else(|| Some("web".to_owned()));
    let args = PromptArgs { layout: wanted.layout, channel, task: wanted.task, ..PromptArgs::plain(who) };
    let voice = Arc::clone(&web.voice);
    let report = tokio::task::spawn_blocking(move || PromptReport::make(&args, voice.context())).await;
    let report = report.map_err(|_| Refused::unavailable("the prompt could not be built"))?;
    let report =
        report.map_err(|failure| Refused::from_failure(StatusCode::UNPROCESSABLE_ENTITY, &failure))?;
    Ok(Json(json!(report)))
}

/// What can be asked here, for programs.
pub(super) async fn openapi(_: Visitor) -> Response {
    ([(CONTENT_TYPE, "application/json")], OPENAPI).into_response()
}
