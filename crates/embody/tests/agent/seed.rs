//! The manual checks of the seed, automated: each acceptance criterion is named by the test that proves it end to end.

use serde_json::json;

use crate::support::model::{Model, WireFormat, calls, rule, says};
use crate::support::world::World;

// spec: S-11, S-06. AC-7, AC-8: the agent changes its own instructions, and the next session has them.
#[test]
fn always_answer_in_bullet_points() {
    for speaks in [WireFormat::OpenAi, WireFormat::Anthropic] {
        let world = World::new();
        let rules = json!([
            rule(
                "always",
                0,
                calls("update_instructions", json!({"instructions": "Answer in bullet points."}))
            ),
            rule("always", 1, says("- Noted.")),
            rule("hello", 0, says("- Hello.")),
        ]);
        let model = Model::start(&world, speaks, &rules);
        let done = world.run(&["run", "always answer in bullet points"]).ok();
        assert_eq!(done.stdout, "- Noted.\n");
        assert!(model.requests()[0].tools().contains(&"update_instructions".to_owned()));
        assert!(!model.requests()[0].system().contains("Answer in bullet points."));
        assert_eq!(world.run(&["instructions", "show"]).ok().stdout.trim_end(), "Answer in bullet points.");
        world.run(&["run", "hello"]).ok();
        let system = model.last().system();
        let (_, instructions) = system.split_once("## User Instructions").expect("the section is there");
        assert!(instructions.contains("Answer in bullet points."), "{system}");
    }
}

// spec: S-11, S-05. AC-5: what it remembers is read, never injected.
#[test]
fn what_do_you_remember_about_me() {
    let world = World::new();
    world.run(&["memory", "add", "The owner plays the viola."]).ok();
    let rules = json!([
        rule("remember", 0, calls("read_memory", json!({"query": "what does the owner play"}))),
        rule("remember", 1, says("You play the viola.")),
    ]);
    let model = Model::start(&world, WireFormat::OpenAi, &rules);
    let done = world.run(&["run", "what do you remember about me?"]).ok();
    assert_eq!(done.stdout, "You play the viola.\n");
    let requests = model.requests();
    assert!(requests.iter().all(|requests| !requests.system().contains("viola")));
    assert!(requests[0].system().contains("read_memory"));
    assert!(requests[1].conversation().contains("viola"));
}

// spec: S-01, S-02, S-09. AC-1, AC-2, AC-9: sections from soul and identity of the store, one builder.
#[test]
fn soul_and_identity_of_the_store_are_sections() {
    let world = World::new();
    world.file("soul.txt", "Curious and brief.");
    let (soul, identity) =
        (world.path("soul.txt"), r#"{"name": "Ada", "description": "a librarian", "vibe": "calm"}"#);
    world.run(&["agent", "set", "assistant", "--soul", soul.to_str().unwrap(), "--identity", identity]).ok();
    let model = Model::start(&world, WireFormat::OpenAi, &json!([rule("hello", 0, says("Hello."))]));
    world.run(&["run", "hello"]).ok();
    let system = model.last().system();
    let places: Vec<usize> =
        ["## Identity", "You are Ada — a librarian.", "## Soul", "Curious and brief.", "## Channel"]
            .iter()
            .map(|part| system.find(part).unwrap_or_else(|| panic!("{part} is missing in {system}")))
            .collect();
    assert!(places.is_sorted(), "{system}");
}

// spec: S-01, S-04, S-08, T-08. AC-3, AC-4, AC-10: every channel's prompt has its channel and the time.
#[test]
fn every_channel_has_its_name_and_the_time() {
    let world = World::new();
    world.file("USER.md", "---\nname: Ann\ntimezone: Europe/Berlin\n---\n");
    let model = Model::start(&world, WireFormat::OpenAi, &json!([rule("hello", 0, says("Hello."))]));
    for channel in ["web", "telegram", "scheduled"] {
        world.run(&["run", "--channel", channel, "hello"]).ok();
        let system = model.last().system();
        assert!(system.contains(&format!("You are responding via {channel}.")), "{system}");
        let (_, time) = system.split_once("## Current Time").expect("the time is there");
        assert!(time.contains("(Europe/Berlin)"), "{system}");
    }
}
