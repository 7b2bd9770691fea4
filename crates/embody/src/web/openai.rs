//! `/v1`: the chat API of OpenAI, so that its clients can talk to the agents. A model is an agent; tools run inside the turn.
//! Such a client sends the whole conversation with each request. The request continues the thread whose conversation is the same
//! up to the last message; if there is none, it starts a thread with that conversation.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Json;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::sse::{self, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use embody_agent::event::{End, SseEvent};
use embody_agent::model::ChatMessage;
use embody_agent::turn::{TurnBody, to_stored};
use embody_agent::web_turns::{Reader, Turn};
use embody_store::Scope;
use embody_store::threads::Thread;
use futures_util::{StreamExt, stream};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::WebState;
use super::auth::{self, ApiCaller};
use super::chat::{self, WEB};
use super::error::ApiError;

/// A request contains the whole conversation.
const MAX_BODY_BYTES: usize = 4 * 1024 * 1024;
const MAX_MESSAGES: usize = 1000;
/// The first line of a message with the system messages of a request.
const SYSTEM_MESSAGE: &str = "[Instructions of the client for this conversation]";
/// Read by OpenAI's own clients.
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");
const THREAD_HEADER: HeaderName = HeaderName::from_static("x-embody-thread");

/// What we read of a request. Clients send many more parameters, such as `temperature`; the configuration decides about those.
#[derive(Deserialize)]
struct CompletionRequest {
    model: String,
    messages: Vec<InputMessage>,
    #[serde(default)]
    stream: bool,
    stream_options: Option<StreamOptions>,
    n: Option<u32>,
    tool_choice: Option<Value>,
}

#[derive(Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: bool,
}

#[derive(Deserialize)]
struct InputMessage {
    role: String,
    content: Option<Content>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Deserialize)]
struct Part {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
}

/// A conversation as the client sent it.
#[derive(Debug, PartialEq)]
struct Conversation {
    earlier: Vec<ChatMessage>,
    text: String,
}

pub(super) async fn models(
    State(web): State<Arc<WebState>>,
    caller: ApiCaller,
) -> Result<Json<Value>, ApiError> {
    caller.chat_scope(&web)?;
    let model = |name: &String| json!({"id": name, "object": "model", "created": 0, "owned_by": "embody"});
    let models: Vec<Value> = agents(&web).await?.iter().map(model).collect();
    Ok(Json(json!({"object": "list", "data": models})))
}

pub(super) async fn complete(
    State(web): State<Arc<WebState>>,
    caller: ApiCaller,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
) -> Result<Response, ApiError> {
    let user = caller.chat_scope(&web)?.user().to_owned();
    let facts = chat::request_facts(&web, request.headers(), peer);
    let request: CompletionRequest = auth::json_up_to(request, MAX_BODY_BYTES).await?;
    let agents = agents(&web).await?;
    if !agents.contains(&request.model) {
        let names: Vec<&str> = agents.iter().map(String::as_str).collect();
        let error = ApiError::not_found(format!("unknown model `{}`", request.model));
        return Err(error.hint(format!("the models are the agents: {}", names.join(", "))));
    }
    let scope = Scope::new(&user, &request.model)?;
    let (is_stream, model) = (request.stream, request.model.clone());
    let with_usage = request.stream_options.as_ref().is_some_and(|options| options.include_usage);
    let Conversation { earlier, text } = Conversation::read(request)?;
    chat::check_text(&text)?;
    if !web.agent.has_model() {
        return Err(failed(chat::no_model(&web, &scope), StatusCode::SERVICE_UNAVAILABLE));
    }
    let thread = find_or_start(&web, &scope, &earlier, &text).await?;
    let input = chat::turn_input(&web, scope.clone(), &thread, TurnBody::Message(text.clone()), None, facts);
    let turn = chat::start(&web, &caller, &thread, input).await?;
    let revoked = caller.wait_until_ended(web.store.clone());
    let messages = [earlier, vec![ChatMessage::User { text }]].concat();
    let completion = Completion {
        reader: turn.read(0),
        _guard: CancelOnDrop { web: Arc::clone(&web), user, turn },
        web,
        scope,
        messages,
        thread: thread.id.clone(),
        id: format!("chatcmpl-{}", thread.id),
        model,
        created: Timestamp::now().as_second(),
        text: String::new(),
        after_tool: false,
        with_usage,
    };
    let mut response = match is_stream {
        true => {
            let chunks = completion.chunks().take_until(Box::pin(revoked));
            let event = |chunk: String| Ok::<_, Infallible>(sse::Event::default().data(chunk));
            chat::as_events(
                Sse::new(chunks.map(event)).keep_alive(KeepAlive::new().interval(chat::KEEP_ALIVE)),
            )
        }
        false => match completion.whole().await {
            Ok(response) => response,
            Err(error) => {
                // The turn has already retried what is worth it; another request would be another turn.
                let mut response = error.into_response();
                response.headers_mut().insert(SHOULD_RETRY, HeaderValue::from_static("false"));
                response
            }
        },
    };
    if let Ok(id) = HeaderValue::from_str(&thread.id) {
        response.headers_mut().insert(THREAD_HEADER, id);
    }
    Ok(response)
}

