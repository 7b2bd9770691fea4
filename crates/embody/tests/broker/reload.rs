//! The configuration changes while `embody mcp` and `embody up` run: the next call uses the new one, calls in progress end under
//! the old one, and what cannot be applied is reported.

use std::cell::RefCell;
use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use super::host::{Host, Reply, elicited};
use super::setup::{ALLOW_ALL, Scene, body, decision, host, is_done, until};
use super::unruly::Unruly;
use crate::support::model::{Model, WireFormat, rule, says};
use crate::support::persona_server::{Answer, PersonaText, Server, TOKEN};
use crate::support::served::{Served, token};
use crate::support::world::World;

const DENY_NOTES: &str =
    "[[policy.rule]]\ntools = [\"note\"]\ngate = \"deny\"\nreason = \"no notes today\"\n";

fn config(world: &World) -> String {
    fs::read_to_string(world.path("embody.toml")).unwrap()
}

/// `embody reload`, which must succeed.
fn reload(world: &World) -> Value {
    world.run(&["reload", "--json"]).ok().json()
}

fn tools(host: &mut Host) -> Vec<String> {
    let list = host.ask("tools/list", "{}").result();
    list["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_next_call_uses_a_new_rule() {
    let scene = Scene::new("", &[ALLOW_ALL]);
    let (mut first, mut second) = (scene.plain_host(), scene.plain_host());
    for host in [&mut first, &mut second] {
        assert!(is_done(&host.call("note", &json!({"text": "x"})), "note"));
    }
    let before = config(&scene.world);
    scene.world.file("embody.toml", format!("{before}{DENY_NOTES}"));
    let applied = reload(&scene.world);
    let states: Vec<&Value> = applied["processes"].as_array().unwrap().iter().collect();
    assert_eq!(states.len(), 2, "{applied}");
    assert!(
        states.iter().all(|process| process["state"] == "applied" && process["command"] == "mcp"),
        "{applied}"
    );
    assert_eq!(states[0]["configuration"]["changed"], json!(["policy"]), "{applied}");
    for host in [&mut first, &mut second] {
        let denied = host.call("note", &json!({"text": "x"}));
        assert_eq!(decision(&denied), "deny", "{denied}");
        assert!(denied.to_string().contains("no notes today"), "{denied}");
    }
    // The change of the file alone is noticed too.
    scene.world.file("embody.toml", before);
    let mut allowed = Value::Null;
    let deadline = std::time::Instant::now() + super::host::SOON;
    while !is_done(&allowed, "note") {
        assert!(std::time::Instant::now() < deadline, "{allowed}");
        allowed = first.call("note", &json!({"text": "x"}));
    }
}

#[test]
fn a_body_is_added_changed_and_removed_in_an_open_session() {
    let scene = Scene::new("", &[ALLOW_ALL]);
    let mut host = scene.plain_host();
    assert!(!tools(&mut host).iter().any(|name| name.starts_with("lamp")));
    let before = config(&scene.world);
    let lamp = Unruly::new(scene.world.outside("lamp.log"));
    let with_lamp = |more: &str| format!("{before}{}", body("lamp", lamp.words(), more));
    let is_list_changed =
        |host: &Host| host.notices.iter().any(|notice| notice.method == "notifications/tools/list_changed");
    host.notices.clear();
    scene.world.file("embody.toml", with_lamp(""));
    reload(&scene.world);
    host.until("the host is notified of the new tools", is_list_changed);
    assert!(tools(&mut host).contains(&"lamp__note".to_owned()), "{:?}", tools(&mut host));
    assert!(is_done(&host.call("lamp__note", &json!({"text": "x"})), "note"));
    // Another body is left alone.
    assert_eq!(scene.desk.of_kind("start").len(), 1);
    // With other settings it is started again, and offers what they allow.
    host.notices.clear();
    scene.world.file("embody.toml", with_lamp("deny = [\"note\"]"));
    reload(&scene.world);
    host.until("the host is notified of the missing tool", is_list_changed);
    assert!(!tools(&mut host).contains(&"lamp__note".to_owned()));
    assert!(is_done(&host.call("lamp__look", &json!({})), "look"));
    assert_eq!(lamp.of_kind("start").len(), 2);
    // Removed: its process ends, and its tools are unknown.
    scene.world.file("embody.toml", &before);
    reload(&scene.world);
    lamp.gone();
    let gone = host.ask("tools/call", r#"{"name":"lamp__look","arguments":{}}"#).error();
    assert!(gone["message"].as_str().unwrap().contains("lamp__look"), "{gone}");
    assert!(is_done(&host.call("note", &json!({"text": "x"})), "note"));
    assert_eq!(scene.desk.of_kind("start").len(), 1);
    assert!(host.close().success());
}

#[test]
fn a_call_in_progress_ends_at_a_body_that_is_removed() {
    let scene = Scene::new("", &[ALLOW_ALL]);
    let mut host = scene.plain_host();
    let id = host.begin_call("look", &json!({"trick": "slow", "amount": 1500}));
    scene.desk.until("call", 1);
    scene.world.file("embody.toml", ALLOW_ALL);
    reload(&scene.world);
    let answer = host.answer(id).result();
    assert!(answer["isError"] != true && answer.to_string().contains("look is done"), "{answer}");
    scene.desk.gone();
}

/// A body that was removed keeps its own rights until its calls have ended.
#[test]
fn a_removed_body_still_asks_with_its_own_rights() {
    let scene = Scene::new("roots = \"withhold\"", &[ALLOW_ALL]);
    let can = json!({"elicitation": {}, "roots": {}});
    let mut host = host(&scene.world, &can, |method, _| match method {
        "elicitation/create" => elicited("accept"),
        "roots/list" => Reply::Result(json!({"roots": [{"uri": "file:///secret"}]})),
        _ => Reply::Error(-32601, "no such method"),
    });
    assert!(is_done(&host.call("look", &json!({})), "look"));
    let slow = host.begin_call("look", &json!({"trick": "slow", "amount": 2500}));
    let form = host.begin_call("look", &json!({"trick": "elicit", "amount": 1500}));
    let roots = host.begin_call("look", &json!({"trick": "roots", "amount": 1500}));
    scene.desk.until("call", 4);
    scene.world.file("embody.toml", ALLOW_ALL);
    reload(&scene.world);
    let asked = host.answer(form).result();
    assert!(asked.to_string().contains("accept"), "{asked}");
    let refused = host.answer(roots).result();
    assert!(!refused.to_string().contains("secret"), "{refused}");
    assert!(host.answer(slow).result()["isError"] != true);
    scene.desk.gone();
}

#[test]
fn a_call_that_waits_for_its_owner_ends_under_the_rules_that_asked_unless_it_is_denied_now() {
    let rule = |gate: &str, reason: &str| {
        format!("[[policy.rule]]\ntools = [\"note\"]\ngate = \"{gate}\"\nreason = \"{reason}\"\n")
    };
    let old = format!("[policy]\nask_wait_s = 60\n{}", rule("ask", "old"));
    for (new, decided) in [(rule("ask", "new"), None), (DENY_NOTES.to_owned(), Some("deny"))] {
        let scene = Scene::new("", &[&old]);
        let mut host = scene.plain_host();
        let id = host.begin_call("note", &json!({"text": "x"}));
        let pending = || {
            let list = scene.world.run(&["approvals", "list", "--json"]).ok().json();
            list["approvals"].as_array().unwrap().first().map(|one| one["id"].as_str().unwrap().to_owned())
        };
        until("the approval", || pending().is_some());
        let (before, approval) = (config(&scene.world), pending().unwrap());
        scene.world.file("embody.toml", format!("{before}{new}"));
        reload(&scene.world);
        // The answer to the old question arrives late, as that of a form does.
        scene.world.file_outside("old.toml", &before);
        let path = scene.world.outside("old.toml").display().to_string();
        scene.world.run(&["--config", &path, "approvals", "approve", &approval]).ok();
        let answer = host.answer(id).result();
        match decided {
            None => assert!(is_done(&answer, "note"), "{answer}"),
            Some(decided) => {
                assert_eq!(decision(&answer), decided);
                assert!(answer.to_string().contains("no notes today"), "{answer}");
            }
        }
        assert_eq!(scene.desk.calls("note").len(), usize::from(decided.is_none()));
    }
}

#[test]
fn an_invalid_configuration_changes_nothing_and_is_reported() {
    let scene = Scene::new("", &[ALLOW_ALL, DENY_NOTES]);
    let mut host = scene.plain_host();
    let before = config(&scene.world);
    scene.world.file("embody.toml", format!("{before}[policy]\nask_wait_s = \"soon\"\n"));
    let failed = scene.world.run(&["reload"]).ended(2);
    assert!(failed.stderr.contains("embody.toml"), "{}", failed.stderr);
    let problem = || {
        let file = fs::read_dir(scene.world.path("run")).unwrap().flatten().map(|entry| entry.path());
        let mut states = file.filter(|path| path.extension().is_some_and(|end| end == "json"));
        let text = fs::read_to_string(states.next().unwrap()).unwrap();
        serde_json::from_str::<Value>(&text)
            .ok()
            .and_then(|state| state["configuration"]["problem"].as_str().map(str::to_owned))
    };
    until("the process reports the problem", || problem().is_some());
    assert_eq!(decision(&host.call("note", &json!({"text": "x"}))), "deny");
    // An empty file, with which writing begins, does not mean a configuration without rules either.
    scene.world.file("embody.toml", "");
    let failed = scene.world.run(&["reload"]).ended(1);
    assert!(failed.stdout.contains("sets no key any more"), "{}", failed.stdout);
    assert_eq!(decision(&host.call("note", &json!({"text": "x"}))), "deny");
    // A file that is gone does not mean a configuration without rules.
    fs::remove_file(scene.world.path("embody.toml")).unwrap();
    let failed = scene.world.run(&["reload"]).ended(1);
    assert!(failed.stdout.contains("no longer exists"), "{}", failed.stdout);
    let status = scene.world.run(&["status"]).ok().stdout;
    assert!(status.contains("not applied by embody mcp") && status.contains("no longer exists"), "{status}");
    assert_eq!(decision(&host.call("note", &json!({"text": "x"}))), "deny");
    scene.world.file("embody.toml", before);
    reload(&scene.world);
    assert_eq!(problem(), None);
}

#[test]
fn a_file_behind_a_link_is_followed_and_its_loss_is_reported() {
    let scene = Scene::new("", &[ALLOW_ALL]);
    let before = config(&scene.world);
    let path = |name: &str| scene.world.path(name);
    fs::create_dir(path("far")).unwrap();
    fs::write(path("far/house.toml"), &before).unwrap();
    fs::remove_file(path("embody.toml")).unwrap();
    symlink("far/house.toml", path("embody.toml")).unwrap();
    let host = RefCell::new(scene.plain_host());
    let becomes = |expected: &str| {
        until(expected, || {
            let result = host.borrow_mut().call("note", &json!({"text": "x"}));
            let is_allowed = is_done(&result, "note");
            is_allowed == (expected == "done") && (is_allowed || decision(&result) == expected)
        });
    };
    becomes("done");
    // Commands refuse a link to nothing.
    fs::write(path("plain.toml"), &before).unwrap();
    let plain = path("plain.toml").display().to_string();
    let status = || scene.world.run(&["--config", &plain, "status"]).ok().stdout;
    // An editor moves the file away and writes a new one.
    for (content, expected) in [(format!("{before}{DENY_NOTES}"), "deny"), (before.clone(), "done")] {
        fs::rename(path("far/house.toml"), path("far/house.toml~")).unwrap();
        until("the loss is reported", || status().contains("no longer exists"));
        assert!(status().contains("fix the file; it is read again when saved"), "{}", status());
        fs::write(path("far/house.toml"), content).unwrap();
        becomes(expected);
        until("the loss is over", || !status().contains("not applied"));
    }
    // The link names another file, which is followed from then on.
    fs::create_dir(path("near")).unwrap();
    fs::write(path("near/flat.toml"), format!("{before}{DENY_NOTES}")).unwrap();
    fs::remove_file(path("embody.toml")).unwrap();
    symlink("near/flat.toml", path("embody.toml")).unwrap();
    becomes("deny");
    fs::write(path("near/flat.toml"), &before).unwrap();
    becomes("done");
    until("the loss is over", || !status().contains("not applied"));
}

#[test]
fn an_unreadable_key_does_not_stop_a_new_rule_without_an_agent() {
    let scene = Scene::new("", &[ALLOW_ALL]);
    let before = config(&scene.world);
    let model =
        "[model]\nbase_url = \"http://127.0.0.1:9/v1\"\nmodel = \"none\"\napi_key_file = \"model.key\"\n";
    let mut host = scene.plain_host();
    scene.world.file("embody.toml", format!("{before}{DENY_NOTES}{model}"));
    let applied = reload(&scene.world);
    assert_eq!(applied["processes"][0]["state"], "applied", "{applied}");
    assert_eq!(decision(&host.call("note", &json!({"text": "x"}))), "deny");
}

#[test]
fn another_path_of_the_configuration_finds_the_same_processes() {
    let scene = Scene::new("", &[ALLOW_ALL]);
    let _host = scene.plain_host();
    symlink(scene.world.path("embody.toml"), scene.world.path("alias.toml")).unwrap();
    let alias = scene.world.path("alias.toml").display().to_string();
    let applied = scene.world.run(&["--config", &alias, "reload", "--json"]).ok().json();
    assert_eq!(applied["processes"][0]["state"], "applied", "{applied}");
}

#[test]
fn without_a_running_process_there_is_nothing_to_apply() {
    let world = World::new();
    let done = world.run(&["reload"]).ok();
    assert!(done.stdout.starts_with("No running `embody up` or `embody mcp`"), "{}", done.stdout);
}

#[test]
fn the_next_prompt_has_a_new_persona() {
    let world = World::with_body("Be honest.");
    let server = Server::start(PersonaText::Json, Answer::text("I am Nova."));
    world.file("token", TOKEN);
    let (operate, up) = (token(&world, "owner", "operate"), Served::start(&world));
    let prompt = || up.get("/api/prompt?layout=full", &operate).json()["text"].as_str().unwrap().to_owned();
    assert!(!prompt().contains("I am Nova."));
    let command = json!(["cat", world.path("token")]);
    world.file(
        "embody.toml",
        format!("[persona]\nurl = {:?}\ntoken_command = {command}\n", server.url("/mcp")),
    );
    let applied = reload(&world);
    assert_eq!(applied["processes"][0]["configuration"]["changed"], json!(["persona"]), "{applied}");
    assert!(prompt().contains("I am Nova."), "{}", prompt());
}

#[test]
fn a_running_up_gets_a_model_and_says_what_needs_a_restart() {
    let world = World::new();
    let model = Model::alone(&world, &json!([rule("hello", 0, says("Good morning."))]));
    let (chat, operate) = (token(&world, "owner", "chat"), token(&world, "owner", "operate"));
    let up = Served::start(&world);
    let say = || {
        let headers = [("authorization", format!("Bearer {chat}"))];
        let headers: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        up.begin("POST /api/chat", &headers, Some(&json!({ "text": "hello" }))).whole().body
    };
    assert!(say().contains("no model is configured"));
    world.file("embody.toml", model.config(WireFormat::OpenAi));
    let applied = reload(&world);
    assert_eq!(applied["processes"][0]["configuration"]["changed"], json!(["model"]), "{applied}");
    assert!(say().contains("Good morning."));
    assert_eq!(up.get("/api/me", &chat).json()["has_model"], true);
    world.file("embody.toml", model.config(WireFormat::OpenAi) + "[telegram]\nallow_users = [7]\n");
    let applied = reload(&world);
    assert_eq!(applied["processes"][0]["configuration"]["needs_restart"], json!(["telegram"]), "{applied}");
    let status = world.run(&["status"]).ok().stdout;
    assert!(status.contains("restart embody up") && status.contains("to apply: telegram"), "{status}");
    drop(operate);
}
