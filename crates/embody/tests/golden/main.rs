//! A record of everything that people, programs and hosts can see: commands, HTTP exchanges, MCP exchanges, and the rows of
//! the database afterwards. A change of names or structure must leave every snapshot as it is.
//!
//! The snapshots hold raw text. [`Normalizer`](normal::Normalizer) lists everything that is replaced. JSON without any
//! whitespace is shown with line breaks ([`folded`](record::folded)), which loses nothing.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "tests may fail loudly"
)]

mod api;
mod cli;
mod database;
mod http;
mod mcp;
mod normalize;
mod pipe;
mod record;
mod scene;
#[path = "../support/mod.rs"]
mod support;