/// The agent of this server, and those that the owner has set.
async fn agents(web: &WebState) -> Result<BTreeSet<String>, ApiError> {
    let stored = web.store.agents().list().await?;
    Ok(stored.into_iter().map(|agent| agent.name).chain([web.scope.agent().to_owned()]).collect())
}

/// The thread with this conversation, or a new one that begins with it.
async fn find_or_start(
    web: &WebState,
    scope: &Scope,
    earlier: &[ChatMessage],
    text: &str,
) -> Result<Thread, ApiError> {
    let threads = web.store.threads();
    if !earlier.is_empty()
        && let Some(thread) = threads.take_external(scope, WEB, &conversation_id(earlier)).await?
    {
        return Ok(thread);
    }
    web.turns.check_capacity(scope.user()).map_err(chat::busy)?;
    let thread = threads.open(scope, chat::titled(text)).await?;
    if earlier.is_empty() {
        return Ok(thread);
    }
    let added = threads.append(scope.user(), &thread.id, earlier.iter().map(to_stored).collect()).await?;
    Ok(Thread { messages: added.last().map_or(thread.messages, |last| last.seq), ..thread })
}

/// Identifies a conversation by its messages. White space around them does not count, because clients trim replies.
fn conversation_id(messages: &[ChatMessage]) -> String {
    let mut hasher = blake3::Hasher::new();
    for message in messages {
        let (role, text) = match message {
            ChatMessage::User { text } => (b'u', text),
            ChatMessage::Assistant { text, .. } => (b'a', text),
            ChatMessage::Tool { .. } => continue,
        };
        let text = text.trim();
        hasher.update(&[role]).update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
    }
    format!("v1-{}", hasher.finalize().to_hex())
}

impl Conversation {
    fn read(request: CompletionRequest) -> Result<Self, ApiError> {
        let CompletionRequest { messages, n, tool_choice, .. } = request;
        if n.is_some_and(|n| n != 1) {
            return Err(ApiError::bad_request("`n` must be 1"));
        }
        // Without it a model may answer in text, which is what happens here.
        if let Some(choice) = tool_choice.filter(|choice| !matches!(choice.as_str(), Some("auto" | "none"))) {
            return Err(ApiError::bad_request(format!("`tool_choice` {choice} is not supported"))
                .hint("tools of the client are not called; the agent uses its own servers"));
        }
        if messages.len() > MAX_MESSAGES {
            let count = messages.len();
            return Err(ApiError::bad_request(format!("{count} messages; the limit is {MAX_MESSAGES}")));
        }
        let (mut system, mut read) = (Vec::new(), Vec::new());
        for (index, InputMessage { role, content }) in messages.into_iter().enumerate() {
            let text = text(content).map_err(|kind| {
                ApiError::bad_request(format!(
                    "`messages[{index}]` has a part of type `{kind}`; only `text` is supported"
                ))
            })?;
            match role.as_str() {
                "system" | "developer" => system.push(text),
                "user" => read.push(ChatMessage::User { text }),
                // Calls of tools that a client made itself have no text.
                "assistant" if text.trim().is_empty() => {}
                "assistant" => read.push(ChatMessage::Assistant { text, calls: Vec::new() }),
                "tool" | "function" => {}
                _ => {
                    return Err(ApiError::bad_request(format!(
                        "`messages[{index}]` has the unknown role `{role}`"
                    ))
                    .hint("the roles are `system`, `developer`, `user`, `assistant` and `tool`"));
                }
            }
        }
        let system = system.join("\n\n");
        match read.pop() {
            Some(ChatMessage::User { text }) if !text.trim().is_empty() => {
                // The client speaks for its user, so its instructions rank as a message of the user.
                if !system.trim().is_empty() {
                    read.insert(0, ChatMessage::User { text: format!("{SYSTEM_MESSAGE}\n\n{system}") });
                }
                Ok(Self { earlier: read, text })
            }
            _ => Err(ApiError::bad_request("the last message must be a `user` message with text")),
        }
    }
}

