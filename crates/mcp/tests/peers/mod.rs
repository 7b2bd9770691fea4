//! Programs of others against a server of ours: the official conformance suites, the Inspector, the Python client.
//! `tools/mcp-peers` installs them. Nothing here knows what the server offers.
//!
//! The tests of another crate take it in by `#[path = "../../../mcp/tests/peers/mod.rs"] mod peers;` and need
//! `serde_json` and `tempfile` for it.
#![allow(dead_code, unused_imports, reason = "each test crate uses what it needs")]

mod conformance;
mod inspector;
mod process;
mod python;

use std::path::PathBuf;

pub(crate) use self::conformance::{Report, Suite, conform};
pub(crate) use self::inspector::inspect;
pub(crate) use self::process::Listening;
pub(crate) use self::python::{Mode, follow};

/// The server that a peer talks to.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) place: Place,
    /// The bearer token, for servers that want one. HTTP only.
    pub(crate) token: Option<String>,
    /// What a command finds in its environment, besides the peer's own.
    pub(crate) environment: Vec<(String, String)>,
}

/// How the server is reached.
#[derive(Debug, Clone)]
pub(crate) enum Place {
    /// By starting it: a program and its arguments.
    Command(Vec<String>),
    /// Streamable HTTP.
    Http(String),
    /// Legacy HTTP+SSE.
    Sse(String),
}

/// The rules that a peer follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    Session,
    Stateless,
}

impl From<Place> for Target {
    fn from(place: Place) -> Self {
        Self { place, token: None, environment: Vec::new() }
    }
}

/// A program that `tools/mcp-peers` has installed.
pub(crate) fn program(name: &str) -> PathBuf {
    installed(&format!("bin/{name}"))
}

/// The folder into which `tools/mcp-peers` has installed packages that are not programs.
pub(crate) fn package(name: &str) -> PathBuf {
    installed(&format!("parts/{name}"))
}

fn installed(path: &str) -> PathBuf {
    let peers = std::env::var_os("EMBODY_TEST_PEERS").expect(
        "EMBODY_TEST_PEERS is not set: run ./test, or \
         EMBODY_TEST_PEERS=$(tools/mcp-peers install target/mcp-peers) cargo nextest run",
    );
    let path = PathBuf::from(peers).join(path);
    assert!(path.exists(), "`{}` is missing: run `tools/mcp-peers install`", path.display());
    path
}
