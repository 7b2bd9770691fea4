//! The mind as hosts run it: a process on a pipe, a server on a port.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "tests may fail loudly"
)]

mod host;
mod http;
#[path = "../../../mcp/tests/peers/mod.rs"]
mod mcp_peers;
mod peers;
mod stdio;
#[path = "../support/mod.rs"]
mod support;

use serde_json::{Value, json};

/// The tools of the interface.
const TOOLS: [&str; 11] = [
    "bootstrap_session",
    "context",
    "forget_memory",
    "get_system_prompt",
    "list_memory_files",
    "observe",
    "read_memory",
    "recall",
    "reflect",
    "save_memory",
    "update_instructions",
];

fn names(list: &Value) -> Vec<&str> {
    let mut names: Vec<&str> =
        list.as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    names
}

fn hello() -> Value {
    json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}})
}
