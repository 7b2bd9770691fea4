//! Who may come in, by what, and from where.

use serde_json::json;

use crate::support::served::{Served, token};
use crate::support::world::World;

const GUARDED: [&str; 9] = [
    "/api/me",
    "/api/threads",
    "/api/approvals",
    "/api/notices",
    "/api/status",
    "/api/memories",
    "/api/audit",
    "/api/prompt",
    "/metrics",
];

#[test]
fn it_works_with_nothing_set_up() {
    let world = World::new();
    let mut served = Served::start(&world);
    for path in ["/healthz", "/readyz"] {
        let answer = served.ask(&format!("GET {path}"), &[("host", "anything.example")], None);
        assert_eq!((answer.status, answer.body.as_str()), (200, "ok\n"), "{path}");
    }
    let page = served.ask("GET /", &[], None);
    assert!(page.status == 200 && page.body.contains("<title>embody</title>"), "{page:?}");
    let cookie = served.sign_in(&served.code);
    for path in GUARDED {
        let answer = served.ask(&format!("GET {path}"), &[("cookie", &cookie)], None);
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
    }
    served.signal("-TERM");
    assert_eq!(served.process.wait().unwrap().code(), Some(0));
}

#[test]
fn everything_but_health_and_the_page_needs_authentication() {
    let world = World::new();
    let served = Served::start(&world);
    for path in GUARDED {
        let answer = served
            .ask(&format!("GET {path}"), &[], None)
            .refused(401, "a token or a signed-in browser is required");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
        let hint = answer.json()["error"]["hint"].as_str().unwrap().to_owned();
        assert!(
            hint.contains("`embody token add --user NAME --scope SCOPE`: `chat` for conversations"),
            "{hint}"
        );
        served.get(path, "embody_0000").refused(401, "the token is unknown");
    }
    for line in ["POST /api/chat", "POST /api/approvals", "POST /api/logout", "DELETE /api/chat/x.1.y"] {
        served.ask(line, &[], Some(&json!({}))).refused(401, "a token or a signed-in browser is required");
    }
    assert_eq!(served.ask("POST /mcp", &[], Some(&json!({}))).status, 401);
    served.ask("GET /api/nowhere", &[], None).refused(404, "not found");
    served.ask("PUT /api/chat", &[], None).refused(405, "method not allowed");
}

#[test]
fn a_token_opens_what_it_is_for_and_nothing_else() {
    let world = World::new();
    let [mcp, chat, operate] = ["mcp", "chat", "operate"].map(|scope| token(&world, "owner", scope));
    let served = Served::start(&world);
    served.get("/api/threads", &mcp).refused(403, "this token has the scope `mcp`");
    assert_eq!(served.get("/api/threads", &chat).status, 200);
    served.get("/api/threads", &operate).refused(403, "the scope `chat` is required");
    for path in ["/api/approvals", "/api/audit", "/api/status", "/api/prompt", "/metrics"] {
        served.get(path, &chat).refused(403, "the scope `operate` is required");
        assert_eq!(served.get(path, &operate).status, 200, "{path}");
    }
    let decide = json!({"id": "x", "decision": "approve"});
    served.post("/api/approvals", &chat, &decide).refused(403, "the scope `operate` is required");
    // A host is let in by a token for hosts alone.
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let ask = |token: &str| {
        let bearer = format!("Bearer {token}");
        let headers = [("authorization", bearer.as_str()), ("accept", "application/json, text/event-stream")];
        served.ask("POST /mcp", &headers, Some(&initialize)).status
    };
    assert_eq!((ask(&mcp), ask(&chat), ask(&operate)), (200, 403, 403));
}

#[test]
fn a_code_works_once() {
    let world = World::new();
    let served = Served::start(&world);
    let code = served.code.clone();
    served.sign_in(&code);
    let used =
        served.ask("POST /api/login", &[], Some(&json!({"code": code}))).refused(401, "was used already");
    // An unauthenticated caller is not told how to get another code: it may be the agent.
    let page = served.ask("GET /", &[], None);
    for answer in [used, page] {
        assert!(answer.body.contains("terminal where embody runs"), "{answer:?}");
        assert!(!answer.body.contains("USR1"), "{answer:?}");
    }
    served.ask("POST /api/login", &[], Some(&json!({"code": ""}))).refused(401, "was used already");
    served.ask("POST /api/login", &[], Some(&json!({}))).refused(400, "`code` or `token`");
}

