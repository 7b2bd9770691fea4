//! The wire format of OpenAI's chat completions. Pure. Many servers implement it with deviations: ids, indexes or the final
//! `[DONE]` may be missing, arguments may come as an object, text as a list. Ambiguous input is rejected; a stream without
//! its end marker is incomplete.

use std::borrow::Cow;

use embody_wire::sse::Event;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::chat::{ChatRequest, StopReason, ToolRequest, Usage};
use super::conversation::{Step, steps};
use super::errors::{ErrorContext, ModelError};
use super::names::Names;
use super::response_builder::{Call, ResponseBuilder, StreamState, as_json_object};
use super::settings::ModelSettings;

pub(super) fn fold(
    builder: &mut ResponseBuilder,
    event: &Event,
    context: &ErrorContext,
) -> Result<StreamState, ModelError> {
    match event.data.trim() {
        "[DONE]" => {
            builder.is_whole = true;
            return Ok(StreamState::Closed);
        }
        "" => return Ok(StreamState::Open),
        _ => {}
    }
    let chunk: Chunk = context.parse_event(&event.data)?;
    if chunk.error.is_some_and(|error| error.get() != "null") || event.name == "error" {
        return Err(context.classify_stream_error(&event.data));
    }
    let has_usage = chunk.usage.is_some();
    if let Some(usage) = chunk.usage {
        builder.usage = usage.into();
    }
    // The request asks for one choice only.
    if let Some(choice) = chunk.choices.and_then(|choices| choices.into_iter().next()) {
        fold_choice(builder, choice)?;
    }
    // Nothing follows the usage but `[DONE]`, which some servers never send.
    Ok(if builder.is_whole && has_usage { StreamState::Closed } else { StreamState::Open })
}

fn fold_choice(builder: &mut ResponseBuilder, choice: Choice) -> Result<(), ModelError> {
    if let Some(delta) = choice.delta {
        for content in [delta.content, delta.refusal].iter().flatten() {
            builder.push_text(&text_of(content))?;
        }
        for call in delta.tool_calls.unwrap_or_default() {
            fold_call(builder, call)?;
        }
    }
    let Some(reason) = choice.finish_reason else { return Ok(()) };
    builder.stop = Some(match reason.as_str() {
        "error" => return Err(ModelError::broken("the provider reported an error during the response")),
        "length" | "max_tokens" => StopReason::Length,
        "tool_calls" | "function_call" => StopReason::Calls,
        "content_filter" => StopReason::Refused,
        _ => StopReason::End,
    });
    // Some servers never send `[DONE]`.
    builder.is_whole = true;
    Ok(())
}

fn fold_call(builder: &mut ResponseBuilder, delta: CallDelta) -> Result<(), ModelError> {
    let function = delta.function.unwrap_or_default();
    let id = delta.id.unwrap_or_default();
    let name = function.name.unwrap_or_default();
    let arguments = function.arguments.as_deref().map(text_of).unwrap_or_default();
    let position = match continued(builder.calls(), delta.index, &id, &name) {
        Some(position) => position,
        None => builder.begin_call(delta.index)?,
    };
    builder.grow_call(position, &id, &name, &arguments)
}

/// The call that a delta continues; `None` if it starts a new one.
fn continued(calls: &[Call], index: Option<i64>, id: &str, name: &str) -> Option<usize> {
    let position = match index {
        Some(_) => calls.iter().rposition(|call| call.index == index)?,
        None if !id.is_empty() => calls.iter().rposition(|call| call.id == id)?,
        None => calls.len().checked_sub(1)?,
    };
    let call = calls.get(position)?;
    let is_other_id = !id.is_empty() && !call.id.is_empty() && id != call.id;
    // A repeated name after complete arguments starts the next call, on servers that send neither ids nor indexes.
    let is_next = id.is_empty() && !name.is_empty() && as_json_object(&call.arguments).is_some();
    (!is_other_id && !is_next).then_some(position)
}

/// Text given as a string, as a list of parts, or as an object where its text was expected.
fn text_of(raw: &RawValue) -> Cow<'_, str> {
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

#[derive(Deserialize)]
struct Chunk {
    choices: Option<Vec<Choice>>,
    usage: Option<Tokens>,
    error: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Choice {
    /// `message` from a server that does not stream although it was asked to.
    #[serde(alias = "message")]
    delta: Option<ChoiceDelta>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct ChoiceDelta {
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
    /// DeepSeek's name for cached prompt tokens.
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

/// The longest tool description that OpenAI itself accepts.
const DESCRIPTION_MAX_CHARS: usize = 1024;

pub(super) fn body(
    settings: &ModelSettings,
    request: &ChatRequest<'_>,
    names: &Names,
) -> Result<Vec<u8>, ModelError> {
    let mut messages = Vec::new();
    if !request.system.is_empty() {
        messages.push(Message::System { content: request.system });
    }
    for step in steps(request.messages) {
        match step {
            Step::User(texts) => messages.push(Message::User { content: joined(&texts) }),
            Step::Assistant { texts, calls } => messages.push(Message::Assistant {
                content: (!texts.is_empty()).then(|| joined(&texts)),
                tool_calls: calls.into_iter().map(|call| ModelToolCall::new(call, names)).collect(),
            }),
            Step::Results(results) => messages.extend(
                results
                    .into_iter()
                    .map(|result| Message::Tool { tool_call_id: result.call_id, content: result.text }),
            ),
        }
    }
    let is_own = is_own(settings);
    let tools = request.tools.iter().map(|tool| {
        let name = names.wire(&tool.name);
        let description =
            if is_own { cut(&tool.description) } else { Cow::Borrowed(tool.description.as_str()) };
        Tool { kind: "function", function: Function { name, description, parameters: &tool.schema } }
    });
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

/// Whether this is OpenAI itself: only it rejects the old name of the output limit, which most others use, and long
/// descriptions.
fn is_own(settings: &ModelSettings) -> bool {
    let host = settings.base_url.host_str().unwrap_or_default();
    [".openai.com", ".openai.azure.com"].iter().any(|own| host.ends_with(own))
}

fn cut(description: &str) -> Cow<'_, str> {
    match description.char_indices().nth(DESCRIPTION_MAX_CHARS - 1) {
        Some((end, last)) if end + last.len_utf8() < description.len() => {
            Cow::Owned(description.chars().take(DESCRIPTION_MAX_CHARS - 1).chain(['…']).collect())
        }
        _ => Cow::Borrowed(description),
    }
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
        // `null` instead of absent: older servers require the key, others drop the calls next to a string.
        content: Option<Cow<'a, str>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ModelToolCall<'a>>,
    },
    Tool {
        tool_call_id: &'a str,
        content: &'a str,
    },
}

#[derive(Serialize)]
struct ModelToolCall<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    function: FunctionCall<'a>,
}

#[derive(Serialize)]
struct FunctionCall<'a> {
    name: Cow<'a, str>,
    arguments: &'a str,
}

impl<'a> ModelToolCall<'a> {
    fn new(call: &'a ToolRequest, names: &'a Names) -> Self {
        // Servers parse the arguments of old messages again, and reject the request if they are invalid.
        let arguments = if as_json_object(&call.arguments).is_some() { &call.arguments } else { "{}" };
        Self {
            id: &call.id,
            kind: "function",
            function: FunctionCall { name: names.wire(&call.name), arguments },
        }
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
    description: Cow<'a, str>,
    parameters: &'a RawValue,
}

#[cfg(test)]
mod tests;
