//! `embody schedule` as people use it, on every kind of store.

use embody_store::Lease;
use embody_store::schedules::{FinishRun, RunOutcome, RunStart};
use serde_json::Value;

use crate::support::stores::{StoreFixture, on_each_store};
use crate::support::world::World;

on_each_store!(
    one_is_added_listed_paused_resumed_and_removed,
    its_runs_are_shown,
    users_see_only_their_own_schedules,
);

fn add(stored: &StoreFixture, args: &[&str]) -> Value {
    stored.run(&[&["schedule", "add", "--json", "--timezone", "Europe/Berlin"], args].concat()).ok().json()
}

fn listed(stored: &StoreFixture) -> Vec<Value> {
    stored.run(&["schedule", "list", "--json"]).ok().json()["schedules"].as_array().unwrap().clone()
}

fn id(schedule: &Value) -> &str {
    schedule["id"].as_str().unwrap()
}

fn one_is_added_listed_paused_resumed_and_removed(stored: &StoreFixture) {
    assert_eq!(stored.run(&["schedule", "list"]).ok().stdout, "No schedules.\n");
    let done = stored.run(&[
        "schedule",
        "add",
        "--cron",
        "0 8 * * mon-fri",
        "--timezone",
        "europe/berlin",
        "Write the\ndigest.",
    ]);
    let said = done.ok().stdout;
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines.len() == 4 && lines[0].starts_with("added "), "{said}");
    assert!(lines[1..].iter().all(|line| line.contains(" 08:00:00 +0") && line.ends_with(" Europe/Berlin")));
    let once = add(stored, &["--in", "20m", "--misfire", "skip", "--agent", "writer", "Tea."]);
    assert_eq!((once["next"].as_array().unwrap().len(), &once["misfire"]), (1, &"skip".into()));
    assert_eq!(once["cron"], format!("@once {}", once["next_at"].as_str().unwrap().replace(".000000", "")));
    let all = listed(stored);
    assert_eq!(
        (all.len(), &all[0]["text"], &all[0]["timezone"]),
        (2, &"Write the\ndigest.".into(), &"Europe/Berlin".into())
    );
    assert_eq!(
        (&all[0]["channel"], &all[0]["misfire"], &all[0]["last"]),
        (&"scheduled".into(), &"once".into(), &Value::Null)
    );
    let of_one = stored.run(&["schedule", "list", "--agent", "writer"]).ok().stdout;
    assert!(of_one.contains("Tea.") && !of_one.contains("digest"), "{of_one}");
    stored.run(&["schedule", "pause", id(&all[0])]).ok();
    assert_eq!((&listed(stored)[0]["enabled"], &listed(stored)[0]["next_at"]), (&false.into(), &Value::Null));
    assert!(stored.run(&["schedule", "list"]).ok().stdout.contains("  paused\n"));
    let run = stored.run(&["schedule", "resume", id(&all[0])]).ok().stdout;
    assert!(run.starts_with("resumed ") && run.contains("\ndue "), "{run}");
    assert_eq!(listed(stored)[0]["next_at"], all[0]["next_at"]);
    stored.run(&["schedule", "remove", id(&all[0])]).ok();
    assert_eq!(listed(stored).len(), 1);
    for command in ["remove", "pause", "resume", "runs", "run"] {
        let done = stored.run(&["schedule", command, id(&all[0])]);
        assert_eq!(done.code, Some(1));
        assert!(done.stderr.contains("error: user `owner` has no schedule `"), "{}", done.stderr);
    }
}

