//! `embody up` over HTTP: every response with its status, its headers and its raw body.

use super::http::{Answer, exchange, send};
use super::record::Record;
use super::scene;
use crate::support::model::{Model, WireFormat, rule, says};
use crate::support::served::Served;
use crate::support::world::World;

struct Client<'a> {
    host: &'a str,
    record: &'a mut Record,
}

impl Client<'_> {
    /// `head` is `METHOD PATH`, then a line for each header.
    fn ask(&mut self, head: &str, body: &str) -> Answer {
        exchange(self.record, self.host, head, body)
    }

    fn get(&mut self, path: &str, token: &str) -> Answer {
        self.ask(&format!("GET {path}\nAuthorization: Bearer {token}"), "")
    }

    fn post(&mut self, path: &str, token: &str, body: &str) -> Answer {
        self.ask(&format!("POST {path}\nAuthorization: Bearer {token}"), body)
    }
}

/// Makes a token, which is known by its scope from then on.
fn token(record: &mut Record, world: &World, user: &str, scope: &str, more: &[&str]) -> String {
    let made = world
        .run(&[&["token", "add", "--user", user, "--scope", scope, "--json"], more].concat())
        .ok()
        .json();
    let secret = made["token"].as_str().unwrap().to_owned();
    record.normalizer.name(&secret, &format!("{user}-{scope}-token"));
    secret
}

fn started(record: &mut Record, world: &World) -> Served {
    let served = Served::start(world);
    record.normalizer.literal(&served.host, "[host]");
    served
}

