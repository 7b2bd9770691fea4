//! `doctor` on what is elsewhere: the model, the bodies, the mind, Telegram.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::support::model::{Model, WireFormat};
use crate::support::persona_server::{Answer, PersonaText, Server, TOKEN};
use crate::support::telegram::Telegram;
use crate::support::world::World;

const REFUSES: &str = "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// An address without a listener.
const NOBODY: &str = "http://127.0.0.1:1";
const LISTS: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";
const HAS_NONE: &str = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
const MAY_NOT: &str = "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// The checks of that name, each as `STATE MESSAGE | HINT`, and how the run ended.
fn checks(world: &World, name: &str) -> (Vec<String>, Option<i32>) {
    let done = world.run(&["doctor", "--json"]);
    let report = done.json();
    let text = |check: &Value, key: &str| check[key].as_str().unwrap_or_default().to_owned();
    let named = report["checks"].as_array().unwrap().iter().filter(|check| check["name"] == name);
    let reported = named.map(|check| {
        format!("{} {} | {}", text(check, "state"), text(check, "message"), text(check, "hint"))
    });
    (reported.collect(), done.code)
}

/// The one check of that name; with `fail` in it the run must have ended with 1, else with 0.
fn check(world: &World, name: &str) -> String {
    let (reported, code) = checks(world, name);
    let [reported] = reported.as_slice() else { panic!("{reported:#?}") };
    assert_eq!(code, Some(i32::from(reported.starts_with("fail"))), "{reported}");
    reported.clone()
}

#[test]
fn a_reachable_model_is_ok_and_gets_no_prompt() {
    let world = World::new();
    let model = Model::start(&world, WireFormat::OpenAi, &json!([]));
    assert_eq!(check(&world, "model"), format!("ok scripted at {}/v1 | ", model.url));
    assert!(model.requests().is_empty());
    // On this machine a key is seldom needed.
    assert_eq!(checks(&world, "key").0, [""; 0]);
}

#[test]
fn an_unreachable_model_or_a_rejected_key_is_reported() {
    let world = World::new();
    let at = |url: &str| format!("[model]\nbase_url = \"{url}/v1\"\nmodel = \"m\"\n");
    world.file("embody.toml", at(NOBODY));
    let reported = check(&world, "model");
    assert!(
        reported.starts_with(&format!("warn the model at `{NOBODY}/v1/chat/completions` is not available")),
        "{reported}"
    );
    assert!(reported.contains("| check that the server is running, and `base_url`"), "{reported}");
    assert_eq!(checks(&world, "key").0, [""; 0]);

    let server = Server::start(PersonaText::Raw(REFUSES), Answer::text(""));
    world.file("embody.toml", at(&server.url("")));
    let reported = check(&world, "model");
    assert!(
        reported.starts_with("fail ") && reported.contains("does not accept the key (status 401)"),
        "{reported}"
    );
    assert!(reported.contains("no key is set: set the environment variable OPENAI_API_KEY"), "{reported}");
    assert_eq!(server.seen(), ["GET /v1/models"]);
    let world = world.env("OPENAI_API_KEY", "sk-verysecret");
    let reported = check(&world, "model");
    assert!(reported.contains("check the key in the environment variable OPENAI_API_KEY"), "{reported}");
    assert!(!reported.contains("sk-verysecret"), "{reported}");
}

#[test]
fn a_server_that_shows_no_list_of_models_has_tested_nothing() {
    let world = World::new();
    for (answer, status) in [(HAS_NONE, 404), (MAY_NOT, 403)] {
        let server = Server::start(PersonaText::Raw(answer), Answer::text(""));
        let url = server.url("/v1");
        world.file("embody.toml", format!("[model]\nbase_url = \"{url}\"\nmodel = \"m\"\n"));
        let reported = check(&world, "model");
        let words = format!("warn m at {url} answers, but returns no list of models (status {status})");
        assert!(reported.starts_with(&words) && reported.contains("check `base_url`"), "{reported}");
    }
    // A public list of models does not prove the key.
    let proxy = Server::start(PersonaText::Raw(LISTS), Answer::text(""));
    let world = World::new().env("HTTP_PROXY", &proxy.url(""));
    world.file("embody.toml", "[model]\nbase_url = \"http://models.example/v1\"\nmodel = \"m\"\n");
    assert!(check(&world, "model").starts_with("ok m at http://models.example/v1"));
    assert!(check(&world, "key").starts_with("warn the environment variable OPENAI_API_KEY is not set"));
}

