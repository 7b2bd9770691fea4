//! One contract for every backend: SQLite in a file, SQLite in memory, PostgreSQL, PostgreSQL behind PgBouncer.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "tests may fail loudly"
)]

mod agents;
mod audit;
mod crash;
mod faults;
mod hammer;
mod instructions;
mod legacy;
mod receipts;
mod tasks;
mod threads;
mod tokens;
mod world;
