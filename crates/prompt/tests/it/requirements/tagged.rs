//! The tagged prompt, tag by tag.

use super::*;

// spec: T-01
#[test]
fn tagged_has_no_skills_tools_or_rules_of_its_own() {
    let sections: Vec<Kind> = Layout::TAGGED.sections.iter().map(|section| section.kind).collect();
    for kind in [Kind::Body, Kind::Skills, Kind::Tools, Kind::Guidelines] {
        assert!(!sections.contains(&kind), "{kind:?}");
    }
    let text = shown(&everything(), &Layout::TAGGED).text;
    assert!(!text.contains("tool.name") && !text.contains("skill.name"), "{text}");
}

// spec: T-02
#[test]
fn ten_tags_in_order_and_nothing_else() {
    let mut tags: Vec<&str> = Vec::new();
    for section in Layout::TAGGED.sections {
        match section.frame {
            Frame::Tag(tag) => tags.push(tag),
            _ => panic!("{:?} has no tag", section.kind),
        }
    }
    let ten = [
        "Identity",
        "Instructions",
        "Responsibilities",
        "Directories",
        "Storage",
        "Formatting",
        "Context",
        "Memories",
        "Task",
        "Background",
    ];
    assert_eq!(tags, [&["Role"], &ten[..]].concat());
    let text = shown(&everything(), &Layout::TAGGED).text;
    assert_eq!(crate::parse::tagged(&text).unwrap(), ten);
    assert!(text.starts_with("<Identity>\n") && text.ends_with("\n</Background>"));
    assert!(text.contains("\n</Identity>\n\n<Instructions>\n"));
}

// spec: T-02
#[test]
fn absent_is_absent_and_not_empty() {
    let mut input = given::empty();
    input.agent.configured = true;
    input.agent.persists = false;
    let text = shown(&input, &Layout::TAGGED).text;
    assert_eq!(text, "<Context>\nCurrent time: Sunday, 2026-11-15 21:00 (Europe/Berlin)\n</Context>");
    input.memories = Some(given::open(vec![" ".into(), "\u{200B}".into()], "memories.json"));
    input.agent.identity = given::text("\u{200B}", "agent");
    input.soul = given::text("\u{FEFF}", "SOUL.md");
    assert_eq!(shown(&input, &Layout::TAGGED).text, text);
}

// spec: T-03
#[test]
fn instructions_only_with_an_identity() {
    let mut input = given::empty();
    input.agent.configured = true;
    input.agent.persists = false;
    input.agent.instructions = given::text("Work.", "agent");
    assert_eq!(kinds(&input, &Layout::TAGGED), ["context"]);
    let sign = Identity { emoji: Some("🦊".into()), ..Identity::default() };
    input.identity = Some(given::open(sign, "IDENTITY.md"));
    assert_eq!(kinds(&input, &Layout::TAGGED), ["context"], "a sign alone is no identity");
    input.agent.identity = given::text("I am Nova.", "agent");
    assert_eq!(kinds(&input, &Layout::TAGGED), ["identity", "instructions", "context"]);
    let text = shown(&input, &Layout::TAGGED).text;
    assert!(
        text.starts_with("<Identity>\nI am Nova.\n</Identity>\n\n<Instructions>\nWork.\n</Instructions>\n\n")
    );
}

// spec: T-03
#[test]
fn a_legacy_role_stands_for_both() {
    let mut input = everything();
    input.agent.role = given::text("You sort mail.", "agent");
    let rendered = shown(&input, &Layout::TAGGED);
    assert!(rendered.text.starts_with("<Role>\nYou sort mail.\n</Role>\n\n<Responsibilities>\n"));
    assert!(!rendered.text.contains("<Identity>") && !rendered.text.contains("<Instructions>"));
}

// spec: T-04
#[test]
fn responsibilities_are_addressable_and_readable() {
    let mut input = given::empty();
    let duty = Responsibility {
        title: "Mail & \"more\" <now>".into(),
        content: "If a < b, say \"so\" & go on.\n</Responsibility>\n<b>bold</b>".into(),
    };
    input.agent.responsibilities = vec![given::open(duty, "agent")];
    assert_eq!(
        content(&shown(&input, &Layout::TAGGED), "responsibilities"),
        Some(
            "<Responsibility title=\"Mail &amp; &quot;more&quot; &lt;now&gt;\">\n\
             If a < b, say \"so\" & go on.\n&lt;/Responsibility>\n<b>bold</b>\n</Responsibility>"
        )
    );
    input.agent.responsibilities.clear();
    assert!(!kinds(&input, &Layout::TAGGED).contains(&"responsibilities"));
}

// spec: T-05
#[test]
fn directories_with_and_without_more_of_them() {
    let mut input = given::empty();
    assert!(!kinds(&input, &Layout::TAGGED).contains(&"directories"));
    let directories = |extra: &[&str]| {
        let extra = extra.iter().map(|path| (*path).to_owned()).collect();
        Some(given::open(Directories { cwd: "/home/nova".into(), extra }, "agent"))
    };
    input.directories = directories(&[]);
    let rendered = shown(&input, &Layout::TAGGED);
    let alone = content(&rendered, "directories").unwrap();
    let mut lines = alone.lines();
    assert_eq!(lines.next(), Some("Your working directory is: /home/nova"));
    assert!(lines.next().is_some_and(|line| line.contains("check before creating")), "{alone}");
    assert_eq!(lines.next(), None);
    input.directories = directories(&["/data", "/tmp/x"]);
    let rendered = shown(&input, &Layout::TAGGED);
    let more = content(&rendered, "directories").unwrap();
    assert!(more.starts_with(alone) && more.ends_with(":\n- /data\n- /tmp/x"), "{more}");
}

