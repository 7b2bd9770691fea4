//! The session's start: bootstrap once, the contract before the first write.

use serde_json::{Value, json};

use super::host::{Host, Reply};
use super::setup::{ALLOW_ALL, Scene, broker, decision, degraded, host, is_done, stranger};
use super::unruly::Mind;
use crate::support::world::World;

fn nothing(_: &str, _: &Value) -> Reply {
    Reply::Error(-32601, "no such method")
}

// spec: N-12
#[test]
fn a_write_before_the_contract_bounces_with_it_and_passes_afterwards() {
    let scene = Scene::new("", &[ALLOW_ALL]);
    let mut host = stranger(&scene.world, &json!({}), nothing);
    let first = host.call("note", &json!({"text": "one"}));
    assert_eq!(decision(&first), "bounce");
    assert_eq!(first.to_string().matches("Be honest.").count(), 1, "the contract is there once: {first}");
    assert!(first["content"][0]["text"].as_str().unwrap().contains("Be honest."), "{first}");
    assert!(scene.desk.calls("note").is_empty());
    assert!(is_done(&host.call("note", &json!({"text": "one"})), "note"));
    assert_eq!(scene.desk.calls("note"), [json!({"text": "one"})]);
}

// spec: N-12
#[test]
fn several_writes_at_once_all_bounce() {
    let scene = Scene::new("", &[ALLOW_ALL]);
    let mut host = stranger(&scene.world, &json!({}), nothing);
    // One write: all of them are there before anything is answered.
    let calls: Vec<String> = (1001..=1008)
        .map(|id| {
            let params = json!({"name": "note", "arguments": {"text": id}});
            json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
        })
        .collect();
    host.write_all(1008, &calls.join("\n"));
    for id in 1001..=1008 {
        assert_eq!(decision(&host.answer(id).result()), "bounce");
    }
    assert!(scene.desk.calls("note").is_empty());
    assert!(is_done(&host.call("note", &json!({"text": 1003})), "note"));
    assert_eq!(scene.desk.calls("note").len(), 1);
}

// spec: N-12
#[test]
fn a_host_that_sends_the_writes_of_one_answer_in_sequence_gets_none_through() {
    let scene = Scene::new("", &[ALLOW_ALL]);
    let mut host = stranger(&scene.world, &json!({}), nothing);
    let (one, two, three) = (json!({"text": "one"}), json!({"text": "two"}), json!({"text": "three"}));
    let first = host.call("note", &one);
    assert!(first["content"][0]["text"].as_str().unwrap().contains("Be honest."), "{first}");
    let second = host.call("note", &two);
    assert_eq!(decision(&second), "bounce", "the model made it before it read the contract");
    assert!(!second.to_string().contains("Be honest."), "the contract is sent once: {second}");
    assert!(scene.desk.calls("note").is_empty());
    assert!(is_done(&host.call("note", &one), "note"), "the model answers the bounce");
    assert!(is_done(&host.call("note", &three), "note"), "and has read the contract");
}

// spec: N-12
#[test]
fn a_contract_after_a_bounce_can_be_asked_for_again() {
    let scene = Scene::new("", &[ALLOW_ALL]);
    let mut host = stranger(&scene.world, &json!({}), nothing);
    assert_eq!(decision(&host.call("note", &json!({"text": "one"}))), "bounce");
    for _ in 0..2 {
        let again = host.call("runtime_bootstrap", &json!({}));
        assert_eq!(again.to_string().matches("Be honest.").count(), 1, "{again}");
    }
    assert!(is_done(&host.call("note", &json!({"text": "another"})), "note"));
}

// spec: N-03, N-12
#[test]
fn the_bootstrap_delivers_the_contract_too() {
    let scene = Scene::new("", &[ALLOW_ALL]);
    let mut host = stranger(&scene.world, &json!({}), nothing);
    assert!(degraded(&mut host).iter().any(|reason| reason.starts_with("host_prompt_missing")));
    let packet = host.call("runtime_bootstrap", &json!({"session_id": "mine"}));
    assert!(packet["content"][0]["text"].as_str().unwrap().contains("Be honest."), "{packet}");
    let packet = &packet["_meta"]["embody/bootstrap"];
    assert_eq!(packet["schema_version"], 1, "{packet}");
    assert!(is_done(&host.call("note", &json!({})), "note"));
    assert_eq!(degraded(&mut host), [""; 0]);
}

// spec: N-12
#[test]
fn a_write_that_answers_the_contract_is_never_too_early() {
    for _ in 0..20 {
        let scene = Scene::new("", &[ALLOW_ALL]);
        // As fast as a host can be: it has read the contract, and calls.
        let mut host = scene.plain_host();
        let result = host.call("note", &json!({}));
        assert!(is_done(&result, "note"), "{result}");
    }
}

