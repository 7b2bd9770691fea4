//! Hosts of one protocol era before servers of the other: what `runtime_status` reports, and what is left out of results.

use serde_json::{Value, json};

use super::conformance::{READS, fixture};
use super::host::{Host, Reply};
use super::setup::{body, broker, stranger, until_state};
use crate::support::world::World;

fn world(era: &str) -> World {
    let world = World::with_body("Be honest.");
    world.file("embody.toml", format!("{READS}{}", body("fixture", &fixture(era), "")));
    world
}

fn session_host(world: &World) -> Host {
    stranger(world, &json!({}), |_, _| Reply::Error(-32601, "no such method"))
}

#[test]
fn the_status_names_the_era_and_the_revision_of_each_server() {
    for (era, reported, revision) in [
        ("stateless", "stateless", "2026-07-28"),
        ("both", "stateless", "2026-07-28"),
        ("sessions", "session", "2025-11-25"),
    ] {
        let world = world(era);
        let mut host = session_host(&world);
        let state = until_state(&mut host, "fixture", "connected");
        assert_eq!(
            (&state["era"], &state["protocol_version"]),
            (&json!(reported), &json!(revision)),
            "{state}"
        );
    }
}

#[test]
fn a_host_with_a_session_gets_results_of_a_stateless_server_without_members_of_that_era() {
    let (stateless, sessions) = (world("stateless"), world("sessions"));
    let (mut stateless, mut sessions) = (session_host(&stateless), session_host(&sessions));
    for host in [&mut stateless, &mut sessions] {
        until_state(host, "fixture", "connected");
    }
    for (method, params) in [
        ("tools/call", json!({"name": "test_simple_text", "arguments": {}})),
        ("tools/list", json!({})),
        ("resources/list", json!({})),
        ("resources/read", json!({"uri": "test://static-text"})),
        ("prompts/list", json!({})),
        ("prompts/get", json!({"name": "test_simple_prompt"})),
    ] {
        let [result, same] =
            [&mut stateless, &mut sessions].map(|host| host.ask(method, &params.to_string()).result());
        for member in ["resultType", "ttlMs", "cacheScope"] {
            assert!(result.get(member).is_none(), "{method}: {result}");
        }
        let members = |result: &Value| result.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(members(&result), members(&same), "{method}");
    }
}

#[test]
fn a_stateless_host_gets_these_members_from_a_server_of_either_era() {
    for era in ["stateless", "sessions"] {
        let world = world(era);
        let mut host = Host::start(broker(&world));
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "host", "version": "1"},
        });
        let mut ask = |method: &str, mut params: Value| {
            params["_meta"] = meta.clone();
            host.ask(method, &params.to_string()).result()
        };
        ask("tools/list", json!({}));
        let called = ask("tools/call", json!({"name": "test_simple_text", "arguments": {}}));
        assert_eq!(called["resultType"], "complete", "{called}");
        let read = ask("resources/read", json!({"uri": "test://static-text"}));
        assert_eq!((&read["resultType"], read["ttlMs"].is_number()), (&json!("complete"), true), "{read}");
    }
}
