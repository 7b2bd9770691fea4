//! Conversations, to be read.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, Query, State};
use embody_agent::model::ChatMessage;
use embody_store::{Message, Scope, Store, Thread};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Web;
use super::access::Visitor;
use super::chat;
use super::refusal::Refused;
use crate::time::rfc3339;

const THREADS: u32 = 200;
/// Messages of one answer.
const MESSAGES: i64 = 200;

#[derive(Deserialize)]
pub(super) struct Part {
    /// Only what stands before this message.
    before: Option<i64>,
}

/// The latest conversations with this agent.
pub(super) async fn list(State(web): State<Arc<Web>>, visitor: Visitor) -> Result<Json<Value>, Refused> {
    let scope = visitor.chats(&web)?;
    let threads = web.store.threads(&scope, THREADS).await?;
    let threads: Vec<Value> = threads.iter().map(|thread| described(&web, &scope, thread)).collect();
    Ok(Json(json!({ "threads": threads })))
}

/// One conversation: its newest messages, or those before one.
pub(super) async fn show(
    State(web): State<Arc<Web>>,
    visitor: Visitor,
    Path(id): Path<String>,
    Query(part): Query<Part>,
) -> Result<Json<Value>, Refused> {
    let scope = visitor.chats(&web)?;
    let thread = find(&web.store, &scope, &id).await?;
    let end = part.before.unwrap_or(i64::MAX).clamp(1, thread.messages + 1);
    let after = (end - 1 - MESSAGES).max(0);
    let count = u32::try_from(end - 1 - after).unwrap_or_default();
    let messages = web.store.messages(scope.user(), &id, after, count).await?;
    Ok(Json(json!({
        "thread": described(&web, &scope, &thread),
        "messages": messages.iter().filter_map(shown).collect::<Vec<_>>(),
        "has_earlier": after > 0,
    })))
}

/// The thread of this id, if it is this user's with this agent.
pub(super) async fn find(store: &Store, scope: &Scope, id: &str) -> Result<Thread, Refused> {
    let thread = store.thread(scope.user(), id).await?.filter(|thread| thread.agent == scope.agent());
    thread.ok_or_else(|| Refused::missing("you have no such conversation"))
}

fn described(web: &Web, scope: &Scope, thread: &Thread) -> Value {
    let running = web
        .turns
        .running_in(scope.user(), &thread.id)
        .map(|turn| json!({"id": turn.id(), "began": chat::parsed(turn.id()).map(|(_, began)| began)}));
    json!({
        "id": thread.id,
        "title": thread.title,
        "channel": thread.channel,
        "messages": thread.messages,
        "created_at": rfc3339(thread.created_at),
        "changed_at": rfc3339(thread.changed_at),
        "turn": running,
    })
}

fn shown(message: &Message) -> Option<Value> {
    let (seq, at) = (message.seq, rfc3339(message.created_at));
    Some(match serde_json::from_str(&message.message.content).ok()? {
        ChatMessage::User { text } => json!({"seq": seq, "at": at, "role": "user", "text": text}),
        ChatMessage::Assistant { text, calls } => {
            let calls: Vec<Value> =
                calls.iter().map(|call| json!({"id": call.id, "name": call.name})).collect();
            json!({"seq": seq, "at": at, "role": "assistant", "text": text, "calls": calls})
        }
        // What a tool said can be long, and is for the model.
        ChatMessage::Tool { call_id, name, is_error, .. } => {
            json!({"seq": seq, "at": at, "role": "tool", "id": call_id, "name": name, "is_error": is_error})
        }
    })
}
