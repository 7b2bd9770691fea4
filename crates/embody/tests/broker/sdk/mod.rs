//! Clients built on the official SDKs, which validate results against the tool's `outputSchema`, against `embody mcp` over
//! stdio and streamable HTTP, in both eras. A result that a client rejects never reaches the model: no call may throw.

mod client;

use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use self::client::{Client, Sdk};
use super::setup::{Scene, decision, decision_data, until};
use super::unruly::{Mind, Unruly, is_alive};
use crate::peers::Listening;
use crate::support::app::eventually;
use crate::support::model::{Model, WireFormat, rule, says};
use crate::support::world::World;

/// A write without an `outputSchema`, and one with.
const WRITES: [&str; 2] = ["send_note", "send_receipt"];
const READS: [&str; 2] = ["look", "read_receipt"];

/// The contract of [`Scene`] contains this.
const CONTRACT: &str = "Be honest. The rules of the house.";

/// One call waits a moment only; the approval itself lives long.
const SHORT_WAIT: &str = "[policy]\nask_wait_s = 1\nask_timeout_s = 300\n";
/// A call that waited until the end of `ask_wait_s` can be told from one that returned at once.
const LONG_WAIT: &str = "[policy]\nask_wait_s = 30\nask_timeout_s = 300\n";
/// Far below `ask_wait_s` of [`LONG_WAIT`], far above what a call takes on a busy machine.
const AT_ONCE: Duration = Duration::from_secs(15);
const EXPIRES_SOON: &str = "[policy]\nask_wait_s = 1\nask_timeout_s = 1\n";

/// Longer than what counts as an answer that a person cannot have given.
const READING_TIME: Duration = Duration::from_millis(700);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Transport {
    Stdio,
    Http,
}

/// `embody mcp` as a client reaches it.
struct Endpoint<'a> {
    world: &'a World,
    /// The server and a token, over HTTP.
    http: Option<(Listening, String)>,
}

impl<'a> Endpoint<'a> {
    fn new(world: &'a World, transport: Transport) -> Self {
        let http = (transport == Transport::Http).then(|| {
            let made = world
                .run(&["token", "add", "--user", "owner", "--scope", "mcp", "--may-approve", "--json"])
                .ok()
                .json();
            let mut command = world.command();
            command.arg("--workspace").arg(world.workspace());
            command.args(["--log", "error", "mcp", "--listen", "127.0.0.1:0"]);
            (Listening::start(&mut command), made["token"].as_str().unwrap().to_owned())
        });
        Self { world, http }
    }

    /// Where it is, as the drivers understand it.
    fn plan(&self) -> Value {
        if let Some((server, token)) = &self.http {
            return json!({"url": server.url, "token": token});
        }
        let (program, workspace) = (env!("CARGO_BIN_EXE_embody"), self.world.workspace());
        // The drivers have no model: they answer at once.
        let delay = "EMBODY_POLICY__CONTRACT_DELAY_MS=0";
        json!({"command": ["/usr/bin/env", delay, program, "--workspace", workspace, "--log", "error", "mcp"]})
    }

    fn home(&self) -> std::path::PathBuf {
        self.world.outside("home")
    }
}

/// Checks that it is the body's own result.
fn assert_done(result: &Value, tool: &str) {
    assert_ne!(result["isError"], true, "{result}");
    assert_eq!(result["content"], json!([{"type": "text", "text": format!("{tool} is done")}]), "{result}");
    let expected = if tool.ends_with("_receipt") { json!({"id": "r-1"}) } else { Value::Null };
    assert_eq!(result["structuredContent"], expected, "{result}");
}

/// Checks that it is a decision of the broker of this kind. Returns its data.
fn refused<'a>(result: &'a Value, kind: &str) -> &'a Value {
    assert_eq!(decision(result), kind, "{result}");
    decision_data(result)
}

fn approval(result: &Value) -> String {
    refused(result, "pending")["approval_id"].as_str().unwrap().to_owned()
}

/// A call of each write with this text.
fn writes(text: &str) -> Vec<(&'static str, Value)> {
    WRITES.map(|tool| (tool, json!({"text": text}))).to_vec()
}