#[test]
fn a_missing_key_is_reported_if_one_is_needed() {
    // The name is not resolved: a proxy is configured, and nothing listens there.
    let world = World::new().env("HTTPS_PROXY", NOBODY);
    world.file("embody.toml", "[model]\nmodel = \"gpt-4o\"\n");
    assert!(check(&world, "model").starts_with("warn the model at `https://api.openai.com/v1/"));
    assert_eq!(
        check(&world, "key"),
        "warn the environment variable OPENAI_API_KEY is not set, so there is no key for the model | \
         set it to the key, or name another variable with `api_key_env` in `[model]`"
    );
    let world = world.env("OPENAI_API_KEY", "sk-verysecret");
    assert_eq!(checks(&world, "key").0, [""; 0]);
}

#[test]
fn a_model_without_a_name_is_reported_differently_from_no_model() {
    let world = World::new();
    assert!(check(&world, "model").starts_with("warn no model is configured"));
    world.file("embody.toml", "[model]\nbase_url = \"http://127.0.0.1:9/v1\"\n");
    let reported = check(&world, "model");
    assert!(
        reported.starts_with("warn `model.model` is not set") && reported.contains("`model.base_url` is ("),
        "{reported}"
    );
    assert!(reported.contains("embody.toml:2") && reported.contains("`model = \"gpt-4o\"`"), "{reported}");
    world
        .run(&["run", "hello"])
        .ended(1)
        .says(&["error: `model.model` is not set", "hint: add the model's name"]);
}

#[test]
fn a_body_that_cannot_be_started_fails() {
    let world = World::new();
    let body = |rest: &str| world.file("embody.toml", format!("[[body]]\nname = \"files\"\n{rest}\n"));
    // As a package runner ends for a package that does not exist.
    body("command = [\"sh\", \"-c\", \"echo 'npm error code E404' >&2; exit 1\"]");
    let reported = check(&world, "server");
    assert!(reported.starts_with("fail files: the server's process ended: exit status: 1"), "{reported}");
    assert!(reported.contains("| the package does not seem to exist"), "{reported}");
    for (command, words) in [
        ("[\"/no/such/program\"]", "program `/no/such/program` not found"),
        ("[\"no-such-program\"]", "program `no-such-program` not found"),
        ("[\"/etc/passwd\"]", "`/etc/passwd` is not executable"),
        ("[\"/usr\"]", "program `/usr` not found"),
        ("[\"sh\"]\ncwd = \"/no/such/folder\"", "the folder `/no/such/folder` does not exist"),
        ("[\"sh\"]\nenv = { PATH = \"/no/such\" }", "program `sh` not found"),
    ] {
        body(&format!("command = {command}"));
        let reported = check(&world, "server");
        assert!(reported.starts_with(&format!("fail files: {words} | check `command`")), "{reported}");
    }
    // From the folder that it is started in.
    world.file("tools/run", "#!/bin/sh\n");
    let run = world.path("tools/run");
    std::fs::set_permissions(&run, std::fs::Permissions::from_mode(0o755)).unwrap();
    body(&format!("command = [\"./run\"]\ncwd = {:?}", world.path("tools")));
    let reported = check(&world, "server");
    assert!(reported.starts_with("fail files: the server's process ended: exit status: 0"), "{reported}");
    // Without one it depends on where `embody` is started, which is not here.
    body("command = [\"./no-such-program\"]");
    let reported = check(&world, "server");
    assert!(
        reported.starts_with("warn files: program `./no-such-program` not found in the current folder"),
        "{reported}"
    );
    assert!(
        reported.ends_with("set `cwd` of the `[[body]]` `files`, or use an absolute path in its `command`"),
        "{reported}"
    );
}

