//! `embody store`: what it holds, and the upgrade from the old shape, as an operator runs them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::json;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection};

use crate::support::stores::{StoreFixture, database, on_each_store};
use crate::support::world::World;

on_each_store!(status_counts_what_there_is);

const OLD: &str = "
CREATE TABLE agent_configurations (id INTEGER PRIMARY KEY, agent_name TEXT NOT NULL, system_prompt TEXT NOT NULL, llm_config TEXT NOT NULL);
CREATE TABLE user_agent_prompt_customizations (user_id TEXT, agent_name TEXT, customization_type TEXT, content JSON, priority INTEGER,
  UNIQUE (user_id, agent_name, customization_type));
INSERT INTO agent_configurations VALUES (1, 'coach', 'Be kind.', '{}');
INSERT INTO user_agent_prompt_customizations VALUES ('owner', 'coach', 'a', '\"second\"', 2), ('owner', 'coach', 'b', '\"first\"', 1),
  ('ann', 'coach', 'a', '{\"tone\": \"dry\"}', 1);
";

/// A world with a database in the old shape, and the address of it.
fn old(postgres: bool) -> (World, String) {
    let world = World::new();
    if postgres {
        let url = database();
        let made = Command::new("psql").args(["-qv", "ON_ERROR_STOP=1", "-c", OLD, &url]).status().unwrap();
        assert!(made.success());
        return (world, url);
    }
    let path = world.outside("old.db");
    let options = SqliteConnectOptions::new().filename(&path).create_if_missing(true);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut connection = options.connect().await.unwrap();
        sqlx::raw_sql(OLD).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    });
    (world, format!("sqlite://{}", path.display()))
}

fn exports(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("embody-legacy-") || name.starts_with('.')).collect()
}

#[test]
fn upgrades_sqlite() {
    upgrades(old(false));
}

#[test]
fn upgrades_postgres() {
    upgrades(old(true));
}

// spec: S-03
fn upgrades((world, url): (World, String)) {
    world.run(&["--store", &url, "agent", "list"]).ended(1).says(&[
        "`agent_configurations.system_prompt` still exists",
        "hint: upgrade it with `embody store migrate-legacy URL`",
    ]);

    let trial = world.run(&["store", "migrate-legacy", &url, "--dry-run"]).ok().stdout;
    assert!(trial.starts_with("Dry run: ") && trial.contains("nothing was changed"), "{trial}");
    assert_eq!(exports(&world.outside("")), [""; 0]);

    let done = world.run(&["store", "migrate-legacy", &url]).ok().stdout;
    for line in [
        "Upgraded: ",
        "coach",
        "8 characters",
        "owner with coach",
        "13 characters from 2 of 2 rows",
        "kept as compact JSON",
    ] {
        assert!(done.contains(line), "no {line:?} in {done}");
    }
    let [export] = &exports(&world.outside(""))[..] else { panic!("one export") };
    assert!(done.contains(export.as_str()), "{done}");
    let export = world.outside(export);
    assert_eq!(fs::metadata(&export).unwrap().permissions().mode() & 0o777, 0o600);
    let rows: serde_json::Value = serde_json::from_slice(&fs::read(export).unwrap()).unwrap();
    assert_eq!(rows["tables"][1]["rows"].as_array().unwrap().len(), 3);

    let again = world.run(&["store", "migrate-legacy", &url, "--json"]).ok().json();
    assert_eq!((&again["state"], &again["export"]), (&json!("nothing_to_do"), &json!(null)));
    assert_eq!(exports(&world.outside("")).len(), 1);

    let shown = |arguments: &[&str]| world.run(&[&["--store", &url], arguments].concat()).ok().stdout;
    assert_eq!(shown(&["instructions", "show", "--agent", "coach"]), "first\n\nsecond");
    let prompt = shown(&["prompt", "show", "--layout", "channel", "--agent", "coach"]);
    assert!(prompt.contains("Be kind.") && prompt.contains("first\n\nsecond"), "{prompt}");
    let history =
        world.run(&["--store", &url, "instructions", "history", "--agent", "coach", "--json"]).ok().json();
    assert_eq!(history["versions"][0]["writer"], "migrate-legacy");
}

