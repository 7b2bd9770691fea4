//! The wire format of Anthropic's Messages API. Pure.

mod events;
mod request;

pub(super) use self::events::fold;
pub(super) use self::request::body;

#[cfg(test)]
mod tests;
