//! The layouts `full` and `channel` from real files, as `prompt show` prints them.

use std::fs;

use crate::support::world::World;

const NOON: [&str; 2] = ["--now", "2026-03-01T12:00:00Z"];

fn full(world: &World, more: &[&str]) -> String {
    world.show(&[&["--layout", "full"], &NOON[..], more].concat())
}

fn channel(world: &World, more: &[&str]) -> String {
    world.show(&[&["--layout", "channel"], &NOON[..], more].concat())
}

/// The text below a `## Heading`, up to the next one.
fn below<'a>(text: &'a str, heading: &str) -> &'a str {
    let mark = format!("## {heading}\n");
    let start = text.find(&mark).unwrap_or_else(|| panic!("no {mark:?} in {text}")) + mark.len();
    text[start..].split("\n\n## ").next().unwrap()
}

fn headings(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.strip_prefix("## ")).collect()
}

/// A workspace with one of everything.
fn furnished() -> World {
    let world = World::with_body("RULES");
    world.file("IDENTITY.md", "---\nname: Nova\nemoji: 🧭\ncreature: lighthouse\nvibe: calm\n---\n");
    world.file("SOUL.md", "I keep watch.");
    world.file("USER.md", "---\nname: Ada\ntimezone: Europe/Paris\nlocation: Lyon\n---\n");
    world.file("AGENTS.md", "<!-- why -->\n<!-- and\nhow -->\nHouse rules. <!-- stays -->");
    world.file("TOOLS.md", "Show drafts.");
    world.file(
        "skills/review/SKILL.md",
        "---\nname: review\ndescription: Look <again> & \"twice\".\n---\n# Review",
    );
    world.file("skills/plain/SKILL.md", "# Plain\n\nDo it plainly.\nThen stop.");
    world.file("skills/README.md", "not a skill");
    world.file_outside("project/CLAUDE.md", "PROJECT");
    world
}

// spec: P-01
#[test]
fn full_has_its_components_in_order() {
    let world = furnished();
    let project = world.outside("project");
    let args = ["--layout", "full", "--native-tools", "false", "--project", project.to_str().unwrap()];
    let expected = [
        "body",
        "intro",
        "identity",
        "soul",
        "user",
        "project_context",
        "runtime",
        "skills",
        "workspace_files",
        "memory",
        "tools",
        "tool_format",
        "guidelines",
    ];
    assert_eq!(world.report(&args).kinds(), expected);
    // Fresh sections move behind the stable ones only on demand. spec: T-12
    world.file("embody.toml", "[prompt]\nfresh_last = true\n");
    assert_eq!(world.report(&args).kinds().last(), Some(&"runtime"));
}

#[test]
fn what_init_writes_is_in_the_prompt() {
    let world = World::new();
    world.run(&["init"]).ok();
    world.file("USER.md", "---\nname: Ada\ntimezone: Europe/Paris\nlocation: Lyon\n---\n");
    world.file("AGENTS.md", "House rules.");
    world.file("TOOLS.md", "Show drafts.");
    world.file("skills/review/SKILL.md", "---\nname: review\ndescription: Look twice.\n---\n# Review");
    let text = world.show(&[&NOON[..], &["--channel", "web"]].concat());
    assert_eq!(
        headings(&text).into_iter().skip_while(|heading| *heading != "Identity").collect::<Vec<_>>(),
        [
            "Identity",
            "Soul",
            "Channel",
            "Memory",
            "User Instructions",
            "Tools",
            "User",
            "Workspace Files",
            "Available Skills",
            "Current Time"
        ]
    );
    assert_eq!(below(&text, "User"), "The user's name is Ada.\nThe user is in Lyon.");
    assert_eq!(below(&text, "Workspace Files"), "### AGENTS.md\nHouse rules.\n\n### TOOLS.md\nShow drafts.");
    let skills = below(&text, "Available Skills");
    assert!(skills.contains("call `read_skill` with its name.\n<available_skills>\n"), "{skills}");
    assert!(
        skills.contains("<skill name=\"review\" source=\"workspace\" path=\"skills/review\">\nLook twice."),
        "{skills}"
    );
    assert!(skills.contains("daily-review"), "{skills}");
    assert!(below(&text, "Current Time").contains("Europe/Paris"), "{text}");
    // Another user sees nothing of the owner's profile.
    let text = world.show(&[&NOON[..], &["--user", "bob"]].concat());
    assert!(!text.contains("Ada") && !text.contains("Lyon"), "{text}");
    assert!(text.contains("House rules."), "{text}");
    // Without the key the layout is as it always was, and the other layouts do not change with it.
    let before =
        ["full", "tagged", "body"].map(|name| world.show(&[&["--layout", name], &NOON[..]].concat()));
    world.file("embody.toml", "[prompt]\nlayout = \"channel\"\nfresh_last = true\n");
    let text = world.show(&[&NOON[..], &["--channel", "web"]].concat());
    assert_eq!(headings(&text).last(), Some(&"Current Time"));
    for absent in ["Ada", "Lyon", "House rules", "Show drafts", "Look twice"] {
        assert!(!text.contains(absent), "{absent}: {text}");
    }
    let after = ["full", "tagged", "body"].map(|name| world.show(&[&["--layout", name], &NOON[..]].concat()));
    assert_eq!(before, after);
}

