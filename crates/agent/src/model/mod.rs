//! Asking a model: OpenAI's and Anthropic's wire formats, streamed, and one answer for both.

mod chat;

pub use self::chat::{Answer, Ask, ChatMessage, Delta, Stop, ToolRequest, ToolSpec, Usage};