/// The text of a message, or the type of a part that is no text.
fn text(content: Option<Content>) -> Result<String, String> {
    match content {
        None => Ok(String::new()),
        Some(Content::Text(text)) => Ok(text),
        Some(Content::Parts(parts)) => {
            let text = |part: Part| match (part.kind.as_str(), part.text) {
                ("text", Some(text)) => Ok(text),
                _ => Err(part.kind),
            };
            Ok(parts.into_iter().map(text).collect::<Result<Vec<_>, _>>()?.join("\n"))
        }
    }
}

/// A client that disconnects does not want the reply.
struct CancelOnDrop {
    web: Arc<WebState>,
    user: String,
    turn: Arc<Turn>,
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.web.turns.cancel(&self.user, self.turn.id());
    }
}

/// The response to one request while its turn runs.
struct Completion {
    reader: Reader,
    web: Arc<WebState>,
    _guard: CancelOnDrop,
    scope: Scope,
    /// The conversation up to the reply.
    messages: Vec<ChatMessage>,
    thread: String,
    id: String,
    model: String,
    created: i64,
    /// What was sent of the reply.
    text: String,
    after_tool: bool,
    with_usage: bool,
}

enum Progress {
    Text(String),
    Done { reason: &'static str, usage: Value },
    Failed(End),
}

impl Completion {
    /// The next text of the reply, or its end; `None` afterwards.
    async fn next(&mut self) -> Option<Progress> {
        loop {
            let SseEvent { name, data, .. } = self.reader.next().await?;
            let data: Value = serde_json::from_str(&data).unwrap_or_default();
            let text = |key: &str| data.get(key).and_then(Value::as_str).map(str::to_owned);
            match name {
                "text" => return Some(self.say(&text("delta").unwrap_or_default())),
                "tool" => self.after_tool = true,
                "tool_done" if text("decision").as_deref() == Some("pending") => {
                    let tool = text("name").unwrap_or_default();
                    let id = text("approval").unwrap_or_default();
                    self.after_tool = true;
                    let said = self.say(&format!("[`{tool}` waits for the owner's approval {id}.]"));
                    self.after_tool = true;
                    return Some(said);
                }
                "done" => {
                    let is_cut = data.get("is_cut").and_then(Value::as_bool).unwrap_or_default();
                    self.remember().await;
                    let usage = usage(data.get("usage").unwrap_or(&Value::Null));
                    return Some(Progress::Done { reason: if is_cut { "length" } else { "stop" }, usage });
                }
                "failed" => {
                    let message = text("message").unwrap_or_default();
                    return Some(Progress::Failed(End::Failed { message, hint: text("hint") }));
                }
                "cancelled" => return Some(Progress::Failed(End::Cancelled)),
                _ => {}
            }
        }
    }

    /// Text before and after a tool call are paragraphs of one reply.
    fn say(&mut self, text: &str) -> Progress {
        let is_paragraph = std::mem::take(&mut self.after_tool) && !self.text.is_empty();
        let text = format!("{}{text}", if is_paragraph { "\n\n" } else { "" });
        self.text.push_str(&text);
        Progress::Text(text)
    }

    /// The next request of this conversation finds the thread by it.
    async fn remember(&mut self) {
        let text = std::mem::take(&mut self.text);
        let mut messages = std::mem::take(&mut self.messages);
        if !text.trim().is_empty() {
            messages.push(ChatMessage::Assistant { text: text.clone(), calls: Vec::new() });
        }
        self.text = text;
        let external = conversation_id(&messages);
        if let Err(error) = self.web.store.threads().set_external(&self.scope, &self.thread, &external).await
        {
            tracing::warn!(reason = %error, "the next request of this conversation will start a new thread");
        }
    }

    async fn whole(mut self) -> Result<Response, ApiError> {
        loop {
            match self.next().await {
                Some(Progress::Text(_)) => {}
                Some(Progress::Done { reason, usage }) => {
                    let message = json!({"role": "assistant", "content": self.text});
                    let choice = json!({"index": 0, "message": message, "finish_reason": reason});
                    let response = json!({
                        "id": self.id, "object": "chat.completion", "created": self.created, "model": self.model,
                        "choices": [choice], "usage": usage,
                    });
                    return Ok(Json(response).into_response());
                }
                Some(Progress::Failed(end)) => return Err(failed(end, StatusCode::BAD_GATEWAY)),
                None => return Err(failed(End::Cancelled, StatusCode::BAD_GATEWAY)),
            }
        }
    }

