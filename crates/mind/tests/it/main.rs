//! The mind's tools as a server calls them, on real stores.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests may fail loudly"
)]

mod bootstrap;
mod consolidate;
mod context;
#[path = "../../../text/corpus/mod.rs"]
mod corpus;
mod framing;
mod instructions;
mod isolation;
mod memory;
mod observe_cautions;
mod observe_habits;
mod observe_week;
mod observed;
#[path = "../../../mcp/tests/own_tools/mod.rs"]
mod own_tools;
mod quarantine;
mod reflect;
mod resources;
mod results;
mod told;
mod world;
