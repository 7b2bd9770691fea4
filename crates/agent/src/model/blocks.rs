//! Calls that a model writes as text because it, or its server, has no format of its own for them. Pure.
//!
//! A call is a fenced block marked `tool_call` (or `<tool_call>` lines, which some models were taught), never text within
//! another block: that is an example. An unmarked block counts only when it is the whole answer and exactly a call.
//! What is marked and cannot be read is told to the model, not guessed.

mod read;
mod sieve;
mod spoken;

pub(super) use self::sieve::Sieve;
pub(super) use self::spoken::spoken;

#[cfg(test)]
mod tests;
