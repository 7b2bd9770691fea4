//! `/api/model`: the owner sets a model, which is saved only if it answers, and the key stays in its file.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::support::model::{Model, WireFormat};
use crate::support::served::{Answer, Served, text, token};
use crate::support::world::World;

const KEY: &str = "sk-proj-a1B2c3D4e5F6g7H8i9J0k1L2";

fn ok() -> Value {
    json!([{ "reply": { "text": "ok" } }])
}

fn config(world: &World) -> String {
    fs::read_to_string(world.path("embody.toml")).unwrap_or_default()
}

fn key_files(world: &World) -> Vec<String> {
    let files = fs::read_dir(world.workspace()).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("model") && name.ends_with(".key")).collect()
}

/// As the page asks, with the owner's cookie.
fn from_page(served: &Served, cookie: &str, body: &Value) -> Answer {
    let origin = format!("http://{}", served.host);
    served.ask("POST /api/model", &[("cookie", cookie), ("origin", &origin)], Some(body))
}

#[test]
fn a_model_that_answers_is_saved_with_its_key_in_a_file() {
    let world = World::new();
    let model = Model::alone(&world, &ok());
    let served = Served::start(&world);
    let cookie = served.sign_in(&served.code);
    let url = format!("{}/v1", model.url);
    let new = json!({ "provider": "openai", "base_url": url, "model": "scripted", "api_key": KEY });
    let answer = from_page(&served, &cookie, &new);
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(!answer.body.contains(KEY), "{answer:?}");
    let set = answer.json();
    assert_eq!(
        (&set["model"], &set["base_url"], &set["reply"]),
        (&json!("scripted"), &json!(url), &json!("ok"))
    );
    assert_eq!(set["file"], world.path("embody.toml").display().to_string());
    assert_eq!((&set["key"]["source"], &set["key"]["is_set"]), (&json!("file"), &json!(true)));
    let [file] = key_files(&world).try_into().unwrap();
    let section = |file: &str| {
        format!("[model]\nbase_url = \"{url}\"\nmodel = \"scripted\"\napi_key_file = \"{file}\"\n")
    };
    assert_eq!(config(&world), section(&file));
    assert_eq!(fs::read_to_string(world.path(&file)).unwrap(), format!("{KEY}\n"));
    let mode = |name: &str| fs::metadata(world.path(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&file), mode("embody.toml")), (0o600, 0o600));
    assert_eq!(model.requests().len(), 1);
    // The agent uses it without a restart.
    assert_eq!(set["applied"], true);
    let operate = token(&world, "owner", "operate");
    assert_eq!(served.get("/api/model", &operate).json()["configured"], true);
    let chat = token(&world, "owner", "chat");
    let events = served.begin_post("/api/chat", &chat, &json!({ "text": "Hello" })).events();
    assert_eq!(text(&events), "ok");

    // Another key gets a file of its own, and the old one is removed.
    fs::set_permissions(world.path(&file), fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(from_page(&served, &cookie, &new).status, 200);
    let [new_file] = key_files(&world).try_into().unwrap();
    assert!(new_file != file, "{file}");
    assert_eq!((mode(&new_file), config(&world)), (0o600, section(&new_file)));
    let left: Vec<_> =
        fs::read_dir(world.workspace()).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().ends_with(".new")), "{left:?}");

    // Another command uses it, and nothing shows it.
    assert_eq!(world.run(&["run", "Hello"]).ok().stdout, "ok\n");
    let sent = fs::read_to_string(world.outside("model.jsonl")).unwrap();
    assert_eq!(sent.lines().count(), 4);
    let logged = fs::read_to_string(world.path("logs/embody.jsonl")).unwrap();
    assert!(!logged.contains(KEY) && !config(&world).contains(KEY));
}

#[test]
fn other_keys_and_comments_of_the_file_stay() {
    let world = World::new().env("MY_KEY", KEY);
    let model = Model::alone(&world, &ok());
    let before = "# mine\n[model]\n# slow\nretry_s = 3 # s\napi_key_file = \"model.key\"\n\n[log] # l\nlevel = \"error\"\n";
    world.file("embody.toml", before);
    let served = Served::start(&world);
    let cookie = served.sign_in(&served.code);
    let new =
        json!({ "provider": "anthropic", "base_url": model.url, "model": "m", "api_key_env": "MY_KEY" });
    assert_eq!(from_page(&served, &cookie, &new).status, 200);
    let after = format!(
        "# mine\n[model]\n# slow\nretry_s = 3 # s\nprovider = \"anthropic\"\nbase_url = \"{}\"\nmodel = \"m\"\n\
         api_key_env = \"MY_KEY\"\n\n[log] # l\nlevel = \"error\"\n",
        model.url
    );
    assert_eq!(config(&world), after);
    assert!(!world.path("model.key").exists());
}

