//! Files that are not what they should be: each becomes a note with its source and line, and the rest is read.

use embody_prompt::{Layout, Source};
use embody_workspace::{Error, load};

use super::fixture::{TestWorkspace, notes, only_note, text};

#[test]
fn broken_front_matter_names_the_line_in_the_file() {
    for file in ["IDENTITY.md", "USER.md", "skills/s/SKILL.md"] {
        let fixture = TestWorkspace::new();
        fixture.file(file, "---\nname: fine\nvibe: [never closed\n---\n");
        let note = only_note(&fixture.load());
        assert!(note.starts_with(&format!("bad_format {file}:3 ")), "{note}");
        assert!(note.contains("YAML") && note.lines().count() == 1, "{note}");
        assert!(!note.contains("line 2"), "one place, not two that differ: {note}");
    }
}

#[test]
fn a_skill_with_broken_front_matter_is_still_offered() {
    let fixture = TestWorkspace::new();
    fixture.file("skills/daily/SKILL.md", "---\nname: [x\n---\n# Daily\n\nLook back.\n");
    assert!(text(&fixture.load(), Layout::FULL).contains("<skill name=\"daily\" source=\"workspace\""));
}

// spec: P-02
#[test]
fn identity_without_front_matter_is_a_note_with_a_hint() {
    let fixture = TestWorkspace::new();
    for content in ["I am Nova.", "---\nname: Nova\n", "name: Nova\n---\n"] {
        fixture.file("IDENTITY.md", content);
        let note = only_note(&fixture.load());
        assert!(note.starts_with("bad_format IDENTITY.md:1 ") && note.contains("`---`"), "{note}");
    }
    fixture.file("IDENTITY.md", "---\nname: Nova\n---\nI like the sea.\n");
    let note = only_note(&fixture.load());
    assert!(note.starts_with("unused IDENTITY.md") && note.contains("SOUL.md"), "{note}");
}

#[test]
fn a_broken_agent_file_names_its_line() {
    let fixture = TestWorkspace::new();
    for (toml, line) in [
        ("identity = 1", 1),
        ("identity = \"a\"\r\n\r\npersists = 3\r\n", 3),
        ("\u{FEFF}identity = \"a\"\n\nunknown = 1\n", 3),
        ("identity = \"a\"\nb\"", 2),
        ("a = 1\nb = = 2", 2),
        ("[[responsibility]]\ntitle = \"t\"\ncontents = \"c\"\n", 3),
    ] {
        fixture.file("agents/mailer/agent.toml", toml);
        let loaded = fixture.load();
        let note = only_note(&loaded);
        assert!(
            note.starts_with(&format!("bad_format agents/mailer/agent.toml:{line} not used, ")),
            "{toml:?}: {note}"
        );
        let agent = &loaded.input.agent;
        assert!(agent.configured && !agent.persists && agent.identity.is_none(), "nothing is granted");
        assert!(loaded.input.directories.is_none(), "nothing is granted");
    }
}

// spec: T-09
#[test]
fn broken_memories_name_their_line() {
    let fixture = TestWorkspace::new();
    for (json, line) in [("[\"a\"\n\"b\"]", 2), ("[\"a\",\r\n\r\n", 3), ("{}", 1), ("\"a\"", 1), ("null", 1)]
    {
        fixture.file("memories.json", json);
        let loaded = fixture.load();
        let note = only_note(&loaded);
        assert!(note.starts_with(&format!("bad_format memories.json:{line} ")), "{json:?}: {note}");
        assert!(loaded.input.memories.is_none());
    }
}

// spec: T-10
#[test]
fn broken_tasks_are_an_error_only_for_a_run_that_needs_one() {
    let fixture = TestWorkspace::new();
    fixture.file("tasks.json", "[{");
    assert!(notes(&fixture.load()).is_empty());
    let mut request = fixture.request();
    request.task = Some("1".into());
    assert!(matches!(load(&request).unwrap_err(), Error::Tasks(_)));
    fixture.file(
        "tasks.json",
        "\u{FEFF}[{\"id\": 1, \"title\": \"One\", \"more\": true},\r\n {\"id\": \"x\", \"title\": \"Two\"}]",
    );
    assert!(text(&load(&request).unwrap(), Layout::TAGGED).contains("Title: One"));
    request.task = Some("x".into());
    let loaded = load(&request).unwrap();
    assert_eq!(loaded.input.task.as_ref().unwrap().source().to_string(), "tasks.json:2");
    request.task = Some("gone".into());
    let error = load(&request).unwrap_err();
    assert_eq!(error.to_string(), "unknown task `gone`: tasks.json has 1, x");
}

// spec: T-10
#[test]
fn a_refused_task_file_is_reported() {
    let fixture = TestWorkspace::new();
    fixture.file("tasks.json", b"[\xff]");
    let mut request = fixture.request();
    request.task = Some("1".into());
    let error = load(&request).unwrap_err();
    assert!(error.to_string().contains("UTF-8"), "{error}");
}

// spec: P-03
#[test]
fn byte_order_marks_and_line_ends_never_reach_a_prompt() {
    let fixture = TestWorkspace::new();
    for file in ["prompts/agent_system.md", "prompts/part.md", "SOUL.md", "AGENTS.md", "TOOLS.md"] {
        fixture.file(file, "\u{FEFF}one\r\ntwo\r\n@include part.md\r\n");
    }
    fixture.file("IDENTITY.md", "\u{FEFF}---\r\nname: Nova\r\n---\r\n");
    fixture.file("memories.json", "\u{FEFF}[\"a\\r\\nb\"]\r\n");
    let loaded = fixture.load();
    for layout in Layout::ALL {
        let text = text(&loaded, layout);
        assert!(!text.contains('\r') && !text.contains('\u{FEFF}'), "{}: {text:?}", layout.name);
    }
    assert!(notes(&loaded).is_empty(), "{:?}", notes(&loaded));
}

#[test]
fn text_that_is_not_utf8_is_refused_file_by_file() {
    let fixture = TestWorkspace::new();
    for file in ["SOUL.md", "USER.md", "memories.json", "agents/mailer/agent.toml"] {
        fixture.file(file, b"caf\xe9");
    }
    fixture.file("TOOLS.md", "Fine.");
    let loaded = fixture.load();
    let notes = notes(&loaded);
    assert_eq!(notes.len(), 4, "{notes:#?}");
    assert!(
        notes.iter().all(|note| note.starts_with("refused_path ") && note.contains("UTF-8")),
        "{notes:#?}"
    );
    assert!(text(&loaded, Layout::FULL).contains("Fine."));
}

#[test]
fn a_stored_identity_that_is_no_object_is_a_note() {
    let fixture = TestWorkspace::new();
    fixture.file("IDENTITY.md", "---\nname: Nova\n---\n");
    for (json, noted) in [("\"Ada\"", true), ("[1]", true), ("null", false), ("{}", false)] {
        let mut request = fixture.request();
        request.stored.identity = Some((json.parse().unwrap(), Source::fixed("store")));
        let loaded = load(&request).unwrap();
        let expected = "bad_format store the stored identity is not used: it is not a JSON object";
        assert_eq!(notes(&loaded), if noted { vec![expected.to_owned()] } else { Vec::new() }, "{json}");
        assert!(text(&loaded, Layout::FULL).contains("Nova"), "{json}");
    }
}
