//! Memories and the audit chain, through the commands, on every kind of store.

use serde_json::Value;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection, SqliteConnection};

use crate::support::stores::{StoreFixture, on_each_store};

on_each_store!(
    memories_are_found_by_content,
    users_and_agents_are_apart,
    what_is_forgotten_is_out_of_search_and_in_history,
    export_and_import_lose_nothing,
    a_broken_import_changes_nothing,
    an_unknown_memory_is_reported_with_a_hint,
    a_text_comes_from_stdin_too,
    a_repeated_memory_is_reported,
    operators_actions_are_on_record,
    doctor_checks_the_store,
);

fn add(stored: &StoreFixture, arguments: &[&str]) -> String {
    stored.run(&[&["memory", "add"], arguments].concat()).ok().stdout.trim().to_owned()
}

fn texts(stored: &StoreFixture, arguments: &[&str]) -> Vec<String> {
    let found = stored.run(&[&["memory"], arguments, &["--json"]].concat()).ok().json();
    let text = |memory: &Value| memory["text"].as_str().unwrap().to_owned();
    found["memories"].as_array().unwrap().iter().map(text).collect()
}

// spec: S-02, S-05
fn memories_are_found_by_content(stored: &StoreFixture) {
    assert!(texts(stored, &["search", "anything"]).is_empty());
    add(stored, &["Ann is on leave until the third of May.", "--actor", "Ann", "--session", "standup"]);
    add(stored, &["Bob prefers green tea.", "--kind", "preference", "--actor", "Bob", "--tag", "drinks"]);
    add(stored, &["The build is broken again."]);
    assert_eq!(texts(stored, &["search", "what tea does Bob prefer?"])[0], "Bob prefers green tea.");
    assert_eq!(
        texts(stored, &["search", "when does Ann leave?"])[0],
        "Ann is on leave until the third of May."
    );
    assert_eq!(texts(stored, &["search", "broken", "--kind", "preference"]), [""; 0]);
    assert_eq!(texts(stored, &["search", ""]).len(), 3);
    assert_eq!(texts(stored, &["list", "--limit", "1"]), ["The build is broken again."]);
    let found = stored.run(&["memory", "search", "tea", "--json"]).ok().json();
    let memory = &found["memories"][0];
    assert!(memory["score"].as_f64().unwrap() > 0.0);
    assert_eq!(
        (&memory["kind"], &memory["actor"], &memory["tags"][0]),
        (&"preference".into(), &"Bob".into(), &"drinks".into())
    );
    assert_eq!((&memory["writer"], &memory["trust"]), (&"operator".into(), &"owner".into()));
}

// spec: S-02
fn users_and_agents_are_apart(stored: &StoreFixture) {
    add(stored, &["ann's secret garden", "--user", "ann"]);
    add(stored, &["ann's coach's garden", "--user", "ann", "--agent", "coach"]);
    assert_eq!(texts(stored, &["search", "garden", "--user", "ann"]), ["ann's secret garden"]);
    assert_eq!(
        texts(stored, &["search", "garden", "--user", "ann", "--agent", "coach"]),
        ["ann's coach's garden"]
    );
    assert_eq!(texts(stored, &["search", "garden", "--user", "bob"]), [""; 0]);
    let id =
        stored.run(&["memory", "list", "--user", "ann", "--json"]).ok().json()["memories"][0]["id"].clone();
    stored
        .run(&["memory", "forget", id.as_str().unwrap(), "--user", "bob"])
        .ended(1)
        .says(&["error: unknown memory `"]);
    assert_eq!(texts(stored, &["search", "garden", "--user", "ann"]).len(), 1);
}

