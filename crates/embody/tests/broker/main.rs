//! The broker as hosts run it: `embody mcp` on a pipe, with real bodies behind it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "tests may fail loudly"
)]

mod approvals;
mod chaos;
mod conformance;
mod contract;
mod degraded;
mod differential;
mod embedded;
mod endurance;
mod eras;
mod exposure;
mod host;
mod hosts;
mod idle_shutdown;
mod instructions;
mod kills;
mod large;
mod lossless;
mod names;
mod observability;
mod old_servers;
#[path = "../../../mcp/tests/own_tools/validate.rs"]
mod own_tools;
#[path = "../../../mcp/tests/peers/mod.rs"]
mod peers;
mod pins;
mod public_servers;
mod reload;
mod remote;
mod replicas;
mod sdk;
mod server_requests;
mod servers;
mod setup;
#[path = "../support/mod.rs"]
mod support;
mod tasks;
mod unruly;
mod users;
mod web;
