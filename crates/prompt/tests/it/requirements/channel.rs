//! The channel prompt, heading by heading.

use super::*;

// spec: S-01
#[test]
fn seven_headings_in_order() {
    let text = shown(&everything(), &Layout::CHANNEL).text;
    let headings: Vec<&str> = text.lines().filter(|line| line.starts_with("## ")).collect();
    assert_eq!(
        headings,
        [
            "## Identity",
            "## Soul",
            "## Channel",
            "## Current Time",
            "## Memory",
            "## User Instructions",
            "## Tools"
        ]
    );
}

// spec: S-01
#[test]
fn identity_line_and_its_defaults() {
    let mut input = given::empty();
    input.identity = given::nova();
    assert_eq!(
        content(&shown(&input, &Layout::CHANNEL), "identity"),
        Some("You are Nova — keeper of the calendar.\ncalm and quick")
    );
    let vibe = Identity { vibe: Some("dry".into()), ..Identity::default() };
    input.identity = Some(given::open(vibe, "IDENTITY.md"));
    assert_eq!(
        content(&shown(&input, &Layout::CHANNEL), "identity"),
        Some("You are an AI assistant — a personal assistant.\ndry")
    );
}

// spec: S-01
#[test]
fn time_and_tools() {
    let mut input = given::empty();
    let rendered = shown(&input, &Layout::CHANNEL);
    assert_eq!(content(&rendered, "current_time"), Some("Sunday, 2026-11-15 21:00 (Europe/Berlin)"));
    assert!(!kinds(&input, &Layout::CHANNEL).contains(&"tools"));
    assert!(!kinds(&input, &Layout::CHANNEL).contains(&"channel"));
    input.tools = vec![given::tool("a", ""), given::tool("b", "")];
    let rendered = shown(&input, &Layout::CHANNEL);
    assert!(content(&rendered, "tools").unwrap().starts_with("Available tools: a, b\n"));
}

// spec: S-01
#[test]
fn an_unknown_time_zone_is_noted() {
    let mut input = given::empty();
    input.now = given::now("Sunday, 2026-11-15 20:00", "UTC");
    let note = embody_prompt::Note::new(NoteKind::UnknownTimezone, "`Mars/Base`", Source::file("USER.md"));
    input.notes.push(note);
    let prompt = assemble(&input, &Layout::CHANNEL);
    assert_eq!(given::note_names(&prompt), ["unknown_timezone"]);
    assert!(render(&prompt).text.contains("## Current Time\nSunday, 2026-11-15 20:00 (UTC)\n"));
}

// spec: S-04
#[test]
fn each_channel_has_its_guidance() {
    let guidance = |channel: &str| {
        let mut input = given::empty();
        input.channel = given::text(channel, "--channel");
        let rendered = shown(&input, &Layout::CHANNEL);
        let (first, rest) = content(&rendered, "channel").unwrap().split_once('\n').unwrap();
        assert_eq!(first, format!("You are responding via {channel}."));
        rest.to_owned()
    };
    let [web, telegram, scheduled] = ["web", "telegram", "scheduled"].map(guidance);
    assert!(web != telegram && telegram != scheduled && web != scheduled);
    assert!(telegram.contains("short") && scheduled.contains("Ask nothing back"));
    assert_eq!(guidance("carrier pigeon"), web);
}

// spec: S-05
#[test]
fn memory_is_behind_tools_and_never_in_the_prompt() {
    let mut input = everything();
    input.memories = Some(given::open(vec!["SECRET FACT".into()], "memories.json"));
    let rendered = shown(&input, &Layout::CHANNEL);
    assert!(!rendered.text.contains("SECRET FACT"));
    let memory = content(&rendered, "memory").unwrap();
    assert!(memory.contains("call `read_memory` FIRST") && memory.contains("call `save_memory` at once"));
}

// spec: S-07
#[test]
fn user_instructions_up_to_their_limit() {
    let mut input = given::empty();
    let section = |input: &PromptInput| {
        let prompt = assemble(input, &Layout::CHANNEL);
        let rendered = render(&prompt);
        (content(&rendered, "user_instructions").unwrap().to_owned(), given::note_names(&prompt))
    };
    for none in [None, given::text("", "store"), given::text("\u{200B}\n", "store")] {
        input.instructions = none;
        let (text, notes) = section(&input);
        assert!(text.starts_with("(No custom instructions set.)\n") && notes.is_empty(), "{text}");
    }
    for letter in ["x", "é", "🦊"] {
        input.instructions = given::text(&letter.repeat(2_000), "store");
        let (text, notes) = section(&input);
        assert!(text.starts_with(&format!("{}\nThe user changes", letter.repeat(2_000))) && notes.is_empty());
        input.instructions = given::text(&letter.repeat(2_001), "store");
        let (text, notes) = section(&input);
        assert!(text.starts_with(&format!("{}\n<!-- embody: ", letter.repeat(2_000))), "{text}");
        assert!(text.contains("read_memory") && text.contains("update_instructions"));
        assert_eq!(notes, ["instructions_cut"]);
    }
}

// spec: S-09
#[test]
fn no_soul_is_a_short_one_and_no_identity_is_none() {
    let rendered = shown(&given::empty(), &Layout::CHANNEL);
    let soul = content(&rendered, "soul").unwrap();
    assert!(!soul.is_empty() && soul.lines().count() == 1 && soul.len() < 200, "{soul}");
    assert!(rendered.text.starts_with("## Soul\n"));
    let mut input = given::empty();
    input.identity = Some(given::open(Identity::default(), "IDENTITY.md"));
    assert_eq!(shown(&input, &Layout::CHANNEL).text, rendered.text);
}
