//! The wire's client against servers of every manner, all on loopback.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "tests may fail loudly"
)]

mod corpus;
mod dialing;
mod faces;
mod fake;
mod legacy_sse;
mod raw;
mod secrets;
mod sessions;
mod streamable;
mod streams;
mod upstreams;