// spec: N-04
#[test]
fn a_read_needs_no_contract_and_runs_the_bootstrap() {
    let scene = Scene::new("", &[]);
    let mut host = stranger(&scene.world, &json!({}), nothing);
    assert_eq!(host.call("runtime_status", &json!({}))["structuredContent"]["bootstrapped"], false);
    assert!(is_done(&host.call("look", &json!({})), "look"));
    assert_eq!(host.call("runtime_status", &json!({}))["structuredContent"]["bootstrapped"], true);
}

// spec: N-04
#[test]
fn the_bootstrap_runs_once_however_many_calls_want_it() {
    let mind = Mind::new();
    let scene = Scene::new("", &[]);
    mind.serve(&scene.world);
    let mut host = stranger(&scene.world, &json!({}), nothing);
    let calls: Vec<u64> = (0..10).map(|number| host.begin_call("look", &json!({"text": number}))).collect();
    for id in calls {
        host.answer(id).result();
    }
    host.call("runtime_bootstrap", &json!({}));
    assert_eq!(mind.process(&scene.world).calls("bootstrap_session").len(), 1);
    assert_eq!(scene.desk.calls("look").len(), 10);
}

// spec: N-04
#[test]
fn a_mind_without_a_bootstrap_is_asked_for_its_parts() {
    let mind = Mind::without("bootstrap_session");
    let scene = Scene::new("", &[ALLOW_ALL]);
    mind.serve(&scene.world);
    let mut host = stranger(&scene.world, &json!({}), nothing);
    let packet = host.call("runtime_bootstrap", &json!({}));
    assert_ne!(packet["isError"], true, "{packet}");
    let process = mind.process(&scene.world);
    for tool in ["get_system_prompt", "context", "list_memory_files"] {
        assert_eq!(process.calls(tool).len(), 1, "{tool}");
    }
    assert!(packet["content"][0]["text"].as_str().unwrap().contains("Speak softly."), "{packet}");
}

// spec: N-03
#[test]
fn a_packet_comes_as_data_or_text_and_keeps_unknown_members() {
    let fields = json!({"schema_version": 1, "mind_contract": "Speak softly.", "unheard_of": {"x": 1.5}});
    let as_text = json!({"content": [{"type": "text", "text": fields.to_string()}]});
    let as_data = json!({"content": [], "structuredContent": fields});
    for result in [as_text, as_data] {
        let mind = Mind::new().replying("bootstrap_session", &json!({"result": result}));
        let scene = Scene::new("", &[]);
        mind.serve(&scene.world);
        let mut host = stranger(&scene.world, &json!({}), nothing);
        let packet = host.call("runtime_bootstrap", &json!({}));
        assert_eq!(packet["_meta"]["embody/bootstrap"]["unheard_of"], json!({"x": 1.5}), "{packet}");
        assert!(packet["content"][0]["text"].as_str().unwrap().contains("Speak softly."), "{packet}");
    }
}

// spec: N-03
#[test]
fn a_packet_that_is_no_object_is_a_clear_error() {
    let result = json!({"content": [{"type": "text", "text": "[1, 2]"}]});
    let mind = Mind::new().replying("bootstrap_session", &json!({"result": result}));
    let scene = Scene::new("", &[]);
    mind.serve(&scene.world);
    let mut host = stranger(&scene.world, &json!({}), nothing);
    let packet = host.call("runtime_bootstrap", &json!({}));
    assert!(packet.to_string().contains("bootstrap_missing"), "{packet}");
    let status = host.call("runtime_status", &json!({}));
    assert_eq!(status["structuredContent"]["bootstrapped"], false);
    assert!(status["structuredContent"]["degraded_reasons"].to_string().contains("object"), "{status}");
}

// spec: N-03
#[test]
fn a_degraded_packet_counts_and_its_reasons_are_shown() {
    for missing in ["persona_available", "mind_contract_available"] {
        let state = json!({missing: false, "reasons": ["the voice is hoarse"]});
        let fields = json!({"schema_version": 1, "degraded_mode": state});
        let result = json!({"content": [], "structuredContent": fields});
        let mind = Mind::new().replying("bootstrap_session", &json!({"result": result}));
        let scene = Scene::new("", &[]);
        mind.serve(&scene.world);
        let mut host = host(&scene.world, &json!({}), nothing);
        let status = host.call("runtime_status", &json!({}))["structuredContent"].take();
        assert_eq!(status["bootstrapped"], true, "{status}");
        assert!(status["degraded_reasons"].to_string().contains("the voice is hoarse"), "{status}");
    }
}