/// What the body executed of the writes.
fn sent(scene: &Scene) -> Vec<Value> {
    WRITES.iter().flat_map(|tool| scene.desk.calls(tool)).collect()
}

/// Kills every process of this server that runs.
fn kill(server: &Unruly) {
    let started = server.of_kind("start");
    for id in started.iter().filter_map(|start| start["pid"].as_u64()).filter(|id| is_alive(*id)) {
        assert!(Command::new("kill").args(["-9", &id.to_string()]).status().unwrap().success());
    }
}

/// Waits until `runtime_status` shows this upstream as unavailable.
fn until_away(client: &mut Client, name: &str) {
    let client = std::cell::RefCell::new(client);
    until("the upstream to be away", || {
        let status = client.borrow_mut().call("runtime_status", json!({}));
        let upstreams = status["structuredContent"]["upstreams"].as_array().unwrap();
        upstreams.iter().any(|upstream| upstream["name"] == name && upstream["state"] == "unavailable")
    });
}

/// Connect, list, read, bounce, pending, approve, deny; a second conversation; blocked.
fn a_client_without_forms(sdk: Sdk, transport: Transport) {
    let here = tempfile::NamedTempFile::new().unwrap();
    let scene = Scene::with(&["--while", here.path().to_str().unwrap()], "", &[SHORT_WAIT]);
    let endpoint = Endpoint::new(&scene.world, transport);
    let mut client = Client::connect(sdk, &endpoint, false);
    // Generation 1 of the TypeScript SDK does not show the version over stdio.
    if (sdk, transport) != (Sdk::TypeScript1, Transport::Stdio) {
        assert_eq!(client.connected["version"], sdk.version());
    }
    assert!(client.connected["instructions"].as_str().is_some_and(|text| !text.is_empty()));
    let tools = client.list();
    for name in READS.iter().chain(&WRITES) {
        let tool = tools.iter().find(|tool| tool["name"] == *name);
        let tool = tool.unwrap_or_else(|| panic!("`{name}` is not listed"));
        assert_eq!(tool["outputSchema"].is_object(), name.ends_with("_receipt"), "{tool}");
    }
    for (tool, result) in READS.iter().zip(client.calls(READS.map(|tool| (tool, json!({}))).to_vec())) {
        assert_done(&result, tool);
    }
    // The first write bounces with the contract, another one without; its repetition passes, and then all do.
    for ((tool, arguments), has_contract) in writes("yes").into_iter().zip([true, false]) {
        let bounced = client.call(tool, arguments);
        refused(&bounced, "bounce");
        assert_eq!(bounced["content"].to_string().contains(CONTRACT), has_contract, "{bounced}");
    }
    approval(&client.call("send_note", json!({"text": "yes"})));

    let pending = client.calls([writes("yes"), writes("no")].concat());
    for (result, verdict) in pending.iter().zip(["approve", "approve", "deny", "deny"]) {
        scene.world.run(&["approvals", verdict, &approval(result)]).ok();
    }
    assert!(sent(&scene).is_empty());
    let decided = client.calls([writes("yes"), writes("no")].concat());
    for (tool, result) in WRITES.iter().zip(&decided) {
        assert_done(result, tool);
    }
    for result in &decided[2..] {
        refused(result, "deny");
    }
    assert_eq!(sent(&scene), [json!({"text": "yes"}), json!({"text": "yes"})]);
    client.close();

    let mut client = Client::connect(sdk, &endpoint, false);
    client.list();
    let first = client.call("send_receipt", json!({"text": "second"}));
    refused(&first, "bounce");
    assert!(first["content"].to_string().contains(CONTRACT), "{first}");
    approval(&client.call("send_receipt", json!({"text": "second"})));

    drop(here);
    kill(&scene.desk);
    until_away(&mut client, "desk");
    for result in client.calls(writes("third")) {
        refused(&result, "blocked");
    }
    assert_eq!(sent(&scene).len(), 2);
}

