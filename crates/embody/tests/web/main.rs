//! `embody up` as browsers and programs use it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "tests may fail loudly"
)]

mod access;
mod chat;
mod limits;
mod model;
mod notices;
mod openai;
mod page;
mod records;
#[path = "../support/mod.rs"]
mod support;
mod tour;
