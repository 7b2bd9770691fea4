//! Asking a model: OpenAI's and Anthropic's wire formats, streamed, and one answer for both.
//!
//! Owns requests, streams, retries and the words for what goes wrong. Refuses to go on after half an answer, to follow a
//! redirect with the key, to show the key, and to read a file or the environment.
//!
//! | module | owns |
//! |---|---|
//! | `chat` | what is said and answered, in no provider's words |
//! | `client` | one question over HTTP: times, retries, the stream |
//! | `openai`, `anthropic` | a wire format each: the request, and folding events into a draft; pure |
//! | `conversation` | messages in an order that every provider takes; pure |
//! | `names` | tool names that every provider takes; pure |
//! | `thoughts` | what a model thinks aloud, told from what it says; pure |
//! | `draft` | the answer as it grows, and its bounds; pure |
//! | `blocks` | calls that a model writes as text; pure |
//! | `retry` | whether and when to ask again; pure |
//! | `errors` | what a refusal means; pure |

mod anthropic;
mod chat;
mod client;
mod conversation;
mod errors;
mod names;
mod openai;
mod reasoning;
mod response_builder;
mod retry;
mod settings;
mod stream;
mod text_tool_calls;

pub use self::chat::{
    ChatMessage, ChatRequest, ChatResponse, Delta, StopReason, ToolRequest, ToolSpec, Usage,
};
pub use self::client::{ChatModel, ProbeResult};
pub use self::errors::{ModelError, TimeoutStage};
pub use self::settings::{ModelSettings, ModelTimes, Provider};
pub use self::stream::cause;
