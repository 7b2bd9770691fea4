//! The broker's modules with a real store and real servers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "tests may fail loudly"
)]

mod approval;
mod catalogue;
mod corpus;
mod exposure;
mod forward;
mod in_process;
mod instructions;
mod names;
mod observed;
mod questions;
mod stage;
mod stateless;
mod upstreams;
