//! A server that starts slowly, or not at all, is never silently missing from a turn.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::support::model::{Model, WireFormat, rule, says};
use crate::support::world::World;

/// Lists one tool, after a delay that is longer than a tool list waits.
const SLOW: &str = r#"#!/bin/sh
sleep "$DELAY"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/p')
  case $line in
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"slow","version":"1"}}}\n' "$id";;
    *'"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"read_note","inputSchema":{"type":"object"}}]}}\n' "$id";;
    *'"id"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}\n' "$id";;
  esac
done
"#;

/// A world with this body, whose model says hello, and the model.
fn world(body: &str) -> (World, Model) {
    let world = World::with_body("Be kind.\n");
    world.file_outside("slow.sh", SLOW);
    fs::set_permissions(world.outside("slow.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    let model = Model::alone(&world, &json!([rule("hello", 0, says("Good morning."))]));
    let slow = world.outside("slow.sh").display().to_string();
    let config = format!(
        "[prompt]\nlayout = \"channel\"\n[[body]]\nname = \"notes\"\n{}\n",
        body.replace("SLOW", &slow)
    );
    world.file("embody.toml", model.config(WireFormat::OpenAi) + &config);
    (world, model)
}

#[test]
fn a_turn_waits_for_a_slow_server() {
    let (world, model) = world("command = [\"SLOW\"]\nenv = { DELAY = \"5\" }");
    let done = world.run(&["run", "hello"]).ok();
    assert!(model.last().tools().contains(&"read_note".to_owned()), "{:?}", model.last().tools());
    assert!(!model.last().system().contains("The server notes"), "{}", model.last().system());
    assert!(!done.stderr.contains("without the tools"), "{}", done.stderr);
    // The session's contact is on record.
    let status = world.run(&["status", "--json"]).ok().json();
    assert_eq!((&status["servers"][0]["state"], &status["servers"][0]["tools"]), (&json!("ok"), &json!(1)));
}

#[test]
fn the_model_and_the_person_are_told_which_server_has_failed() {
    let (world, model) = world("command = [\"sh\", \"-c\", \"echo no database >&2; exit 3\"]");
    let done = world.run(&["run", "hello"]).ok();
    assert!(
        done.stderr.contains("warning: this turn is without the tools of notes (the connection"),
        "{}",
        done.stderr
    );
    assert!(done.stderr.contains("saying `no database`"), "{}", done.stderr);
    let system = model.last().system();
    assert!(
        system
            .contains("The server notes is not available: its tools are missing or will fail in this turn."),
        "{system}"
    );
    assert!(!system.contains("no database"), "a server's words are not the prompt's: {system}");
    let status = world.run(&["status"]).ok().stdout;
    assert!(status.contains("servers    notes: failed ") && status.contains("no database"), "{status}");
}

#[test]
fn the_wait_for_a_server_is_bounded() {
    let (world, model) = world("command = [\"SLOW\"]\nenv = { DELAY = \"600\" }");
    let done = world.run(&["run", "hello"]).ok();
    assert!(done.stderr.contains("without the tools of notes (still starting)"), "{}", done.stderr);
    let system = model.last().system();
    assert!(
        system.contains("The server notes is still starting: its tools are missing in this turn."),
        "{system}"
    );
}
