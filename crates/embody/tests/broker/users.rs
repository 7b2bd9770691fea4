//! Several users of one `embody up`: whose answer counts, who reaches a body, and what ends with a token.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::host::Host;
use super::setup::{Scene, broker, decision};
use crate::support::app::eventually;
use crate::support::served::{Reading, Served, approving_token, token};
use crate::support::world::World;

const SHORT_WAIT: &str = "[policy]\nask_wait_s = 1\n";
const LONG_WAIT: &str = "[policy]\nask_wait_s = 45\n";
const VERSION: (&str, &str) = ("mcp-protocol-version", "2025-11-25");
/// More than a second would be a failure; the rest is for a machine that is busy.
const SOON: Duration = Duration::from_secs(5);

/// A host over HTTP with a session, which accepts every form.
struct Client<'a> {
    up: &'a Served,
    token: String,
    session: String,
}

impl<'a> Client<'a> {
    fn initialize(up: &'a Served, token: &str) -> Self {
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}},
            "clientInfo": {"name": "host", "version": "1"}});
        let mut client = Self { up, token: token.to_owned(), session: String::new() };
        let reading = client.begin("initialize", &hello);
        client.session = reading.header("mcp-session-id").expect("a session").to_owned();
        reading.whole();
        client.call("runtime_bootstrap", &json!({}));
        client
    }

    fn send(&self, line: &str, message: Option<&Value>) -> Reading {
        let bearer = format!("Bearer {}", self.token);
        let mut headers =
            vec![("authorization", &*bearer), ("accept", "application/json, text/event-stream"), VERSION];
        if !self.session.is_empty() {
            headers.push(("mcp-session-id", &self.session));
        }
        self.up.begin(line, &headers, message)
    }

    fn begin(&self, method: &str, params: &Value) -> Reading {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        self.send("POST /mcp", Some(&request))
    }

    /// The answer to a request, and how many forms were accepted meanwhile.
    fn ask(&self, method: &str, params: &Value) -> (Value, usize) {
        let mut reading = self.begin(method, params);
        if !reading.is_events() {
            return (reading.whole().json(), 0);
        }
        let mut forms = 0;
        while let Some(message) = reading.message() {
            if message["method"] == "elicitation/create" {
                forms += 1;
                std::thread::sleep(super::host::READING_TIME);
                let accept = json!({"jsonrpc": "2.0", "id": message["id"], "result": {"action": "accept"}});
                assert_eq!(self.send("POST /mcp", Some(&accept)).whole().status, 202);
            } else if message["id"] == 1 {
                return (message, forms);
            }
        }
        panic!("no answer to {method}");
    }

    fn call(&self, tool: &str, arguments: &Value) -> (Value, usize) {
        let (answer, forms) = self.ask("tools/call", &json!({"name": tool, "arguments": arguments}));
        (answer["result"].clone(), forms)
    }

    fn has(&self, tool: &str) -> bool {
        let (answer, _) = self.ask("tools/list", &json!({}));
        answer["result"]["tools"].as_array().unwrap().iter().any(|listed| listed["name"] == tool)
    }
}

fn note(text: &str) -> Value {
    json!({"text": text})
}

// spec: N-10
#[test]
fn a_form_approves_only_with_a_token_that_may() {
    let scene = Scene::new("users = \"all\"", &[SHORT_WAIT]);
    let (mine, theirs) = (token(&scene.world, "owner", "mcp"), token(&scene.world, "ann", "mcp"));
    let approving = approving_token(&scene.world);
    let up = Served::start(&scene.world);
    for without in [&theirs, &mine] {
        let (result, forms) = Client::initialize(&up, without).call("send_note", &note("unasked"));
        assert_eq!((decision(&result), forms), ("pending", 0), "{result}");
    }
    assert_eq!(scene.desk.calls("send_note").len(), 0);
    let (result, forms) = Client::initialize(&up, &approving).call("send_note", &note("asked"));
    assert_eq!((&result["content"][0]["text"], forms), (&json!("send_note is done"), 1), "{result}");
}

