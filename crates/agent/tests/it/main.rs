//! The room seen from outside, against real processes and sockets: the model's client, timetables, the scheduler.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "tests may fail loudly"
)]

mod model;
mod schedule;
