//! Commands as a person runs them: output, exit codes, and what they leave in the workspace and the store.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "tests may fail loudly"
)]

mod body;
mod config;
mod conversations;
mod demo;
mod docs;
mod documented_commands;
mod editing;
mod erase;
mod everyday;
mod getting_in;
mod hardening;
mod help;
mod json;
mod layouts;
mod legacy;
mod memories;
mod models;
mod notices;
mod notify;
mod operator;
mod persona;
mod policy;
mod prompt_page;
mod schedules;
mod servers;
mod store;
#[path = "../support/mod.rs"]
mod support;
mod tagged;
mod terminal;
mod tools;
mod transfer;
mod unknown_outcomes;
mod unused_files;
mod upgrade_check;
mod usage;
