//! What an operator reads, and what programs read about that.

use embody_store::pins::{Definition, SeenTool};
use embody_store::{DatabaseUrl, Store};
use serde_json::{Value, json};

use crate::support::served::{Served, token};
use crate::support::world::World;

#[test]
fn memories_are_searched_and_listed_by_their_own_user() {
    let world = World::new();
    world.run(&["memory", "add", "Ann likes green tea."]).ok();
    let (owner, ann) = (token(&world, "owner", "operate"), token(&world, "ann", "chat"));
    let served = Served::start(&world);
    for path in ["/api/memories", "/api/memories?query=who%20likes%20tea&limit=5"] {
        let found = served.get(path, &owner).json();
        assert_eq!(found["memories"][0]["text"], "Ann likes green tea.", "{path}");
        assert_eq!(served.get(path, &ann).json(), json!({"memories": []}), "{path}");
    }
}

#[test]
fn the_prompt_is_the_one_that_the_command_shows() {
    let world = World::with_body("Never send money.\n");
    world.file("USER.md", "The owner keeps bees.\n");
    let (owner, ann) = (token(&world, "owner", "operate"), token(&world, "ann", "operate"));
    let served = Served::start(&world);
    let shown = served.get("/api/prompt?layout=body", &owner).json();
    assert_eq!(shown["text"], world.show(&["--layout", "body"]));
    assert_eq!(served.get("/api/prompt", &owner).json()["layout"], "channel");
    served.get("/api/prompt?layout=none", &owner).refused(400, "unknown layout `none`");
    served.get("/api/prompt", &ann).refused(403, "only the owner");
}

#[test]
fn status_and_audit_are_per_user_and_metrics_name_no_user() {
    let world = World::new();
    let (owner, ann) = (token(&world, "owner", "operate"), token(&world, "ann", "operate"));
    let served = Served::start(&world);
    let status = served.get("/api/status", &owner).json();
    assert_eq!((&status["model"], &status["turns"]["running"]), (&Value::Null, &json!(0)));
    for (token, user) in [(&owner, "owner"), (&ann, "ann")] {
        let records = served.get("/api/audit?limit=10", token).json()["records"].take();
        let records = records.as_array().unwrap();
        assert!(!records.is_empty() && records.iter().all(|record| record["user"] == user), "{records:?}");
    }
    let metrics = served.get("/metrics", &owner);
    assert!(metrics.header("content-type").unwrap().starts_with("text/plain; version=0.0.4"));
    for line in metrics.body.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').unwrap();
        let is_known = name.starts_with("embody_") || name.starts_with("process_");
        assert!(is_known && value.parse::<f64>().is_ok(), "{line}");
        assert!(!name.contains("owner") && !name.contains("ann"), "{line}");
    }
}

/// A tool of this body that waits for the owner.
fn quarantine(world: &World, body: &str) {
    let place = DatabaseUrl::File(world.path("embody.db"));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let store = Store::open(place).await.unwrap();
        let definition = Definition { text: "{\"name\":\"send\"}".into(), hash: "h".into() };
        let seen = SeenTool {
            body: body.into(),
            tool: "send".into(),
            definition,
            acceptable: false,
            rehash: |_, _| None,
        };
        store.pins().record(seen).await.unwrap();
        store.close().await;
    });
}

#[test]
fn a_user_sees_only_the_bodies_that_they_may_use() {
    let world = World::new();
    let body = |name: &str, users: &str| {
        format!("[[body]]\nname = \"{name}\"\nurl = \"http://127.0.0.1:9/mcp\"\nusers = {users}\n")
    };
    let bodies = [body("ledger", "\"owner\""), body("desk", "[\"ann\"]"), body("lamp", "\"all\"")];
    world.file("embody.toml", bodies.concat());
    let (owner, ann) = (token(&world, "owner", "operate"), token(&world, "ann", "operate"));
    let (hosts, mcp) = (["owner", "ann"], |user: &str| format!("Bearer {}", token(&world, user, "mcp")));
    let bearers = hosts.map(mcp);
    for body in ["ledger", "desk"] {
        quarantine(&world, body);
    }
    let served = Served::start(&world);
    for bearer in &bearers {
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
        let headers = [("authorization", &**bearer), ("accept", "application/json, text/event-stream")];
        assert_eq!(served.ask("POST /mcp", &headers, Some(&hello)).status, 200);
    }
    assert_eq!(served.get("/api/status", &owner).json()["bodies"], json!(["ledger", "desk", "lamp"]));
    assert_eq!(served.get("/api/status", &ann).json()["bodies"], json!(["desk", "lamp"]));
    let held = |token: &str| served.get("/api/status", token).json()["quarantined"].take();
    assert_eq!(held(&owner).as_array().unwrap().len(), 2);
    assert!(held(&ann).as_array().unwrap().iter().all(|tool| tool["body"] == "desk"), "{}", held(&ann));
    let numbers = |token: &str| served.get("/metrics", token).body;
    let has = |numbers: &str, body: &str| numbers.contains(&format!("body=\"{body}\""));
    let (all, hers) = (numbers(&owner), numbers(&ann));
    assert!(["ledger", "lamp", "desk"].iter().all(|body| has(&all, body)), "{all}");
    assert!(has(&hers, "lamp") && has(&hers, "desk") && !hers.contains("ledger"), "{hers}");
    for path in ["/api/me", "/api/status", "/api/audit", "/api/approvals", "/api/openapi.json"] {
        assert!(!served.get(path, &ann).body.contains("ledger"), "{path}");
    }
    let shown = world.run(&["status", "--user", "ann"]).ok();
    assert!(shown.stdout.contains("lamp") && !shown.stdout.contains("ledger"), "{}", shown.stdout);
}

#[test]
fn the_description_names_what_is_there_and_nothing_else() {
    let world = World::new();
    let owner = token(&world, "owner", "chat");
    let served = Served::start(&world);
    let described = served.get("/api/openapi.json", &owner).json();
    assert_eq!(described["openapi"], "3.1.0");
    let paths = described["paths"].as_object().unwrap();
    for path in ["/api/chat", "/api/threads", "/api/approvals", "/api/status", "/healthz", "/metrics"] {
        assert!(paths.contains_key(path), "{path}");
    }
    for (path, methods) in paths {
        let real = path.replace("{turn}", "x.1.y").replace("{id}", "x");
        for method in methods.as_object().unwrap().keys() {
            let line = format!("{} {real}", method.to_uppercase());
            let status = served.ask(&line, &[], None).status;
            let is_open = ["/", "/healthz", "/readyz", "/api/login"].contains(&path.as_str());
            assert!(![404, 405].contains(&status), "{line}: {status}");
            assert_eq!(status == 401, !is_open, "{line}: {status}");
        }
    }
}