// spec: P-02
#[test]
fn identity_comes_from_the_front_matter() {
    for (matter, expected) in [
        ("name: Nova\nemoji: 🧭", "Your name is Nova 🧭."),
        ("name: Nova", "Your name is Nova."),
        ("creature: lighthouse", "You are a lighthouse."),
        ("vibe: calm", "Your vibe: calm."),
        ("theme: stormy", "Your vibe: stormy."),
        ("theme: stormy\nvibe: calm", "Your vibe: calm."),
        (
            "name: \"No: va\"\ncreature: >-\n  tall\n  lighthouse",
            "Your name is No: va.\nYou are a tall lighthouse.",
        ),
        ("name: 'It''s'\r\nvibe: |\r\n  calm\r\n  and dry", "Your name is It's.\nYour vibe: calm and dry."),
    ] {
        let world = World::new();
        world.file("IDENTITY.md", format!("\u{FEFF}---\r\n{matter}\r\n---\r\n"));
        let text = full(&world, &[]);
        assert_eq!(below(&text, "Identity"), expected, "{matter}");
        assert!(text.contains("## Soul\n"), "identity present, so soul included");
    }
}

// spec: P-02, P-03
#[test]
fn the_agents_folder_wins_over_the_workspace_file_by_file() {
    let world = furnished();
    world.file("agents/mailer/IDENTITY.md", "---\nname: Postman\n---\n");
    world.file("agents/mailer/USER.md", "---\nname: Grace\n---\n");
    world.file("agents/mailer/AGENTS.md", "Mailer's rules.");
    let text = full(&world, &["--agent", "mailer"]);
    assert_eq!(below(&text, "Identity"), "Your name is Postman.");
    assert_eq!(below(&text, "Soul"), "I keep watch.", "the workspace's, as the agent has none");
    assert_eq!(below(&text, "User"), "The user's name is Grace.");
    assert!(below(&text, "Workspace Files").contains("Mailer's rules.") && !text.contains("House rules."));
    world.file("agents/mailer/SOUL.md", "I carry letters.");
    assert_eq!(below(&full(&world, &["--agent", "mailer"]), "Soul"), "I carry letters.");
    // The environment names the agent too; an unknown name is valid.
    let world = world.env("EMBODY_AGENT", "mailer").env("EMBODY_USER", "grace");
    assert_eq!(below(&full(&world, &[]), "Identity"), "Your name is Postman.");
    assert_eq!(
        below(&full(&world, &["--agent", "nobody"]), "Identity").lines().next(),
        Some("Your name is Nova 🧭.")
    );
}

// spec: P-03
#[test]
fn a_missing_or_empty_soul_is_the_built_in_one() {
    let world = World::new();
    let without = full(&world, &[]);
    assert!(below(&without, "Soul").len() > 100, "{without}");
    world.file("SOUL.md", " \n\n");
    assert_eq!(full(&world, &[]), without);
}