/// Forms that are dismissed, declined and accepted.
fn a_client_with_forms(sdk: Sdk, transport: Transport) {
    let scene = Scene::new("", &[LONG_WAIT]);
    let endpoint = Endpoint::new(&scene.world, transport);
    let mut client = Client::connect(sdk, &endpoint, true);
    client.list();
    client.call("runtime_bootstrap", json!({}));
    for (action, after) in [("cancel", Duration::ZERO), ("decline", READING_TIME), ("accept", READING_TIME)] {
        client.answer(action, after);
        for (tool, arguments) in writes(action) {
            let step = client.timed_calls(vec![(tool, arguments)]);
            assert_eq!(step.forms.len(), 1, "{action} {tool}: {:?}", step.forms);
            assert!(step.elapsed < AT_ONCE, "{action} {tool}: {:?}", step.elapsed);
            let result = &step.returned[0];
            match action {
                // Still open: the owner may decide elsewhere.
                "cancel" => drop(approval(result)),
                "decline" => assert_eq!(decision(result), "deny", "{result}"),
                _ => assert_done(result, tool),
            }
        }
    }
    assert_eq!(sent(&scene), [json!({"text": "accept"}), json!({"text": "accept"})]);
    let open = scene.world.run(&["approvals", "list", "--json"]).ok().json();
    assert_eq!(open["approvals"].as_array().unwrap().len(), 2, "{open}");
    client.close();
}

/// Approvals that expire, and writes while the mind is away.
fn a_client_without_an_owner_or_a_mind(sdk: Sdk, transport: Transport) {
    let scene = Scene::new("", &[EXPIRES_SOON]);
    let mind = Mind::new();
    mind.serve(&scene.world);
    let endpoint = Endpoint::new(&scene.world, transport);
    let mut client = Client::connect(sdk, &endpoint, false);
    client.list();
    client.call("runtime_bootstrap", json!({}));
    // An expired approval is reported once; a pending call is reported when it is repeated.
    for (tool, arguments) in writes("late") {
        let late = eventually("the end of the wait", || {
            let result = client.call(tool, arguments.clone());
            (decision(&result) != "pending").then_some(result)
        });
        refused(&late, "timeout");
    }
    std::fs::remove_file(scene.world.outside("mind.here")).unwrap();
    kill(&mind.process(&scene.world));
    until_away(&mut client, "mind");
    for result in client.calls(writes("mindless")) {
        refused(&result, "blocked");
    }
    for (tool, result) in READS.iter().zip(client.calls(READS.map(|tool| (tool, json!({}))).to_vec())) {
        assert_done(&result, tool);
    }
    assert!(sent(&scene).is_empty());
    client.close();
}

