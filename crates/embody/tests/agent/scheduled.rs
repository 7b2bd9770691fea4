//! `embody schedule run`: a run is a background turn.

use embody_store::Scope;
use embody_store::schedules::{AddScheduleOutcome, NewSchedule, ScheduleOrigin};
use embody_store::tasks::TaskContent;
use embody_store::untrusted_reads::ReadOrigin;
use serde_json::json;

use crate::support::model::{Model, WireFormat, rule, says};
use crate::support::stores::StoreFixture;
use crate::support::world::World;

// spec: S-04, S-08
#[test]
fn a_run_is_a_silent_turn_on_the_channel_scheduled_and_its_output_is_kept() {
    let world = World::new();
    let model = Model::start(&world, WireFormat::OpenAi, &json!([rule("digest", 0, says("Two mails."))]));
    let added =
        world.run(&["schedule", "add", "--json", "--cron", "@yearly", "Write the digest."]).ok().json();
    let id = added["id"].as_str().unwrap();
    let done = world.run(&["schedule", "run", id]).ok();
    assert_eq!(done.stdout, "Two mails.\n");
    let prompt = model.last().system();
    assert!(prompt.contains("You are responding via scheduled."), "{prompt}");
    assert!(prompt.contains("nobody is waiting"), "{prompt}");
    // The second one knows of the first, and it stays due when it was.
    world.run(&["schedule", "run", id]).ok();
    assert!(model.last().conversation().contains("Two mails."), "the runs share a thread");
    let listed = world.run(&["schedule", "list", "--json"]).ok().json();
    assert_eq!(listed["schedules"][0]["next_at"], added["next_at"]);
    let runs = world.run(&["schedule", "runs", "--json", id]).ok().json();
    let outputs: Vec<_> = runs["runs"].as_array().unwrap().iter().map(|run| &run["output"]).collect();
    assert_eq!(outputs, ["Two mails.", "Two mails."]);
    world.run(&["schedule", "pause", id]).ok();
    let paused = world.run(&["schedule", "run", id]);
    assert_eq!(paused.code, Some(1));
    assert!(paused.stderr.contains("is paused"), "{}", paused.stderr);
}

#[test]
fn a_schedule_of_the_agent_carries_its_untrusted_reads() {
    let stored = StoreFixture::workspace();
    let model =
        Model::start(&stored.world, WireFormat::OpenAi, &json!([rule("digest", 0, says("Two mails."))]));
    let scope = || Scope::new("owner", "assistant").unwrap();
    let id = stored.directly(async |store| {
        let new = NewSchedule {
            scope: scope(),
            cron: "@yearly".into(),
            timezone: "UTC".into(),
            channel: "scheduled".into(),
            prompt: "Write the digest.".into(),
            misfire: "once".into(),
            next_at: Some(i64::MAX / 2),
            origin: ScheduleOrigin::ExposedAgent,
            origins: vec![ReadOrigin { origin: "mail/read_inbox".into(), at: 7 }],
            quarantined: false,
        };
        match store.schedules().add(new).await.unwrap() {
            AddScheduleOutcome::Added(schedule) => schedule.id,
            AddScheduleOutcome::Full => panic!("there is room"),
        }
    });
    stored.run(&["schedule", "run", &id]).ok();
    let conversation = model.last().conversation();
    assert!(conversation.contains("You created the schedule yourself, after you had read"), "{conversation}");
    assert!(conversation.contains("> Write the digest."), "{conversation}");
    let marked =
        stored.directly(async |store| store.untrusted_reads().last_at(&scope(), "assistant").await.unwrap());
    let now = marked.expect("the run counts as one that has read it too");
    let origins = stored
        .directly(async |store| store.untrusted_reads().origins(&scope(), "assistant", now).await.unwrap());
    assert_eq!(origins, [ReadOrigin { origin: "mail/read_inbox".into(), at: now }]);
}

#[test]
fn a_task_in_the_prompt_has_the_trust_of_its_writer() {
    let stored = StoreFixture::workspace();
    let model = Model::alone(&stored.world, &json!([rule("go on", 0, says("Yes."))]));
    let config = model.config(WireFormat::OpenAi) + "[prompt]\nlayout = \"tagged\"\n";
    stored.world.file("embody.toml", config);
    let scope = || Scope::new("owner", "assistant").unwrap();
    stored.directly(async |store| {
        for trust in ["agent", "exposed"] {
            let task = TaskContent {
                agent: "other".into(),
                title: format!("Pay the {trust} one."),
                description: String::new(),
                status: "open".into(),
                steps: Vec::new(),
                trust: trust.into(),
            };
            store.tasks().add("owner", task).await.unwrap();
        }
    });
    for (task, trust, is_marked) in [("1", "agent", false), ("2", "exposed", true)] {
        stored.run(&["run", "--task", task, "go on"]).ok();
        assert!(model.last().system().contains(&format!("Pay the {trust} one.")), "it is in the prompt");
        let marked = stored
            .directly(async |store| store.untrusted_reads().last_at(&scope(), "assistant").await.unwrap());
        assert_eq!(marked.is_some(), is_marked, "{trust}");
    }
}

/// The owner's profile is not in prompts of other users, even if the owner starts the run.
#[test]
fn a_run_of_another_user_sees_nothing_of_the_owner() {
    let world = World::new();
    world.file("USER.md", "---\nname: Ann\n---\n");
    let model = Model::alone(&world, &json!([rule("digest", 0, says("Two mails."))]));
    world.file("embody.toml", model.config(WireFormat::OpenAi) + "[prompt]\nlayout = \"full\"\n");
    for (user, is_owner) in [("owner", true), ("guest", false)] {
        let add = ["schedule", "add", "--json", "--user", user, "--cron", "@yearly", "Write the digest."];
        let added = world.run(&add).ok().json();
        world.run(&["schedule", "run", "--user", user, added["id"].as_str().unwrap()]).ok();
        let prompt = model.last().system();
        assert_eq!(prompt.contains("The user's name is Ann."), is_owner, "{user}: {prompt}");
    }
}

#[test]
fn a_failed_run_reports_cause_and_hint() {
    let world = World::new();
    let added = world.run(&["schedule", "add", "--json", "--in", "2h", "Write the digest."]).ok().json();
    let id = added["id"].as_str().unwrap();
    let done = world.run(&["schedule", "run", id]);
    assert_eq!(done.code, Some(1));
    assert!(
        done.stderr.contains("no model is configured") && done.stderr.contains("[model]"),
        "{}",
        done.stderr
    );
    world.file(
        "embody.toml",
        "[model]\nprovider = \"openai\"\nbase_url = \"http://127.0.0.1:9/v1\"\nmodel = \"m\"\n",
    );
    let done = world.run(&["schedule", "run", id]);
    assert_eq!(done.code, Some(1));
    let runs = world.run(&["schedule", "runs", "--json", id]).ok().json();
    assert_eq!((runs["runs"].as_array().unwrap().len(), &runs["runs"][0]["outcome"]), (1, &json!("failed")));
    let said = runs["runs"][0]["output"].as_str().unwrap();
    assert!(done.stderr.contains(said.lines().next().unwrap()), "{said}\n{}", done.stderr);
}
