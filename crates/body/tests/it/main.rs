//! The body's tools over a real store.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests may fail loudly"
)]

mod messages;
#[path = "../../../mcp/tests/own_tools/mod.rs"]
mod own_tools;
mod results;
mod schedule;
mod skills;
mod tasks;
mod tools;
mod world;