// spec: P-03, P-05
#[test]
fn the_users_zone_and_place_reach_the_runtime() {
    let world = furnished();
    let text = full(&world, &["--session", "s-1"]);
    assert_eq!(below(&text, "User"), "The user's name is Ada.");
    let host = below(&text, "Runtime").lines().next().unwrap().to_owned();
    let facts: Vec<&str> = host.strip_prefix("Host: ").unwrap().split(" | ").collect();
    assert!(facts.contains(&"timezone=Europe/Paris") && facts.contains(&"location=Lyon"), "{host}");
    assert!(facts.contains(&"session=s-1") && facts.contains(&"os=linux"), "{host}");
    let order = [
        "host",
        "os",
        "arch",
        "shell",
        "provider",
        "model",
        "session",
        "sudo_non_interactive",
        "sudo_status",
        "timezone",
        "accept_language",
        "remote_ip",
        "location",
    ];
    let places: Vec<usize> = facts
        .iter()
        .map(|fact| order.iter().position(|key| fact.split('=').next() == Some(key)).unwrap())
        .collect();
    assert!(places.is_sorted(), "{host}");
    assert!(facts.iter().all(|fact| !fact.ends_with('=')), "empty ones are dropped: {host}");
    assert!(below(&channel(&world, &[]), "Current Time").contains("13:00 (Europe/Paris)"));
}

// spec: P-05
#[test]
fn sandbox_and_model_come_from_the_configuration() {
    let world = World::new();
    assert!(!full(&world, &[]).contains("Sandbox(exec): "));
    world.file(
        "embody.toml",
        "[sandbox]\nsession_override = false\nnetwork = \"none\"\nworkspace_mount = \"ro\"\nimage = \"box:1\"\nscope = \"session\"\nbackend = \"docker\"\nmode = \"all\"\nenabled = true\n[model]\nprovider = \"anthropic\"\nmodel = \"m-1\"\n",
    );
    let text = full(&world, &[]);
    let expected = "\nSandbox(exec): enabled=true | mode=all | backend=docker | scope=session | image=box:1 | workspace_mount=ro | network=none | session_override=false\n";
    assert!(text.contains(expected), "{text}");
    assert!(text.contains(" | provider=anthropic | model=m-1 | "), "{text}");
    world.file("embody.toml", "[sandbox]\nenabled = false\nmode = \"\"\n");
    assert!(full(&world, &[]).contains("\nSandbox(exec): enabled=false\n"));
}

// spec: P-06
#[test]
fn skills_are_listed_and_escaped() {
    let world = furnished();
    world.file("agents/mailer/skills/review/SKILL.md", "---\ndescription: The mailer's own.\n---\n");
    let skill = |name: &str, source: &str, path: &str, description: &str| {
        format!("<skill name=\"{name}\" source=\"{source}\" path=\"{path}\">\n{description}\n</skill>\n")
    };
    let plain = skill("plain", "workspace", "skills/plain", "Do it plainly.");
    let review = skill("review", "workspace", "skills/review", "Look &lt;again&gt; &amp; &quot;twice&quot;.");
    let expected = format!("<available_skills>\n{plain}{review}</available_skills>");
    assert_eq!(below(&full(&world, &[]), "Available Skills"), expected);
    // The agent's own skill of that name comes first and is the only one.
    let own = skill("review", "agent", "agents/mailer/skills/review", "The mailer&#39;s own.");
    let expected = format!("<available_skills>\n{own}{plain}</available_skills>");
    assert_eq!(below(&full(&world, &["--agent", "mailer"]), "Available Skills"), expected);
}

// spec: P-07
#[test]
fn workspace_files_lose_their_leading_comments() {
    let text = full(&furnished(), &[]);
    let expected = "### AGENTS.md\nHouse rules. <!-- stays -->\n\n### TOOLS.md\nShow drafts.";
    assert_eq!(below(&text, "Workspace Files"), expected);
    let world = World::new();
    world.file("TOOLS.md", "<!-- nothing but a comment -->\n");
    assert!(!headings(&full(&world, &[])).contains(&"Workspace Files"));
}

