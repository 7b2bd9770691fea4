//! The embedded body: behind the broker, alone, and in prompts.

use serde_json::{Value, json};

use super::host::{Host, Reply};
use super::pins::{scene, tool};
use super::setup::{body, broker, decision, host, stranger, world};
use crate::own_tools::validate;
use crate::support::world::World;

/// Tools of the embedded mind that the broker calls itself.
const INTERNAL: [&str; 5] = ["bootstrap_session", "observe", "reflect", "recall", "get_system_prompt"];
/// Characters of the definitions (name, description, input schema) of our own tools.
const DEFINITIONS_MAX: usize = 8_300;

/// Those that work without a channel to other people.
const TOOLS: [&str; 8] = [
    "whoami",
    "read_messages",
    "notify_user",
    "list_tasks",
    "create_task",
    "update_task",
    "schedule_run",
    "read_skill",
];

fn nothing(_: &str, _: &Value) -> Reply {
    Reply::Error(-32601, "no such method")
}

fn tools(host: &mut Host) -> Vec<Value> {
    host.ask("tools/list", "{}").result()["tools"].as_array().unwrap().clone()
}

fn names(host: &mut Host) -> Vec<String> {
    tools(host).iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

fn data(result: &Value) -> &Value {
    assert_eq!(result["isError"], false, "{result}");
    &result["structuredContent"]
}

#[test]
fn a_host_with_nothing_configured_has_a_body() {
    let world = World::new();
    let mut host = stranger(&world, &json!({}), nothing);
    let listed = names(&mut host);
    assert!(TOOLS.iter().all(|name| listed.iter().any(|other| other == name)), "{listed:?}");
    let who = host.call("whoami", &json!({}));
    let who = data(&who);
    assert_eq!(
        (&who["user"], &who["agent"], &who["channel"]),
        (&json!("owner"), &json!("assistant"), &json!("mcp"))
    );
    let task = json!({"title": "water the plants", "steps": ["fill the can"]});
    assert_eq!(decision(&host.call("create_task", &task)), "bounce", "the contract comes before every write");
    assert_eq!(data(&host.call("create_task", &task))["id"], "1");
    let listed = host.call("list_tasks", &json!({}));
    assert_eq!(data(&listed)["tasks"][0]["title"], "water the plants");
    let reported = host.call("notify_user", &json!({"text": "they are thirsty"}));
    assert_eq!((&data(&reported)["channel"], &data(&reported)["state"]), (&json!("web"), &json!("unread")));
    let planned = host.call("schedule_run", &json!({"cron": "0 9 * * *", "timezone": "UTC", "text": "look"}));
    assert!(data(&planned)["next_at"].as_str().unwrap().ends_with("T09:00:00Z"), "{planned}");
    let wrong = host.call("schedule_run", &json!({"cron": "61 * * * *", "text": "look"}));
    assert!(wrong["content"][0]["text"].as_str().unwrap().contains("invalid minute `61`"), "{wrong}");
}

#[test]
fn a_skill_of_a_new_workspace_is_listed_and_read() {
    let world = World::new();
    world.run(&["init"]).ok();
    world.file(
        "skills/tea/SKILL.md",
        "---\nname: tea\ndescription: How to make tea.\n---\n# Tea\n\nBoil water.\n",
    );
    world.file("agents/assistant/skills/own/SKILL.md", "Mine.");
    world.file_outside("secret/SKILL.md", "SECRET");
    world.link("skills/far/SKILL.md", world.outside("secret/SKILL.md"));
    world.link("skills/out", world.outside("secret"));
    let shown = world.show(&[]);
    assert!(shown.contains("call `read_skill` with its name.\n<available_skills>\n"), "{shown}");
    let mut host = host(&world, &json!({}), nothing);
    let read = |host: &mut Host, name: &str| host.call("read_skill", &json!({"name": name}));
    let tea = read(&mut host, "tea");
    assert_eq!(data(&tea), &json!({"name": "tea", "text": "# Tea\n\nBoil water."}));
    let review = read(&mut host, "daily-review");
    let text = data(&review)["text"].as_str().unwrap();
    assert!(text.starts_with("# Daily review\n\n1. Read what came in today"), "{text}");
    assert_eq!(data(&read(&mut host, "own"))["text"], "Mine.");
    for name in [
        "gone",
        "",
        "..",
        "far",
        "out",
        "../IDENTITY.md",
        "tea/../tea",
        "./tea",
        "skills/tea",
        "/etc/passwd",
        "tea\0",
    ] {
        let refused = read(&mut host, name);
        assert_eq!(refused["isError"], true, "{name:?}: {refused}");
        let said = refused["content"][0]["text"].as_str().unwrap();
        assert!(said.contains("unknown skill `") && said.contains("daily-review"), "{name:?}: {said}");
        assert!(!said.contains("SECRET"), "{name:?}: {said}");
    }
    // A link is not followed, even inside the folder.
    world.file("skills/base/SKILL.md", "Text.");
    world.link("skills/alias", "base");
    world.link("skills/copy/SKILL.md", "../base/SKILL.md");
    assert_eq!(data(&read(&mut host, "base"))["text"], "Text.");
    for name in ["alias", "copy"] {
        let refused = read(&mut host, name);
        assert!(
            refused["content"][0]["text"].as_str().unwrap().contains("a link is in its place"),
            "{refused}"
        );
    }
    let recorded = world.run(&["--json", "policy", "test", "embody/read_skill"]).ok().json();
    assert_eq!((&recorded["class"], &recorded["gate"]), (&json!("read"), &json!("allow")));
}

#[test]
fn skills_are_read_by_those_who_see_them() {
    let world = World::new();
    world.run(&["init"]).ok();
    world.file("embody.toml", "[audience]\nskills = \"owner\"\n");
    let mut owner = host(&world, &json!({}), nothing);
    assert_eq!(data(&owner.call("read_skill", &json!({"name": "daily-review"})))["name"], "daily-review");
    let mut command = broker(&world);
    command.args(["--user", "ann"]);
    let mut ann = Host::start(command).answering(nothing);
    ann.initialize(&json!({}));
    let refused = ann.call("read_skill", &json!({"name": "daily-review"}));
    assert_eq!(refused["isError"], true, "{refused}");
    assert_eq!(refused["content"][0]["text"], "skills are not shown in this conversation");
}

// spec: N-09, N-10
#[test]
fn human_visible_writes_wait_for_the_owner() {
    let world = reaching_others();
    let mut host = host(&world, &json!({}), nothing);
    let message = json!({"channel": "telegram", "to": "42", "text": "hi"});
    assert_eq!(decision(&host.call("send_message", &message)), "pending");
    let waiting = world.run(&["approvals", "list", "--json"]).ok().json();
    let waiting = &waiting["approvals"][0];
    assert_eq!((&waiting["body"], &waiting["class"]), (&json!("embody"), &json!("human_visible_write")));
    world.run(&["approvals", "approve", waiting["id"].as_str().unwrap()]).ok();
    let sent = host.call("send_message", &message);
    assert_eq!(data_of_text(&sent)["state"], "waiting", "{sent}");
}

/// A result without a schema has its data as text.
fn data_of_text(result: &Value) -> Value {
    assert_eq!(result["isError"], false, "{result}");
    serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap()
}

/// A channel to other people is configured, and the owner is asked without waiting.
fn reaching_others() -> World {
    let world = World::new().env("TELEGRAM_BOT_TOKEN", "1:unused");
    world.file("embody.toml", "[policy]\nask_wait_s = 0\n");
    world
}

// spec: N-09
#[test]
fn a_tool_that_cannot_work_is_neither_listed_nor_in_prompts() {
    let without = World::new();
    let mut host = host(&without, &json!({}), nothing);
    assert!(!names(&mut host).iter().any(|name| name == "send_message"));
    let found = host.call("find_tools", &json!({"query": "send a message"}));
    assert!(!found.to_string().contains("send_message"), "{found}");
    let message = json!({"channel": "telegram", "to": "42", "text": "hi"});
    let answer = host.ask("tools/call", &json!({"name": "send_message", "arguments": message}).to_string());
    assert_eq!(answer.error()["message"], "Unknown tool: send_message");
    let shown = |world: &World| world.show(&["--layout", "full", "--native-tools", "false"]);
    assert!(!shown(&without).contains("- send_message: "));
    let with = reaching_others();
    let mut host = super::setup::host(&with, &json!({}), nothing);
    assert!(names(&mut host).iter().any(|name| name == "send_message"));
    assert!(shown(&with).contains("- send_message: "));
}

// spec: N-10
#[test]
fn the_owner_is_not_asked_about_a_call_that_is_certain_to_fail() {
    let world = reaching_others();
    let rule = "[[policy.rule]]\ntools = [\"embody/*\", \"mind/*\"]\ngate = \"ask\"\nreason = \"a test\"\n";
    world.file("embody.toml", format!("[policy]\nask_wait_s = 0\n{rule}"));
    let mut host = host(&world, &json!({}), nothing);
    for (tool, arguments, error) in [
        (
            "send_message",
            json!({"channel": "mail", "to": "42", "text": "hi"}),
            "no other person can be reached over channel `mail`; configured: `telegram`; notify_user reaches the user",
        ),
        ("send_message", json!({"channel": "telegram", "to": "@bob", "text": "hi"}), "`to` is `@bob`"),
        ("send_message", json!({"channel": "telegram", "to": "42", "text": " "}), "`text` is empty"),
        ("send_message", json!({"channel": "telegram", "text": "hi"}), "`to` is missing"),
        ("notify_user", json!({"text": ""}), "`text` is empty"),
        ("schedule_run", json!({"cron": "61 * * * *", "text": "look"}), "invalid minute `61`"),
        ("schedule_run", json!({"at": "soon", "text": "look"}), "invalid date or time `soon`"),
        ("schedule_run", json!({"text": "look"}), "give either `cron` or `at`"),
        ("create_task", json!({"titel": "rest"}), "unknown argument `titel`"),
        ("update_task", json!({"id": "99", "status": "done"}), "unknown task `99`"),
        ("read_skill", json!({}), "`name` is missing"),
        ("save_memory", json!({"txet": "Ann likes tea."}), "`text` is missing"),
    ] {
        let refused = host.call(tool, &arguments);
        assert_eq!(decision(&refused), "blocked", "{tool}: {refused}");
        let words = refused["content"][0]["text"].as_str().unwrap();
        assert!(words.contains("it would fail, so the owner was not asked: "), "{words}");
        assert!(words.contains(error), "{tool}: {error}: {words}");
    }
    let asked = world.run(&["approvals", "list", "--all", "--json"]).ok().json();
    assert_eq!(asked["approvals"], json!([]));
    assert_eq!(host.call("list_tasks", &json!({}))["_meta"]["embody/decision"]["decision"], "pending");
    // What was refused is on record, and changed nothing.
    let tail =
        world.run(&["audit", "tail", "--outcome", "blocked", "--tool", "embody/create_task"]).ok().stdout;
    assert!(tail.contains("it would fail"), "{tail}");
    let listed = world.run(&["schedule", "list", "--json"]).ok().json();
    assert_eq!(listed["schedules"], json!([]), "{listed}");
}

// spec: N-05
#[test]
fn a_configured_body_replaces_tools_of_the_embedded_one_also_in_prompts() {
    let reads = json!({"readOnlyHint": true});
    let scene = scene(
        &json!([tool("whoami", "Who has the desk.", &reads), tool("look", "Looks.", &reads)]).to_string(),
    );
    let before = scene.world.show(&["--layout", "tagged"]);
    assert!(!before.contains("Who has the desk."), "nobody has seen it yet");
    let mut host = scene.plain_host();
    let listed = names(&mut host);
    for name in ["whoami", "embody__whoami", "look", "notify_user"] {
        assert_eq!(listed.iter().filter(|other| *other == name).count(), 1, "{name}: {listed:?}");
    }
    assert_eq!(host.call("whoami", &json!({}))["content"][0]["text"], "whoami is done");
    assert_eq!(data(&host.call("embody__whoami", &json!({})))["user"], "owner");
    let by_name = host.call("body_tool", &json!({"name": "whoami", "args": {}}));
    assert_eq!(by_name["content"][0]["text"], "whoami is done", "the seed's way finds the operator's");
    // What hosts are shown is what a prompt lists.
    let shown = scene.world.show(&["--layout", "full", "--native-tools", "false"]);
    for name in &listed {
        assert!(shown.contains(name), "{name}: {shown}");
    }
    assert!(shown.contains("Who has the desk.") && shown.contains("Looks."), "{shown}");
}

#[test]
fn a_body_cannot_have_the_name_of_the_embedded_one() {
    let world = world(&[&body("embody", &["true".to_owned()], "")]);
    world.run(&["config", "check"]).ended(2).says(&["body[0].name", "`embody`"]);
}

#[test]
fn the_embedded_body_can_be_served_alone() {
    let world = World::new();
    let mut command = world.command();
    command.arg("--workspace").arg(world.workspace()).args(["--log", "error", "body"]);
    let mut host = Host::start(command).answering(nothing);
    host.initialize(&json!({}));
    assert_eq!(names(&mut host), TOOLS);
    let made = host.call("create_task", &json!({"title": "rest"}));
    assert_eq!(data(&made)["status"], "open");
    let unknown = host.call("create_task", &json!({"titel": "rest"}));
    let words = unknown["content"][0]["text"].as_str().unwrap();
    assert!(words.contains("`titel`") && words.contains("`title` is missing"), "{words}");
    let mut other = world.command();
    other.arg("--workspace").arg(world.workspace()).args(["--log", "error", "body", "--user", "bob"]);
    let mut other = Host::start(other).answering(nothing);
    other.initialize(&json!({}));
    assert_eq!(data(&other.call("list_tasks", &json!({})))["tasks"], json!([]));
}

#[test]
fn the_definitions_of_our_own_tools_are_short_and_one_of_them_asks_to_be_called_first() {
    let world = World::new();
    world.run(&["init"]).ok();
    let mut host = stranger(&world, &json!({}), nothing);
    let listed = tools(&mut host);
    let size = |tool: &Value| {
        let (name, about, input) = (&tool["name"], &tool["description"], &tool["inputSchema"]);
        json!({"name": name, "description": about, "inputSchema": input}).to_string().chars().count()
    };
    let sizes: Vec<(&Value, usize)> = listed.iter().map(|tool| (&tool["name"], size(tool))).collect();
    let total: usize = sizes.iter().map(|(_, size)| size).sum();
    assert!(total <= DEFINITIONS_MAX, "{total} characters: {sizes:?}");
    let asks =
        |tool: &&Value| tool["description"].as_str().unwrap().to_lowercase().contains("call this first");
    let first: Vec<&Value> = listed.iter().filter(asks).map(|tool| &tool["name"]).collect();
    assert_eq!(first, ["runtime_bootstrap"]);
    for tool in &listed {
        let text = tool.to_string();
        assert!(!text.contains("\"format\"") && !text.contains("bootstrap_session"), "{text}");
    }
}

#[test]
fn tools_that_the_broker_calls_itself_are_not_listed_and_can_still_be_called() {
    let world = World::new();
    let mut host = stranger(&world, &json!({}), nothing);
    let listed = names(&mut host);
    assert!(listed.iter().any(|name| name == "read_memory"), "{listed:?}");
    for name in INTERNAL {
        assert!(!listed.iter().any(|other| other == name), "{name}: {listed:?}");
        let found = host.call("find_tools", &json!({"query": name}));
        let found = data(&found)["tools"].as_array().unwrap();
        assert!(found.iter().all(|tool| tool["name"] != name), "{name}: {found:?}");
    }
    let recalled = host.call("recall", &json!({"query": "tea"}));
    assert_eq!(data(&recalled)["memories"], json!([]));
    assert_eq!(data(&host.call("bootstrap_session", &json!({})))["schema_version"], 1);
    let said = host.call("reflect_user_message", &json!({"text": "I will call Ann tomorrow."}));
    assert_eq!(data(&said)["noted"][0]["what"], "commitment", "{said}");
    // What hosts are shown is what a prompt lists.
    let shown = world.show(&["--layout", "full", "--native-tools", "false"]);
    for name in &listed {
        assert!(shown.contains(name), "{name}: {shown}");
    }
    for name in ["bootstrap_session", "get_system_prompt"] {
        assert!(!shown.contains(name), "{name}: {shown}");
    }
}

#[test]
fn what_our_own_tools_return_behind_the_broker_matches_their_schemas() {
    let world = World::new();
    world.file("embody.toml", "[policy]\nask_wait_s = 0\n");
    world.file("skills/tea/SKILL.md", "Boil water.");
    let mut host = host(&world, &json!({}), nothing);
    let listed = tools(&mut host);
    let mut calls = vec![
        ("runtime_status", json!({})),
        ("runtime_bootstrap", json!({})),
        ("body_tool", json!({"name": "whoami"})),
        ("reflect_user_message", json!({"text": "I will call Ann tomorrow."})),
        ("find_tools", json!({"query": "tasks"})),
        ("update_instructions", json!({"instructions": "Be brief."})),
        ("save_memory", json!({"text": "Ann likes tea."})),
        ("read_memory", json!({"query": "tea"})),
        ("forget_memory", json!({"id": "none"})),
        ("context", json!({})),
        ("list_memory_files", json!({})),
        ("whoami", json!({})),
        ("read_messages", json!({})),
        ("notify_user", json!({"text": "hi"})),
        ("create_task", json!({"title": "rest"})),
        ("update_task", json!({"id": "1", "status": "done"})),
        ("list_tasks", json!({})),
        ("schedule_run", json!({"cron": "@daily", "timezone": "UTC", "text": "look"})),
        ("read_skill", json!({"name": "tea"})),
    ];
    for tool in &listed {
        assert!(calls.iter().any(|(name, _)| tool["name"] == *name), "{} is not called", tool["name"]);
    }
    calls.retain(|(name, _)| listed.iter().any(|tool| tool["name"] == *name));
    for (name, arguments) in calls {
        let result = host.call(name, &arguments);
        let tool = listed.iter().find(|tool| tool["name"] == name).unwrap();
        match (tool.get("outputSchema"), result.get("structuredContent")) {
            (Some(schema), Some(data)) => {
                validate(schema, data).unwrap_or_else(|why| panic!("{name}: {why}"));
            }
            (Some(_), None) => assert_eq!(result["isError"], true, "{name}: {result}"),
            (None, _) => {}
        }
        let may_be_refused = name == "forget_memory";
        assert!(may_be_refused || result["isError"] == false, "{name}: {result}");
    }
}