// spec: T-06
#[test]
fn storage_teaches_four_places() {
    let mut input = given::empty();
    let rendered = shown(&input, &Layout::TAGGED);
    let storage = content(&rendered, "storage").unwrap();
    for place in ["- Files:", "- Instructions:", "- Memory:", "- Triggers:"] {
        assert!(storage.contains(place), "{place}");
    }
    input.agent.persists = false;
    assert!(!kinds(&input, &Layout::TAGGED).contains(&"storage"));
}

// spec: T-07
#[test]
fn formatting_only_for_telegram() {
    let mut input = given::empty();
    for (channel, expected) in [
        ("telegram", true),
        ("telegram-group", true),
        ("web", false),
        ("scheduled", false),
        ("x-telegram", false),
    ] {
        input.channel = given::text(channel, "--channel");
        assert_eq!(kinds(&input, &Layout::TAGGED).contains(&"formatting"), expected, "{channel}");
    }
    input.channel = None;
    assert!(!kinds(&input, &Layout::TAGGED).contains(&"formatting"));
}

// spec: T-08
#[test]
fn context_always_has_the_time() {
    let mut input = given::empty();
    input.now = given::now("Monday, 2027-01-04 08:15", "Asia/Tokyo");
    let expected = "Current time: Monday, 2027-01-04 08:15 (Asia/Tokyo)";
    assert_eq!(content(&shown(&input, &Layout::TAGGED), "context"), Some(expected));
}

// spec: T-09
#[test]
fn memories_are_a_line_each() {
    let mut input = given::empty();
    let memories = vec!["Ada likes tea.".into(), " ".into(), "Two\nlines\r\nhere.".into()];
    input.memories = Some(given::open(memories, "memories.json"));
    assert_eq!(
        content(&shown(&input, &Layout::TAGGED), "memories"),
        Some("- Ada likes tea.\n- Two lines here.")
    );
}

// spec: T-09
#[test]
fn what_sources_report_is_carried_on() {
    let mut input = given::empty();
    let note = embody_prompt::Note::new(NoteKind::BadFormat, "not JSON", Source::file("memories.json"));
    input.notes.push(note.clone());
    let prompt = assemble(&input, &Layout::TAGGED);
    assert_eq!(prompt.notes, [note]);
    assert!(!render(&prompt).text.contains("<Memories>"));
}

// spec: T-10
#[test]
fn task_to_the_byte() {
    let mut input = given::empty();
    let step = |text: &str, state| Step { text: text.into(), state };
    let task = Task {
        id: "42".into(),
        title: "Ship it".into(),
        description: Some("All of it.\nToday.".into()),
        status: Some("in_progress".into()),
        steps: vec![
            step("Build", StepState::Done),
            step("Test", StepState::Current),
            step("Release", StepState::Open),
        ],
    };
    input.task = Some(given::open(task, "task"));
    let rendered = shown(&input, &Layout::TAGGED);
    let text = content(&rendered, "task").unwrap();
    let (directive, rest) = text.split_once("\n\n").unwrap();
    assert!(directive.starts_with("You are working on task #42. "), "{directive}");
    assert_eq!(
        rest,
        "Title: Ship it\nDescription: All of it.\nToday.\nStatus: in_progress\nSteps:\n\
         1. ✓ Build (done)\n2. → Test\n3. ○ Release"
    );
    assert!(rendered.text.ends_with("3. ○ Release\n</Task>"));
    let done = Task {
        id: "1".into(),
        title: "t".into(),
        steps: vec![step("a", StepState::Done)],
        ..Task::default()
    };
    input.task = Some(given::open(done, "task"));
    assert!(shown(&input, &Layout::TAGGED).text.ends_with("1. ✓ a (done)\n</Task>"));
}

// spec: T-10
#[test]
fn a_task_without_details_is_its_title() {
    let mut input = given::empty();
    input.task = Some(given::open(Task { id: "7".into(), title: "Rest".into(), ..Task::default() }, "task"));
    let rendered = shown(&input, &Layout::TAGGED);
    assert!(content(&rendered, "task").unwrap().ends_with(".\n\nTitle: Rest"));
    input.task = None;
    assert!(!kinds(&input, &Layout::TAGGED).contains(&"task"));
}

// spec: T-11
#[test]
fn background_names_notify_user() {
    let mut input = given::empty();
    assert!(!kinds(&input, &Layout::TAGGED).contains(&"background"));
    input.background = true;
    assert!(content(&shown(&input, &Layout::TAGGED), "background").unwrap().contains("notify_user"));
}

// spec: T-12
#[test]
fn slow_sections_come_first() {
    let rendered = shown(&everything(), &Layout::TAGGED);
    let place = |kind: Kind| rendered.spans.iter().position(|span| span.kind == kind).unwrap();
    assert!(place(Kind::Identity) < place(Kind::Directories));
    assert!(place(Kind::Formatting) < place(Kind::Context) && place(Kind::Context) < place(Kind::Task));
    assert!(rendered.text[..rendered.stable_len].ends_with("<Context>\nCurrent time: "));
}
