//! Servers on released versions of the Python SDK. Those up to 1.8.1 end when they are sent a method they do not know, as
//! `server/discover` is.

use std::fs;

use serde_json::{Value, json};

use super::setup::{ALLOW_ALL, body, until_state, upstream};
use crate::peers::program;
use crate::support::world::World;

/// What `embody mcp` sends to a server on this SDK, and what the server is called by then in `runtime_status`.
struct Start {
    methods: Vec<String>,
    state: Value,
}

struct Server {
    world: World,
}

impl Server {
    fn new(python: &str) -> Self {
        let world = World::with_body("Be honest.");
        world.file_outside("old_server.py", include_str!("old_server.py"));
        let (script, log) = (world.outside("old_server.py"), world.outside("read.log"));
        let command = [program(python).display().to_string(), script.display().to_string()];
        let more = format!("env = {{ LOG = \"{}\" }}\n", log.display());
        world.file("embody.toml", format!("{ALLOW_ALL}{}", body("old", &command, &more)));
        Self { world }
    }

    /// Starts a broker, lists and calls the tool, and ends the broker.
    fn start(&self) -> Start {
        let log = self.world.outside("read.log");
        let _ = fs::remove_file(&log);
        let mut host =
            super::setup::host(&self.world, &json!({}), |_, _| super::host::Reply::Error(-32601, "no"));
        until_state(&mut host, "old", "connected");
        let list = host.ask("tools/list", "{}").result();
        let listed = list["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "greet");
        assert!(listed, "{list}");
        let result = host.call("greet", &json!({"name": "Ann"}));
        assert_eq!(result["content"], json!([{"type": "text", "text": "Hello, Ann!"}]), "{result}");
        let state = upstream(&mut host, "old");
        assert!(host.close().success());
        let methods = fs::read_to_string(&log).unwrap();
        let methods = methods.lines().filter_map(|line| {
            let method = serde_json::from_str::<Value>(line).unwrap()["method"].take();
            method.as_str().map(str::to_owned)
        });
        Start { methods: methods.collect(), state }
    }
}

fn is_probed_once(python: &str) {
    let server = Server::new(python);
    let first = server.start();
    assert_eq!(first.methods[0], "server/discover", "{:?}", first.methods);
    assert_eq!(first.state["restarts"], 0, "the start after the probe is none: {}", first.state);
    let second = server.start();
    assert_eq!(second.methods[0], "initialize", "{:?}", second.methods);
    assert!(!second.methods.iter().any(|method| method == "server/discover"), "{:?}", second.methods);
}

#[test]
fn a_server_on_the_first_python_sdk_works_and_is_probed_once() {
    is_probed_once("python-sdk-1.0.0");
}

#[test]
fn a_server_on_python_sdk_1_6_works_and_is_probed_once() {
    is_probed_once("python-sdk-1.6.0");
}

#[test]
fn a_server_on_python_sdk_1_8_works_and_is_probed_once() {
    is_probed_once("python-sdk-1.8.1");
}

#[test]
fn a_server_on_python_sdk_1_9_works_and_is_probed_once() {
    // It answers the probe with an error, in time or not.
    is_probed_once("python-sdk-1.9.4");
}

#[test]
fn a_server_on_the_current_python_sdk_is_used_without_a_session_each_time() {
    let server = Server::new("python");
    for _ in 0..2 {
        let start = server.start();
        assert_eq!(start.methods[0], "server/discover", "{:?}", start.methods);
        assert_eq!((&start.state["era"], &start.state["restarts"]), (&json!("stateless"), &json!(0)));
    }
}
