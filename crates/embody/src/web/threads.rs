//! Read-only access to conversations.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, Query, State};
use embody_agent::model::{ChatMessage, ToolRequest};
use embody_agent::turn::{CallDecision, TurnFailure};
use embody_broker::approval;
use embody_broker::visible::{is_hidden, push_code};
use embody_store::approvals::{Approval, ApprovalFilter, ApprovalStatus};
use embody_store::threads::Thread;
use embody_store::{Scope, Store};
use embody_text::truncate;
use serde::Deserialize;
use serde_json::{Value, json};

use super::WebState;
use super::auth::ApiCaller;
use super::chat;
use super::error::ApiError;
use crate::conversation::{Content, ParsedMessage};
use crate::time::rfc3339;

const MAX_THREADS: u32 = 200;
const MAX_MESSAGES: i64 = 200;
const MAX_WAITING: u32 = 50;
/// The maximum number of calls per response whose approvals are looked up; the newest first.
const MAX_LOOKUPS: usize = 50;
/// The state of an approval that is no longer stored, or not looked up. It may have been used.
const UNKNOWN: &str = "unknown";
const UNUSED: &str = "unused";
/// The longest excerpt of a call's arguments or result, in characters.
const EXCERPT_CHARS: usize = 2000;

#[derive(Deserialize)]
pub(super) struct ShowQuery {
    /// Only messages before this one.
    before: Option<i64>,
}

/// The latest conversations with this agent, and their calls that await approval.
pub(super) async fn list(
    State(web): State<Arc<WebState>>,
    caller: ApiCaller,
) -> Result<Json<Value>, ApiError> {
    let scope = caller.chat_scope(&web)?;
    let threads = web.store.threads().list(&scope, MAX_THREADS).await?;
    let threads: Vec<Value> = threads.iter().map(|thread| thread_json(&web, &scope, thread)).collect();
    // Only those who decide see the content; the waiting user sees that a call waits.
    let waiting = web.store.approvals().list(scope.user(), ApprovalFilter::Pending, MAX_WAITING).await?;
    let waiting = waiting.iter().filter(|asked| asked.agent == scope.agent());
    let waiting = waiting.map(|asked| {
        json!({"approval": asked.id, "channel": asked.channel, "body": asked.body, "tool": asked.tool})
    });
    Ok(Json(json!({ "threads": threads, "waiting": waiting.collect::<Vec<_>>() })))
}

/// One conversation: its newest messages, or those before one.
pub(super) async fn show(
    State(web): State<Arc<WebState>>,
    caller: ApiCaller,
    Path(id): Path<String>,
    Query(query): Query<ShowQuery>,
) -> Result<Json<Value>, ApiError> {
    let scope = caller.chat_scope(&web)?;
    let thread = find(&web.store, &scope, &id).await?;
    let end = query.before.unwrap_or(i64::MAX).clamp(1, thread.messages + 1);
    let after = (end - 1 - MAX_MESSAGES).max(0);
    let count = u32::try_from(end - 1 - after).unwrap_or_default();
    let messages = web.store.threads().messages(scope.user(), &id, after, count).await?;
    let messages: Vec<ParsedMessage> = messages.iter().filter_map(ParsedMessage::read).collect();
    let states = approval_states(&web.store, &scope, &messages).await?;
    Ok(Json(json!({
        "thread": thread_json(&web, &scope, &thread),
        "messages": messages.iter().map(|message| message.as_json(&states)).collect::<Vec<_>>(),
        "has_earlier": after > 0,
    })))
}

/// The thread with this id, if it belongs to this user and agent.
pub(super) async fn find(store: &Store, scope: &Scope, id: &str) -> Result<Thread, ApiError> {
    let thread = store.threads().get(scope.user(), id).await?.filter(|thread| thread.agent == scope.agent());
    thread.ok_or_else(|| ApiError::not_found("unknown conversation"))
}

fn thread_json(web: &WebState, scope: &Scope, thread: &Thread) -> Value {
    let running = web.turns.running_in(scope.user(), &thread.id).map(
        |turn| json!({"id": turn.id(), "began": chat::parse_turn_id(turn.id()).map(|(_, began)| began)}),
    );
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

/// The states of the approvals that calls in these messages waited for.
async fn approval_states(
    store: &Store,
    scope: &Scope,
    messages: &[ParsedMessage],
) -> Result<HashMap<String, &'static str>, ApiError> {
    let mut states = HashMap::new();
    for id in messages.iter().rev().filter_map(ParsedMessage::waited_for).take(MAX_LOOKUPS) {
        if !states.contains_key(id) {
            let found = store.approvals().get(scope.user(), id).await?;
            states.insert(id.to_owned(), found.as_ref().map_or(UNKNOWN, settled));
        }
    }
    Ok(states)
}

