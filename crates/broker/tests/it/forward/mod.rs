//! Requests other than tool calls, through the whole broker. Compares raw text, to prove that payloads are not rewritten.

mod gated;
mod lists;
mod notifications;
mod requests;
mod subscriptions;
