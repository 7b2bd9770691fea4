//! Workspaces with bodies, and the broker in front of them.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::host::{Host, Reply, SOON, elicited};
use super::unruly::Unruly;
use crate::support::world::World;

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
    host.initialize(capabilities);
    host
}

/// A host with a session that has the contract.
pub(super) fn host(
    world: &World,
    capabilities: &Value,
    script: impl FnMut(&str, &Value) -> Reply + 'static,
) -> Host {
    let mut host = stranger(world, capabilities, script);
    let packet = host.call("runtime_bootstrap", &json!({}));
    assert_ne!(packet["isError"], true, "{packet}");
    host
}

/// A workspace with one unruly body called `desk`.
pub(super) struct Scene {
    pub(super) world: World,
    pub(super) desk: Unruly,
}

impl Scene {
    /// `more` is further keys of the body, `parts` the rest of `embody.toml`.
    pub(super) fn new(more: &str, parts: &[&str]) -> Self {
        Self::with(&[], more, parts)
    }

    /// The same with further words on the body's command line.
    pub(super) fn with(words: &[&str], more: &str, parts: &[&str]) -> Self {
        let world = World::with_body("Be honest. The rules of the house.");
        let desk = Unruly::new(world.outside("desk.log")).with(words);
        world.file("embody.toml", format!("{}{}", parts.concat(), body("desk", desk.words(), more)));
        Self { world, desk }
    }

    /// A host that can do nothing, with the contract.
    pub(super) fn plain_host(&self) -> Host {
        host(&self.world, &json!({}), |_, _| Reply::Error(-32601, "no such method"))
    }

    /// A host whose person answers every form like this, with the contract.
    pub(super) fn asked_host(&self, action: &'static str) -> Host {
        host(&self.world, &json!({"elicitation": {}}), move |method, _| match method {
            "elicitation/create" => elicited(action),
            _ => Reply::Error(-32601, "no such method"),
        })
    }
}

/// The decision of a decision result.
pub(super) fn decision(result: &Value) -> &str {
    let data = decision_data(result);
    data["decision"].as_str().unwrap_or_else(|| panic!("no decision: {result}"))
}

/// The data of a decision result, whose text says the same in the order that hosts which cut need.
pub(super) fn decision_data(result: &Value) -> &Value {
    assert_eq!(result["isError"], true, "{result}");
    assert!(result.get("structuredContent").is_none(), "clients would validate it: {result}");
    let data = &result["_meta"]["embody/decision"];
    let (kind, reason) = (data["decision"].as_str().unwrap_or("no decision"), data["reason"].as_str());
    let mut lines = result["content"][0]["text"].as_str().unwrap().lines();
    let first = lines.next().unwrap();
    assert!(first.starts_with("[embody ") && first.contains(&format!("({kind}): ")), "{result}");
    assert!(reason.is_some_and(|reason| first.ends_with(&format!("{reason}."))), "{result}");
    let next = data["required_next_action"].as_str().unwrap_or("no next action");
    assert_eq!(lines.next(), Some(&*format!("Next: {next}.")), "{result}");
    assert!(data["degraded"].is_array(), "{result}");
    data
}

/// Whether it is what `unruly` answers when nothing goes wrong, and nothing else.
pub(super) fn is_done(result: &Value, tool: &str) -> bool {
    *result == json!({"content": [{"type": "text", "text": format!("{tool} is done")}]})
}

/// The state of an upstream in `runtime_status`.
pub(super) fn upstream(host: &mut Host, name: &str) -> Value {
    let status = host.call("runtime_status", &json!({}))["structuredContent"].take();
    let found = status["upstreams"].as_array().unwrap().iter().find(|upstream| upstream["name"] == name);
    found.unwrap_or_else(|| panic!("no `{name}` in {status}")).clone()
}

/// Waits until an upstream is in this state.
pub(super) fn until_state(host: &mut Host, name: &str, state: &str) -> Value {
    let deadline = Instant::now() + SOON;
    loop {
        let found = upstream(host, name);
        if found["state"] == state {
            return found;
        }
        assert!(Instant::now() < deadline, "never {state}: {found}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits until something is so.
pub(super) fn until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + SOON;
    while !is_so() {
        assert!(Instant::now() < deadline, "waiting for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The reasons in `runtime_status`.
pub(super) fn degraded(host: &mut Host) -> Vec<String> {
    let status = host.call("runtime_status", &json!({}));
    let reasons = status["structuredContent"]["degraded_reasons"].as_array().unwrap().clone();
    reasons.iter().map(|reason| reason.as_str().unwrap().to_owned()).collect()
}
