//! The body's tools over a real store.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "tests may fail loudly"
)]

mod messages;
mod schedule;
mod tasks;
mod tools;
mod world;