// spec: P-04
#[test]
fn project_files_are_read_from_the_root_inwards() {
    let world = World::new();
    let files = [
        "outer/CLAUDE.md",
        "outer/CLAUDE.local.md",
        "outer/.claude/rules/a.md",
        "outer/.claude/rules/b.md",
        "outer/AGENTS.md",
        "outer/inner/CLAUDE.md",
        "outer/inner/.claude/rules/c.md",
        "outer/inner/AGENTS.md",
    ];
    for file in files {
        world.file_outside(file, format!("FROM {file}\r\n"));
    }
    world.file_outside("outer/.claude/rules/notes.txt", "FROM nowhere");
    world.file_outside("outer/inner/CLAUDE.local.md", " \n");
    fs::create_dir_all(world.outside("outer/inner/src")).unwrap();
    let project = world.outside("outer/inner/src");
    let text = full(&world, &["--project", project.to_str().unwrap()]);
    let context = below(&text, "Project Context");
    let found: Vec<&str> = context.lines().filter_map(|line| line.strip_prefix("FROM ")).collect();
    assert_eq!(found, files);
    let root = fs::canonicalize(world.outside("outer")).unwrap();
    assert!(
        context.contains(&format!("\n\n### {}/CLAUDE.md\nFROM outer/CLAUDE.md\n", root.display())),
        "{context}"
    );
    assert!(!headings(&full(&world, &[])).contains(&"Project Context"), "only when asked for");
}

// spec: P-04
#[test]
fn a_project_that_is_not_there_is_an_error_that_names_it() {
    let world = World::new();
    world.file_outside("file", "");
    for name in ["gone", "file"] {
        let path = world.outside(name);
        let done = world.run(&["prompt", "show", "--project", path.to_str().unwrap()]).ended(1);
        assert_eq!(done.stdout, "");
        done.says(&["error: the project folder", path.to_str().unwrap(), "caused by: "]);
    }
}

// spec: P-08, P-09
#[test]
fn native_tools_are_a_line_each_and_others_come_with_schema_and_format() {
    let world = World::new();
    let native = full(&world, &["--native-tools", "true"]);
    assert_eq!(native, full(&world, &[]), "native is the default");
    let tools = below(&native, "Available Tools");
    assert!(tools.lines().all(|line| line.starts_with("- ") && line.contains(": ")), "{tools}");
    assert!(tools.contains("- read_memory: ") && tools.contains("- notify_user: "), "{tools}");
    assert!(!native.contains("tool_call") && !native.contains("\"properties\""));
    // spec: P-08
    assert!(below(&native, "Memory").contains("read_memory"));

    let inlined = full(&world, &["--native-tools", "false"]);
    let tools = below(&inlined, "Available Tools");
    let mut schemas = 0;
    for line in tools.lines().filter_map(|line| line.strip_prefix("  Parameters: ")) {
        let schema: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(schema["type"], "object");
        schemas += 1;
    }
    assert_eq!(schemas, tools.lines().filter(|line| line.starts_with("- ")).count());
    assert!(below(&inlined, "Tool Calls").contains("```tool_call\n{\"tool\": \"NAME\", \"arguments\": {"));
    let other_layout = world.show(&["--native-tools", "false"]);
    assert!(below(&other_layout, "Tool Calls").contains("```tool_call"), "only one layout explains tools");
    world.file("embody.toml", "[model]\nnative_tools = false\n");
    assert_eq!(full(&world, &[]), inlined, "the configuration says it too");
    assert_eq!(full(&world, &["--native-tools", "true"]), native, "the flag wins");
}

