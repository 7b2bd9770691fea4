//! What is said to a model and what it says, in no provider's words. A thread keeps its messages in this form.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// One question to a model.
#[derive(Debug, Clone, Copy)]
pub struct ChatRequest<'a> {
    /// The system prompt; it is sent byte for byte.
    pub system: &'a str,
    /// How many bytes of it are the same in the next turn: where a provider may cache up to.
    pub stable_len: usize,
    /// The conversation, oldest first; the last one is the user's or a tool's.
    pub messages: &'a [ChatMessage],
    /// The tools on offer, in this order.
    pub tools: &'a [ToolSpec],
}

/// A tool on offer.
#[derive(Debug, Clone)]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The JSON schema of its arguments, as its server wrote it.
    pub schema: Box<RawValue>,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum ChatMessage {
    /// What a person, or a schedule, says to the agent.
    User {
        /// The words.
        text: String,
    },
    /// What the agent says, and what it wants to be done.
    Assistant {
        /// The words; empty if it only calls.
        text: String,
        /// The tools that it calls.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<ToolRequest>,
    },
    /// What came of a call.
    Tool {
        /// The id of the call.
        call_id: String,
        /// The tool.
        name: String,
        /// Its result.
        text: String,
        /// Whether it failed, or was not made.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

/// A call that a model wants to be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolRequest {
    /// Its id, unique within the answer.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments: JSON text as the model wrote it; it may be none.
    pub arguments: String,
}

/// Something that happens before the answer is whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delta {
    /// More of the text.
    Text(String),
    /// It begins to write a call of this tool.
    Call {
        /// The tool.
        name: String,
    },
    /// The provider is asked again after a while.
    Waiting {
        /// How long.
        after: Duration,
        /// Why.
        reason: String,
    },
}

/// A whole answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatResponse {
    /// What it says; without the blocks that were calls.
    pub text: String,
    /// What it wants to be done.
    pub calls: Vec<ToolRequest>,
    /// Calls that could not be read, each with why, for the model.
    pub malformed: Vec<String>,
    /// What it cost.
    pub usage: Usage,
    /// Why it ended.
    pub stop: StopReason,
}

/// What an answer cost, in tokens, as far as the provider says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// Read.
    pub input: Option<u64>,
    /// Written.
    pub output: Option<u64>,
    /// Of those read, from the cache.
    pub cache_read: Option<u64>,
    /// Of those read, put into the cache.
    pub cache_write: Option<u64>,
}

impl Usage {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let sum = |one: Option<u64>, two: Option<u64>| match (one, two) {
            (None, None) => None,
            (one, two) => Some(one.unwrap_or(0).saturating_add(two.unwrap_or(0))),
        };
        Self {
            input: sum(self.input, other.input),
            output: sum(self.output, other.output),
            cache_read: sum(self.cache_read, other.cache_read),
            cache_write: sum(self.cache_write, other.cache_write),
        }
    }
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// It was whole.
    End,
    /// It waits for its calls.
    Calls,
    /// It met the limit of its length.
    Length,
    /// The provider did not let it go on.
    Refused,
}
