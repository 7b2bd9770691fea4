//! `embody model test` with a real model server: the test is a request, servers on this machine are found, `--save` edits the file in
//! place, and the key stays in its place.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::support::model::{Model, WireFormat};
use crate::support::world::World;

const KEY: &str = "sk-proj-a1B2c3D4e5F6g7H8i9J0k1L2";

fn ok() -> Value {
    json!([{ "reply": { "text": "ok" } }])
}

fn port(model: &Model) -> String {
    model.url.rsplit(':').next().unwrap().to_owned()
}

fn config(world: &World) -> String {
    fs::read_to_string(world.path("embody.toml")).unwrap()
}

fn write_key(world: &World, mode: u32) {
    world.file("model.key", format!("{KEY}\n"));
    fs::set_permissions(world.path("model.key"), fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn the_configured_model_is_tested_with_a_small_request() {
    for speaks in [WireFormat::OpenAi, WireFormat::Anthropic] {
        let world = World::new().env("OPENAI_API_KEY", KEY).env("ANTHROPIC_API_KEY", KEY);
        let model = Model::start(&world, speaks, &ok());
        let done = world.run(&["model", "test"]).ok().stdout;
        assert!(done.starts_with("ok    scripted at http://127.0.0.1:"), "{done}");
        assert!(done.contains("answered in ") && done.contains(" tokens in, "), "{done}");
        let asked = model.last();
        assert_eq!(asked.tools(), ["no_operation"]);
        assert!(asked.0.to_string().len() < 1000, "{}", asked.0);

        let report = world.run(&["model", "test", "--json"]).ok().json();
        let (provider, variable) = match speaks {
            WireFormat::OpenAi => ("openai", "OPENAI_API_KEY"),
            WireFormat::Anthropic => ("anthropic", "ANTHROPIC_API_KEY"),
        };
        assert_eq!(
            (&report["ok"], &report["configured"], &report["provider"], &report["model"], &report["reply"]),
            (&json!(true), &json!(true), &json!(provider), &json!("scripted"), &json!("ok"))
        );
        assert_eq!(report["key"], json!({ "source": "env", "name": variable, "is_set": true }));
        assert!(report["took_ms"].is_u64() && report["usage"]["output"].as_u64() > Some(0), "{report}");
        assert_eq!((&report["saved"], report.to_string().contains(KEY)), (&Value::Null, false));
    }
}

#[test]
fn a_model_that_does_not_answer_fails_with_what_to_do() {
    let refuses = |status: u16, text: &str| json!([{ "reply": { "status": status, "text": text } }]);
    for (rules, model, message, hint) in [
        (refuses(401, "no"), "m", "does not accept the key (status 401)", "OPENAI_API_KEY"),
        (refuses(404, "no such model"), "gone", "unknown model `gone`", "check `model` and `base_url`"),
        (refuses(503, "loading"), "m", "is not available: status 503: loading", "check that the server"),
    ] {
        let world = World::new();
        let server = Model::alone(&world, &rules);
        let url = format!("{}/v1", server.url);
        let args = ["model", "test", "--base-url", &url, "--model", model, "--save"];
        let failed = world.run(&args).ended(1).stdout;
        assert!(failed.starts_with(&format!("FAIL  {model} at {url} (openai): ")), "{failed}");
        assert!(failed.contains(message) && failed.contains("hint: ") && failed.contains(hint), "{failed}");
        let report = world.run(&[&args[..], &["--json"]].concat()).ended(1).json();
        assert!(report["ok"] == false && report["message"].as_str().unwrap().contains(message), "{report}");
        assert_eq!(server.requests().len(), 2, "one attempt each");
        assert!(!world.path("embody.toml").exists(), "nothing is saved");
    }
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (world, url) = (World::new(), format!("http://{closed}/v1"));
    let failed = world.run(&["model", "test", "--base-url", &url, "--model", "m"]).ended(1).stdout;
    assert!(
        failed.contains("is not available: ") && failed.contains("hint: check that the server"),
        "{failed}"
    );
    for (args, message) in [
        (&["--base-url", "nowhere"][..], "`model.base_url` is `nowhere`"),
        (&["--base-url", &url], "`model.model` is not set, but `model.base_url` is (--base-url)"),
        (
            &["--model", "m", "--api-key-env", "MY KEY"],
            "`model.api_key_env` is not the name of an environment",
        ),
    ] {
        let failed = world.run(&[&["model", "test"], args].concat());
        assert!(failed.code != Some(0) && failed.stderr.contains(message), "{failed:?}");
    }
}

#[test]
fn a_silent_server_is_given_up_after_the_configured_time() {
    // It accepts connections in its queue, and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let world = World::new();
    let url = format!("http://{}/v1", silent.local_addr().unwrap());
    world.file(
        "embody.toml",
        format!("[model]\nbase_url = \"{url}\"\nmodel = \"m\"\nfirst_byte_timeout_s = 1\n"),
    );
    let failed = world.run(&["model", "test"]).ended(1).stdout;
    assert!(failed.contains("took too long: no first byte within 1s"), "{failed}");
    assert!(failed.contains("`first_byte_timeout_s`"), "{failed}");
}

#[test]
fn servers_on_this_machine_are_found_and_offered() {
    let world = World::new();
    let model = Model::alone(&world, &ok());
    // One that is no model server, and one that never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let ports = format!("{},{},1", silent.local_addr().unwrap().port(), port(&model));
    let world = world.env("EMBODY_MODEL_PORTS", &ports);
    let found = world.run(&["model", "test"]).ok().stdout;
    let url = format!("{}/v1", model.url);
    let section = format!("[model]\nbase_url = \"{url}\"\nmodel = \"scripted\"\n");
    for part in
        ["No model is configured", &format!("{url} (a server): scripted"), "\"scripted\"", "embody.toml"]
    {
        assert!(found.contains(part), "no {part:?} in {found}");
    }
    let report = world.run(&["model", "test", "--json"]).ok().json();
    let servers = json!([{ "server": "a server", "base_url": url, "models": ["scripted"] }]);
    assert_eq!((&report["configured"], &report["found"]), (&json!(false), &servers));
    assert_eq!(report["section"], section);
    assert!(model.requests().is_empty(), "finding one asks it nothing");

    // The printed command does what it says.
    let command = report["command"].as_str().unwrap();
    let words: Vec<&str> = command.strip_prefix("embody ").unwrap().split(' ').collect();
    let done = world.run(&words).ok().stdout;
    assert!(done.contains(&format!("saved to {}", world.path("embody.toml").display())), "{done}");
    assert_eq!(config(&world), section);
    assert!(world.run(&["model", "test"]).ok().stdout.starts_with("ok    scripted at "));

    let world = World::new().env("EMBODY_MODEL_PORTS", "1");
    let failed = world.run(&["model", "test"]).ended(1).stdout;
    assert!(failed.contains("no model server answers") && failed.contains("hint: start one"), "{failed}");
    assert_eq!(world.run(&["model", "test", "--json"]).ended(1).json()["found"], json!([]));
}

#[test]
fn a_tested_model_is_written_in_place() {
    let world = World::new().env("MY_KEY", KEY);
    let model = Model::alone(&world, &ok());
    let before = "# mine\n[model] # m\n# old\nmodel = \"old\" # why\nretry_s = 3\n# of the file\napi_key_file = \"model.key\"\n\n\
                  # after\n[log]\nlevel = \"error\" # l\n";
    world.file("embody.toml", before);
    let url = format!("{}/v1", model.url);
    let args = ["model", "test", "--base-url", &url, "--model", "new", "--api-key-env", "MY_KEY"];
    world.run(&args).ok();
    assert_eq!(config(&world), before, "only `--save` writes");
    let report = world.run(&[&args[..], &["--save", "--json"]].concat()).ok().json();
    assert_eq!(report["saved"], world.path("embody.toml").display().to_string());
    let after = format!(
        "# mine\n[model] # m\n# old\nmodel = \"new\" # why\nretry_s = 3\nbase_url = \"{url}\"\n\
         api_key_env = \"MY_KEY\"\n# of the file\n\n# after\n[log]\nlevel = \"error\" # l\n"
    );
    assert_eq!(config(&world), after);
    world.run(&["config", "check"]).ok();

    let world = world.env("EMBODY_MODEL__BASE_URL", &url);
    let done = world.run(&["model", "test", "--base-url", &url, "--model", "new", "--save"]).ok();
    assert!(done.stderr.contains("EMBODY_MODEL__BASE_URL sets `model.base_url` and wins"), "{}", done.stderr);
}

#[test]
fn a_model_without_tools_is_noticed() {
    let world = World::new();
    let model = Model::alone(
        &world,
        &json!([{ "when": { "tool": "no_operation" }, "reply": { "status": 400, "text": "m does not support tools" } },
                { "reply": { "text": "ok" } }]),
    );
    let url = format!("{}/v1", model.url);
    let done = world.run(&["model", "test", "--base-url", &url, "--model", "m", "--save"]).ok().stdout;
    assert!(done.contains("native_tools = false"), "{done}");
    assert!(config(&world).ends_with("model = \"m\"\nnative_tools = false\n"), "{}", config(&world));
    // Another model may take them.
    drop(model);
    let model = Model::alone(&world, &ok());
    let url = format!("{}/v1", model.url);
    world.run(&["model", "test", "--base-url", &url, "--model", "m", "--save"]).ok();
    assert_eq!(config(&world), format!("[model]\nbase_url = \"{url}\"\nmodel = \"m\"\n"));
}

#[test]
fn the_key_in_a_file_is_sent_and_never_shown() {
    let world = World::new();
    let model = Model::alone(&world, &ok());
    let text = model.config(WireFormat::OpenAi) + "api_key_file = \"model.key\"\n";
    world.file("embody.toml", &text);
    write_key(&world, 0o600);
    let report = world.run(&["model", "test", "--json"]).ok();
    let file = world.path("model.key").display().to_string();
    assert_eq!(report.json()["key"], json!({ "source": "file", "name": file, "is_set": true }));
    let sent = fs::read_to_string(world.outside("model.jsonl")).unwrap();
    assert!(sent.contains("authorization"), "{sent}");
    let shown = world.run(&["config", "show"]).ok().stdout;
    assert!(shown.contains("model.key") && !shown.contains("OPENAI_API_KEY"), "{shown}");
    for args in [&["config", "show", "--json"][..], &["doctor", "--json"], &["run", "Hello", "--json"]] {
        let done = world.run(args);
        assert!(!(done.stdout + &done.stderr).contains(KEY), "{args:?}");
    }
    let backup = world.outside("backup.db").display().to_string();
    world.run(&["store", "backup", &backup]).ok();
    for file in [world.outside("backup.db"), world.path("embody.db"), world.path("logs/embody.jsonl")] {
        let content = fs::read(&file).unwrap();
        assert!(!content.windows(KEY.len()).any(|part| part == KEY.as_bytes()), "{}", file.display());
    }
}

#[test]
fn a_key_file_that_others_can_read_is_refused() {
    let world = World::new();
    let model = Model::alone(&world, &ok());
    let base = model.config(WireFormat::OpenAi);
    world.file("embody.toml", base.clone() + "api_key_file = \"model.key\"\n");
    let file = world.path("model.key").display().to_string();
    for mode in [0o644, 0o640, 0o604] {
        write_key(&world, mode);
        let doctor = world.run(&["doctor"]).ended(1).stdout;
        let message = format!("others can read `{file}`, its mode is {mode:o}");
        assert!(doctor.contains(&message) && doctor.contains(&format!("chmod 600 {file}")), "{doctor}");
        let failed = world.run(&["run", "Hello"]).ended(2).stderr;
        assert!(failed.contains(&message) && failed.contains("hint: run `chmod 600"), "{failed}");
        assert!(world.run(&["model", "test"]).ended(1).stdout.contains(&message));
    }
    write_key(&world, 0o600);
    world.run(&["doctor"]).ok();
    for (content, message) in [("", "is empty"), (" \n", "is empty")] {
        world.file("model.key", content);
        fs::set_permissions(world.path("model.key"), fs::Permissions::from_mode(0o600)).unwrap();
        let failed = world.run(&["model", "test"]).ended(1).stdout;
        assert!(failed.contains(message), "{failed}");
    }
    fs::remove_file(&file).unwrap();
    let failed = world.run(&["run", "Hello"]).ended(2).stderr;
    assert!(failed.contains(&format!("`{file}` cannot be read")), "{failed}");
    for (lines, message) in [
        (format!("api_key_file = \"{KEY}\"\n"), "`model.api_key_file` is a key, not the path of a file"),
        (
            "api_key_file = \"model.key\"\napi_key_env = \"MY_KEY\"\n".to_owned(),
            "both `model.api_key_file` and `model.api_key_env` are set",
        ),
        ("api_key_file = \"\"\n".to_owned(), "`model.api_key_file` is `\"\"`, which is empty"),
    ] {
        world.file("embody.toml", base.clone() + &lines);
        let failed = world.run(&["config", "check"]).ended(2).stderr;
        assert!(failed.contains(message) && !failed.contains(KEY), "{failed}");
    }
}