    fn chunk(&self, choices: &Value, usage: &Value) -> String {
        let mut chunk = json!({
            "id": self.id, "object": "chat.completion.chunk", "created": self.created, "model": self.model,
            "choices": choices,
        });
        if let Some(chunk) = chunk.as_object_mut().filter(|_| self.with_usage) {
            chunk.insert("usage".to_owned(), usage.clone());
        }
        chunk.to_string()
    }

    fn delta(&self, delta: &Value, reason: Option<&str>) -> String {
        self.chunk(&json!([{"index": 0, "delta": delta, "finish_reason": reason}]), &Value::Null)
    }

    /// The data of the events of a stream.
    fn chunks(self) -> impl futures_util::Stream<Item = String> + Send {
        let first = self.delta(&json!({"role": "assistant", "content": ""}), None);
        let rest = stream::unfold(Some(self), async |completion| {
            let mut completion = completion?;
            Some(match completion.next().await? {
                Progress::Text(text) => {
                    (vec![completion.delta(&json!({"content": text}), None)], Some(completion))
                }
                Progress::Done { reason, usage } => {
                    let mut last = vec![completion.delta(&json!({}), Some(reason))];
                    last.extend(completion.with_usage.then(|| completion.chunk(&json!([]), &usage)));
                    last.push("[DONE]".to_owned());
                    (last, None)
                }
                Progress::Failed(end) => {
                    (vec![failed(end, StatusCode::BAD_GATEWAY).body().to_string()], None)
                }
            })
        });
        stream::iter([first]).chain(rest.flat_map(stream::iter))
    }
}

fn failed(end: End, status: StatusCode) -> ApiError {
    match end {
        End::Failed { message, hint: Some(hint) } => ApiError::new(status, message).hint(hint),
        End::Failed { message, hint: None } => ApiError::new(status, message),
        End::Done(_) | End::Cancelled => ApiError::new(status, "the turn was cancelled"),
    }
}

/// The usage of a turn; `null` if the model did not report it.
fn usage(usage: &Value) -> Value {
    let count = |key: &str| usage.get(key).and_then(Value::as_u64);
    let (Some(input), Some(output)) = (count("input"), count("output")) else { return Value::Null };
    json!({
        "prompt_tokens": input, "completion_tokens": output, "total_tokens": input.saturating_add(output),
        "prompt_tokens_details": {"cached_tokens": count("cache_read").unwrap_or_default()},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(messages: Value) -> Result<Conversation, String> {
        let request = serde_json::from_value(json!({"model": "ada", "messages": messages})).unwrap();
        Conversation::read(request).map_err(|error| error.body().to_string())
    }

    fn said(text: &str) -> ChatMessage {
        ChatMessage::Assistant { text: text.into(), calls: Vec::new() }
    }

    fn asked(text: &str) -> ChatMessage {
        ChatMessage::User { text: text.into() }
    }

    #[test]
    fn a_conversation_ends_with_a_message_of_the_user() {
        let conversation = read(json!([
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]},
            {"role": "assistant", "content": null, "tool_calls": []},
            {"role": "tool", "content": "ignored", "tool_call_id": "1"},
            {"role": "assistant", "content": "three"},
            {"role": "developer", "content": "Be kind."},
            {"role": "user", "content": "four"},
        ]));
        let system = asked("[Instructions of the client for this conversation]\n\nBe brief.\n\nBe kind.");
        let earlier = vec![system, asked("one\ntwo"), said("three")];
        assert_eq!(conversation, Ok(Conversation { earlier, text: "four".into() }));
        for (messages, part) in [
            (json!([]), "last message"),
            (json!([{"role": "user", "content": " "}]), "last message"),
            (json!([{"role": "assistant", "content": "a"}]), "last message"),
            (json!([{"role": "root", "content": "a"}]), "unknown role `root`"),
            (json!([{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]), "`image_url`"),
        ] {
            let error = read(messages).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn conversations_differ_in_texts_and_roles_but_not_in_space_around_them() {
        let one = conversation_id(&[asked("a"), said("b\n")]);
        assert_eq!(one, conversation_id(&[asked("a"), said(" b")]));
        for other in
            [vec![asked("a"), asked("b")], vec![asked("ab")], vec![asked("a")], vec![asked("a"), said("c")]]
        {
            assert_ne!(one, conversation_id(&other));
        }
    }
}
