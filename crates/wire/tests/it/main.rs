//! Tests of the client and the server against well-behaved and misbehaving peers, all on loopback.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests may fail loudly"
)]

mod corpus;
mod dialing;
mod fake;
mod legacy_sse;
mod raw;
mod secrets;
mod server;
mod sessions;
mod streamable;
mod streams;
mod upstreams;
