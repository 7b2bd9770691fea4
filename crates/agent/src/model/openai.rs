//! OpenAI's chat completions: the request, and folding a stream's events into a draft. Pure.
//!
//! Many servers speak this, each with an accent: ids, indexes or the last `[DONE]` may be missing, arguments may come as
//! an object, text as a list. What cannot be told apart is refused; a stream without its end mark is not whole.

use std::borrow::Cow;

use embody_wire::sse::Event;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::chat::{Ask, Stop, ToolRequest, Usage};
use super::conversation::{Step, steps};
use super::draft::{Call, Draft};
use super::errors::{ModelError, Witness};
use super::names::Names;
use super::settings::ModelSettings;

/// The request for a question.
pub(super) fn body(settings: &ModelSettings, ask: &Ask<'_>, names: &Names) -> Result<Vec<u8>, ModelError> {
    let mut messages = Vec::new();
    if !ask.system.is_empty() {
        messages.push(Message::System { content: ask.system });
    }
    for step in steps(ask.messages) {
        match step {
            Step::User(texts) => messages.push(Message::User { content: joined(&texts) }),
            Step::Assistant { texts, calls } => messages.push(Message::Assistant {
                content: (!texts.is_empty()).then(|| joined(&texts)),
                tool_calls: calls.into_iter().map(|call| ToolCall::new(call, names)).collect(),
            }),
            Step::Results(results) => messages.extend(
                results
                    .into_iter()
                    .map(|result| Message::Tool { tool_call_id: result.call_id, content: result.text }),
            ),
        }
    }
    let tools = ask.tools.iter().map(|tool| {
        let function = Function {
            name: names.wire(&tool.name),
            description: &tool.description,
            parameters: &tool.schema,
        };
        Tool { kind: "function", function }
    });
    // OpenAI's newer models refuse the old name, most other servers know only that.
    let is_own = settings.base_url.host_str().is_some_and(|host| host.ends_with(".openai.com"));
    let limit = Some(settings.max_output_tokens);
    let body = Body {
        model: &settings.model,
        messages,
        stream: true,
        stream_options: StreamOptions { include_usage: true },
        max_tokens: limit.filter(|_| !is_own),
        max_completion_tokens: limit.filter(|_| is_own),
        tools: tools.collect(),
    };
    serde_json::to_vec(&body).map_err(|error| ModelError::Settings { why: error.to_string() })
}

/// Takes one event into the draft.
pub(super) fn fold(draft: &mut Draft, event: &Event, witness: &Witness) -> Result<(), ModelError> {
    if event.data.trim() == "[DONE]" {
        draft.is_whole = true;
        return Ok(());
    }
    if event.data.trim().is_empty() {
        return Ok(());
    }
    let chunk: Chunk = serde_json::from_str(&event.data)
        .map_err(|error| ModelError::broken(format!("an event cannot be read: {error}")))?;
    if chunk.error.is_some_and(|error| error.get() != "null") || event.name == "error" {
        return Err(witness.judge_within(&event.data));
    }
    if let Some(usage) = chunk.usage {
        draft.usage = usage.into();
    }
    // Only one answer was asked for.
    let Some(choice) = chunk.choices.and_then(|choices| choices.into_iter().next()) else { return Ok(()) };
    if let Some(delta) = choice.delta {
        if let Some(content) = delta.content.as_deref().or(delta.refusal.as_deref()) {
            draft.say(&words(content))?;
        }
        for call in delta.tool_calls.unwrap_or_default() {
            fold_call(draft, call)?;
        }
    }
    if let Some(reason) = choice.finish_reason {
        if reason == "error" {
            return Err(ModelError::broken("the provider met an error while it answered"));
        }
        draft.stop = Some(match reason.as_str() {
            "length" | "max_tokens" => Stop::Length,
            "tool_calls" | "function_call" => Stop::Calls,
            "content_filter" => Stop::Refused,
            _ => Stop::End,
        });
        // Some servers never say `[DONE]`.
        draft.is_whole = true;
    }
    Ok(())
}

fn fold_call(draft: &mut Draft, delta: CallDelta) -> Result<(), ModelError> {
    let function = delta.function.unwrap_or_default();
    let id = delta.id.unwrap_or_default();
    let name = function.name.unwrap_or_default();
    let arguments = function.arguments.as_deref().map(words).unwrap_or_default();
    match continued(draft.calls(), delta.index, &id, &name) {
        Some(place) => draft.grow_call(place, &arguments),
        None => {
            let arguments = arguments.into_owned();
            draft.begin_call(Call { index: delta.index, id, name, arguments })
        }
    }
}

