//! `store backup`, `restore` and `copy`: everything goes along, on every kind of store, and the audit chain can be verified after.

use serde_json::Value;

use crate::support::stores::{StoreFixture, database, on_each_store};
use crate::support::world::World;

on_each_store!(a_backup_has_everything, a_store_moves_to_postgresql_and_back);

fn fill(stored: &StoreFixture) {
    for arguments in [
        &["memory", "add", "Ann likes green tea. \u{1F375}"][..],
        &["memory", "add", "The gate squeaks.", "--occurred-at", "2020-01-02T08:00:00Z"],
        &["instructions", "set", "Answer briefly."],
        &["instructions", "set", "Answer in bullet points."],
        &["agent", "set", "eve", "--identity", r#"{"name": "Eve", "vibe": "calm"}"#],
        &["token", "add", "--user", "ann", "--scope", "chat"],
        &["prompt", "show"],
    ] {
        stored.run(arguments).ok();
    }
}

/// What commands show of a store.
fn content(run: &dyn Fn(&[&str]) -> String) -> Vec<String> {
    let commands: [&[&str]; 6] = [
        &["memory", "export"],
        &["memory", "search", "tea", "--json"],
        &["instructions", "history", "--json"],
        &["agent", "list", "--json"],
        &["token", "list", "--json"],
        &["audit", "export"],
    ];
    commands.into_iter().map(run).collect()
}

fn run_at(world: &World, store: &str, arguments: &[&str]) -> String {
    world.run(&[&["--store", store], arguments].concat()).ok().stdout
}

fn verified(report: &str) {
    let report: Value = serde_json::from_str(report).unwrap();
    assert_eq!(report["intact"], true, "{report}");
}

fn a_backup_has_everything(stored: &StoreFixture) {
    fill(stored);
    let before = content(&|arguments| stored.run(arguments).ok().stdout);
    let file = stored.world.outside("backup.db");
    let file = file.to_str().unwrap();
    let report = stored.run(&["store", "backup", file, "--json"]).ok().json();
    assert!(report["rows"].as_u64().unwrap() > 10, "{report}");
    assert_eq!(report["audit_key"], format!("{file}.audit.key"));
    stored.run(&["store", "backup", file]).ended(1).says(&[
        "`",
        "exists already",
        "hint: choose another file",
    ]);
    stored.run(&["memory", "add", "Later."]).ok();

    // Into a new workspace.
    let other = World::new();
    let said = other.run(&["store", "restore", file]).ok().stdout;
    assert!(said.starts_with("Restored: ") && said.contains("\nKey of the audit chain: "), "{said}");
    assert_eq!(content(&|arguments| other.run(arguments).ok().stdout), before);
    verified(&other.run(&["audit", "verify", "--json"]).ok().stdout);
    // It is alive: it takes records that continue the chain.
    other.run(&["instructions", "set", "More."]).ok();
    verified(&other.run(&["audit", "verify", "--json"]).ok().stdout);

    // In place of what is there; the records since the backup are missed.
    other.run(&["store", "restore", file]).ended(1).says(&["exists", "--replace"]);
    let replaced = other.run(&["store", "restore", file, "--replace", "--json"]).ok().json();
    let aside = replaced["replaced"].as_str().unwrap();
    assert_eq!(content(&|arguments| other.run(arguments).ok().stdout), before);
    other.run(&["audit", "verify"]).ended(1);
    let kept = run_at(&other, &format!("sqlite://{aside}"), &["instructions", "show"]);
    assert_eq!(kept, "More.");
}

#[test]
fn a_backup_without_its_key_is_restored_where_the_key_is() {
    let stored = StoreFixture::workspace();
    fill(&stored);
    let (file, world) = (stored.world.outside("backup.db"), &stored.world);
    let file = file.to_str().unwrap();
    world.run(&["store", "backup", file]).ok();
    std::fs::rename(format!("{file}.audit.key"), world.outside("apart.key")).unwrap();
    world.run(&["store", "restore", file, "--replace"]).ok();
    verified(&world.run(&["audit", "verify", "--json"]).ok().stdout);

    // A folder that does not exist yet, and no key.
    let elsewhere = format!("sqlite://{}", world.outside("new/folder/embody.db").display());
    let said = run_at(world, &elsewhere, &["store", "restore", file]);
    assert!(said.contains("note: the key of the audit chain is missing"), "{said}");
}

#[test]
fn a_store_with_another_key_is_replaced_and_keeps_its_own() {
    let (stored, other) = (StoreFixture::workspace(), World::new());
    fill(&stored);
    other.run(&["instructions", "set", "Other."]).ok();
    let file = stored.world.outside("backup.db");
    let file = file.to_str().unwrap();
    stored.run(&["store", "backup", file]).ok();
    let replaced = other.run(&["store", "restore", file, "--replace", "--json"]).ok().json();
    verified(&other.run(&["audit", "verify", "--json"]).ok().stdout);
    let aside = format!("sqlite://{}", replaced["replaced"].as_str().unwrap());
    assert_eq!(run_at(&other, &aside, &["instructions", "show"]), "Other.");
    verified(&run_at(&other, &aside, &["audit", "verify", "--json"]));
}

fn a_store_moves_to_postgresql_and_back(stored: &StoreFixture) {
    fill(stored);
    let before = content(&|arguments| stored.run(arguments).ok().stdout);
    let (world, file, postgres) = (&stored.world, stored.world.outside("one.db"), database());
    stored.run(&["store", "backup", file.to_str().unwrap()]).ok();
    let said = world.run(&["store", "copy", file.to_str().unwrap(), &postgres]).ok().stdout;
    assert!(said.starts_with("Copied: postgres://"), "{said}");
    assert_eq!(content(&|arguments| run_at(world, &postgres, arguments)), before);
    verified(&run_at(world, &postgres, &["audit", "verify", "--json"]));
    world
        .run(&["store", "copy", file.to_str().unwrap(), &postgres])
        .ended(1)
        .says(&["has rows in", "empty database"]);
    let back = world.outside("two.db");
    world.run(&["store", "copy", &postgres, back.to_str().unwrap()]).ok();
    let back = format!("sqlite://{}", back.display());
    assert_eq!(content(&|arguments| run_at(world, &back, arguments)), before);
    verified(&run_at(world, &back, &["audit", "verify", "--json"]));
}

#[test]
fn what_is_no_store_is_not_restored() {
    let world = World::new();
    world.run(&["memory", "add", "Kept."]).ok();
    world.file_outside("notes.db", "not a database");
    let notes = world.outside("notes.db");
    for (file, words) in [(notes.to_str().unwrap(), "not a database"), ("/nowhere/b.db", "does not exist")] {
        world.run(&["store", "restore", file, "--replace"]).ended(1).says(&["cannot read the store", words]);
    }
    assert!(world.run(&["memory", "list"]).ok().stdout.contains("Kept."));
    let names = std::fs::read_dir(world.workspace()).unwrap().map(|file| file.unwrap().file_name());
    let left: Vec<_> = names.filter(|name| name.to_string_lossy().contains("replaced")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_store_in_use_is_not_replaced() {
    let stored = StoreFixture::workspace();
    fill(&stored);
    let file = stored.world.outside("backup.db");
    stored.run(&["store", "backup", file.to_str().unwrap()]).ok();
    stored.directly(async |store| {
        store.clock().await.unwrap();
        stored
            .run(&["store", "restore", file.to_str().unwrap(), "--replace"])
            .ended(1)
            .says(&["is in use", "stop every process"]);
    });
    assert!(stored.run(&["memory", "list"]).ok().stdout.contains("green tea"));
}
