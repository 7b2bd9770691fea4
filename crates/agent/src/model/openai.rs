//! OpenAI's chat completions. Pure.
//!
//! Many servers speak this, each with an accent: ids, indexes or the last `[DONE]` may be missing, arguments may come as
//! an object, text as a list. What cannot be told apart is refused; a stream without its end mark is not whole.

mod events;
mod request;

pub(super) use self::events::fold;
pub(super) use self::request::body;

#[cfg(test)]
mod tests;
