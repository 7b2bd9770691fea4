//! What is not a tool call, through the whole broker. Raw text is compared, so that nothing is written anew on the way.

mod gated;
mod lists;
mod notifications;
mod requests;
mod standing;
