//! Folds stream events into a [`ResponseBuilder`].

use std::borrow::Cow;

use embody_wire::sse::Event;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::chat::{StopReason, Usage};
use super::super::errors::{ErrorContext, ModelError};
use super::super::response_builder::{Call, ResponseBuilder, StreamState, as_json_object};

/// Applies one event to the builder.
pub(in super::super) fn fold(
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
    let unreadable = |error: serde_json::Error| {
        ModelError::broken(format!("an event cannot be read: {}", context.quote(&error.to_string())))
    };
    let chunk: Chunk = serde_json::from_str(&event.data).map_err(unreadable)?;
    if chunk.error.is_some_and(|error| error.get() != "null") || event.name == "error" {
        return Err(context.classify_stream_error(&event.data));
    }
    if let Some(usage) = chunk.usage {
        builder.usage = usage.into();
    }
    // The request asks for one choice only.
    if let Some(choice) = chunk.choices.and_then(|choices| choices.into_iter().next()) {
        fold_choice(builder, choice)?;
    }
    Ok(StreamState::Open)
}

fn fold_choice(builder: &mut ResponseBuilder, choice: Choice) -> Result<(), ModelError> {
    if let Some(delta) = choice.delta {
        for content in [delta.content, delta.refusal].iter().flatten() {
            builder.push_text(&words(content))?;
        }
        for call in delta.tool_calls.unwrap_or_default() {
            fold_call(builder, call)?;
        }
    }
    let Some(reason) = choice.finish_reason else { return Ok(()) };
    builder.stop = Some(match reason.as_str() {
        "error" => return Err(ModelError::broken("the provider met an error while it answered")),
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
    let arguments = function.arguments.as_deref().map(words).unwrap_or_default();
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
