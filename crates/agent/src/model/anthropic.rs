//! The wire format of Anthropic's Messages API. Pure.

use std::borrow::Cow;

use embody_wire::sse::Event;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::chat::{ChatRequest, StopReason, ToolRequest, ToolSpec, Usage};
use super::conversation::{CallResult, Step, steps};
use super::errors::{ErrorContext, ModelError};
use super::names::Names;
use super::response_builder::{ResponseBuilder, StreamState, as_json_object};
use super::settings::ModelSettings;

pub(super) fn fold(
    builder: &mut ResponseBuilder,
    event: &Event,
    context: &ErrorContext,
) -> Result<StreamState, ModelError> {
    match context.parse_event(&event.data)? {
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

/// Inserted before a conversation that starts with an assistant message: the first message must be the user's.
const EARLIER: &str = "(the conversation began earlier)";

pub(super) fn body(
    settings: &ModelSettings,
    request: &ChatRequest<'_>,
    names: &Names,
) -> Result<Vec<u8>, ModelError> {
    let mut messages = messages(request, names);
    if let Some(last) = messages.last_mut().and_then(|message| message.content.last_mut()) {
        last.cache_control = CACHED;
    }
    let body = Body {
        model: &settings.model,
        max_tokens: settings.max_output_tokens,
        stream: true,
        system: system(request.system, request.stable_len),
        tools: request.tools.iter().map(|tool| Tool::new(tool, names)).collect(),
        messages,
    };
    serde_json::to_vec(&body).map_err(|error| ModelError::Settings { why: error.to_string() })
}

/// The system prompt, unchanged: the stable part is a separate block that ends at a cache breakpoint. The provider
/// rejects blank blocks, so a blank part is joined to its neighbour.
fn system(text: &str, stable_len: usize) -> Vec<Block<'_>> {
    let (stable, fresh) = text.split_at(text.floor_char_boundary(stable_len));
    match (stable.trim().is_empty(), fresh.trim().is_empty()) {
        (true, true) => Vec::new(),
        (true, false) => vec![Block::text(text)],
        (false, true) => vec![Block { cache_control: CACHED, ..Block::text(text) }],
        (false, false) => vec![Block { cache_control: CACHED, ..Block::text(stable) }, Block::text(fresh)],
    }
}

fn messages<'a>(request: &ChatRequest<'a>, names: &'a Names) -> Vec<Message<'a>> {
    let mut messages: Vec<Message<'a>> = Vec::new();
    for step in steps(request.messages) {
        let (role, content): (_, Vec<Block<'a>>) = match step {
            Step::User(texts) => (USER, texts.into_iter().map(Block::text).collect()),
            Step::Results(results) => (USER, results.into_iter().map(Block::result).collect()),
            Step::Assistant { texts, calls } => {
                let calls = calls.into_iter().map(|call| Block::call(call, names));
                (ASSISTANT, texts.into_iter().map(Block::text).chain(calls).collect())
            }
        };
        match messages.last_mut() {
            Some(last) if last.role == role => last.content.extend(content),
            None if role == ASSISTANT => {
                messages.push(Message { role: USER, content: vec![Block::text(EARLIER)] });
                messages.push(Message { role, content });
            }
            _ => messages.push(Message { role, content }),
        }
    }
    messages
}

const USER: &str = "user";
const ASSISTANT: &str = "assistant";
const CACHED: Option<CacheControl> = Some(CacheControl { kind: "ephemeral" });

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u32,
    stream: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Block<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    messages: Vec<Message<'a>>,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: Vec<Block<'a>>,
}

#[derive(Serialize)]
struct Block<'a> {
    #[serde(flatten)]
    kind: BlockKind<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

#[derive(Serialize, Clone, Copy)]
struct CacheControl {
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum BlockKind<'a> {
    Text {
        text: &'a str,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: Cow<'a, str>,
        input: Input<'a>,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        /// Blank content is rejected; absent content is not.
        #[serde(skip_serializing_if = "Option::is_none")]
        content: Option<&'a str>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
enum Input<'a> {
    Written(&'a RawValue),
    /// The arguments that the model wrote are not an object; the tool result says so.
    Empty {},
}

impl<'a> Block<'a> {
    fn new(kind: BlockKind<'a>) -> Self {
        Self { kind, cache_control: None }
    }

    fn text(text: &'a str) -> Self {
        Self::new(BlockKind::Text { text })
    }

    fn call(call: &'a ToolRequest, names: &'a Names) -> Self {
        let input = as_json_object(&call.arguments).map_or(Input::Empty {}, Input::Written);
        Self::new(BlockKind::ToolUse { id: wire_id(&call.id), name: names.wire(&call.name), input })
    }

    fn result(result: CallResult<'a>) -> Self {
        let content = Some(result.text).filter(|text| !text.trim().is_empty());
        let tool_use_id = wire_id(result.call_id);
        Self::new(BlockKind::ToolResult { tool_use_id, content, is_error: result.is_error })
    }
}

/// An id in the form that the provider accepts: a thread may contain ids of another provider.
fn wire_id(id: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !id.is_empty() && id.chars().all(is_plain) {
        return Cow::Borrowed(id);
    }
    let escaped = id.bytes().map(|byte| match byte {
        byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        byte => format!("_{byte:02x}"),
    });
    Cow::Owned(std::iter::once("id_".to_owned()).chain(escaped).collect())
}

#[derive(Serialize)]
struct Tool<'a> {
    name: Cow<'a, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    input_schema: &'a RawValue,
}

impl<'a> Tool<'a> {
    fn new(tool: &'a ToolSpec, names: &'a Names) -> Self {
        Self { name: names.wire(&tool.name), description: &tool.description, input_schema: &tool.schema }
    }
}

#[cfg(test)]
mod tests;
