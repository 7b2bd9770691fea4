//! The reader on real folders: files that change meanwhile, limits, links, broken formats, names, missing folders.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests may fail loudly"
)]

mod changing;
mod fixture;
mod formats;
mod limits;
mod paths;