#[test]
fn api() {
    let world = scene::world();
    let mut record = Record::of(&world);
    let rules = serde_json::json!([rule("hello", 0, says("Good morning to you."))]);
    let model = Model::alone(&world, &rules);
    record.normalizer.literal(&model.url, "[model]");
    let config = std::fs::read_to_string(world.path("embody.toml")).unwrap();
    world.file("embody.toml", format!("{}{config}", model.config(WireFormat::OpenAi)));
    for (text, at) in
        [("Ann likes green tea.", "2020-01-01T08:00:00Z"), ("The gate squeaks.", "2020-01-02T08:00:00Z")]
    {
        world.run(&["memory", "add", text, "--occurred-at", at]).ok();
    }
    let [note, gate, _] = scene::session(&world, &mut record);
    let [chat, operate, mcp] =
        ["chat", "operate", "mcp"].map(|scope| token(&mut record, &world, "owner", scope, &[]));
    let ann = token(&mut record, &world, "ann", "operate", &[]);
    let served = started(&mut record, &world);
    let mut client = Client { host: &served.host, record: &mut record };

    // At once: it tells of sessions of the last minute.
    client.get("/api/status", &operate);
    client.get("/api/status", &ann);
    client.record.snapshot("api_status");
    health_and_refusals(&mut client, [&chat, &operate, &mcp, &ann]);
    client.record.snapshot("api_health_and_refusals");
    doors(&mut client, &operate);
    client.record.snapshot("api_host_and_origin");

    client.get("/api/memories", &chat);
    client.get("/api/memories?query=who%20likes%20tea&limit=1", &operate);
    client.get("/api/memories?limit=many", &operate);
    client.get("/api/memories", &ann);
    client.record.snapshot("api_memories");

    approvals(&mut client, &operate, &ann, &note, &gate);
    client.record.snapshot("api_approvals");

    conversations(&mut client, &chat);
    client.record.snapshot("api_chat_and_threads");

    client.get("/api/notices", &chat);
    client.get("/api/notices?unread=true", &ann);
    client.get("/api/notices", &mcp);
    client.post("/api/notices/read", &operate, r#"{"all":true}"#);
    client.post("/api/notices/read", &operate, "{}");
    client.post("/api/tour", &operate, "{}");
    client.post("/api/tour/answer", &chat, r#"{"tour":"x","approve":true}"#);
    client.record.snapshot("api_notices_and_tour");

    client.get("/api/usage?by=channel", &operate);
    client.get("/api/usage?by=week", &operate);
    client.get("/api/usage?since=soon", &operate);
    client.get("/api/usage", &ann);
    client.get("/api/usage", &chat);
    client.record.snapshot("api_usage");

    client.get("/api/prompt?layout=body", &operate);
    client.get("/api/prompt?layout=none", &operate);
    // The length of a prompt depends on the name of the day.
    client.get("/api/prompt?now=2026-11-17T09:00:00Z", &ann);
    client.get("/api/prompt?now=noon", &operate);
    client.get("/api/prompt?layuot=body", &operate);
    client.record.snapshot("api_prompt");

    client.get("/api/openapi.json", &chat);
    client.record.snapshot("api_openapi");
    let metrics = send(&served.host, &format!("GET /metrics\nAuthorization: Bearer {operate}"), "");
    record.heading("> GET /metrics");
    record.part("names and labels", &metric_names(&metrics.body));
    record.snapshot("api_metrics");

    let mut client = Client { host: &served.host, record: &mut record };
    client.get("/api/audit?limit=3", &operate);
    client.get("/api/audit?limit=0", &operate);
    client.get("/api/audit", &ann);
    client.record.snapshot("api_audit");
}

fn health_and_refusals(client: &mut Client, [chat, operate, mcp, ann]: [&String; 4]) {
    client.ask("GET /healthz", "");
    client.ask("GET /readyz\nHost: anything.example", "");
    let sealed = send(client.host, "GET /healthz", "");
    let common: Vec<&str> = sealed.head.lines().filter(|line| !line.starts_with("date")).collect();
    client.record.part("all headers but the date", &(common.join("\n") + "\n"));
    for path in ["/api/status", "/api/me", "/metrics", "/api/openapi.json"] {
        client.ask(&format!("GET {path}"), "");
    }
    client.get("/api/status", "embody_0000");
    client.get("/api/threads", mcp);
    client.get("/api/threads", operate);
    client.get("/api/approvals", chat);
    client.get("/api/audit", chat);
    client.get("/api/me", chat);
    client.get("/api/me", ann);
    client.ask("GET /api/nowhere", "");
    client.get("/api/nowhere", chat);
    client.get("/v1/models", chat);
    client.ask("PUT /api/chat", "");
    client.post("/api/status", operate, "{}");
    client.post("/api/chat", chat, "{");
    client.post("/api/chat", chat, r#"{"txt":"x"}"#);
    client.post("/api/chat", chat, r#"{"text":" "}"#);
    client.ask(&format!("POST /api/chat\nAuthorization: Bearer {chat}\nContent-Type: text/plain"), "hello");
    let long = send(
        client.host,
        &format!("POST /api/chat\nAuthorization: Bearer {chat}"),
        &format!(r#"{{"text":"{}"}}"#, "x".repeat(300_000)),
    );
    client.record.heading("> POST /api/chat with 300,000 characters");
    client.record.part("status", &(long.head.lines().next().unwrap().to_owned() + "\n"));
    client.record.part("body", &long.body);
    client.ask("POST /api/login", r#"{"code":"made-up"}"#);
    client.ask("POST /api/login", "{}");
    client.ask("POST /api/logout", "{}");
    client.ask("DELETE /api/chat/x.1.y", "");
}

fn doors(client: &mut Client, operate: &str) {
    let bearer = format!("Authorization: Bearer {operate}");
    for header in [
        "Host: evil.example",
        "Origin: http://evil.example",
        "Origin: null",
        "Origin: http://127.0.0.1:1",
        "Sec-Fetch-Site: cross-site",
    ] {
        client.ask(&format!("GET /api/approvals\n{bearer}\n{header}"), "");
    }
    client.ask("GET /\nHost: evil.example", "");
    client.ask(&format!("POST /mcp\n{bearer}\nHost: evil.example"), "{}");
    client.ask(&format!("POST /mcp\n{bearer}\nOrigin: http://evil.example"), "{}");
    client.ask("POST /api/login\nOrigin: http://127.0.0.1:1", r#"{"code":"x"}"#);
}

fn approvals(client: &mut Client, operate: &str, ann: &str, note: &str, gate: &str) {
    client.get("/api/approvals", operate);
    client.get("/api/approvals", ann);
    let decide = |id: &str, decision: &str| format!(r#"{{"id":"{id}","decision":"{decision}"}}"#);
    client.post("/api/approvals", ann, &decide(note, "approve"));
    client.post("/api/approvals", operate, &decide(note, "approve"));
    client.post("/api/approvals", operate, &decide(note, "approve"));
    client.post("/api/approvals", operate, &decide(gate, "deny"));
    client.post("/api/approvals", operate, &decide("gone", "deny"));
    client.post("/api/approvals", operate, &decide(gate, "maybe"));
    client.post("/api/approvals", operate, r#"{"id":"x"}"#);
    client.get("/api/approvals", operate);
}

fn conversations(client: &mut Client, chat: &str) {
    client.get("/api/threads", chat);
    let turn = client.post("/api/chat", chat, r#"{"text":"hello there"}"#);
    let thread = turn
        .body
        .split_once(r#""thread":""#)
        .and_then(|(_, rest)| rest.split_once('"'))
        .unwrap()
        .0
        .to_owned();
    client.get("/api/threads", chat);
    client.get(&format!("/api/threads/{thread}"), chat);
    client.get("/api/threads/gone", chat);
    client.get("/api/chat/gone", chat);
}

/// Each series without its value, and the lines that describe them.
fn metric_names(text: &str) -> String {
    // The series of a name come in no particular order.
    let mut names: Vec<&str> = text
        .lines()
        .map(|line| if line.starts_with('#') { line } else { line.rsplit_once(' ').unwrap().0 })
        .collect();
    names.sort_unstable();
    names.dedup();
    names.join("\n") + "\n"
}

const BOTH: &str = "Accept: application/json, text/event-stream";

#[test]
fn mcp_over_http() {
    let world = scene::world();
    let mut record = Record::of(&world);
    let mcp = token(&mut record, &world, "owner", "mcp", &[]);
    let chat = token(&mut record, &world, "owner", "chat", &[]);
    let served = started(&mut record, &world);
    let mut client = Client { host: &served.host, record: &mut record };
    client.ask(&format!("POST /mcp\n{BOTH}"), &scene::initialize("{}"));
    client.ask(&format!("POST /mcp\nAuthorization: Bearer {chat}\n{BOTH}"), &scene::initialize("{}"));
    client.ask(&format!("GET /mcp\nAuthorization: Bearer {mcp}\nAccept: text/event-stream"), "");
    client.ask(&format!("PUT /mcp\nAuthorization: Bearer {mcp}"), "{}");
    client
        .ask(&format!("POST /mcp\nAuthorization: Bearer {mcp}\nAccept: text/html"), &scene::initialize("{}"));
    client.ask(
        &format!("POST /mcp\nAuthorization: Bearer {mcp}\n{BOTH}\nContent-Type: text/plain"),
        &scene::initialize("{}"),
    );
    client.ask(&format!("POST /mcp\nAuthorization: Bearer {mcp}\n{BOTH}"), "{");
    client.ask(
        &format!("POST /mcp\nAuthorization: Bearer {mcp}\n{BOTH}"),
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
    );
    client.ask(
        &format!("POST /mcp\nAuthorization: Bearer {mcp}\n{BOTH}\nMcp-Session-Id: gone"),
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
    );
    client.record.snapshot("mcp_http_refusals");
    with_a_session(&mut client, &mcp);
    client.record.snapshot("mcp_http_session");
    without_a_session(&mut client, &mcp);
    client.record.snapshot("mcp_http_stateless");
}

fn with_a_session(client: &mut Client, token: &str) {
    let head = format!("POST /mcp\nAuthorization: Bearer {token}\n{BOTH}");
    let begun = send(client.host, &head, &scene::initialize("{}"));
    let session = begun.header("mcp-session-id").unwrap().to_owned();
    client.record.normalizer.name(&session, "session");
    let head = format!("{head}\nMcp-Session-Id: {session}\nMCP-Protocol-Version: 2025-11-25");
    client.ask(&head, scene::INITIALIZED);
    scene::until_connected(|| send(client.host, &head, &scene::status(None)).json());
    client.ask(&head, &scene::call(3, "look", r#"{"text":"here"}"#));
    client.ask(&head, &scene::call(4, "note", r#"{"text":"bees"}"#));
    client.ask(&head, &scene::call(5, "note", r#"{"text":"bees"}"#));
    client.ask(&head, &scene::call(6, "send_note", r#"{"text":"Tea is ready."}"#));
    client.ask(&head, &scene::call(7, "gone", "{}"));
    client.ask(&head, &scene::call(8, "note", r#"{"text":"one","text":"two"}"#));
    client.ask(
        &head,
        r#"{"jsonrpc":"2.0","id":9,"method":"resources/read","params":{"uri":"test://static-text"}}"#,
    );
    client.ask(&head, r#"{"jsonrpc":"2.0","id":10,"method":"gone/list"}"#);
    client.ask(&head.replace("2025-11-25", "2031-01-01"), r#"{"jsonrpc":"2.0","id":11,"method":"ping"}"#);
    client.ask(&head.replace("POST", "DELETE"), "");
    client.ask(&head, r#"{"jsonrpc":"2.0","id":12,"method":"ping"}"#);
}

fn without_a_session(client: &mut Client, token: &str) {
    const META: &str = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"golden","version":"1"}}"#;
    let head = |method: &str| {
        format!(
            "POST /mcp\nAuthorization: Bearer {token}\n{BOTH}\nMCP-Protocol-Version: 2026-07-28\nMcp-Method: {method}"
        )
    };
    let request = |id: u64, method: &str, params: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}"_meta":{META}}}}}"#)
    };
    let status = format!("{}\nMcp-Name: runtime_status", head("tools/call"));
    scene::until_connected(|| send(client.host, &status, &scene::status(Some(META))).json());
    client.ask(&head("server/discover"), &request(1, "server/discover", ""));
    client.ask(&head("resources/templates/list"), &request(2, "resources/templates/list", ""));
    let call = |client: &mut Client, id: u64, tool: &str, arguments: &str| {
        let head = format!("{}\nMcp-Name: {tool}", head("tools/call"));
        client
            .ask(&head, &request(id, "tools/call", &format!(r#""name":"{tool}","arguments":{arguments},"#)));
    };
    call(client, 3, "look", r#"{"text":"here"}"#);
    call(client, 4, "note", r#"{"text":"bees"}"#);
    call(client, 5, "erase", r#"{"text":"everything"}"#);
    call(client, 6, "gone", "{}");
    client.ask(&head("tools/list"), &request(7, "prompts/list", ""));
    client.ask(
        &format!("{}\nMcp-Name: note", head("tools/call")),
        &request(8, "tools/call", r#""name":"look","arguments":{},"#),
    );
    client.ask(
        &head("server/discover").replace("2026-07-28", "2025-11-25"),
        &request(9, "server/discover", ""),
    );
}
