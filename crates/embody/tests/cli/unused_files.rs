//! Files of a workspace that have no effect: `doctor` and `prompt lint` name them.

use serde_json::Value;

use crate::support::world::World;

/// File and reason, and the hints.
fn unused(world: &World) -> Vec<(String, String)> {
    let doctor = world.run(&["--json", "doctor"]).json();
    let checks = doctor["checks"].as_array().unwrap().iter().filter(|check| check["name"] == "unused");
    let pair = |check: &Value| {
        let message = check["message"].as_str().unwrap();
        assert_eq!(check["state"], if message.ends_with(": it has no content") { "ok" } else { "warn" });
        (message.to_owned(), check["hint"].as_str().unwrap().to_owned())
    };
    let found: Vec<(String, String)> = checks.map(pair).collect();
    // The lint says the same, and it is no finding.
    let lint = world.run(&["--json", "prompt", "lint"]).ok().json();
    let text = |one: &Value, key: &str| one[key].as_str().unwrap().to_owned();
    let listed = lint["unused"].as_array().unwrap().iter();
    let listed: Vec<(String, String)> = listed
        .map(|one| (format!("{}: {}", text(one, "file"), text(one, "reason")), text(one, "hint")))
        .collect();
    // A file that says nothing is named by the doctor alone.
    let others = found.iter().filter(|(message, _)| !message.ends_with(": it has no content"));
    assert_eq!(others.cloned().collect::<Vec<_>>(), listed);
    found
}

fn messages(world: &World) -> Vec<String> {
    unused(world).into_iter().map(|(message, _)| message).collect()
}

#[test]
fn a_new_workspace_has_only_the_empty_profile() {
    let world = World::new();
    world.run(&["init"]).ok();
    let hint = "fill in `name`, `timezone` or `location` between its two lines `---`";
    assert_eq!(unused(&world), [("USER.md: it has no content".to_owned(), hint.to_owned())]);
    world.file("USER.md", "---\nname: Ada\nlocation: Lyon\n---\n");
    assert_eq!(messages(&world), Vec::<String>::new());
    let text = world.run(&["prompt", "lint"]).ok().stdout;
    assert_eq!(text, "Nothing found.\n");
}

#[test]
fn each_file_that_the_layout_does_not_show_is_named() {
    let world = World::new();
    world.run(&["init"]).ok();
    world.file("USER.md", "---\nname: Ada\ntimezone: Europe/Paris\nlocation: Lyon\n---\n");
    world.file("embody.toml", "[prompt]\nlayout = \"channel\"\n");
    world.file("memories.json", "[\"Tea at five.\"]");
    let add = |kind: &str| format!("add \"{kind}\" to `extra_sections` in [prompt]");
    let pair = |message: &str, hint: String| (message.to_owned(), hint);
    let gone = "the layout `channel` does not show";
    assert_eq!(
        unused(&world),
        [
            pair(&format!("AGENTS.md: {gone} it"), add("workspace_files")),
            pair(&format!("TOOLS.md: {gone} it"), add("workspace_files")),
            pair(&format!("USER.md: {gone} its `name` and `location`"), add("user")),
            pair(
                &format!("memories.json: {gone} it"),
                "set `layout` in [prompt] to `tagged`, or delete the file".into()
            ),
            pair(&format!("skills/daily-review/SKILL.md: {gone} it"), add("skills")),
        ]
    );
    world.file("embody.toml", "[prompt]\nlayout = \"full\"\n");
    assert_eq!(messages(&world), ["memories.json: the layout `full` does not show it"]);
}

#[test]
fn files_that_nothing_reads_are_named() {
    let world = World::new();
    world.run(&["init"]).ok();
    for (file, text) in [
        ("USER.md", "---\nname: Ada\n---\nShe likes tea."),
        ("README.md", "for people"),
        ("NOTES.md", "x"),
        ("soul.md", "x"),
        ("TOOLS.md", "<!-- nothing yet -->"),
        ("SOUL.md", " \n"),
        ("prompts/anatomy/extra.md", "x"),
        ("prompts/README.md", "for people"),
        ("skills/loose.md", "x"),
        ("skills/daily-review/more.txt", "x"),
        ("skills/other/SKILL.md", "---\nname: daily-review\n---\nx"),
        ("agents/assistant/AGENTS.md", "Mine."),
        ("agents/assistant/files/work.md", "x"),
        ("agents/other/SOUL.md", "x"),
    ] {
        world.file(file, text);
    }
    assert_eq!(
        messages(&world),
        [
            "AGENTS.md: agents/assistant/AGENTS.md is used instead",
            "NOTES.md: embody reads no file of this name",
            "SOUL.md: it has no content",
            "TOOLS.md: nothing of it is in the prompt",
            "USER.md: only the front matter is used; the text below it is not (SOUL.md is the place for it)",
            "prompts/anatomy/extra.md: prompts/agent_system.md does not include it",
            "skills/daily-review/more.txt: of a skill only skills/NAME/SKILL.md is read",
            "skills/loose.md: of a skill only skills/NAME/SKILL.md is read",
            "skills/other/SKILL.md: left out: there is already a skill called `daily-review`",
            "soul.md: embody reads no file of this name",
        ]
    );
    let hints: Vec<String> = unused(&world).into_iter().map(|(_, hint)| hint).collect();
    assert!(hints.contains(&"rename it to SOUL.md".to_owned()), "{hints:?}");
    assert!(
        hints.iter().any(|hint| hint.contains("`@include anatomy/extra.md` to prompts/agent_system.md")),
        "{hints:?}"
    );
}
