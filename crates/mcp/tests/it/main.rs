//! The fixture, and with it the room, before the eyes of others: official suites and clients that we did not write.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests may fail loudly"
)]

mod conformance;
mod fixture;
mod inspector;
#[path = "../peers/mod.rs"]
mod peers;
mod pipes;
mod python;
