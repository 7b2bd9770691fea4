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
mod approvals;
mod audit;
mod cautions;
mod changes;
mod consolidations;
mod crash;
mod faults;
mod habits;
mod hammer;
mod held;
mod incoming;
mod instructions;
mod legacy;
mod memory;
mod memory_transfer;
mod migrations;
mod outbox;
mod outgoing;
mod parked;
mod pins;
mod posts;
mod receipts;
mod reflections;
mod schedules;
mod seals;
mod session_servers;
mod sessions;
mod tasks;
mod threads;
mod tokens;
mod world;