#[test]
fn an_unreachable_body_or_mind_is_a_warning_and_one_that_refuses_the_credentials_fails() {
    let world = World::new();
    let server = Server::start(PersonaText::Json, Answer::text(""));
    let body = |name: &str, url: &str| format!("[[body]]\nname = \"{name}\"\nurl = \"{url}\"\n");
    world.file(
        "embody.toml",
        format!(
            "[mind]\nurl = \"{NOBODY}/mcp\"\n{}{}",
            body("far", &server.url("/mcp")),
            body("gone", &format!("{NOBODY}/mcp"))
        ),
    );
    let (reported, code) = checks(&world, "server");
    assert_eq!(reported.len(), 2, "{reported:?}");
    assert!(reported[0].starts_with("fail far: ") && reported[0].contains("401"), "{reported:?}");
    assert!(reported[0].contains("| set `token_command` of the `[[body]]` `far`"), "{reported:?}");
    assert!(reported[1].starts_with(&format!("warn gone: {NOBODY}/mcp does not answer: ")), "{reported:?}");
    assert!(reported[1].ends_with("until then its tools are missing"), "{reported:?}");
    assert_eq!(code, Some(1));
    let (mind, _) = checks(&world, "mind");
    assert!(mind[0].starts_with(&format!("warn {NOBODY}/mcp does not answer: ")), "{mind:?}");
    // The prompt is checked even if other checks fail.
    assert!(checks(&world, "size").0[0].starts_with("ok "));
    let token = format!("token_command = [\"echo\", \"{TOKEN}\"]\n");
    world.file("embody.toml", body("far", &server.url("/mcp")) + &token);
    assert_eq!(check(&world, "server"), "ok far: 1 tool over http | ");
}

#[test]
fn a_silent_server_does_not_delay_the_doctor() {
    let world = World::new();
    let server = Server::start(PersonaText::Silent, Answer::text(""));
    let url = server.url("");
    world.file(
        "embody.toml",
        format!("[model]\nbase_url = \"{url}/v1\"\nmodel = \"m\"\n[[body]]\nname = \"mute\"\nurl = \"{url}/mcp\"\n"),
    );
    assert!(check(&world, "model").contains("no answer within 3s"));
    assert!(check(&world, "server").starts_with("warn mute: http"));
}

#[test]
fn telegram_is_checked_with_the_bots_token() {
    let telegram = Telegram::start();
    let world = Telegram::world();
    world.file("embody.toml", telegram.config(&[7, 8]));
    let reported = check(&world, "telegram");
    assert!(reported.starts_with("ok @") && reported.ends_with("; 2 allowed | "), "{reported}");
    world.file("embody.toml", telegram.config(&[]));
    assert!(check(&world, "telegram").contains("no user is allowed to write to it"));
    world.file("embody.toml", format!("[telegram]\napi_url = \"{NOBODY}\"\nallow_users = [7]\n"));
    assert!(check(&world, "telegram").starts_with("warn Telegram cannot be reached"));

    let wrong = World::new().env("TELEGRAM_BOT_TOKEN", "42:WRONG");
    wrong.file("embody.toml", telegram.config(&[7]));
    let reported = check(&wrong, "telegram");
    assert!(
        reported.starts_with("fail Telegram returned 401") && reported.contains("TELEGRAM_BOT_TOKEN"),
        "{reported}"
    );
    assert!(!reported.contains("42:WRONG"), "{reported}");

    let unset = World::new();
    assert_eq!(checks(&unset, "telegram").0, [""; 0]);
    unset.file("embody.toml", telegram.config(&[7]));
    assert!(
        check(&unset, "telegram").starts_with("warn the environment variable TELEGRAM_BOT_TOKEN is not set")
    );
}