/// Every tool that is not a body's: none may return what its own schema forbids.
fn own_tools(sdk: Sdk) {
    let scene = Scene::new("", &[SHORT_WAIT]);
    let model = Model::alone(&scene.world, &json!([rule("", 0, says("Good morning."))]));
    let config = std::fs::read_to_string(scene.world.path("embody.toml")).unwrap();
    scene.world.file("embody.toml", model.config(WireFormat::OpenAi) + &config);
    // So that there is a message to read.
    scene.world.run(&["run", "hello"]).ok();
    let endpoint = Endpoint::new(&scene.world, Transport::Stdio);
    let mut client = Client::connect(sdk, &endpoint, false);
    let listed = client.list();
    let first: Vec<(&str, Value)> = vec![
        ("runtime_bootstrap", json!({})),
        ("update_instructions", json!({"instructions": "Be brief."})),
        ("save_memory", json!({"text": "Ann likes green tea", "tags": ["tea"]})),
        ("create_task", json!({"title": "a title only"})),
        ("create_task", json!({"title": "all", "description": "at length", "steps": ["one", "two"]})),
        ("schedule_run", json!({"text": "look", "at": "2099-01-31T09:00:00Z"})),
    ];
    // One after another: what is read first may keep a later write from passing.
    let results: Vec<Value> = first.iter().map(|(tool, args)| client.call(tool, args.clone())).collect();
    let id = |index: usize| -> Value { data(&results[index])["id"].clone() };
    let then = vec![
        ("runtime_status", json!({})),
        ("body_tool", json!({"name": "look"})),
        ("body_tool", json!({"name": "read_receipt"})),
        ("find_tools", json!({"query": "receipt"})),
        ("reflect_user_message", json!({"text": "I'll call Ann tomorrow."})),
        ("read_memory", json!({})),
        ("read_memory", json!({"query": "tea", "limit": 1})),
        ("read_memory", json!({"kind": "instructions"})),
        ("context", json!({})),
        ("list_memory_files", json!({})),
        ("whoami", json!({})),
        ("read_messages", json!({})),
        ("read_messages", json!({"limit": 1})),
        ("list_tasks", json!({})),
        ("list_tasks", json!({"limit": 1, "status": "open"})),
        ("update_task", json!({"id": id(3), "status": "done"})),
        ("update_task", json!({"id": id(4), "steps": [{"text": "one", "state": "current"}]})),
        ("forget_memory", json!({"id": id(2)})),
        ("notify_user", json!({"text": "hello", "urgency": "low"})),
    ];
    // Errors, which must reach the model too.
    let failing = vec![
        ("update_task", json!({"id": "unknown", "status": "done"})),
        ("forget_memory", json!({"id": "unknown"})),
        ("read_skill", json!({"name": "unknown"})),
        ("update_instructions", json!({"instructions": "Be long.", "expected_version": 99})),
        ("body_tool", json!({"name": "send_receipt", "args": {"text": "hello"}})),
    ];
    let results = [results, client.calls(then.clone())].concat();
    for ((tool, arguments), result) in first.iter().chain(&then).zip(&results) {
        assert_ne!(result["isError"], true, "{tool} {arguments}: {result}");
    }
    let messages = then.iter().zip(&results[first.len()..]).find(|((tool, _), _)| *tool == "read_messages");
    assert!(data(messages.unwrap().1)["messages"].as_array().is_some_and(|all| !all.is_empty()));
    for ((tool, arguments), result) in failing.iter().zip(client.calls(failing.clone())) {
        assert_eq!(result["isError"], true, "{tool} {arguments}: {result}");
    }
    let of_the_body = ["look", "mirror", "note", "send_note", "erase", "read_receipt", "send_receipt"];
    for tool in listed.iter().filter_map(|tool| tool["name"].as_str()) {
        let is_called = first.iter().chain(&then).chain(&failing).any(|(name, _)| *name == tool);
        assert!(is_called || of_the_body.contains(&tool), "`{tool}` is listed and not called here");
    }
    // The validator of the TypeScript SDK warns about formats that JSON Schema does not have.
    let errors = client.close();
    assert!(!errors.contains("unknown format"), "{errors}");
}

/// The data of a result, which is in its text too.
fn data(result: &Value) -> Value {
    serde_json::from_str(result["content"][0]["text"].as_str().unwrap())
        .unwrap_or_else(|_| panic!("{result}"))
}

/// The stories with each client. One test per story: they run beside each other.
macro_rules! stories {
    ($($client:ident: $sdk:ident;)*) => {$(
        mod $client {
            use super::{Sdk, Transport};

            #[test]
            fn without_forms_over_stdio() {
                super::a_client_without_forms(Sdk::$sdk, Transport::Stdio);
            }

            #[test]
            fn without_forms_over_http() {
                super::a_client_without_forms(Sdk::$sdk, Transport::Http);
            }

            #[test]
            fn with_forms_over_stdio() {
                super::a_client_with_forms(Sdk::$sdk, Transport::Stdio);
            }

            #[test]
            fn with_forms_over_http() {
                super::a_client_with_forms(Sdk::$sdk, Transport::Http);
            }

            #[test]
            fn without_an_owner_or_a_mind_over_stdio() {
                super::a_client_without_an_owner_or_a_mind(Sdk::$sdk, Transport::Stdio);
            }

            #[test]
            fn without_an_owner_or_a_mind_over_http() {
                super::a_client_without_an_owner_or_a_mind(Sdk::$sdk, Transport::Http);
            }

            #[test]
            fn every_own_tool_follows_its_schema() {
                super::own_tools(Sdk::$sdk);
            }
        }
    )*};
}

stories! {
    typescript_1: TypeScript1;
    typescript_2: TypeScript2;
    python_legacy: PythonLegacy;
    python: Python;
}
