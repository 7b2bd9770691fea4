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
mod calls_awaiting_approval;
mod changes;
mod consolidations;
mod crash;
mod erase;
mod faults;
mod hammer;
mod ids;
mod incoming;
mod instructions;
mod leader_leases;
mod legacy;
mod memory;
mod memory_rules;
mod memory_transfer;
mod migrations;
mod notices;
mod outbox;
mod outgoing;
mod pins;
#[path = "../support/postgres.rs"]
mod postgres_server;
mod receipts;
mod reflections;
mod schedules;
mod server_health;
mod session_servers;
mod sessions;
mod sign_in;
mod signing_keys;
mod suspended_calls;
mod tasks;
mod threads;
mod tokens;
mod usage;
mod usage_profiles;
mod world;
