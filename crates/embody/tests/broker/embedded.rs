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

const TOOLS: [&str; 9] = [
    "whoami",
    "read_messages",
    "send_message",
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
    let world = World::new();
    world.file("embody.toml", "[policy]\nask_wait_s = 0\n");
    let mut host = host(&world, &json!({}), nothing);
    let message = json!({"channel": "telegram", "to": "42", "text": "hi"});
    assert_eq!(decision(&host.call("send_message", &message)), "pending");
    let waiting = world.run(&["approvals", "list", "--json"]).ok().json();
    let waiting = &waiting["approvals"][0];
    assert_eq!((&waiting["body"], &waiting["class"]), (&json!("embody"), &json!("human_visible_write")));
    world.run(&["approvals", "approve", waiting["id"].as_str().unwrap()]).ok();
    let refused = host.call("send_message", &message);
    assert_eq!(refused["isError"], true, "{refused}");
    let words = refused["content"][0]["text"].as_str().unwrap();
    assert!(words.contains("no channel to other people is configured"), "{words}");
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
    for name in ["whoami", "embody__whoami", "look", "send_message"] {
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
        ("send_message", json!({"channel": "telegram", "to": "1", "text": "hi"})),
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
        let may_be_refused = ["forget_memory", "send_message"].contains(&name);
        assert!(may_be_refused || result["isError"] == false, "{name}: {result}");
    }
}
