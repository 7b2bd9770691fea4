//! A chat model client: OpenAI's and Anthropic's wire formats, streamed, behind one interface.
//!
//! Covers requests, streams, retries and error messages. Rejects partial responses, does not follow redirects, does not
//! show the key, and reads no file and no environment.
//!
//! | module | owns |
//! |---|---|
//! | `chat` | provider-independent requests and responses |
//! | `client` | one request over HTTP: timeouts, retries, the stream |
//! | `openai`, `anthropic` | one wire format each: the request body, and folding events into a response; pure |
//! | `conversation` | orders messages so that every provider accepts them; pure |
//! | `names` | tool names that every provider accepts; pure |
//! | `reasoning` | separates a model's reasoning from its text; pure |
//! | `response_builder` | the partial response, and its limits; pure |
//! | `text_tool_calls` | calls that a model writes as text; pure |
//! | `retry` | whether and when to retry; pure |
//! | `errors` | error classification; pure |

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

pub use self::chat::{ChatMessage, ChatRequest, ChatResponse, StopReason, ToolRequest, ToolSpec, Usage};
pub use self::client::{ChatModel, ProbeResult};
pub use self::errors::{ModelError, TimeoutStage};
pub use self::settings::{FailureLog, KeySource, ModelSettings, ModelTimes, Provider};
pub use self::stream::cause;