#[test]
fn the_old_key_stays_until_the_configuration_names_the_new_one() {
    let world = World::new();
    let model = Model::alone(&world, &ok());
    // A file that a person wrote, and a configuration that cannot be replaced: its temporary file is a folder.
    world.file("model.key", "theirs\n");
    fs::set_permissions(world.path("model.key"), fs::Permissions::from_mode(0o600)).unwrap();
    let before =
        "[model]\nbase_url = \"http://127.0.0.1:9/v1\"\nmodel = \"m\"\napi_key_file = \"model.key\"\n";
    world.file("embody.toml", before);
    let served = Served::start(&world);
    let cookie = served.sign_in(&served.code);
    let url = format!("{}/v1", model.url);
    let new = json!({ "provider": "openai", "base_url": url, "model": "scripted", "api_key": KEY });
    fs::create_dir(world.path(".embody.toml.new")).unwrap();
    from_page(&served, &cookie, &new).refused(503, "could not be changed");
    assert_eq!((config(&world), key_files(&world)), (before.to_owned(), vec!["model.key".to_owned()]));
    assert_eq!(fs::read_to_string(world.path("model.key")).unwrap(), "theirs\n");

    // What embody did not write, it does not remove.
    fs::remove_dir(world.path(".embody.toml.new")).unwrap();
    assert_eq!(from_page(&served, &cookie, &new).status, 200);
    assert_eq!(key_files(&world).len(), 2);
    assert_eq!(fs::read_to_string(world.path("model.key")).unwrap(), "theirs\n");
}

#[test]
fn what_is_known_about_tools_is_not_kept_for_another_model() {
    let world = World::new();
    let model = Model::alone(&world, &ok());
    let url = format!("{}/v1", model.url);
    let section =
        |model: &str, more: &str| format!("[model]\nbase_url = \"{url}\"\nmodel = \"{model}\"\n{more}");
    world.file("embody.toml", section("old", "native_tools = false\n"));
    let served = Served::start(&world);
    let cookie = served.sign_in(&served.code);
    let new = |model: &str| json!({ "provider": "openai", "base_url": url, "model": model });
    assert_eq!(from_page(&served, &cookie, &new("old")).json()["native_tools"], false);
    assert_eq!(config(&world), section("old", "native_tools = false\n"));
    assert_eq!(from_page(&served, &cookie, &new("new")).json()["native_tools"], true);
    assert_eq!(config(&world), section("new", ""));
}

#[test]
fn a_model_that_does_not_answer_is_not_saved() {
    let world = World::new();
    let rules = |status: u16, text: &str| json!({ "status": status, "text": text });
    let model = Model::alone(
        &world,
        &json!([{ "reply": rules(401, "wrong key"), "times": 1 }, { "reply": rules(404, "no such model"), "times": 1 },
                { "reply": rules(302, "elsewhere") }]),
    );
    // It accepts connections in its queue, and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let before = "[model]\nfirst_byte_timeout_s = 1\n";
    world.file("embody.toml", before);
    let served = Served::start(&world);
    let cookie = served.sign_in(&served.code);
    let url = format!("{}/v1", model.url);
    for (url, message, hint) in [
        (url.clone(), "does not accept the key (status 401)", "check the key that was entered"),
        (url.clone(), "unknown model `m`", "check `model` and `base_url`"),
        (url, "the model rejected the request (status 302)", ""),
        (format!("http://{closed}/v1"), "is not available: ", "check that the server is running"),
        (
            format!("http://{}/v1", silent.local_addr().unwrap()),
            "took too long: no first byte within 1s",
            "try again",
        ),
    ] {
        let new = json!({ "provider": "openai", "base_url": url, "model": "m", "api_key": KEY });
        let answer = from_page(&served, &cookie, &new).refused(422, message);
        assert!(answer.body.contains(hint) && !answer.body.contains(KEY), "{answer:?}");
    }
    for (new, message) in [
        (
            json!({ "provider": "openai", "base_url": "nowhere", "model": "m" }),
            "`model.base_url` is `nowhere`",
        ),
        (
            json!({ "provider": "openai", "base_url": "ftp://h/v1", "model": "m" }),
            "is not an http:// or https://",
        ),
        (json!({ "provider": "google", "model": "m" }), "unknown variant `google`"),
        (json!({ "provider": "openai", "model": " " }), "`model` is empty"),
        (
            json!({ "provider": "openai", "model": "m", "api_key_env": "MY KEY" }),
            "not the name of an environment variable",
        ),
        (
            json!({ "provider": "openai", "model": "m", "api_key": KEY, "api_key_env": "K" }),
            "both `api_key` and `api_key_env`",
        ),
        (json!({ "provider": "openai", "model": "m", "key": KEY }), "unknown field `key`"),
        (json!({ "provider": "openai", "model": "m".repeat(3000) }), "other values 2048"),
    ] {
        let answer = from_page(&served, &cookie, &new).refused(400, message);
        assert!(!answer.body.contains(KEY), "{answer:?}");
    }
    let long = json!({ "provider": "openai", "model": "m", "api_key": "x".repeat(40_000) });
    from_page(&served, &cookie, &long).refused(413, "more than 32768 bytes");
    assert_eq!(config(&world), before);
    assert!(key_files(&world).is_empty());
    let logged = fs::read_to_string(world.path("logs/embody.jsonl")).unwrap();
    assert!(!logged.contains(KEY), "{logged}");
}

