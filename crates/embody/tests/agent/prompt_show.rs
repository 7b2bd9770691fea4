//! `prompt show` prints exactly the system prompt that a turn sends: on every channel, for the owner and for others.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::support::app::{App, OWNER, eventually};
use crate::support::model::{rule, says};
use crate::support::served::token;

/// The Telegram user who is `ann`.
const ANN: i64 = 12;

/// A body whose tools are not in the order of the alphabet, with rules of its own. Only the owner may use it.
fn body(app_world: &crate::support::world::World) -> String {
    let tool = |name: &str| json!({"name": name, "description": format!("Does {name}."), "inputSchema": {}});
    app_world.file_outside("desk.json", json!([tool("write_note"), tool("archive_note")]).to_string());
    app_world.file_outside("desk.txt", "Notes are in English.");
    let tests = std::env::current_exe().unwrap();
    let program = tests.parent().unwrap().parent().unwrap().join("examples/unruly");
    assert!(program.exists(), "`cargo build -p embody-broker --example unruly`");
    let file = |name: &str| app_world.outside(name).display().to_string();
    let command = json!([
        program.display().to_string(),
        "--log",
        file("desk.log"),
        "--tools",
        file("desk.json"),
        "--instructions",
        file("desk.txt")
    ]);
    format!("[[body]]\nname = \"desk\"\ncommand = {command}\ninstructions = \"rules\"\n")
}

/// The only thread of a user on a channel.
fn thread(app: &App, user: &str, channel: &str) -> String {
    let listed = app.up.get("/api/threads", &token(&app.world, user, "chat")).json();
    let threads = listed["threads"].as_array().unwrap();
    let mut found = threads.iter().filter(|thread| thread["channel"] == channel);
    let id = found.next().unwrap_or_else(|| panic!("no thread on {channel}: {listed}"))["id"].clone();
    assert!(found.next().is_none(), "{listed}");
    id.as_str().unwrap().to_owned()
}

/// Compares what the model was sent with what `prompt show` prints for the same user, channel, request and minute.
fn compare(app: &App, user: &str, channel: &str, facts: &[&str], turn: impl FnOnce()) {
    let (requests, before) = (app.model.requests().len(), Timestamp::now());
    turn();
    eventually("a request to the model", || (app.model.requests().len() > requests).then_some(()));
    let (sent, after) = (app.model.last().system(), Timestamp::now());
    let session = thread(app, user, channel);
    let show = |now: Timestamp| {
        let now = now.to_string();
        let flags = ["--user", user, "--channel", channel, "--session", &session, "--now", &now];
        app.world.show(&[&flags[..], facts].concat())
    };
    // The prompt names the minute, and one may have passed meanwhile.
    let shown = [show(before), show(after)];
    assert!(shown.contains(&sent), "{user} on {channel}:\n{sent}\n--- `prompt show`:\n{}", shown[0]);
}

fn compare_on_every_channel(config: &str) -> App {
    let rules = json!([rule("good morning", 0, says("Good morning."))]);
    let people = [(OWNER, "owner"), (ANN, "ann")];
    let app = App::open_for(&people, &rules, |world| format!("{config}{}", body(world)));
    app.world.run(&["instructions", "set", "--user", "ann", "Answer in French."]).ok();
    for (id, user) in people {
        let chat = token(&app.world, user, "chat");
        let web = ["--accept-language", "fr-FR", "--remote-ip", "127.0.0.1"];
        compare(&app, user, "web", &web, || drop(app.web_with(&chat, "good morning")));
        compare(&app, user, "telegram", &["--accept-language", "de"], || {
            app.telegram.say(id, 1, "good morning");
            app.telegram.seen(id, 1);
        });
        compare(&app, user, "scheduled", &[], || {
            app.world.run(&["schedule", "add", "--user", user, "--in", "1s", "good morning"]).ok();
        });
    }
    app
}

// spec: S-10, T-01
#[test]
fn prompt_show_is_what_a_turn_sends_in_the_channel_layout() {
    let app = compare_on_every_channel("");
    let systems: Vec<String> = app.model.requests().iter().map(|request| request.system()).collect();
    assert!(systems[..3].iter().all(|system| system.contains("Notes are in English.")), "{}", systems[0]);
    assert!(systems[3..].iter().all(|system| !system.contains("Notes are in English.")), "{}", systems[3]);
    assert!(systems[3..].iter().all(|system| system.contains("Answer in French.")), "{}", systems[3]);
}

// spec: S-10, T-01
#[test]
fn prompt_show_is_what_a_turn_sends_in_the_full_layout() {
    let app = compare_on_every_channel("[prompt]\nlayout = \"full\"\n");
    let owner = app.model.requests()[0].system();
    let tools = ["write_note", "archive_note"].map(|name| owner.find(name));
    assert!(tools[0].is_some() && tools[0] < tools[1], "in the order of their server: {owner}");
    assert!(!app.model.last().system().contains("write_note"), "the body is the owner's");
}

// spec: S-10, T-01
#[test]
fn prompt_show_is_what_a_turn_sends_in_the_tagged_layout() {
    let app = compare_on_every_channel("[prompt]\nlayout = \"tagged\"\n");
    let is_background =
        |request: &crate::support::model::ModelRequest| request.system().contains("<Background>");
    let found: Vec<bool> = app.model.requests().iter().map(is_background).collect();
    assert_eq!(found, [false, false, true, false, false, true]);
}

// spec: S-10
#[test]
fn the_prompt_of_the_api_is_the_one_of_the_command() {
    let app = App::open(&json!([]), "");
    let operate = token(&app.world, "owner", "operate");
    let text = |report: Value| report["text"].as_str().unwrap().to_owned();
    let show = || text(app.world.run(&["prompt", "show", "--channel", "web", "--json"]).ok().json());
    let before = show();
    let served = text(app.up.get("/api/prompt", &operate).json());
    assert!([before, show()].contains(&served), "{served}");
}
