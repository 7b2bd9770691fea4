//! `embody upgrade-check`: says what opening a store would do, and does nothing to it.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, Connection, PgConnection, SqliteConnection};

use crate::operator::{ask, asked};
use crate::support::stores::{StoreFixture, on_each_store};

on_each_store!(
    a_current_store_needs_nothing,
    an_older_store_is_named_and_not_changed,
    a_newer_store_is_refused,
);

/// Changes the database past the store, which would upgrade it.
fn execute(stored: &StoreFixture, sql: &str) {
    let command = stored.command(&[]);
    let words: Vec<&str> = command.get_args().map(|word| word.to_str().unwrap()).collect();
    let url = words.iter().position(|word| *word == "--store").map(|at| words[at + 1]);
    let sql = AssertSqlSafe(sql.to_owned());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        if let Some(url) = url.filter(|url| url.starts_with("postgres")) {
            let mut conn = PgConnection::connect(url).await.unwrap();
            sqlx::raw_sql(sql).execute(&mut conn).await.unwrap();
            return;
        }
        let file = url.map(|url| url.trim_start_matches("sqlite://").into());
        let file: std::path::PathBuf = file.unwrap_or_else(|| stored.world.path("embody.db"));
        let mut conn =
            SqliteConnection::connect_with(&SqliteConnectOptions::new().filename(file)).await.unwrap();
        sqlx::raw_sql(sql).execute(&mut conn).await.unwrap();
        conn.close().await.unwrap();
    });
}

/// The files of the workspace and of the store, without the log.
fn files(stored: &StoreFixture) -> BTreeMap<String, String> {
    let folders = [stored.world.workspace(), stored.world.outside("elsewhere")];
    let files = folders.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten();
    let files = files.map(|file| file.unwrap().path()).filter(|path| path.is_file());
    files
        .map(|path| (path.display().to_string(), blake3::hash(&std::fs::read(path).unwrap()).to_string()))
        .collect()
}

fn check(report: &Value, name: &str) -> Value {
    let checks = report["checks"].as_array().unwrap();
    checks
        .iter()
        .find(|check| check["name"] == name)
        .cloned()
        .unwrap_or_else(|| panic!("no {name} in {report}"))
}

fn a_current_store_needs_nothing(stored: &StoreFixture) {
    let before = files(stored);
    let first = stored.run(&["upgrade-check"]).ok().stdout;
    assert!(first.contains("does not exist yet; the first write creates it"), "{first}");
    assert_eq!(files(stored), before, "no store is created");
    stored.run(&["memory", "add", "One."]).ok();
    asked(stored, ask());
    let before = files(stored);
    let report = stored.run(&["upgrade-check", "--json"]).ok().json();
    assert_eq!(files(stored), before);
    assert_eq!((&report["ok"], &report["version"]), (&json!(true), &json!(env!("CARGO_PKG_VERSION"))));
    assert_eq!(report["store"]["schema"], report["schema"]);
    assert_eq!(
        (&report["store"]["pending_migrations"], &report["store"]["pending_approvals"]),
        (&json!([]), &json!(1))
    );
    assert_eq!(check(&report, "approvals")["message"], "1 approval waiting");
    let text = stored.run(&["upgrade-check"]).ok().stdout;
    assert!(text.contains(", the newest\n") && text.ends_with("nothing has to be upgraded.\n"), "{text}");
}

fn an_older_store_is_named_and_not_changed(stored: &StoreFixture) {
    stored.run(&["memory", "add", "One."]).ok();
    let last = stored.run(&["store", "status", "--json"]).ok().json()["status"]["schema"].as_i64().unwrap();
    execute(stored, &format!("DELETE FROM embody_migrations WHERE version = {last}"));
    let before = files(stored);
    let report = stored.run(&["upgrade-check", "--json"]).ok().json();
    assert_eq!(report["store"]["schema"]["number"], last - 1);
    assert_eq!(report["store"]["pending_migrations"], json!([report["schema"]["name"]]));
    let store = check(&report, "store");
    assert_eq!((&report["ok"], &store["state"]), (&json!(true), &json!("warn")));
    assert!(store["message"].as_str().unwrap().contains("opening it runs 1 migration: 00"), "{store}");
    assert!(store["hint"].as_str().unwrap().contains("`embody store backup FILE`"), "{store}");
    assert_eq!(files(stored), before);
    // It is still the older one.
    let again = stored.run(&["upgrade-check"]).ok().stdout;
    assert!(again.contains("upgrades the store when it opens it. Nothing was changed yet."), "{again}");
}

fn a_newer_store_is_refused(stored: &StoreFixture) {
    stored.run(&["memory", "add", "One."]).ok();
    execute(
        stored,
        "INSERT INTO embody_migrations (version, name, checksum) VALUES (900, '0900_later', 'x')",
    );
    let refused = stored.run(&["upgrade-check"]).ended(1);
    for part in [
        "FAIL  store",
        "a newer version of embody wrote it, and this one does not know 0900_later",
        "hint: use that version",
    ] {
        assert!(refused.stdout.contains(part), "no {part:?} in {refused:#?}");
    }
    let report = stored.run(&["upgrade-check", "--json"]).ended(1).json();
    assert_eq!(
        (&report["ok"], &report["store"]["unknown_migrations"]),
        (&json!(false), &json!(["0900_later"]))
    );
    execute(
        stored,
        "DELETE FROM embody_migrations WHERE version = 900; UPDATE embody_migrations SET checksum = 'x' WHERE version = 2",
    );
    let changed = stored.run(&["upgrade-check"]).ended(1);
    assert!(changed.stdout.contains("has 0002_channels in another form"), "{changed:#?}");
}

#[test]
fn an_invalid_configuration_fails_with_all_its_problems() {
    let stored = StoreFixture::workspace();
    stored.world.file("embody.toml", "[prompt]\nlayot = \"body\"\n[gone]\nx = 1\n");
    let report = stored.run(&["upgrade-check", "--json"]).ended(1).json();
    let problems: Vec<&Value> =
        report["checks"].as_array().unwrap().iter().filter(|check| check["name"] == "config").collect();
    assert_eq!(problems.len(), 2, "{report}");
    assert!(
        problems[0]["message"].as_str().unwrap().contains("embody.toml:2: unknown key `layot`"),
        "{report}"
    );
    assert!(problems[0]["hint"].as_str().unwrap().contains("did you mean `layout`"), "{report}");
    assert_eq!(check(&report, "store")["state"], "warn");
}

#[test]
fn a_running_up_of_another_version_is_named() {
    let stored = StoreFixture::workspace();
    let lock = stored.world.path("up.lock");
    std::fs::write(&lock, r#"{"address":"http://127.0.0.1:7717","pid":7}"#).unwrap();
    let held = std::fs::File::open(&lock).unwrap();
    held.lock().unwrap();
    let report = stored.run(&["upgrade-check", "--json"]).ok().json();
    let up = check(&report, "up");
    assert_eq!(up["state"], "warn");
    assert_eq!(up["message"], "`embody up` of an older version runs at http://127.0.0.1:7717 (process 7)");
}