/// The state of an approval; `unused` if it was given, but expired before the call was made.
fn settled(approval: &Approval) -> &'static str {
    match approval.status {
        ApprovalStatus::Expired if approval.decided_by.is_some() => UNUSED,
        status => status.name(),
    }
}

impl ParsedMessage {
    /// The approval that a call waited for when its turn ended, or that expired before.
    fn waited_for(&self) -> Option<&str> {
        let Content::Message { decided, .. } = &self.content else { return None };
        let waited = matches!(decided.decision.as_deref(), Some("pending" | "held" | "timeout"));
        decided.approval.as_deref().filter(|_| waited)
    }

    fn as_json(&self, states: &HashMap<String, &'static str>) -> Value {
        let Self { seq, at, content } = self;
        let at = rfc3339(*at);
        let (message, CallDecision { decision, approval }) = match content {
            Content::Message { message, decided } => (message, decided),
            Content::Failure(TurnFailure { message, hint }) => {
                return json!({"seq": seq, "at": at, "role": "failure", "text": message, "hint": hint});
            }
        };
        match message {
            ChatMessage::User { text } => json!({"seq": seq, "at": at, "role": "user", "text": text}),
            ChatMessage::Assistant { text, calls } => {
                let call = |call: &ToolRequest| {
                    let arguments = legible(&call.arguments);
                    json!({"id": call.id, "name": call.name, "arguments": arguments})
                };
                let calls: Vec<Value> = calls.iter().map(call).collect();
                json!({"seq": seq, "at": at, "role": "assistant", "text": text, "calls": calls})
            }
            // A tool result can be long and is for the model: a person sees an excerpt.
            ChatMessage::Tool { call_id, name, text, is_error } => {
                let settled = self.waited_for().map(|id| states.get(id).copied().unwrap_or(UNKNOWN));
                json!({
                    "seq": seq, "at": at, "role": "tool", "id": call_id, "name": name, "is_error": is_error,
                    "text": legible(text), "decision": decision, "approval": approval, "settled": settled,
                })
            }
        }
    }
}

/// An excerpt for a person: JSON with one line per value, as in an approval, other text unchanged. Keeps every digit and
/// shows invisible characters as codes.
fn legible(text: &str) -> String {
    // JSON that exceeds the parser's nesting limit is shown unchanged.
    let is_json = matches!(serde_json::from_str(text), Ok(Value::Object(_) | Value::Array(_)));
    let lines = if is_json {
        approval::visible_json(text)
    } else {
        show_hidden(text.chars().take(EXCERPT_CHARS + 1))
    };
    truncate(&lines, EXCERPT_CHARS)
}

/// Replaces invisible characters with their codes.
fn show_hidden(text: impl Iterator<Item = char>) -> String {
    let mut out = String::new();
    for c in text {
        match c {
            '\n' | '\t' => out.push(c),
            c if is_hidden(c) => push_code(c, &mut out),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_shown_exactly() {
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        for (text, seen) in [
            (r#"{"n":12345678901234567890,"x":1.10}"#, "{\n  \"n\": 12345678901234567890,\n  \"x\": 1.10\n}"),
            (r#"{"to":"a","to":"b"}"#, "{\n  \"to\": \"a\",\n  \"to\": \"b\"\n}"),
            ("{\"a\":\"\u{3164}\u{34f}\"}", "{\n  \"a\": \"⟨U+3164⟩⟨U+034F⟩\"\n}"),
            ("1.10", "1.10"),
            ("one\n\ttwo\u{2800}\u{fe0f}\u{2028}", "one\n\ttwo⟨U+2800⟩⟨U+FE0F⟩⟨U+2028⟩"),
            (r#"{"cut": "#, r#"{"cut": "#),
            (&deep, &truncate(&deep, EXCERPT_CHARS)),
            (&"\u{200b}".repeat(3000), &truncate(&"⟨U+200B⟩".repeat(EXCERPT_CHARS), EXCERPT_CHARS)),
        ] {
            assert_eq!(legible(text), seen);
        }
    }
}
