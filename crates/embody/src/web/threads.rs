//! Conversations, to be read.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, Query, State};
use embody_agent::model::{ChatMessage, ToolRequest};
use embody_agent::turn::Decided;
use embody_store::{ApprovalFilter, Message, Scope, Store, Thread};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Web;
use super::access::Visitor;
use super::answer::WEB;
use super::chat;
use super::refusal::Refused;
use crate::approvals;
use crate::time::{clipped, rfc3339};

const THREADS: u32 = 200;
/// Messages of one answer.
const MESSAGES: i64 = 200;
/// Calls that wait, at most.
const WAITING: u32 = 50;
/// What is shown of a call's arguments, and of its result, in characters.
const EXCERPT: usize = 2000;

#[derive(Deserialize)]
pub(super) struct Part {
    /// Only what stands before this message.
    before: Option<i64>,
}

/// The latest conversations with this agent, and which tools of theirs wait for somebody's word.
pub(super) async fn list(State(web): State<Arc<Web>>, visitor: Visitor) -> Result<Json<Value>, Refused> {
    let scope = visitor.chats(&web)?;
    let threads = web.store.threads(&scope, THREADS).await?;
    let threads: Vec<Value> = threads.iter().map(|thread| described(&web, &scope, thread)).collect();
    // What it is about is for those alone who decide; that a call waits is for whoever waits for it.
    let waiting = web.store.approvals(scope.user(), ApprovalFilter::Pending, WAITING).await?;
    let is_here = |asked: &&embody_store::Approval| asked.agent == scope.agent() && asked.channel == WEB;
    let waiting: Vec<&str> = waiting.iter().filter(is_here).map(|asked| asked.tool.as_str()).collect();
    Ok(Json(json!({ "threads": threads, "waiting": waiting })))
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
    let settled = settled(&web.store, &scope, &messages).await?;
    Ok(Json(json!({
        "thread": described(&web, &scope, &thread),
        "messages": messages.iter().filter_map(|message| shown(message, &settled)).collect::<Vec<_>>(),
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

/// What became of the calls among these messages that waited for somebody's word, by their approvals.
async fn settled(
    store: &Store,
    scope: &Scope,
    messages: &[Message],
) -> Result<HashMap<String, &'static str>, Refused> {
    let mut settled = HashMap::new();
    for id in messages.iter().filter_map(|message| decided(message).approval) {
        if let Some(approval) = store.approval(scope.user(), &id).await? {
            settled.insert(id, approvals::name(approval.status));
        }
    }
    Ok(settled)
}

/// What the broker decided instead of the call whose result this is.
fn decided(message: &Message) -> Decided {
    let is_result = message.message.role == "tool";
    is_result.then(|| serde_json::from_str(&message.message.content).ok()).flatten().unwrap_or_default()
}

fn shown(message: &Message, settled: &HashMap<String, &'static str>) -> Option<Value> {
    let (seq, at) = (message.seq, rfc3339(message.created_at));
    Some(match serde_json::from_str(&message.message.content).ok()? {
        ChatMessage::User { text } => json!({"seq": seq, "at": at, "role": "user", "text": text}),
        ChatMessage::Assistant { text, calls } => {
            let call = |call: &ToolRequest| {
                let arguments = clipped(&call.arguments, EXCERPT);
                json!({"id": call.id, "name": call.name, "arguments": arguments})
            };
            let calls: Vec<Value> = calls.iter().map(call).collect();
            json!({"seq": seq, "at": at, "role": "assistant", "text": text, "calls": calls})
        }
        // What a tool said can be long, and is for the model: a person sees how it begins.
        ChatMessage::Tool { call_id, name, text, is_error } => {
            let Decided { decision, approval } = decided(message);
            let settled = approval.as_ref().and_then(|approval| settled.get(approval));
            json!({
                "seq": seq, "at": at, "role": "tool", "id": call_id, "name": name, "is_error": is_error,
                "text": clipped(&text, EXCERPT), "decision": decision, "approval": approval, "settled": settled,
            })
        }
    })
}
