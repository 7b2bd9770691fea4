//! The contract of `prompt show --json`: every field, every offset, and the text to the byte.

use serde_json::Value;

use crate::support::world::{Report, SEPARATOR, World};

const NOON: [&str; 2] = ["--now", "2026-03-01T12:00:00Z"];

/// Worlds and flags whose reports must keep the contract.
fn world() -> World {
    let world = World::with_body("# Régles\n\n@include a.md\n@include gone.md\n");
    world.file("prompts/a.md", "Soyez prudents 🧭.\n");
    world.file("IDENTITY.md", "---\nname: Nóva\nemoji: 🧭\ndescription: veille\n---\n");
    world.file("SOUL.md", "Je veille — toujours.\n\n## Heading\n\n---\n\n日本語\n");
    world.file("memories.json", "[\"thé\", \"café\"]");
    world.file("tasks.json", "[{\"id\": 1, \"title\": \"Été\", \"status\": \"open\"}]");
    world.file("AGENTS.md", "Maison.");
    world
}

fn number(value: &Value) -> usize {
    usize::try_from(value.as_u64().unwrap_or_else(|| panic!("{value}"))).unwrap()
}

fn assert_contract(report: &Report, layout: &str) {
    let text = report.text();
    assert_eq!(report.0["layout"], layout);
    assert_eq!(report.0["hash"], blake3::hash(text.as_bytes()).to_hex().to_string());
    assert_eq!(number(&report.0["chars"]), text.chars().count());
    assert!(number(&report.0["tokens"]) > 0 && number(&report.0["tokens"]) < text.len());
    let stable_len = number(&report.0["stable_len"]);
    assert!(text.is_char_boundary(stable_len), "{stable_len} of {}", text.len());

    let mut at = 0;
    for section in report.sections() {
        let (start, end) = (number(&section["start"]), number(&section["end"]));
        let gap = &text[at..start];
        let expected = if at == 0 {
            ""
        } else if section["kind"] != "body"
            && report.kinds()[0] == "body"
            && at == number(&report.sections()[0]["end"])
        {
            SEPARATOR
        } else {
            "\n\n"
        };
        assert_eq!(gap, expected, "before {}", section["kind"]);
        assert!(start < end, "{section}");
        let own = &text[start..end];
        assert_eq!(number(&section["chars"]), own.chars().count());
        assert!(number(&section["tokens"]) > 0);
        assert!(
            !section["source"].as_str().unwrap().is_empty() && !section["kind"].as_str().unwrap().is_empty()
        );
        assert!(section["stable"].is_boolean() && section["truncated"] == false);
        at = end;
    }
    assert_eq!(at, text.len(), "the sections cover the text to its end");
    for note in report.0["notes"].as_array().unwrap() {
        for key in ["kind", "message", "source"] {
            assert!(!note[key].as_str().unwrap().is_empty(), "{note}");
        }
    }
}

#[test]
fn every_layout_keeps_the_contract_and_shows_the_same_text() {
    let world = world();
    for (layout, flags) in [
        ("body", &["--layout", "body"][..]),
        ("full", &["--layout", "full", "--native-tools", "false"]),
        ("full", &["--simple"]),
        ("full", &["--minimal"]),
        ("tagged", &["--layout", "tagged", "--task", "1", "--channel", "telegram", "--background"]),
        ("channel", &["--layout", "channel", "--channel", "web", "--instructions", "Toujours « poli »."]),
        ("channel", &["--no-body"]),
    ] {
        let flags = [flags, &NOON].concat();
        let report = world.report(&flags);
        assert_contract(&report, layout);
        assert_eq!(report.text(), world.show(&flags), "{flags:?}");
    }
}

// spec: B-06
#[test]
fn the_fallback_keeps_the_contract() {
    let world = World::new();
    let report = world.report(&["--layout", "body"]);
    assert_contract(&report, "body");
    assert_eq!(report.kinds(), ["fallback"]);
    assert_eq!(report.0["stable_len"], report.text().len());
}

#[test]
fn sections_name_their_sources() {
    let report = world().report(&["--layout", "channel", "--channel", "web", "--instructions", "x"]);
    for (kind, source) in [
        ("body", "prompts/agent_system.md"),
        ("identity", "IDENTITY.md"),
        ("soul", "SOUL.md"),
        ("channel", "--channel"),
        ("current_time", "clock"),
        ("memory", "built-in"),
        ("user_instructions", "--instructions"),
    ] {
        assert_eq!(report.section(kind).unwrap()["source"], source, "{kind}");
    }
}

// spec: T-12
#[test]
fn the_cacheable_prefix_is_the_same_from_turn_to_turn() {
    let world = world();
    world.file("embody.toml", "[prompt]\nfresh_last = true\n");
    for layout in ["full", "tagged", "channel"] {
        let at = |now: &str| world.report(&["--layout", layout, "--now", now]);
        let (a, b) = (at("2026-03-01T12:00:00Z"), at("2027-11-09T03:04:05Z"));
        let stable = number(&a.0["stable_len"]);
        assert_eq!(stable, number(&b.0["stable_len"]), "{layout}");
        assert_eq!(a.text()[..stable], b.text()[..stable], "{layout}");
        assert!(stable * 100 >= a.text().len() * 95, "{layout}: {stable} of {}", a.text().len());
    }
}

#[test]
fn what_does_not_fit_is_cut_and_says_so() {
    let world = World::with_body("RULES");
    world.file("SOUL.md", "A line of the soul.\n".repeat(2_000));
    world.file("embody.toml", "[prompt]\nbudget_tokens = 1500\n");
    let report = world.report(&["--layout", "channel"]);
    assert!(number(&report.0["tokens"]) <= 1_500, "{}", report.0["tokens"]);
    assert_eq!(report.section("soul").unwrap()["truncated"], true);
    assert_eq!(report.section("body").unwrap()["truncated"], false);
    let notes = report.notes("cut");
    assert!(notes.len() == 1 && notes[0].starts_with("SOUL.md:"), "{notes:?}");
    assert!(report.text().starts_with(&format!("RULES{SEPARATOR}")));
    assert_eq!(report.text(), world.show(&["--layout", "channel"]));
}

#[test]
fn json_is_all_that_is_on_stdout() {
    let world = world();
    let done = world.run(&["--json", "prompt", "show", "--log", "trace"]).ok();
    assert!(done.json().is_object() && done.stdout.ends_with("}\n"));
    assert!(done.stderr.contains("prompt loaded"), "{}", done.stderr);
}
