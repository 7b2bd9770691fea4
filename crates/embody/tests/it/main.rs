//! Tests of the binary as a person or a program runs it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "tests may fail loudly"
)]

mod agent;
mod body;
mod broker;
mod config;
mod demo;
mod docs;
mod golden;
mod hardening;
mod json;
mod layouts;
mod legacy;
mod lost;
mod memories;
mod minds;
mod noticed;
mod operator;
#[path = "../../../mcp/tests/own_tools/validate.rs"]
mod own_tools;
mod page;
#[path = "../../../mcp/tests/peers/mod.rs"]
mod peers;
mod persona;
mod policy;
mod schedules;
mod server;
mod stored;
mod stores;
mod tagged;
mod tools;
mod usage;
mod web;
mod world;
