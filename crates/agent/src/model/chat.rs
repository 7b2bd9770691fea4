//! Provider-independent requests and responses of a chat model. Threads store messages in this form.

pub use embody_store::usage::Usage;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

#[derive(Debug, Clone, Copy)]
pub struct ChatRequest<'a> {
    /// The system prompt; sent unchanged.
    pub system: &'a str,
    /// The length of the prefix, in bytes, that stays the same in the next turn: a provider may cache up to there.
    pub stable_len: usize,
    /// The conversation, oldest first; it ends with a user message or a tool result.
    pub messages: &'a [ChatMessage],
    pub tools: &'a [ToolSpec],
}

#[derive(Debug, Clone)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    /// The JSON schema of the arguments, as its server wrote it.
    pub schema: Box<RawValue>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum ChatMessage {
    /// A message from a person, or from a schedule.
    User { text: String },
    Assistant {
        /// Empty if the message only calls tools.
        text: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<ToolRequest>,
    },
    Tool {
        call_id: String,
        name: String,
        text: String,
        /// Whether the call failed, or was not made.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolRequest {
    /// Unique within the response.
    pub id: String,
    pub name: String,
    /// JSON text as the model wrote it; may be invalid.
    pub arguments: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatResponse {
    /// The text, without the blocks that were calls.
    pub text: String,
    pub calls: Vec<ToolRequest>,
    /// An explanation, for the model, of each call that could not be parsed.
    pub malformed: Vec<String>,
    pub usage: Usage,
    pub stop: StopReason,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    End,
    /// The model waits for the results of its calls.
    Calls,
    Length,
    /// The provider stopped the response.
    Refused,
}