#[test]
fn a_session_of_a_token_may_do_what_the_token_may_and_ends_with_it() {
    let world = World::new();
    let made = world.run(&["token", "add", "--user", "ann", "--scope", "chat", "--json"]).ok().json();
    let served = Served::start(&world);
    let answer = served.ask("POST /api/login", &[], Some(&json!({"token": made["token"]})));
    assert_eq!(answer.json()["user"], "ann");
    let cookie = answer.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let get = |path: &str| served.ask(&format!("GET {path}"), &[("cookie", &cookie)], None);
    assert_eq!(get("/api/threads").status, 200);
    get("/api/approvals").refused(403, "`operate` is required");
    world.run(&["token", "revoke", made["id"].as_str().unwrap()]).ok();
    get("/api/threads").refused(401, "a signed-in browser is required");
}

#[test]
fn a_page_from_elsewhere_can_do_nothing() {
    let world = World::new();
    let served = Served::start(&world);
    let cookie = served.sign_in(&served.code);
    let ours = format!("http://{}", served.host);
    let decide = json!({"id": "x", "decision": "approve"});
    let post = |headers: &[(&str, &str)]| {
        let headers = [&[("cookie", cookie.as_str())], headers].concat();
        served.ask("POST /api/approvals", &headers, Some(&decide))
    };
    post(&[("origin", &ours)]).refused(404, "unknown approval");
    post(&[]).refused(403, "own page");
    // Another program's page on this machine: the name is known, the place is not ours.
    post(&[("origin", "http://127.0.0.1:3000")]).refused(403, "own page");
    post(&[("origin", "http://evil.example")]).refused(403, "is not allowed");
    post(&[("origin", "null")]).refused(403, "is not allowed");
    post(&[("origin", &ours), ("sec-fetch-site", "same-site")]).refused(403, "own page");
    post(&[("origin", &ours), ("content-type", "text/plain")]).refused(415, "application/json");
    let get = |headers: &[(&str, &str)]| {
        served.ask("GET /api/threads", &[&[("cookie", cookie.as_str())], headers].concat(), None)
    };
    assert_eq!(get(&[]).status, 200);
    get(&[("sec-fetch-site", "cross-site")]).refused(403, "own page");
    get(&[("host", "evil.example")]).refused(403, "the host name `evil.example` is not allowed");
    served.ask("GET /", &[("host", "evil.example")], None).refused(403, "is not allowed");
    let login = [("origin", "http://127.0.0.1:3000")];
    served
        .ask("POST /api/login", &login, Some(&json!({"code": "x"})))
        .refused(403, "only possible on the console's own page");
}

#[test]
fn every_response_has_security_headers() {
    let world = World::new();
    let served = Served::start(&world);
    for path in ["/", "/console/main.js", "/api/me", "/healthz", "/nowhere"] {
        let answer = served.ask(&format!("GET {path}"), &[], None);
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"), "{path}");
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"), "{path}");
    }
}

#[test]
fn oversized_and_invalid_requests_are_rejected() {
    let world = World::new();
    let chat = token(&world, "owner", "chat");
    let served = Served::start(&world);
    let big = json!({"text": "x".repeat(600_000)});
    served.post("/api/chat", &chat, &big).refused(413, "more than");
    served
        .post("/api/chat", &chat, &json!({"text": "x".repeat(300_000)}))
        .refused(413, "the limit is 262144");
    served.post("/api/chat", &chat, &json!({"text": " \n "})).refused(400, "`text` is empty");
    served.post("/api/chat", &chat, &json!({"txt": "x"})).refused(400, "unknown field `txt`");
    served.post("/api/chat", &chat, &json!([])).refused(400, "invalid request body");
}

#[test]
fn an_address_that_is_taken_or_open_to_others_is_refused() {
    let world = World::new();
    let served = Served::start(&world);
    World::new().run(&["up", "--listen", &served.host]).ended(1).says(&[
        "cannot listen on",
        &served.host,
        "another program uses this port",
    ]);
    world
        .run(&["up", "--listen", "0.0.0.0:0"])
        .ended(2)
        .says(&["reachable from other machines", "--allow-remote"]);
    world.run(&["up", "--listen", "nowhere"]).ended(2).says(&["invalid address `nowhere`"]);
}
