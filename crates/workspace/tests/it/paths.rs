//! Where the reader may go: names, links, folders that are not there.

use std::fs;
use std::path::PathBuf;

use embody_prompt::Layout;
use embody_workspace::{AgentName, Error, load};

use super::fixture::{TestWorkspace, body, notes, only_note, request, text};

#[test]
fn an_agents_name_is_a_plain_name() {
    for name in ["assistant", "a", "mail-er_2.0", "büro", &"x".repeat(64)] {
        assert_eq!(AgentName::new(name).unwrap().as_str(), name);
    }
    let long = "x".repeat(65);
    for name in [
        "",
        ".",
        "..",
        ".hidden",
        "../x",
        "a/b",
        "/etc",
        "a\\b",
        "a\0b",
        "a b",
        "a\n",
        "~",
        "é".repeat(33).as_str(),
        &long,
    ] {
        let error = AgentName::new(name).unwrap_err();
        assert!(matches!(&error, Error::AgentName { name: given } if given == name));
        assert!(
            error.to_string().starts_with(&format!("`{name}` cannot be the name of an agent")),
            "{error}"
        );
    }
}

// spec: B-01
#[test]
fn a_workspace_that_is_not_there_is_an_empty_one() {
    let fixture = TestWorkspace::new();
    let nowhere = fixture.outside("nowhere/at/all");
    let loaded = load(&request(nowhere.clone(), "a")).unwrap();
    assert!(notes(&loaded).is_empty() && !loaded.body.loaded, "{:?}", notes(&loaded));
    assert!(!text(&loaded, Layout::CHANNEL).is_empty());
    assert!(!nowhere.exists());
    // Nor is a file a workspace.
    fixture.file_outside("file", "text");
    let loaded = load(&request(fixture.outside("file"), "a")).unwrap();
    assert!(notes(&loaded).is_empty() && !loaded.body.loaded, "{:?}", notes(&loaded));
}

// spec: B-05
#[test]
fn every_file_of_the_workspace_stays_inside_it() {
    let fixture = TestWorkspace::new();
    fixture.file_outside("secret", "---\nname: SECRET\n---\nSECRET");
    let files = [
        "IDENTITY.md",
        "SOUL.md",
        "USER.md",
        "AGENTS.md",
        "TOOLS.md",
        "memories.json",
        "skills/s/SKILL.md",
        "prompts/agent_system.md",
        "agents/mailer/agent.toml",
    ];
    for file in files {
        fixture.link(file, fixture.outside("secret"));
    }
    let loaded = fixture.load();
    for layout in Layout::ALL {
        assert!(!text(&loaded, layout).contains("SECRET"), "{}", layout.name);
    }
    let notes = notes(&loaded);
    for file in files {
        let found = notes
            .iter()
            .any(|note| note.starts_with(&format!("refused_path {file} ")) && note.contains("link"));
        assert!(found, "{file}: {notes:#?}");
    }
}

// spec: B-05
#[test]
fn folders_that_lead_out_are_not_entered_and_noted() {
    let fixture = TestWorkspace::new();
    fixture.file_outside("elsewhere/SOUL.md", "SECRET");
    fixture.file_outside("elsewhere/s/SKILL.md", "SECRET");
    fixture.link("agents/mailer", fixture.outside("elsewhere"));
    fixture.link("skills", fixture.outside("elsewhere"));
    let loaded = fixture.load();
    assert!(!text(&loaded, Layout::FULL).contains("SECRET"));
    let notes = notes(&loaded);
    assert!(notes.len() == 2 && notes.iter().all(|note| note.contains("link")), "{notes:#?}");
    assert!(
        notes[0].starts_with("refused_path agents/mailer ") && notes[1].starts_with("refused_path skills ")
    );
}

// spec: B-05
#[test]
fn links_inside_the_workspace_are_followed() {
    let fixture = TestWorkspace::new();
    fixture.file("shelf/soul.md", "I am linked.");
    fixture.link("SOUL.md", "shelf/soul.md");
    fixture.file("agents/writer/SOUL.md", "I am the writer's.");
    fixture.link("agents/mailer", "writer");
    let loaded = fixture.load();
    assert!(text(&loaded, Layout::FULL).contains("I am the writer's."));
    assert!(notes(&loaded).is_empty(), "{:?}", notes(&loaded));
    // The workspace itself may be reached by a link.
    fixture.link("../alias", fixture.workspace());
    let loaded = load(&request(fixture.outside("alias"), "other")).unwrap();
    assert!(text(&loaded, Layout::FULL).contains("I am linked."));
}

#[test]
fn links_that_lead_nowhere_or_in_circles_break_nothing() {
    let fixture = TestWorkspace::new();
    fixture.link("SOUL.md", "gone");
    fixture.link("AGENTS.md", "AGENTS.md");
    fixture.link("prompts", "prompts");
    let loaded = fixture.load();
    assert!(!text(&loaded, Layout::FULL).is_empty());
    assert!(
        notes(&loaded).iter().all(|note| !note.contains("SOUL.md")),
        "a link to nothing is a missing file"
    );
}

// spec: B-01, B-05
#[test]
fn a_body_outside_is_the_operators_choice_and_its_includes_stay_beside_it() {
    let fixture = TestWorkspace::new();
    fixture.file_outside("bodies/body.md", "@include part.md\n@include ../secret");
    fixture.file_outside("bodies/part.md", "PART");
    fixture.file_outside("secret", "SECRET");
    let mut request = fixture.request();
    request.body = fixture.outside("bodies/body.md");
    assert_eq!(body(&load(&request).unwrap()), "PART\n<!-- missing @include ../secret -->");
    // A relative path is one inside the workspace.
    request.body = PathBuf::from("../bodies/body.md");
    let loaded = load(&request).unwrap();
    assert!(loaded.input.body.is_none());
    assert!(only_note(&loaded).contains("leaves its folder"));
}

// spec: P-04
#[test]
fn a_project_file_that_is_there_twice_is_read_once() {
    let fixture = TestWorkspace::new();
    fixture.file_outside("project/AGENTS.md", "ONE");
    std::os::unix::fs::symlink("AGENTS.md", fixture.outside("project/CLAUDE.md")).unwrap();
    let mut request = fixture.request();
    request.project = Some(fixture.outside("project"));
    let loaded = load(&request).unwrap();
    assert_eq!(text(&loaded, Layout::FULL).matches("ONE").count(), 1);
    assert!(only_note(&loaded).starts_with("duplicate "));
}

// spec: P-04
#[test]
fn a_project_must_be_a_folder() {
    let fixture = TestWorkspace::new();
    fixture.file_outside("file", "");
    for name in ["gone", "file"] {
        let mut request = fixture.request();
        request.project = Some(fixture.outside(name));
        let error = load(&request).unwrap_err();
        assert!(error.to_string().contains(fixture.outside(name).to_str().unwrap()), "{error}");
        assert!(std::error::Error::source(&error).is_some());
    }
}

#[test]
fn names_that_are_not_utf8_are_passed_over() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let fixture = TestWorkspace::new();
    fixture.file("skills/good/SKILL.md", "Does good.");
    let odd = fixture.path("skills").join(OsStr::from_bytes(b"odd\xff"));
    fs::create_dir(&odd).unwrap();
    fs::write(odd.join("SKILL.md"), "Does odd.").unwrap();
    assert_eq!(fixture.load().input.skills.len(), 1);
}
