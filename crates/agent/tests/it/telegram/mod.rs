//! The Telegram channel against the fake Bot API, which runs as a separate process.

mod approvals;
mod arriving;
mod format;
mod kills;
mod leaving;
mod world;
