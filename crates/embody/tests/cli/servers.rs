//! `embody server …` with real server processes: the file is edited in place, a server that does not work is noticed, and the
//! operator is told what to do.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::support::persona_server::{Answer, PersonaText, Server, TOKEN};
use crate::support::world::World;

/// A server with four tools in a few lines of shell. It answers `initialize` and `tools/list`, and nothing else well.
const NOTES: &str = r#"#!/bin/sh
echo "notes: starting, key ${NOTES_KEY:-none}" >&2
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/p')
  case $line in
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"notes","version":"1"}}}\n' "$id";;
    *'"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"read_note","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},{"name":"write_note","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":false,"destructiveHint":false,"openWorldHint":false}},{"name":"delete_note","inputSchema":{"type":"object"},"annotations":{"destructiveHint":true}},{"name":"post_note","inputSchema":{"type":"object"}}]}}\n' "$id";;
    *'"id"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}\n' "$id";;
  esac
done
"#;

/// A comment at every place where an edit could lose one.
const CONFIG: &str = "# mine\n[prompt] # a\nlayout = \"full\" # b\n# c\n\n# [[body]] of a comment\n[log]\nlevel = \"error\"\n# the end\n";

fn script(world: &World, name: &str, text: &str) -> String {
    world.file_outside(name, text);
    let path = world.outside(name);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

fn config(world: &World) -> String {
    fs::read_to_string(world.path("embody.toml")).unwrap()
}

fn test_result(world: &World, name: &str, code: i32) -> Value {
    let report = world.run(&["server", "test", name, "--timeout", "20", "--json"]).ended(code).json();
    assert_eq!(report["ok"], code == 0, "{report:#}");
    report["servers"][0].clone()
}

/// `status` has a line for each server. Removes the server's program.
fn status_shows_the_same(world: &World, notes: &str) {
    let status = world.run(&["status"]).ok().stdout;
    assert!(status.contains("servers    notes: ok ") && status.contains(", 4 tools\n"), "{status}");
    fs::remove_file(notes).unwrap();
    test_result(world, "notes", 1);
    let status = world.run(&["status"]).ok().stdout;
    assert!(
        status.contains("servers    notes: failed ") && status.contains(", 4 tools: program `"),
        "{status}"
    );
    let status = world.run(&["status", "--json"]).ok().json();
    assert_eq!((&status["servers"][0]["state"], &status["bodies"]), (&json!("failed"), &json!(["notes"])));
}

#[test]
fn a_server_is_added_tested_shown_and_removed_again() {
    let world = World::new();
    let notes = script(&world, "notes.sh", NOTES);
    world.file("embody.toml", CONFIG);
    fs::set_permissions(world.path("embody.toml"), fs::Permissions::from_mode(0o640)).unwrap();

    let done = world.run(&["server", "add", "notes", "--", &notes]).ok();
    let expected = format!("{CONFIG}\n[[body]]\nname = \"notes\"\ncommand = [\"{notes}\"]\n");
    assert_eq!(config(&world), expected);
    let mode = fs::metadata(world.path("embody.toml")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    for words in [
        "added notes to ",
        "ok    notes: 4 tools over stdio, in ",
        "1 read                 allow          read_note",
        "1 destructive          ask            delete_note",
        "human-visible write",
        "embody server tools notes",
    ] {
        assert!(done.stdout.contains(words), "no {words:?} in {}", done.stdout);
    }

    // What was found is known without starting it again.
    fs::remove_file(&notes).unwrap();
    let tools = world.run(&["server", "tools", "notes", "--json"]).ok().json();
    let found: Vec<(&str, &str, &str)> = (tools["tools"].as_array().unwrap().iter())
        .map(|tool| {
            let text = |key: &str| tool[key].as_str().unwrap();
            (text("tool"), text("class"), text("gate"))
        })
        .collect();
    assert_eq!(found.len(), 4);
    for one in [
        ("read_note", "read", "allow"),
        ("write_note", "write", "allow"),
        ("delete_note", "destructive", "ask"),
        ("post_note", "human_visible_write", "ask"),
    ] {
        assert!(found.contains(&one), "{found:?}");
    }
    let text = world.run(&["server", "tools"]).ok().stdout;
    assert!(text.starts_with("notes\n") && text.contains("by the annotation of a trusted server"), "{text}");
    let listed = world.run(&["server", "list", "--json"]).ok().json();
    let server = &listed["servers"][0];
    assert_eq!(
        (&server["name"], &server["state"], &server["tools"]),
        (&json!("notes"), &json!("ok"), &json!(4))
    );
    assert_eq!(server["classes"], json!({"read": 1, "write": 1, "human_visible_write": 1, "destructive": 1}));
    assert_eq!(server["last_error"], Value::Null);

    // It is gone now: the state changes, the tools are still known, and the error stays after a recovery.
    test_result(&world, "notes", 1);
    let text = world.run(&["server", "list"]).ok().stdout;
    assert!(
        text.contains("failed") && text.contains("4 tools (1 read, ") && text.contains("last error "),
        "{text}"
    );
    script(&world, "notes.sh", NOTES);
    test_result(&world, "notes", 0);
    let server = world.run(&["server", "list", "--json"]).ok().json()["servers"][0].clone();
    assert_eq!(server["state"], "ok");
    assert!(server["last_error"]["message"].as_str().unwrap().contains("not found"), "{server}");

    status_shows_the_same(&world, &notes);

    let done = world.run(&["server", "remove", "notes", "--json"]).ok().json();
    assert_eq!(done["removed"], "notes");
    assert_eq!(config(&world), CONFIG);
    assert_eq!(world.run(&["server", "list", "--json"]).ok().json(), json!({ "servers": [] }));
}

#[test]
fn a_rule_is_named_where_it_decides() {
    let world = World::new();
    let notes = script(&world, "notes.sh", NOTES);
    let rules = "[[policy.rule]]\ntools = [\"post_*\"]\ngate = \"deny\"\n\n[[policy.rule]]\ntools = [\"notes/write_*\"]\ngate = \"ask\"\nwhen = 'args.secret == true'\n";
    world.file("embody.toml", rules);
    world.run(&["server", "add", "notes", "--", &notes]).ok();
    let tools = world.run(&["server", "tools", "notes", "--json"]).ok().json();
    let tool = |name: &str| {
        tools["tools"].as_array().unwrap().iter().find(|tool| tool["tool"] == name).unwrap().clone()
    };
    let denied = tool("post_note");
    assert_eq!((&denied["gate"], &denied["depends_on_arguments"]), (&json!("deny"), &json!(false)));
    assert!(denied["rules"][0].as_str().unwrap().starts_with("policy.rule[0] ("), "{denied}");
    let written = tool("write_note");
    assert_eq!(written["depends_on_arguments"], true);
    assert!(written["rules"][0].as_str().unwrap().starts_with("policy.rule[1] ("), "{written}");
    let text = world.run(&["server", "tools", "notes"]).ok().stdout;
    assert!(text.contains("set by a rule: policy.rule[0] ("), "{text}");
    assert!(text.contains("Rules with `when` depend on the arguments: embody policy test"), "{text}");
    // The embedded ones have tools too, and need no server.
    let text = world.run(&["server", "tools", "embody"]).ok().stdout;
    assert!(text.starts_with("embody\n") && text.contains("create_task"), "{text}");
}

#[test]
fn a_failing_test_keeps_the_entry_and_says_what_to_do() {
    let world = World::new();
    let crash = script(&world, "crash.sh", "#!/bin/sh\necho 'no database at DB_PATH' >&2\nexit 3\n");
    let done = world.run(&["server", "add", "crash", "--", &crash]).ended(1);
    for words in [
        "added crash to ",
        "FAIL  crash: the server's process ended: exit status: 3",
        "the end of its stderr:\n        | no database at DB_PATH\n",
        "hint: run `command` of the `[[body]]` `crash` in a shell",
        "The entry stays.",
        "embody server remove crash",
    ] {
        assert!(done.stdout.contains(words), "no {words:?} in {}", done.stdout);
    }
    assert!(config(&world).contains("name = \"crash\""));
    let failed = test_result(&world, "crash", 1);
    assert_eq!(
        (&failed["reason"], &failed["stderr"][0]),
        (&json!("ended"), &json!("no database at DB_PATH"))
    );

    // What a package runner prints when there is no such package.
    let npx = "#!/bin/sh\necho 'npm error code E404' >&2\necho 'npm error 404 Not Found - GET no-such-server' >&2\nexit 1\n";
    let npx = script(&world, "npx", npx);
    world.run(&["server", "add", "pack", "--no-test", "--", &npx, "-y", "no-such-server"]).ok();
    let failed = test_result(&world, "pack", 1);
    assert_eq!(failed["reason"], "ended");
    assert!(failed["hint"].as_str().unwrap().starts_with("the package does not seem to exist"), "{failed}");

    world.run(&["server", "add", "gone", "--no-test", "--", "no-such-program"]).ok();
    let failed = test_result(&world, "gone", 1);
    assert_eq!(
        (&failed["reason"], &failed["message"]),
        (&json!("misconfigured"), &json!("program `no-such-program` not found"))
    );

    // A process that never answers.
    world.run(&["server", "add", "mute", "--no-test", "--", "sleep", "600"]).ok();
    let report = world.run(&["server", "test", "mute", "--timeout", "1"]).ended(1);
    assert!(
        report.stdout.contains("FAIL  mute: ") && report.stdout.contains("--timeout SECONDS"),
        "{}",
        report.stdout
    );
    let failed = world.run(&["server", "test", "mute", "--timeout", "1", "--json"]).ended(1).json();
    assert_eq!(failed["servers"][0]["reason"], "timeout");

    // One command for all of them.
    let all = world.run(&["server", "test", "--timeout", "1", "--json"]).ended(1).json();
    assert_eq!(all["servers"].as_array().unwrap().len(), 4);
}

#[test]
fn the_credentials_of_an_address_are_really_checked() {
    let world = World::new();
    let server = Server::start(PersonaText::Json, Answer::text(""));
    let url = server.url("/mcp");
    let done = world.run(&["server", "add", "mail", &url]).ended(1);
    assert!(
        done.stdout.contains("401") && done.stdout.contains("set `token_command` of the `[[body]]` `mail`"),
        "{}",
        done.stdout
    );
    assert_eq!(test_result(&world, "mail", 1)["reason"], "unauthorized");
    world.run(&["server", "remove", "mail"]).ok();

    let token = format!("echo {TOKEN}");
    let done = world.run(&["server", "add", "mail", &url, "--token-command", &token]).ok();
    assert!(done.stdout.contains("ok    mail: ") && !done.stdout.contains(TOKEN), "{}", done.stdout);
    assert!(
        config(&world).ends_with(&format!("token_command = [\"echo\", \"{TOKEN}\"]\n")),
        "{}",
        config(&world)
    );

    world.run(&["server", "add", "stale", &url, "--no-test", "--token-command", "echo old"]).ok();
    let failed = test_result(&world, "stale", 1);
    assert_eq!(failed["reason"], "unauthorized");
    assert!(failed["hint"].as_str().unwrap().contains("is refused"), "{failed}");
    world.run(&["server", "add", "broken", &url, "--no-test", "--token-command", "false"]).ok();
    let failed = test_result(&world, "broken", 1);
    assert_eq!(failed["reason"], "unauthorized");
    assert!(failed["message"].as_str().unwrap().contains("the token command `false` failed"), "{failed}");

    world.run(&["server", "add", "away", "http://127.0.0.1:1/mcp", "--no-test"]).ok();
    let failed = test_result(&world, "away", 1);
    assert_eq!(failed["reason"], "unreachable");
    assert!(
        failed["message"].as_str().unwrap().starts_with("http://127.0.0.1:1/mcp does not answer: "),
        "{failed}"
    );
}

#[test]
fn a_secret_stays_in_the_environment() {
    let world = World::new();
    let script_text = NOTES.replace("while read", "[ -n \"$NOTES_KEY\" ] || exit 4\nwhile read");
    let notes = script(&world, "notes.sh", &script_text);
    let done = world
        .run(&["server", "add", "notes", "--env", "NOTES_KEY", "--env", "MODE=x y", "--", &notes])
        .ended(1);
    assert!(done.stdout.contains("the environment variable NOTES_KEY is not set"), "{}", done.stdout);
    let written = config(&world);
    assert!(written.ends_with("env = { MODE = \"x y\" }\nenv_vars = [\"NOTES_KEY\"]\n"), "{written}");
    let world = world.env("NOTES_KEY", "verysecret-77");
    test_result(&world, "notes", 0);
    let log = fs::read_to_string(world.path("logs/embody.jsonl")).unwrap_or_default();
    assert!(!log.contains("verysecret-77") && !config(&world).contains("verysecret-77"));
}

#[test]
fn what_cannot_be_added_changes_nothing() {
    let world = World::new();
    world.file("embody.toml", "[[body]]\nname = \"files\"\ncommand = [\"true\"]\n");
    let before = config(&world);
    for (arguments, words) in [
        (
            &["files", "--", "true"][..],
            &["error: there is a server `files` already", "hint: take another name"][..],
        ),
        (
            &["My Files", "--", "true"],
            &["error: `My Files` cannot be a body's name", "hint: a body's name has"],
        ),
        (&["mind", "--", "true"], &["error: `mind` is not a body's but the runtime's own name"]),
        (&["new", "npx"], &["error: `npx` is not an http", "hint: a program goes behind `--`"]),
        (&["new", "--", " "], &["error: the command names no program"]),
        (&["new", "--env", "1X", "--", "true"], &["error: `--env` does not begin with the name"]),
        (
            &["new", "http://h/mcp", "--token-command", "echo 'x"],
            &["error: `--token-command` is not a command"],
        ),
        (&["new"], &["required"]),
        (&["new", "http://h/mcp", "--", "true"], &["cannot be used with"]),
    ] {
        world.run(&[&["server", "add"], arguments].concat()).ended(2).says(words);
        assert_eq!(config(&world), before, "{arguments:?}");
    }
    for command in ["test", "tools", "remove"] {
        let done = world.run(&["server", command, "nope"]).ended(2);
        done.says(&["error: unknown server `nope`", "hint: configured servers: `files`"]);
    }
    // A file that is wrong is named, and left alone.
    world.file("embody.toml", "[log\n");
    for arguments in [&["add", "new", "--", "true"][..], &["remove", "files"]] {
        world.run(&[&["server"], arguments].concat()).ended(2).says(&["error: ", "embody.toml:1"]);
        assert_eq!(config(&world), "[log\n");
    }
    // An entry that the environment sets cannot be removed from the file.
    let world =
        World::new().env("EMBODY_BODY__0__NAME", "far").env("EMBODY_BODY__0__URL", "http://127.0.0.1:1/mcp");
    world.file("embody.toml", "");
    world
        .run(&["server", "remove", "far"])
        .ended(2)
        .says(&["error: the server `far` is not in ", "EMBODY_BODY__"]);
}

#[test]
fn servers_that_are_added_at_the_same_time_are_all_there() {
    let world = World::new();
    std::thread::scope(|scope| {
        for number in 0..8 {
            let world = &world;
            scope.spawn(move || {
                world.run(&["server", "add", &format!("s{number}"), "--no-test", "--", "true"]).ok();
            });
        }
    });
    let listed = world.run(&["server", "list", "--json"]).ok().json();
    let names = listed["servers"].as_array().unwrap().iter().map(|server| server["name"].as_str().unwrap());
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    assert_eq!(names, ["s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7"]);
    assert!(!world.path(".embody.toml.new").exists());
    let mode = fs::metadata(world.path(".embody.toml.lock")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_server_is_removed_without_the_database() {
    let world = World::new();
    world.run(&["server", "add", "far", "http://127.0.0.1:1/mcp", "--no-test"]).ok();
    world.file("embody.db", "no database");
    let done = world.run(&["server", "remove", "far"]).ok();
    assert!(done.stdout.starts_with("removed far from "), "{done:#?}");
    done.says(&["warning: the last test of far stays in the database: "]);
    assert_eq!(config(&world), "");
}

#[test]
fn the_file_is_made_if_there_is_none_and_a_program_is_found_again() {
    let world = World::new();
    script(&world, "notes.sh", NOTES);
    // Commands of tests run beside the workspace, where `./notes.sh` is.
    world.run(&["server", "add", "notes", "--", "./notes.sh"]).ok();
    let mode = fs::metadata(world.path("embody.toml")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let path = world.outside("notes.sh");
    assert!(config(&world).contains(&format!("command = [\"{}\"]", path.display())), "{}", config(&world));
    world.run(&["server", "remove", "notes"]).ok();
    assert_eq!(config(&world), "");
    let listed = world.run(&["server", "list"]).ok().stdout;
    assert!(listed.starts_with("No server is configured. Add one: "), "{listed}");
}