// spec: P-11
#[test]
fn the_two_short_entry_points() {
    let world = furnished();
    let project = world.outside("project");
    let simple = world.show(&["--simple", "--no-body", "--project", project.to_str().unwrap()]);
    assert_eq!(headings(&simple), ["Project Context", "Available Tools", "Guidelines"]);
    assert!(!simple.contains("Nova") && !simple.contains("keep watch"));
    let minimal = world.show(&["--minimal", "--no-body"]);
    assert!(headings(&minimal).is_empty() && !minimal.contains("tool"), "{minimal}");
    // spec: P-12
    assert!(minimal.chars().count() < 300);
    // spec: P-01: two introductions, with tools and without.
    assert_ne!(simple.lines().next(), minimal.lines().next());
    assert!(world.show(&["--minimal"]).starts_with("RULES\n\n---\n\n"));
    world
        .run(&["prompt", "show", "--simple", "--layout", "tagged"])
        .ended(2)
        .says(&["error: ", "`full`", "hint: "]);
    world.run(&["prompt", "show", "--simple", "--minimal"]).ended(2);
}

// spec: S-01, S-05
#[test]
fn channel_has_its_sections_in_order() {
    let world = World::new();
    world
        .file("IDENTITY.md", "---\nname: Nova\ndescription: keeper of the light\nvibe: Calm and dry.\n---\n");
    world.file("SOUL.md", "I keep watch.");
    let text = channel(&world, &["--channel", "web", "--timezone", "Asia/Tokyo"]);
    let expected = ["Identity", "Soul", "Channel", "Current Time", "Memory", "User Instructions", "Tools"];
    assert_eq!(headings(&text), expected);
    assert!(text.starts_with(
        "## Identity\nYou are Nova — keeper of the light.\nCalm and dry.\n\n## Soul\nI keep watch.\n\n"
    ));
    assert_eq!(below(&text, "Current Time"), "Sunday, 2026-03-01 21:00 (Asia/Tokyo)");
    let memory = below(&text, "Memory");
    assert!(
        memory.contains("call `read_memory` FIRST") && memory.contains("call `save_memory` at once"),
        "{memory}"
    );
    assert!(below(&text, "User Instructions").starts_with("(No custom instructions set.)\n"));
    assert!(below(&text, "Tools").starts_with("Available tools: runtime_status, "), "{text}");
}

// spec: S-01, S-09
#[test]
fn channel_without_identity_soul_or_channel() {
    let world = World::new();
    let text = channel(&world, &[]);
    assert_eq!(headings(&text), ["Soul", "Current Time", "Memory", "User Instructions", "Tools"]);
    let soul = below(&text, "Soul");
    assert!(!soul.is_empty() && soul.lines().count() <= 2, "a minimal default: {soul}");
    world.file("IDENTITY.md", "---\nvibe: Calm.\n---\n");
    assert!(
        channel(&world, &[])
            .starts_with("## Identity\nYou are an AI assistant — a personal assistant.\nCalm.\n")
    );
}

// spec: S-04
#[test]
fn each_channel_has_its_guidance_and_an_unknown_one_has_the_webs() {
    let world = World::new();
    let section = |name: &str| {
        let text = channel(&world, &["--channel", name]);
        let section = below(&text, "Channel").to_owned();
        let guidance = section.strip_prefix(&format!("You are responding via {name}.\n"));
        guidance.unwrap_or_else(|| panic!("{section}")).to_owned()
    };
    let (web, telegram, scheduled) = (section("web"), section("telegram"), section("scheduled"));
    assert!(!web.is_empty() && web != telegram && telegram != scheduled && scheduled != web);
    assert_eq!(section("fax"), web);
}

// spec: S-01, T-08
#[test]
fn an_unknown_time_zone_is_utc_and_a_note() {
    let world = World::new();
    world.file("USER.md", "---\ntimezone: Mars/Olympus\n---\n");
    let report = world.report(&NOON);
    assert!(
        report.text_of("current_time").ends_with("\nSunday, 2026-03-01 12:00 (UTC)"),
        "{}",
        report.text()
    );
    let notes = report.notes("unknown_timezone");
    assert!(
        notes.len() == 1 && notes[0].starts_with("USER.md:") && notes[0].contains("`Mars/Olympus`"),
        "{notes:?}"
    );
}

