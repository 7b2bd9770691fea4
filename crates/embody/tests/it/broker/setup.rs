//! Workspaces with bodies, and the broker in front of them.

use std::process::Command;

use serde_json::Value;

use super::host::{Host, Reply};
use crate::world::World;

/// A `[[body]]` that is a process; `more` is further keys, a line each.
pub(super) fn body(name: &str, command: &[String], more: &str) -> String {
    format!("[[body]]\nname = \"{name}\"\ncommand = {}\n{more}\n", Value::from(command))
}

/// A `[[body]]` at an address.
pub(super) fn remote_body(name: &str, url: &str, more: &str) -> String {
    format!("[[body]]\nname = \"{name}\"\nurl = \"{url}\"\n{more}\n")
}

/// Rules under which every call may pass.
pub(super) const ALLOW_ALL: &str =
    "[[policy.rule]]\ntools = [\"*\"]\ngate = \"allow\"\nreason = \"a test\"\n";

/// A world whose `embody.toml` has these parts.
pub(super) fn world(parts: &[&str]) -> World {
    let world = World::new();
    world.file("embody.toml", parts.concat());
    world
}

/// `embody mcp` in this workspace.
pub(super) fn broker(world: &World) -> Command {
    let mut command = world.command();
    command.arg("--workspace").arg(world.workspace()).args(["--log", "error", "mcp"]);
    command
}

/// A host with a session, before it knows the contract.
pub(super) fn stranger(
    world: &World,
    capabilities: &Value,
    script: impl FnMut(&str, &Value) -> Reply + 'static,
) -> Host {
    let mut host = Host::start(broker(world)).answering(script);
    host.greet(capabilities);
    host
}

/// A host with a session that has the contract.
pub(super) fn host(
    world: &World,
    capabilities: &Value,
    script: impl FnMut(&str, &Value) -> Reply + 'static,
) -> Host {
    let mut host = stranger(world, capabilities, script);
    let packet = host.call("runtime_bootstrap", &serde_json::json!({}));
    assert_ne!(packet["isError"], true, "{packet}");
    host
}
