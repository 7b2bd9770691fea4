//! Tool calls that a model writes as text because it, or its server, does not support them natively. Pure. A call is a block
//! fenced as `tool_call` (or `<tool_call>` lines), never text within another block. An unmarked block counts only if it is the
//! whole response and exactly one call. A marked block that cannot be parsed is reported to the model.

mod parse;
mod render;
mod splitter;

pub(super) use self::render::as_plain_text;
pub(super) use self::splitter::StreamSplitter;

#[cfg(test)]
mod tests;