#[test]
fn an_unknown_time_zone_on_the_command_line_is_refused() {
    let world = World::new();
    for command in [&["prompt", "show"][..], &["prompt", "explain"], &["doctor"]] {
        let done = world.run(&[command, &["--timezone", "Mars/Olympus"]].concat()).ended(2);
        let done = done.says(&["'Mars/Olympus'", "unknown time zone; write a name such as Europe/Berlin"]);
        assert_eq!(done.stdout, "", "{command:?}");
    }
    world.run(&["prompt", "show", "--timezone", "Europe/Berlin"]).ok();
}

// spec: S-07
#[test]
fn standing_instructions_are_shown_up_to_their_limit() {
    let world = World::new();
    let exact = "é".repeat(2_000);
    let report = world.report(&["--instructions", &exact]);
    let section = report.text_of("user_instructions");
    assert!(section.contains(&exact) && !section.contains("2,000"), "{section}");
    assert!(report.notes("instructions_cut").is_empty());
    let report = world.report(&["--instructions", &format!("{exact}TAIL")]);
    let section = report.text_of("user_instructions");
    assert!(section.contains(&exact) && !section.contains("TAIL"), "{section}");
    assert!(section.contains("read_memory"), "the model is told where the rest is: {section}");
    let notes = report.notes("instructions_cut");
    assert!(notes.len() == 1 && notes[0].contains("2004"), "{notes:?}");
}

#[test]
fn a_wider_audience_sees_less_and_notes_report_it() {
    let world = furnished();
    world.file("memories.json", "[\"the door code\"]");
    let group = ["--audience", "group", "--instructions", "my own wishes"];
    let report = world.report(&[&["--layout", "full"], &group[..]].concat());
    assert!(!report.text().contains("Ada") && !report.text().contains("Lyon"), "{}", report.text());
    assert!(report.text().contains("Nova"));
    assert!(report.notes("withheld").iter().any(|note| note.starts_with("USER.md:")));
    let tagged = world.show(&[&["--layout", "tagged"], &group[..]].concat());
    assert!(!tagged.contains("door code"), "{tagged}");
    assert!(!channel(&world, &group).contains("my own wishes"));
    let own = world.show(&["--layout", "tagged", "--audience", "user"]);
    assert!(own.contains("door code"));
    world.run(&["prompt", "show", "--audience", "everyone"]).ended(2).says(&["everyone", "public"]);
}

#[test]
fn the_agents_own_file_chooses_the_layout_and_the_flag_wins() {
    let world = World::new();
    world.file("agents/mailer/agent.toml", "layout = \"tagged\"\n");
    assert!(world.show(&["--agent", "mailer"]).starts_with('<'));
    assert!(world.show(&["--agent", "mailer", "--layout", "channel"]).starts_with("## "));
    world.file("embody.toml", "[prompt]\nlayout = \"full\"\n");
    assert!(world.show(&["--agent", "mailer"]).starts_with('<'));
    assert!(world.show(&[]).starts_with("You are an assistant"));
    world.file("agents/mailer/agent.toml", "layout = \"letter\"\n");
    world.run(&["prompt", "show", "--agent", "mailer"]).ended(2).says(&["`letter`", "mailer", "agent.toml"]);
}

#[test]
fn names_that_are_no_names_are_refused() {
    let world = World::new();
    world.file_outside("x/SOUL.md", "outside");
    for name in ["../x", "a/b", ".hidden", "..", "/", "a\nb", "a b", &"x".repeat(65)] {
        let done = world.run(&["prompt", "show", "--agent", name]).ended(2);
        assert_eq!(done.stdout, "");
        // Says every rule that the name may have broken.
        done.says(&["cannot be the name of an agent", "letters", "64", "dot"]);
    }
    world
        .run(&["prompt", "show", "--agent", ""])
        .ended(2)
        .says(&["--agent <AGENT>", "a name cannot be empty"]);
    world.run(&["prompt", "show", "--agent", "büro-2_a.b"]).ok();
}