fn its_runs_are_shown(stored: &StoreFixture) {
    let schedule = add(stored, &["--cron", "@daily", "Hello."]);
    assert_eq!(stored.run(&["schedule", "runs", id(&schedule)]).ok().stdout, "No runs yet.\n");
    stored.directly(async |store| {
        store.schedules().enable("owner", id(&schedule), Some(1_793_001_600_000_000 / 2)).await.unwrap();
        let lease = Lease { owner: "test".into(), duration: std::time::Duration::from_secs(60) };
        let claim = store.schedules().claim_due(&lease, 1).await.unwrap().remove(0);
        assert_eq!(store.schedules().start_run(&claim).await.unwrap(), RunStart::Started);
        let output = "no model\u{1b}[2J\nat all".to_owned();
        store
            .schedules()
            .finish_run(&claim, FinishRun { outcome: RunOutcome::Failed, output, next_at: None })
            .await
            .unwrap();
    });
    let shown = stored.run(&["schedule", "runs", id(&schedule)]).ok().stdout;
    assert!(shown.contains("failed after 0 s\n") && shown.contains("\n  at all\n"), "{shown}");
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
    let json = stored.run(&["schedule", "runs", "--json", id(&schedule)]).ok().json();
    assert_eq!(json["runs"][0]["outcome"], "failed");
    assert_eq!(listed(stored)[0]["last"]["outcome"], "failed");
    let list = stored.run(&["schedule", "list"]).ok().stdout;
    assert!(list.contains("  finished\n") && list.contains("last failed, due "), "{list}");
    // What has been run outlives the schedule.
    stored.run(&["schedule", "remove", id(&schedule)]).ok();
    assert!(stored.run(&["schedule", "runs", id(&schedule)]).ok().stdout.contains("failed"));
}

fn users_see_only_their_own_schedules(stored: &StoreFixture) {
    let hers = add(stored, &["--user", "ann", "--cron", "@daily", "Hers."]);
    assert_eq!(listed(stored).len(), 0);
    assert_eq!(stored.run(&["schedule", "remove", id(&hers)]).code, Some(1));
    let list = stored.run(&["schedule", "list", "--user", "ann"]).ok().stdout;
    assert!(list.contains("Hers."), "{list}");
}

#[test]
fn a_wrong_command_is_reported_and_stores_nothing() {
    let world = World::new();
    for (args, words) in [
        (&["--cron", "61 * * * *", "x"][..], "error: invalid minute `61`; allowed: 0 to 59"),
        (&["--cron", "0 0 30 2 *", "x"], "`0 0 30 2 *` never occurs"),
        (&["--cron", "@daily", "--timezone", "Mars/Base", "x"], "unknown time zone `Mars/Base`"),
        (&["--cron", "@daily", " "], "the message is empty"),
        (&["--in", "0s", "x"], "write a duration of up to a year"),
        (&["--in", "1h", "--at", "2027-01-01T00:00:00Z", "x"], "cannot be used with"),
        (&["x"], "--cron"),
        (&["--cron", "@daily", "--misfire", "never", "x"], "skip, once, all"),
    ] {
        let done = world.run(&[&["schedule", "add"], args].concat());
        assert_eq!(done.code, Some(2), "{args:?}");
        assert!(done.stderr.contains(words), "{args:?}: {}", done.stderr);
        assert!(!world.path("embody.db").exists(), "{args:?}");
    }
    for (at, words) in
        [("2020-01-01 09:00", "`2020-01-01 09:00` is in the past"), ("soon", "invalid date or time `soon`")]
    {
        let done = world.run(&["schedule", "add", "--at", at, "x"]);
        assert_eq!(done.code, Some(2));
        assert!(done.stderr.contains(words), "{}", done.stderr);
    }
}

/// Nothing is planned by a guess.
#[test]
fn an_unknown_time_zone_in_the_workspace_is_rejected_with_its_file() {
    let world = World::new();
    world.file("USER.md", "---\ntimezone: Europa/Berlin\n---\n");
    for when in [&["--cron", "@daily"][..], &["--at", "2037-01-31 09:00"], &["--in", "20m"]] {
        let done = world.run(&[&["schedule", "add"], when, &["x"]].concat()).ended(2);
        done.says(&[
            "error: unknown time zone `Europa/Berlin` in USER.md",
            "hint: write a name such as Europe/Berlin, America/New_York or UTC there, or pass `--timezone`",
        ]);
    }
    assert_eq!(world.run(&["schedule", "list", "--json"]).ok().json()["schedules"], serde_json::json!([]));
    world.run(&["schedule", "add", "--cron", "@daily", "--timezone", "Europe/Berlin", "x"]).ok();
}

/// The zone of the prompts is the zone of the schedules.
#[test]
fn the_users_own_time_zone_is_meant() {
    let world = World::new();
    world.file("USER.md", "---\nname: Ann\ntimezone: Asia/Kathmandu\n---\n");
    let added = world.run(&["schedule", "add", "--json", "--at", "2037-01-31 09:00", "x"]).ok().json();
    assert_eq!(
        (&added["timezone"], &added["cron"]),
        (&"Asia/Kathmandu".into(), &"@once 2037-01-31T03:15:00Z".into())
    );
}