// spec: N-08
#[test]
fn the_users_message_reaches_the_mind() {
    let mind = Mind::new();
    let scene = Scene::new("", &[]);
    mind.serve(&scene.world);
    let mut host = scene.plain_host();
    let said = host.call("reflect_user_message", &json!({"text": "I prefer tea", "kind": "feedback"}));
    assert_ne!(said["isError"], true, "{said}");
    let received = mind.process(&scene.world).calls("reflect");
    assert_eq!(received, [json!({"observation": "I prefer tea", "kind": "feedback"})]);
}

// spec: N-01, N-12
#[test]
fn a_host_is_initialized_while_all_upstreams_are_silent() {
    let scene = Scene::with(&["--start", "silent"], "", &[]);
    let mut host = super::host::Host::start(broker(&scene.world));
    let greeting = host.initialize(&json!({}));
    assert!(greeting["instructions"].as_str().is_some_and(|text| !text.is_empty()), "{greeting}");
    let listed = host.ask("tools/list", "{}").result();
    for tool in ["runtime_status", "runtime_bootstrap", "body_tool", "reflect_user_message", "read_memory"] {
        assert!(listed.to_string().contains(&format!("\"name\":\"{tool}\"")), "{tool}");
    }
    // Hosts of the newer era try this first; any answer will do.
    host.ask("server/discover", "{}");
    assert!(host.close().success());
    scene.desk.gone();
}

#[test]
fn log_lines_of_a_call_have_its_call_and_session_ids() {
    let scene = Scene::new("", &[ALLOW_ALL]);
    let mut command = scene.world.command();
    command.arg("--workspace").arg(scene.world.workspace()).args(["--log", "debug", "mcp"]);
    let mut host = Host::start(command);
    host.initialize(&json!({}));
    host.call("note", &json!({"text": "too early"}));
    assert!(is_done(&host.call("note", &json!({"text": "too early"})), "note"));
    assert!(is_done(&host.call("look", &json!({})), "look"));
    assert!(host.close().success());
    let exported = scene.world.run(&["audit", "export"]).ok().stdout;
    let records: Vec<Value> = exported.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let log = scene.world.log();
    for (event, message) in
        [("decision", "the call is not made"), ("outcome", "the call is over"), ("read", "the call is over")]
    {
        let record = records.iter().find(|record| record["event"] == event).unwrap();
        let (call, session) = (&record["detail"]["call_id"], &record["session"]);
        let of_it: Vec<&Value> = log.iter().filter(|line| line["call"] == *call).collect();
        assert!(of_it.iter().any(|line| line["message"] == message), "{event}: {log:#?}");
        assert!(of_it.iter().all(|line| line["session"] == *session), "{of_it:#?}");
    }
    assert!(!log.iter().any(|line| line.to_string().contains("too early")), "{log:#?}");
}

// spec: N-12
#[test]
fn a_call_that_is_to_be_a_task_is_refused_with_an_error() {
    let scene = Scene::new("", &[ALLOW_ALL]);
    let mut host = Host::start(broker(&scene.world));
    let greeting = host.initialize(&json!({}));
    assert_eq!(greeting["capabilities"]["tasks"]["requests"]["tools"]["call"], json!({}), "{greeting}");
    let params = json!({"name": "note", "arguments": {}, "task": {"ttl": 1000}}).to_string();
    let error = host.ask("tools/call", &params).error();
    assert!(error["message"].as_str().unwrap().contains("Be honest."), "{error}");
    assert_eq!(error["data"]["embody/decision"]["decision"], "bounce", "{error}");
    // The contract counts as read, and the body gets the call as it was.
    host.ask("tools/call", &params).result();
    assert_eq!(scene.desk.of_kind("call")[0]["params"]["task"], json!({"ttl": 1000}));
}

#[test]
fn tasks_are_not_announced_to_older_hosts() {
    let scene = Scene::new("", &[]);
    let mut host = Host::start(broker(&scene.world));
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let greeting = host.ask("initialize", &hello.to_string()).result();
    assert_eq!(
        (&greeting["protocolVersion"], greeting["capabilities"].get("tasks")),
        (&json!("2025-06-18"), None)
    );
}

// spec: N-03, N-12
#[test]
fn the_bootstrap_of_a_new_workspace_fits_into_six_kilobytes() {
    let world = World::new();
    world.run(&["init"]).ok();
    let mut host = stranger(&world, &json!({}), nothing);
    let result = host.call("runtime_bootstrap", &json!({}));
    let whole = result.to_string();
    assert!(whole.len() <= 6 * 1024, "{} bytes: {whole}", whole.len());
    for once in ["These rules come first", "Be of use.", "Your name is Nova"] {
        assert_eq!(whole.matches(once).count(), 1, "{once}: {whole}");
    }
    assert!(result.get("structuredContent").is_none(), "some hosts show it in place of the text: {whole}");
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("its own results begin with `[embody`"), "the rules name the exception: {text}");
    assert!(!text.contains("bootstrap_session"), "there is one way in: {text}");
}
