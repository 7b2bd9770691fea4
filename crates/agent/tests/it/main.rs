//! What the room does, seen from outside: timetables, the scheduler, three replicas that are killed; Telegram.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "tests may fail loudly"
)]

mod schedule;
mod telegram;