#[test]
fn a_variable_that_would_win_over_the_file_is_named() {
    let world = World::new().env("EMBODY_MODEL__BASE_URL", "http://127.0.0.1:9/v1");
    let served = Served::start(&world);
    let cookie = served.sign_in(&served.code);
    let new = json!({ "provider": "openai", "base_url": "http://127.0.0.1:8/v1", "model": "m" });
    let message = "the environment variable EMBODY_MODEL__BASE_URL sets `model.base_url`";
    from_page(&served, &cookie, &new).refused(409, message);
    assert!(!world.path("embody.toml").exists());
}

#[test]
fn only_the_owner_sets_a_model() {
    let world = World::new();
    let model = Model::alone(&world, &ok());
    let new = json!({ "provider": "openai", "base_url": format!("{}/v1", model.url), "model": "scripted" });
    let tokens =
        [("owner", "chat"), ("owner", "operate"), ("ann", "operate"), ("ann", "chat"), ("owner", "owner")]
            .map(|(user, scope)| token(&world, user, scope));
    let mcp = token(&world, "owner", "mcp");
    let served = Served::start(&world);
    for token in &tokens {
        served.post("/api/model", token, &new).refused(403, "only the owner can set the model");
    }
    served.post("/api/model", &mcp, &new).refused(403, "this token has the scope `mcp`");
    served.ask("POST /api/model", &[], Some(&new)).refused(401, "a token or a signed-in browser");
    let cookie = served.sign_in(&served.code);
    for origin in [None, Some("http://127.0.0.1:1")] {
        let mut headers = vec![("cookie", cookie.as_str())];
        headers.extend(origin.map(|origin| ("origin", origin)));
        served.ask("POST /api/model", &headers, Some(&new)).refused(403, "");
    }
    assert!(model.requests().is_empty() && !world.path("embody.toml").exists());

    let [chat, operate, ann, _, _] = &tokens;
    served.get("/api/model", chat).refused(403, "the scope `operate` is required");
    served.get("/api/model", ann).refused(403, "only the owner");
    assert_eq!(served.get("/api/model", operate).status, 200);
}

#[test]
fn the_state_of_the_model_and_servers_on_this_machine_are_shown() {
    let world = World::new();
    let model = Model::alone(&world, &ok());
    let port = model.url.rsplit(':').next().unwrap();
    let world = world.env("EMBODY_MODEL_PORTS", port);
    let operate = token(&world, "owner", "operate");
    let served = Served::start(&world);
    let state = served.get("/api/model", &operate).json();
    let key = json!({ "source": "env", "name": "OPENAI_API_KEY", "is_set": false });
    assert_eq!((&state["configured"], &state["model"], &state["key"]), (&json!(false), &Value::Null, &key));
    assert_eq!((&state["provider"], state.get("found")), (&json!("openai"), None));
    let found = served.get("/api/model?discover=1", &operate).json()["found"].take();
    let url = format!("{}/v1", model.url);
    assert_eq!(found, json!([{ "server": "a server", "base_url": url, "models": ["scripted"] }]));
    drop(served);

    world.file("embody.toml", model.config(WireFormat::OpenAi));
    let served = Served::start(&world);
    let state = served.get("/api/model", &operate).json();
    assert_eq!(
        (&state["configured"], &state["model"], &state["base_url"]),
        (&json!(true), &json!("scripted"), &json!(url))
    );
}