#[test]
fn the_upgrade_prints_json() {
    let (world, url) = old(false);
    let export = world.outside("rows.json").display().to_string();
    let report = world.run(&["store", "migrate-legacy", &url, "--export", &export, "--json"]).ok().json();
    assert_eq!((&report["state"], &report["export"]), (&json!("upgraded"), &json!(export)));
    let coach = json!({ "agent": "coach", "characters": 8, "notes": [] });
    assert_eq!(report["agents"], json!([coach]));
    assert_eq!(report["instructions"][1]["user"], "owner");
    assert_eq!(report["instructions"][1]["joined"], 2);
}

#[test]
fn an_old_database_can_be_named_by_its_path() {
    let (world, _) = old(false);
    world.run(&["store", "migrate-legacy", "old.db", "--export", "rows.json"]).ok();
    assert!(world.outside("rows.json").exists());
    world.run(&["--store", "sqlite:old.db", "agent", "show", "coach"]).ok();
}

#[test]
fn a_database_that_cannot_be_upgraded_is_reported() {
    let (world, url) = old(false);
    let before = fs::read(world.outside("old.db")).unwrap();
    world.run(&["store", "migrate-legacy", "no.db"]).ended(1).says(&[
        "error: `no.db` was not upgraded",
        "caused by: the database `no.db` does not exist",
        "hint: ",
    ]);
    assert!(!world.outside("no.db").exists());
    world.file_outside("mine.json", "precious");
    world
        .run(&["store", "migrate-legacy", &url, "--export", "mine.json"])
        .ended(1)
        .says(&["the export `mine.json` exists already", "hint: name another file with `--export`"]);
    world
        .run(&["store", "migrate-legacy", &url, "--export", "no/folder/x.json"])
        .ended(1)
        .says(&["nothing was changed"]);
    let wrong = world.run(&["store", "migrate-legacy", "mysql://me:secret@h/x"]).ended(2);
    assert!(!wrong.stderr.contains("secret"), "{wrong:?}");
    world.run(&["store", "migrate-legacy", "sqlite::memory:"]).ended(2).says(&["in memory"]);
    world.run(&["store", "migrate-legacy", &url, "--dry-run", "--export", "x.json"]).ended(2);
    assert_eq!(fs::read_to_string(world.outside("mine.json")).unwrap(), "precious");
    assert!(fs::read(world.outside("old.db")).unwrap() == before);
    assert_eq!(exports(&world.outside("")), [""; 0]);
}

#[test]
fn an_unreachable_server_is_reported_without_its_password() {
    let world = World::new();
    let done = world.run(&["store", "migrate-legacy", "postgres://me:secret@127.0.0.1:1/x"]).ended(1);
    assert!(done.stderr.contains("error: `postgres://127.0.0.1:1/x` was not upgraded"), "{done:?}");
    assert!(!done.stderr.contains("secret"), "{done:?}");
}

fn status_counts_what_there_is(stored: &StoreFixture) {
    stored.run(&["instructions", "set", "brief"]).ok();
    let status = stored.run(&["store", "status", "--json"]).ok().json();
    assert_eq!(status["status"]["schema"], 17);
    assert!(status["status"]["bytes"].as_i64().unwrap() > 4096, "{status}");
    let rows = status["status"]["rows"].as_array().unwrap();
    let count = |what: &str| rows.iter().find(|rows| rows["what"] == what).unwrap()["count"].clone();
    assert_eq!((count("instructions"), count("memories")), (json!(1), json!(0)));
    let text = stored.run(&["store", "status"]).ok().stdout;
    let backend = status["backend"].as_str().unwrap();
    assert!(text.contains(backend) && text.contains("1  instructions\n"), "{text}");
}

#[test]
fn status_makes_nothing() {
    let world = World::new();
    let text = world.run(&["store", "status"]).ok().stdout;
    assert!(text.contains("The store does not exist yet"), "{text}");
    assert_eq!(world.run(&["store", "status", "--json"]).ok().json()["status"], json!(null));
    assert!(!world.path("embody.db").exists());
}

#[test]
fn a_configured_path_starts_at_the_workspace_and_a_flag_where_the_command_runs() {
    let world = World::new();
    world.file("embody.toml", "[store]\nurl = \"sqlite:mine.db\"\n");
    world.run(&["instructions", "set", "brief"]).ok();
    assert!(world.path("mine.db").exists());
    world.run(&["--store", "sqlite:other.db", "instructions", "set", "brief"]).ok();
    assert!(world.outside("other.db").exists());
}