fn what_is_forgotten_is_out_of_search_and_in_history(stored: &StoreFixture) {
    let id = add(stored, &["the code is 1234"]);
    stored.run(&["memory", "forget", &id]).ok();
    stored.run(&["memory", "forget", &id]).ok();
    assert_eq!(texts(stored, &["search", "code"]), [""; 0]);
    assert_eq!(texts(stored, &["list", "--status", "forgotten"]), ["the code is 1234"]);
    let history = stored.run(&["memory", "history", &id, "--json"]).ok().json();
    let states: Vec<&str> = history["versions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|version| version["status"].as_str().unwrap())
        .collect();
    assert_eq!(states, ["forgotten", "active"]);
}

fn export_and_import_lose_nothing(stored: &StoreFixture) {
    let id = add(stored, &["line one\nline ☂ two", "--session", "s", "--actor", "Ann", "--source", "mail"]);
    add(stored, &["an answer", "--session", "s", "--occurred-at", "2020-02-29T12:00:00Z"]);
    stored.run(&["memory", "forget", &id]).ok();
    let exported = stored.run(&["memory", "export"]).ok().stdout;
    assert_eq!(exported.lines().count(), 2);
    stored.world.file("memories.jsonl", &exported);
    let file = stored.world.path("memories.jsonl");
    let import = ["memory", "import", file.to_str().unwrap(), "--user", "ann"];
    assert_eq!(stored.run(&import).ok().stdout, "2 added, 0 unchanged\n");
    assert_eq!(stored.run(&import).ok().stdout, "0 added, 2 unchanged\n");
    assert_eq!(stored.run(&["memory", "export", "--user", "ann"]).ok().stdout, exported);
    assert_eq!(texts(stored, &["search", "answer", "--user", "ann"]), ["an answer"]);
}

/// A full disk is a failure; a closed pipe is not.
#[test]
fn an_export_that_is_not_written_fails() {
    let stored = StoreFixture::workspace();
    add(&stored, &["one"]);
    stored.run(&["token", "add", "--user", "ann", "--scope", "mcp"]).ok();
    for kind in ["memory", "audit"] {
        let export = |stdout: std::process::Stdio| {
            let mut command = stored.world.command();
            command.arg("--workspace").arg(stored.world.workspace()).args([kind, "export"]).stdout(stdout);
            crate::support::world::finish(command)
        };
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        export(full.into()).ended(1).says(&["error: ", "caused by: No space left"]);
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        assert_eq!(export(writer.into()).ok().stderr, "");
    }
}

fn a_broken_import_changes_nothing(stored: &StoreFixture) {
    add(stored, &["one"]);
    let line = stored.run(&["memory", "export"]).ok().stdout;
    stored.world.file("bad.jsonl", format!("{line}{{\"memory\": 5}}\n"));
    let file = stored.world.path("bad.jsonl");
    stored.run(&["memory", "import", file.to_str().unwrap(), "--user", "ann"]).ended(1).says(&[
        &format!("error: `{}` cannot be imported", file.display()),
        "caused by: line 2 is not a memory\ncaused by: ",
        "hint: the file must be the output of `embody memory export`",
    ]);
    assert_eq!(texts(stored, &["list", "--user", "ann"]), [""; 0]);
    stored.run(&["memory", "import", "nowhere.jsonl"]).ended(1).says(&["`nowhere.jsonl` cannot be read"]);
}

fn an_unknown_memory_is_reported_with_a_hint(stored: &StoreFixture) {
    for there_is_a_store in [false, true] {
        if there_is_a_store {
            add(stored, &["one"]);
        }
        for what in ["forget", "release", "history"] {
            stored
                .run(&["memory", what, "nope"])
                .ended(1)
                .says(&["error: unknown memory `nope`", "hint: `embody memory list` shows the ids"]);
        }
    }
}

fn a_text_comes_from_stdin_too(stored: &StoreFixture) {
    stored.world.file_outside("said.txt", "two\nlines ☂");
    let said = || std::fs::File::open(stored.world.outside("said.txt")).unwrap();
    stored.run_with(said(), &["memory", "add", "-"]).ok();
    stored.run_with(said(), &["instructions", "set", "-"]).ok();
    assert_eq!(texts(stored, &["list"]), ["two\nlines ☂"]);
    assert_eq!(stored.run(&["instructions", "show"]).ok().stdout, "two\nlines ☂");
}

fn a_repeated_memory_is_reported(stored: &StoreFixture) {
    let first = stored.run(&["memory", "add", "one"]).ok();
    let again = stored.run(&["memory", "add", "one"]).ok();
    assert_eq!((first.stderr.as_str(), again.stderr.as_str()), ("", "the memory exists already\n"));
    assert_eq!(first.stdout, again.stdout);
}

#[test]
fn an_invalid_time_is_reported_with_an_example() {
    let stored = StoreFixture::workspace();
    for arguments in [["add", "one", "--occurred-at", "noon"], ["search", "one", "--since", "noon"]] {
        let done = stored.run(&[&["memory"], arguments.as_slice()].concat());
        done.ended(2).says(&["write it like 2026-11-15T21:30:00Z"]);
    }
}

// spec: N-14
fn operators_actions_are_on_record(stored: &StoreFixture) {
    assert!(stored.run(&["audit", "verify"]).ok().stdout.contains("The audit chain has no records yet"));
    let secret = stored.run(&["token", "add", "--user", "ann", "--scope", "operate"]).ok().stdout;
    assert!(stored.run(&["audit", "verify"]).ok().stdout.contains(", 1 record since "));
    stored.run(&["audit", "export"]).ok().says(&["1 record\n"]);
    stored.run(&["instructions", "set", "one"]).ok();
    stored.run(&["instructions", "revert", "1"]).ok();
    assert!(stored.run(&["audit", "verify"]).ok().stdout.contains(", 3 records since "));
    let tail = stored.run(&["audit", "tail", "--json"]).ok();
    assert!(!tail.stdout.contains(secret.trim()));
    let actions: Vec<String> = tail.json()["records"]
        .as_array()
        .unwrap()
        .iter()
        .map(|record| record["detail"]["action"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(actions, ["token_made", "instructions_set", "instructions_reverted"]);
    let verified = stored.run(&["audit", "verify", "--json"]).ok().json();
    assert_eq!((&verified["intact"], &verified["chains"][0]["records"]), (&true.into(), &3.into()));
    let exported = stored.run(&["audit", "export"]).ok().stdout;
    assert_eq!(exported.lines().count(), 3);
    assert_eq!(
        stored.run(&["audit", "tail", "--user", "ann", "--json"]).ok().json()["records"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

fn doctor_checks_the_store(stored: &StoreFixture) {
    add(stored, &["one"]);
    let found = stored.run(&["doctor", "--json"]).ok().json();
    let check = |name: &str| {
        let checks = found["checks"].as_array().unwrap();
        checks.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("{found}")).clone()
    };
    assert_eq!((&check("store")["state"], &check("audit")["state"]), (&"ok".into(), &"ok".into()));
}

fn behind_its_back(stored: &StoreFixture, sql: &'static str) {
    let options = SqliteConnectOptions::new().filename(stored.world.path("embody.db"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut database = SqliteConnection::connect_with(&options).await.unwrap();
        assert_eq!(sqlx::query(sql).execute(&mut database).await.unwrap().rows_affected(), 1);
        database.close().await.unwrap();
    });
}

/// The commands report a changed audit chain.
#[test]
fn a_changed_record_is_named() {
    let stored = StoreFixture::workspace();
    for user in ["ann", "bob", "cleo"] {
        stored.run(&["token", "add", "--user", user, "--scope", "mcp"]).ok();
    }
    behind_its_back(&stored, "UPDATE audit SET user_id = 'eve' WHERE seq = 2");
    let verify = stored.run(&["audit", "verify"]).ended(1);
    assert!(verify.stdout.contains("BROKEN") && verify.stdout.contains("record 2"), "{verify:?}");
    let doctor = stored.run(&["doctor"]).ended(1);
    assert!(doctor.stdout.contains("is broken at record 2"), "{doctor:?}");
}

/// Taking the whole database away, or its key, is noticed too.
#[test]
fn a_database_without_its_files_is_noticed() {
    let stored = StoreFixture::workspace();
    stored.run(&["token", "add", "--user", "ann", "--scope", "mcp"]).ok();
    let database = stored.world.path("embody.db");
    let aside = stored.world.outside("aside.db");
    std::fs::rename(&database, &aside).unwrap();
    stored
        .run(&["audit", "verify"])
        .ended(1)
        .says(&["is missing, but the key or the head of its audit chain exists", "hint:"]);
    assert!(!database.exists());
    std::fs::rename(&aside, &database).unwrap();
    stored.run(&["audit", "verify"]).ok();
    std::fs::remove_file(stored.world.path("embody.db.audit.key")).unwrap();
    std::fs::remove_file(stored.world.path("embody.db.audit.head")).unwrap();
    let done = stored.run(&["audit", "verify"]).ended(1);
    assert!(done.stdout.contains("its key is not on this machine"), "{done:?}");
}

/// A store that cannot be opened is a finding, not the end of the doctor.
#[test]
fn doctor_names_a_store_that_does_not_open() {
    let stored = StoreFixture::workspace();
    stored.world.file("embody.db", "not a database at all ".repeat(500));
    let doctor = stored.run(&["doctor"]).ended(1);
    assert!(
        doctor.stdout.contains("FAIL  store") && doctor.stdout.contains("restore a backup"),
        "{doctor:?}"
    );
}