/// Which call a piece goes on with; `None`: it begins one.
fn continued(calls: &[Call], index: Option<i64>, id: &str, name: &str) -> Option<usize> {
    let place = match index {
        Some(_) => calls.iter().rposition(|call| call.index == index)?,
        None if !id.is_empty() => calls.iter().rposition(|call| call.id == id)?,
        None => calls.len().checked_sub(1)?,
    };
    let call = calls.get(place)?;
    let is_other_id = !id.is_empty() && !call.id.is_empty() && id != call.id;
    // A name once more behind whole arguments is the next call of a server that numbers and names none.
    let is_next = id.is_empty() && !name.is_empty() && arguments_of(&call.arguments).is_some();
    (!is_other_id && !is_next).then_some(place)
}

/// Text that may be a string, a list of parts, or the thing itself where its text was expected.
fn words(raw: &RawValue) -> Cow<'_, str> {
    #[derive(Deserialize)]
    struct Part {
        text: Option<String>,
    }
    let json = raw.get();
    match json.as_bytes().first() {
        Some(b'"') => serde_json::from_str::<String>(json).unwrap_or_default().into(),
        Some(b'n') => Cow::Borrowed(""),
        Some(b'[') => serde_json::from_str::<Vec<Part>>(json)
            .map(|parts| parts.into_iter().filter_map(|part| part.text).collect::<String>())
            .unwrap_or_default()
            .into(),
        _ => Cow::Borrowed(json),
    }
}

/// Arguments that are a whole JSON object.
pub(super) fn arguments_of(text: &str) -> Option<&RawValue> {
    serde_json::from_str::<&RawValue>(text).ok().filter(|raw| raw.get().starts_with('{'))
}

fn joined<'a>(texts: &[&'a str]) -> Cow<'a, str> {
    match texts {
        [text] => Cow::Borrowed(text),
        texts => Cow::Owned(texts.join("\n\n")),
    }
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<Message<'a>>,
    stream: bool,
    stream_options: StreamOptions,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum Message<'a> {
    System {
        content: &'a str,
    },
    User {
        content: Cow<'a, str>,
    },
    Assistant {
        // `null` and not left out: older servers insist on the key, others drop the calls beside a string.
        content: Option<Cow<'a, str>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ToolCall<'a>>,
    },
    Tool {
        tool_call_id: &'a str,
        content: &'a str,
    },
}

#[derive(Serialize)]
struct ToolCall<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    function: Called<'a>,
}

#[derive(Serialize)]
struct Called<'a> {
    name: Cow<'a, str>,
    arguments: &'a str,
}

impl<'a> ToolCall<'a> {
    fn new(call: &'a ToolRequest, names: &'a Names) -> Self {
        // Servers read the arguments of old messages again, and refuse all of it if they are none.
        let arguments = if arguments_of(&call.arguments).is_some() { &call.arguments } else { "{}" };
        Self { id: &call.id, kind: "function", function: Called { name: names.wire(&call.name), arguments } }
    }
}

#[derive(Serialize)]
struct Tool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: Cow<'a, str>,
    description: &'a str,
    parameters: &'a RawValue,
}

#[derive(Deserialize)]
struct Chunk {
    choices: Option<Vec<Choice>>,
    usage: Option<Tokens>,
    error: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Choice {
    /// `message` where a server does not stream although it was asked to.
    #[serde(alias = "message")]
    delta: Option<Piece>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Piece {
    content: Option<Box<RawValue>>,
    refusal: Option<Box<RawValue>>,
    tool_calls: Option<Vec<CallDelta>>,
}

#[derive(Deserialize)]
struct CallDelta {
    index: Option<i64>,
    id: Option<String>,
    function: Option<FunctionDelta>,
}

#[derive(Deserialize, Default)]
struct FunctionDelta {
    name: Option<String>,
    arguments: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Tokens {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<Details>,
    /// DeepSeek's name for what was cached.
    prompt_cache_hit_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct Details {
    cached_tokens: Option<u64>,
}

impl From<Tokens> for Usage {
    fn from(tokens: Tokens) -> Self {
        let cached = tokens.prompt_tokens_details.and_then(|details| details.cached_tokens);
        Self {
            input: tokens.prompt_tokens,
            output: tokens.completion_tokens,
            cache_read: cached.or(tokens.prompt_cache_hit_tokens),
            cache_write: None,
        }
    }
}

#[cfg(test)]
mod tests;