// spec: N-10
#[test]
fn a_host_on_a_pipe_answers_for_the_owner_only_if_it_is_theirs() {
    let scene = Scene::new("users = \"all\"", &[SHORT_WAIT]);
    let mut command = broker(&scene.world);
    command.args(["--user", "ann"]);
    let mut other = Host::start(command).answering(|_, _| super::host::elicited("accept"));
    other.initialize(&json!({"elicitation": {}}));
    other.call("runtime_bootstrap", &json!({}));
    assert_eq!(decision(&other.call("send_note", &note("hello"))), "pending");
    assert!(other.questions.is_empty());
    let mut own = scene.asked_host("accept");
    assert_eq!(own.call("send_note", &note("hello"))["content"][0]["text"], "send_note is done");
}

#[test]
fn where_only_a_form_may_approve_a_host_without_the_right_is_denied() {
    let rule = "[[policy.rule]]\ntools = [\"send_note\"]\ngate = \"ask\"\nvia = [\"elicitation\"]\n";
    let scene = Scene::new("", &[rule]);
    let mine = token(&scene.world, "owner", "mcp");
    let up = Served::start(&scene.world);
    let (result, forms) = Client::initialize(&up, &mine).call("send_note", &note("unasked"));
    assert_eq!((decision(&result), forms), ("deny", 0), "{result}");
}

#[test]
fn the_right_to_approve_is_refused_to_others_and_to_other_scopes() {
    let world = World::new();
    let add = |user: &str, scope: &str| {
        world.run(&["token", "add", "--user", user, "--scope", scope, "--may-approve", "--json"])
    };
    add("ann", "mcp").ended(2).says(&["`--may-approve` is for the owner `owner`, not for `ann`"]);
    add("owner", "chat").ended(2).says(&["`--may-approve` needs `--scope mcp`, not `chat`"]);
    assert_eq!(add("owner", "mcp").ok().json()["may_approve"], true);
    let listed = world.run(&["token", "list", "--json"]).ok().json();
    let rights: Vec<&Value> =
        listed["tokens"].as_array().unwrap().iter().map(|token| &token["may_approve"]).collect();
    assert_eq!(rights, [&json!(true)]);
    let world = world.env("EMBODY_USER", "bob");
    world.run(&["token", "add", "--user", "bob", "--scope", "mcp", "--may-approve"]).ok();
}

#[test]
fn a_body_is_for_the_owner_unless_users_are_configured() {
    for (users, owner_has, ann_has) in [
        ("", true, false),
        ("users = \"owner\"", true, false),
        ("users = [\"ann\"]", false, true),
        ("users = \"all\"", true, true),
    ] {
        let scene = Scene::new(users, &[SHORT_WAIT]);
        let tokens = ["owner", "ann"].map(|user| token(&scene.world, user, "mcp"));
        let up = Served::start(&scene.world);
        for (token, has) in tokens.iter().zip([owner_has, ann_has]) {
            let client = Client::initialize(&up, token);
            assert_eq!(client.has("look"), has, "{users}");
            for params in [
                json!({"name": "look", "arguments": {}}),
                json!({"name": "body_tool", "arguments": {"name": "desk/look", "args": {}}}),
            ] {
                let (answer, _) = client.ask("tools/call", &params);
                let is_done = answer.to_string().contains("look is done");
                assert!(!is_done || has, "{users} {answer}");
            }
            let (status, _) = client.call("runtime_status", &json!({}));
            assert_eq!(status.to_string().contains("desk"), has, "{users} {status}");
        }
    }
}

#[test]
fn a_prompt_shows_the_tools_of_the_users_own_bodies() {
    let scene = Scene::new("", &[]);
    scene.plain_host().call("look", &json!({}));
    let shows = |user: &str| {
        let show = ["prompt", "show", "--layout", "full", "--native-tools", "false", "--user", user];
        scene.world.run(&show).ok().stdout.contains("send_note")
    };
    assert!(shows("owner") && !shows("ann"));
}

#[test]
fn doctor_names_users_that_cannot_use_a_body() {
    let check = |scene: &Scene| {
        let report = scene.world.run(&["doctor", "--json"]).json();
        let checks = report["checks"].as_array().unwrap().clone();
        checks.into_iter().find(|check| check["name"] == "users").unwrap_or_default()["message"].clone()
    };
    let telegram = "[telegram]\nallow_users = [7, 8]\nusers = {8 = \"owner\"}\n";
    let scene = Scene::new("", &[telegram]);
    assert_eq!(check(&scene), "`telegram:7` cannot use `desk`");
    token(&scene.world, "ann", "mcp");
    token(&scene.world, "owner", "chat");
    scene.world.run(&["schedule", "add", "--user", "bob", "--cron", "@daily", "Write."]).ok();
    assert_eq!(check(&scene), "`ann`, `bob`, `telegram:7` cannot use `desk`");
    for users in ["users = [\"owner\"]", "users = \"owner\""] {
        assert_eq!(
            check(&Scene::new(users, &[telegram])),
            Value::Null,
            "the operator has said who may use it"
        );
    }
}

