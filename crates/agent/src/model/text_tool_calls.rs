//! Calls that a model writes as text because it, or its server, has no format of its own for them. Pure.
//!
//! A call is a fenced block marked `tool_call` (or `<tool_call>` lines, which some models were taught), never text within
//! another block: that is an example. An unmarked block counts only when it is the whole answer and exactly a call.
//! What is marked and cannot be read is told to the model, not guessed.

mod parse;
mod render;
mod splitter;

pub(super) use self::render::as_plain_text;
pub(super) use self::splitter::StreamSplitter;

#[cfg(test)]
mod tests;
