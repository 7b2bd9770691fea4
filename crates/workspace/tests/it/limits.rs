//! Bounds: what is larger or more than they allow is left out, and a note says so.

use std::fs;

use embody_prompt::Layout;
use embody_workspace::load;

use super::fixture::{TestWorkspace, body, notes, only_note, text};

const FILE_LIMIT: usize = 256 * 1024;

// spec: B-05
#[test]
fn a_file_may_have_its_limit_and_not_a_byte_more() {
    let fixture = TestWorkspace::new();
    fixture.file("SOUL.md", "x".repeat(FILE_LIMIT));
    let loaded = fixture.load();
    assert!(loaded.input.soul.is_some() && notes(&loaded).is_empty(), "{:?}", notes(&loaded));
    fixture.file("SOUL.md", "x".repeat(FILE_LIMIT + 1));
    let loaded = fixture.load();
    assert!(loaded.input.soul.is_none());
    let note = only_note(&loaded);
    assert!(
        note.starts_with("refused_path SOUL.md ") && note.contains("262145") && note.contains("262144"),
        "{note}"
    );
}

// spec: B-05
#[test]
fn a_sparse_giant_costs_nothing() {
    let fixture = TestWorkspace::new();
    fixture.file("SOUL.md", "");
    fs::File::options().write(true).open(fixture.path("SOUL.md")).unwrap().set_len(1 << 40).unwrap();
    assert!(only_note(&fixture.load()).contains("1099511627776"));
}

// spec: B-05
#[test]
fn a_body_has_at_most_64_includes() {
    let fixture = TestWorkspace::new();
    fixture.file("prompts/a.md", "A");
    fixture.file("prompts/agent_system.md", "@include a.md\n".repeat(66));
    let loaded = fixture.load();
    let expected = format!("{}{}", "A\n".repeat(64), "<!-- missing @include a.md -->\n".repeat(2));
    assert_eq!(body(&loaded), expected);
    assert_eq!((loaded.body.included, loaded.body.missing), (64, 2));
    let notes = notes(&loaded);
    assert!(
        notes.len() == 1 && notes[0].starts_with("refused_path prompts/agent_system.md:65 "),
        "{notes:?}"
    );
    assert!(notes[0].contains("64"), "{notes:?}");
}

#[test]
fn there_are_at_most_256_skills_whatever_else_lies_there() {
    let fixture = TestWorkspace::new();
    for number in 0..257 {
        fixture.file(&format!("skills/s{number:03}/SKILL.md"), "Does something.");
        fixture.file(&format!("skills/a-note-{number}.md"), "No skill.");
    }
    let loaded = fixture.load();
    assert_eq!(loaded.input.skills.len(), 256);
    let note = only_note(&loaded);
    assert!(note.starts_with("too_many skills ") && note.contains("256"), "{note}");
    fs::remove_dir_all(fixture.path("skills/s000")).unwrap();
    let loaded = fixture.load();
    assert!(loaded.input.skills.len() == 256 && notes(&loaded).is_empty(), "{:?}", notes(&loaded));
}

// spec: P-04
#[test]
fn a_project_folder_has_at_most_64_rules_whatever_else_lies_there() {
    let fixture = TestWorkspace::new();
    for number in 0..65 {
        fixture.file_outside(&format!("project/.claude/rules/r{number:02}.md"), format!("rule {number}"));
        fixture.file_outside(&format!("project/.claude/rules/a{number:02}.txt"), "no rule");
    }
    let mut request = fixture.request();
    request.project = Some(fixture.outside("project"));
    let loaded = load(&request).unwrap();
    assert_eq!(loaded.input.project.len(), 64);
    let note = only_note(&loaded);
    assert!(note.starts_with("too_many ") && note.contains(".claude/rules") && note.contains("64"), "{note}");
    fs::remove_file(fixture.outside("project/.claude/rules/r00.md")).unwrap();
    assert!(notes(&load(&request).unwrap()).is_empty());
}

// spec: P-04
#[test]
fn project_files_together_have_a_limit() {
    let fixture = TestWorkspace::new();
    for number in 0..6 {
        fixture.file_outside(&format!("project/.claude/rules/r{number}.md"), "x".repeat(FILE_LIMIT - 1));
    }
    let mut request = fixture.request();
    request.project = Some(fixture.outside("project"));
    let loaded = load(&request).unwrap();
    assert_eq!(loaded.input.project.len(), 4);
    let note = only_note(&loaded);
    assert!(note.contains("rules/r4.md") && note.contains("1048576"), "{note}");
}

// spec: T-09
#[test]
fn there_are_at_most_10_000_memories() {
    let fixture = TestWorkspace::new();
    let memories = |count: usize| serde_json::to_string(&vec!["m"; count]).unwrap();
    fixture.file("memories.json", memories(10_000));
    assert!(notes(&fixture.load()).is_empty());
    fixture.file("memories.json", memories(10_001));
    let loaded = fixture.load();
    let note = only_note(&loaded);
    assert!(note.contains("1 of its 10001") && note.contains("10000"), "{note}");
    assert!(text(&loaded, Layout::TAGGED).contains("<Memories>"));
}

#[test]
fn json_that_is_nested_beyond_reason_is_a_note() {
    let fixture = TestWorkspace::new();
    fixture.file("memories.json", "[".repeat(100_000));
    assert!(only_note(&fixture.load()).starts_with("bad_format memories.json:1 "));
}
