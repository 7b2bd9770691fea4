//! The Telegram channel against the fake Bot API as a process of its own.

mod approvals;
mod arriving;
mod format;
mod kills;
mod leaving;
mod world;
