//! The wire format of OpenAI's chat completions. Pure. Many servers implement it with deviations: ids, indexes or the final
//! `[DONE]` may be missing, arguments may come as an object, text as a list. Ambiguous input is rejected; a stream without
//! its end marker is incomplete.

mod events;
mod request;

pub(super) use self::events::fold;
pub(super) use self::request::body;

#[cfg(test)]
mod tests;
