//! The mind's tools as a server calls them, on real stores.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "tests may fail loudly"
)]

mod consolidate;
mod context;
mod quarantine;
mod reflect;
mod told;
