//! Folds stream events into a [`ResponseBuilder`].

use embody_wire::sse::Event;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::super::chat::{StopReason, Usage};
use super::super::errors::{ErrorContext, ModelError};
use super::super::response_builder::{ResponseBuilder, StreamState};

/// Applies one event to the builder.
pub(in super::super) fn fold(
    builder: &mut ResponseBuilder,
    event: &Event,
    context: &ErrorContext,
) -> Result<StreamState, ModelError> {
    let unreadable = |error: serde_json::Error| {
        ModelError::broken(format!("an event cannot be read: {}", context.quote(&error.to_string())))
    };
    match serde_json::from_str(&event.data).map_err(unreadable)? {
        StreamEvent::MessageStart { message } => builder.usage = message.usage.over(Usage::default()),
        StreamEvent::ContentBlockStart { index, content_block } => begin(builder, index, content_block)?,
        StreamEvent::ContentBlockDelta { delta: BlockDelta::TextDelta { text }, .. } => {
            builder.push_text(&text)?
        }
        StreamEvent::ContentBlockDelta { index, delta: BlockDelta::InputJsonDelta { partial_json } } => {
            // Blocks of other kinds, such as server tools, also have such deltas.
            if let Some(position) = builder.calls().iter().rposition(|call| call.index == Some(index)) {
                builder.grow_call(position, "", "", &partial_json)?;
            }
        }
        StreamEvent::ContentBlockDelta { delta: BlockDelta::Other, .. } => {}
        StreamEvent::MessageDelta { delta, usage } => {
            builder.usage = usage.unwrap_or_default().over(builder.usage);
            builder.stop = delta.stop_reason.as_deref().map(stop).or(builder.stop);
        }
        StreamEvent::MessageStop => {
            builder.is_whole = true;
            return Ok(StreamState::Closed);
        }
        StreamEvent::Message { content, stop_reason, usage } => {
            for (index, block) in (0..).zip(content) {
                begin(builder, index, block)?;
            }
            builder.usage = usage.over(Usage::default());
            builder.stop = stop_reason.as_deref().map(stop);
            builder.is_whole = true;
            return Ok(StreamState::Closed);
        }
        StreamEvent::Error => return Err(context.classify_stream_error(&event.data)),
        StreamEvent::Other => {}
    }
    Ok(StreamState::Open)
}

fn begin(builder: &mut ResponseBuilder, index: i64, block: ContentBlock) -> Result<(), ModelError> {
    match block {
        ContentBlock::Text { text } => builder.push_text(&text),
        ContentBlock::ToolUse { id, name, input } => {
            // In a stream the input is empty at first and follows in deltas.
            let input = input.filter(|input| !input.is_empty());
            let arguments = input.map(|input| Value::Object(input).to_string()).unwrap_or_default();
            let position = builder.begin_call(Some(index))?;
            builder.grow_call(position, &id, &name, &arguments)
        }
        ContentBlock::Other => Ok(()),
    }
}

fn stop(reason: &str) -> StopReason {
    match reason {
        "tool_use" => StopReason::Calls,
        "max_tokens" | "model_context_window_exceeded" => StopReason::Length,
        "refusal" => StopReason::Refused,
        _ => StopReason::End,
    }
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum StreamEvent {
    MessageStart {
        message: StartedMessage,
    },
    ContentBlockStart {
        index: i64,
        content_block: ContentBlock,
    },
    ContentBlockDelta {
        index: i64,
        delta: BlockDelta,
    },
    MessageDelta {
        delta: StopDelta,
        usage: Option<Tokens>,
    },
    MessageStop,
    /// The whole response, from a server that does not stream although it was asked to.
    Message {
        content: Vec<ContentBlock>,
        stop_reason: Option<String>,
        #[serde(default)]
        usage: Tokens,
    },
    Error,
    /// `ping`, `content_block_stop`, and future event types.
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct StartedMessage {
    #[serde(default)]
    usage: Tokens,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ContentBlock {
    Text {
        #[serde(default)]
        text: String,
    },
    ToolUse {
        #[serde(default)]
        id: String,
        name: String,
        input: Option<Map<String, Value>>,
    },
    /// Thinking, and server-side tools.
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum BlockDelta {
    TextDelta {
        text: String,
    },
    InputJsonDelta {
        partial_json: String,
    },
    /// Thinking, signatures, citations.
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct StopDelta {
    stop_reason: Option<String>,
}

#[derive(Deserialize, Default)]
struct Tokens {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
}

impl Tokens {
    /// Merges usage; later values win. `input_tokens` excludes cached tokens, so they are added.
    fn over(self, before: Usage) -> Usage {
        let cache_read = self.cache_read_input_tokens.or(before.cache_read);
        let cache_write = self.cache_creation_input_tokens.or(before.cache_write);
        let cached = cache_read.unwrap_or(0).saturating_add(cache_write.unwrap_or(0));
        let input = self.input_tokens.map(|input| input.saturating_add(cached)).or(before.input);
        Usage { input, output: self.output_tokens.or(before.output), cache_read, cache_write }
    }
}
