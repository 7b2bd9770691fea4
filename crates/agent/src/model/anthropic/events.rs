//! Folding a stream's events into a draft.

use embody_wire::sse::Event;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::super::chat::{Stop, Usage};
use super::super::draft::{Draft, Flow};
use super::super::errors::{ModelError, Witness};

/// Takes one event into the draft.
pub(in super::super) fn fold(
    draft: &mut Draft,
    event: &Event,
    witness: &Witness,
) -> Result<Flow, ModelError> {
    let unreadable = |error: serde_json::Error| {
        ModelError::broken(format!("an event cannot be read: {}", witness.quote(&error.to_string())))
    };
    match serde_json::from_str(&event.data).map_err(unreadable)? {
        Happened::MessageStart { message } => draft.usage = message.usage.over(Usage::default()),
        Happened::ContentBlockStart { index, content_block } => begin(draft, index, content_block)?,
        Happened::ContentBlockDelta { delta: Grown::TextDelta { text }, .. } => draft.say(&text)?,
        Happened::ContentBlockDelta { index, delta: Grown::InputJsonDelta { partial_json } } => {
            // Blocks of other kinds, which are not called here, have such pieces too.
            if let Some(place) = draft.calls().iter().rposition(|call| call.index == Some(index)) {
                draft.grow_call(place, "", "", &partial_json)?;
            }
        }
        Happened::ContentBlockDelta { delta: Grown::Other, .. } => {}
        Happened::MessageDelta { delta, usage } => {
            draft.usage = usage.unwrap_or_default().over(draft.usage);
            draft.stop = delta.stop_reason.as_deref().map(stop).or(draft.stop);
        }
        Happened::MessageStop => {
            draft.is_whole = true;
            return Ok(Flow::Over);
        }
        Happened::Message { content, stop_reason, usage } => {
            for (index, block) in (0..).zip(content) {
                begin(draft, index, block)?;
            }
            draft.usage = usage.over(Usage::default());
            draft.stop = stop_reason.as_deref().map(stop);
            draft.is_whole = true;
            return Ok(Flow::Over);
        }
        Happened::Error => return Err(witness.judge_within(&event.data)),
        Happened::Other => {}
    }
    Ok(Flow::On)
}

fn begin(draft: &mut Draft, index: i64, block: Begun) -> Result<(), ModelError> {
    match block {
        Begun::Text { text } => draft.say(&text),
        Begun::ToolUse { id, name, input } => {
            // In a stream it is empty, and comes in pieces.
            let input = input.filter(|input| !input.is_empty());
            let arguments = input.map(|input| Value::Object(input).to_string()).unwrap_or_default();
            let place = draft.begin_call(Some(index))?;
            draft.grow_call(place, &id, &name, &arguments)
        }
        Begun::Other => Ok(()),
    }
}

fn stop(reason: &str) -> Stop {
    match reason {
        "tool_use" => Stop::Calls,
        "max_tokens" | "model_context_window_exceeded" => Stop::Length,
        "refusal" => Stop::Refused,
        _ => Stop::End,
    }
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Happened {
    MessageStart {
        message: Begin,
    },
    ContentBlockStart {
        index: i64,
        content_block: Begun,
    },
    ContentBlockDelta {
        index: i64,
        delta: Grown,
    },
    MessageDelta {
        delta: Ending,
        usage: Option<Tokens>,
    },
    MessageStop,
    /// All of it at once, from a server that does not stream although it was asked to.
    Message {
        content: Vec<Begun>,
        stop_reason: Option<String>,
        #[serde(default)]
        usage: Tokens,
    },
    Error,
    /// `ping`, `content_block_stop`, and whatever may come to be.
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Begin {
    #[serde(default)]
    usage: Tokens,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Begun {
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
    /// Thinking, and what the provider does itself.
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Grown {
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
struct Ending {
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
    /// The later figures win; a provider that counts what was cached apart from what was read has it counted together.
    fn over(self, before: Usage) -> Usage {
        let cache_read = self.cache_read_input_tokens.or(before.cache_read);
        let cache_write = self.cache_creation_input_tokens.or(before.cache_write);
        let cached = cache_read.unwrap_or(0).saturating_add(cache_write.unwrap_or(0));
        let input = self.input_tokens.map(|input| input.saturating_add(cached)).or(before.input);
        Usage { input, output: self.output_tokens.or(before.output), cache_read, cache_write }
    }
}