/// Reads to the end in a thread of its own; how long that took from now on.
fn end_of(reading: Reading) -> thread::JoinHandle<Duration> {
    let since = Instant::now();
    thread::spawn(move || {
        reading.whole();
        since.elapsed()
    })
}

fn id_of(world: &World, token: &str) -> String {
    let listed = world.run(&["token", "list", "--json"]).ok().json();
    let made = listed["tokens"].as_array().unwrap().iter().find(|one| one["label"] == token);
    made.unwrap()["id"].as_str().unwrap().to_owned()
}

fn labelled(world: &World, label: &str) -> String {
    let add = ["token", "add", "--user", "owner", "--scope", "mcp", "--label", label, "--json"];
    world.run(&add).ok().json()["token"].as_str().unwrap().to_owned()
}

fn waiting(world: &World) -> Option<String> {
    let listed = world.run(&["approvals", "list", "--json"]).ok().json();
    listed["approvals"][0]["id"].as_str().map(str::to_owned)
}

#[test]
fn a_revoked_token_ends_its_streams_its_session_and_the_calls_that_wait() {
    let scene = Scene::new("", &[LONG_WAIT]);
    let (lost, kept) = (labelled(&scene.world, "lost"), labelled(&scene.world, "kept"));
    let up = Served::start(&scene.world);
    let (client, other) = (Client::initialize(&up, &lost), Client::initialize(&up, &kept));
    let stream = client.send("GET /mcp", None);
    let bearer = format!("Bearer {lost}");
    let legacy = up.begin("GET /sse", &[("authorization", &bearer), ("accept", "text/event-stream")], None);
    let mut calling = client.begin("tools/call", &json!({"name": "send_note", "arguments": note("x")}));
    let id = eventually("an approval", || waiting(&scene.world));
    // A token of the same user does not reach the session.
    let foreign = Client { up: &up, token: kept.clone(), session: client.session.clone() };
    assert_eq!(foreign.begin("tools/list", &json!({})).status, 404);

    let id_of_lost = id_of(&scene.world, "lost");
    let ends = [end_of(stream), end_of(legacy)];
    let since = Instant::now();
    scene.world.run(&["token", "revoke", &id_of_lost]).ok();
    while let Some(message) = calling.message() {
        assert!(message["id"] != 1, "{message}");
    }
    assert!(since.elapsed() < SOON, "{:?}", since.elapsed());
    for end in ends {
        assert!(end.join().unwrap() < SOON);
    }
    assert_eq!(client.begin("tools/list", &json!({})).status, 401);
    // A call that waited is not made, even if the owner approves now.
    scene.world.run(&["approvals", "approve", &id]);
    assert!(other.has("look"), "another token goes on");
    assert_eq!(scene.desk.calls("send_note").len(), 0);
}

#[test]
fn a_disabled_user_is_rejected_until_enabled() {
    let world = World::new();
    world.run(&["user", "disable", "ann"]).ended(1).says(&["unknown user `ann`", "embody user list"]);
    let ann = token(&world, "ann", "mcp");
    let up = Served::start(&world);
    let client = Client::initialize(&up, &ann);
    let stream = end_of(client.send("GET /mcp", None));
    assert_eq!(world.run(&["user", "disable", "ann"]).ok().stdout, "disabled ann\n");
    assert!(stream.join().unwrap() < SOON);
    assert_eq!(client.begin("tools/list", &json!({})).status, 401);
    let listed = world.run(&["user", "list", "--json"]).ok().json();
    let user = &listed["users"][0];
    assert_eq!((&user["user"], &user["state"]), (&json!("ann"), &json!("disabled")), "{listed}");
    assert!(world.run(&["user", "list"]).ok().stdout.contains("disabled"));
    assert_eq!(world.run(&["user", "enable", "ann", "--json"]).ok().json()["state"], "enabled");
    assert!(Client::initialize(&up, &ann).has("runtime_status"));
}
