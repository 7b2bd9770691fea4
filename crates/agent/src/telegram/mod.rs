//! The Telegram channel: updates in, messages out, each once.

pub mod format;
