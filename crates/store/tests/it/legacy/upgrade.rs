//! What an upgrade does to the tables, and that it happens once.

use std::os::unix::fs::PermissionsExt;

use embody_store::Store;
use embody_store::instructions::InstructionsChange;
use embody_store::legacy::{LegacyState, migrate_legacy, preview_legacy};
use serde_json::json;

use super::old::{BARE, Old, SEED, exported, on_each, table};
use crate::world::scope;

on_each!(
    upgrades_the_old_shape,
    old_tables_are_kept_under_another_name,
    a_view_follows_its_table,
    a_second_run_does_nothing,
    a_trial_changes_nothing,
    either_table_may_be_missing,
    two_at_once_upgrade_once,
    memories_of_another_shape_are_moved_aside,
    names_may_be_elsewhere,
    finishes_what_others_began,
    identities_become_objects,
);

const ANN: &str = "00000000-0000-4000-8000-00000000000a";
const BOB: &str = "00000000-0000-4000-8000-00000000000b";

async fn seeded(old: &Old) {
    old.run(SEED).await;
    old.run(&format!(
        "INSERT INTO agent_configurations (id, agent_name, system_prompt, llm_config) VALUES
           ('{ANN}', 'assistant', ' Be \"kind\".\n\n{{not json}} ü ', '{{\"model\": \"m\"}}');
         INSERT INTO user_agent_prompt_customizations (id, user_id, agent_name, customization_type, content, is_active, priority) VALUES
           ('{ANN}', '{ANN}', 'assistant', 'a', '\"second\"', {{true}}, 10),
           ('{BOB}', '{ANN}', 'assistant', 'b', '\"first\"', {{true}}, 2),
           ('00000000-0000-4000-8000-000000000001', '{ANN}', 'assistant', 'c', '\"off\"', {{false}}, 1),
           ('00000000-0000-4000-8000-000000000002', '{BOB}', 'assistant', 'a', '{{\"tone\": [\"dry\", 1]}}', {{true}}, 0);"
    ))
    .await;
}

// spec: S-03, S-02
async fn upgrades_the_old_shape(old: Old) {
    seeded(&old).await;
    let refusal = Store::open(old.place.clone()).await.unwrap_err();
    assert!(refusal.advice().unwrap().contains("migrate-legacy"), "{refusal}");

    let report = old.upgrade().await;
    assert_eq!(report.state, LegacyState::Upgraded);
    let agents = json!([{ "agent": "assistant", "characters": 26, "notes": [] }]);
    assert_eq!(serde_json::to_value(&report.agents).unwrap(), agents);
    assert_eq!(
        serde_json::to_value(&report.instructions).unwrap(),
        json!([
            { "user": ANN, "agent": "assistant", "rows": 3, "joined": 2, "characters": 13,
              "notes": ["1 row inactive: only in the export"] },
            { "user": BOB, "agent": "assistant", "rows": 1, "joined": 1, "characters": 18,
              "notes": ["1 row not a JSON string: kept as compact JSON"] },
        ])
    );

    let store = old.open().await;
    let ann = store.instructions().get(&scope(ANN, "assistant")).await.unwrap();
    assert_eq!((ann.text.as_str(), ann.version), ("first\n\nsecond", 1));
    assert!(ann.changed_at > 0);
    let history = store.instructions().history(&scope(BOB, "assistant"), 10).await.unwrap();
    assert_eq!(history.len(), 1);
    assert_eq!(
        (history[0].writer.as_str(), history[0].instructions.text.as_str()),
        ("migrate-legacy", "{\"tone\":[\"dry\",1]}")
    );
    let soul = old.text("SELECT soul FROM agent_configurations WHERE agent_name = 'assistant'").await;
    assert_eq!(soul.unwrap(), " Be \"kind\".\n\n{not json} ü ");

    let export = exported(&old.path("export.json"));
    assert_eq!(export["format"], "embody-legacy-export");
    assert_eq!(table(&export, "user_agent_prompt_customizations").len(), 4);
    let inactive = table(&export, "user_agent_prompt_customizations")
        .iter()
        .find(|row| row["content"] == "\"off\"")
        .unwrap();
    assert_eq!((&inactive["user_id"], &inactive["customization_type"]), (&json!(ANN), &json!("c")));
    assert_eq!(table(&export, "agent_configurations")[0]["system_prompt"], " Be \"kind\".\n\n{not json} ü ");
    let mode = old.path("export.json").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    store.close().await;
}

// spec: S-03
async fn old_tables_are_kept_under_another_name(old: Old) {
    seeded(&old).await;
    let report = old.upgrade().await;
    for name in ["agent_configurations_legacy", "user_agent_prompt_customizations_legacy"] {
        assert!(report.notes.iter().any(|note| note.contains(name)), "{report:?}");
    }
    let kept = old
        .rows(
            "SELECT CAST(id AS TEXT), CAST(llm_config AS TEXT), CAST(created_at AS TEXT), system_prompt \
             FROM agent_configurations_legacy",
        )
        .await;
    assert_eq!((kept[0][0].as_deref(), kept[0][1].as_deref()), (Some(ANN), Some("{\"model\": \"m\"}")));
    assert!(kept[0][2].as_deref().is_some_and(|time| time.starts_with("20")), "{kept:?}");
    assert_eq!(kept[0][3].as_deref(), Some(" Be \"kind\".\n\n{not json} ü "));
    let rows = old.rows("SELECT CAST(id AS TEXT) FROM user_agent_prompt_customizations_legacy").await;
    assert_eq!(rows.len(), 4);

    let store = old.open().await;
    let new = scope("carl", "an agent nobody set up");
    let change =
        |text: &str| InstructionsChange { text: text.into(), writer: "carl".into(), expected_version: None };
    store.instructions().set(&new, change("short")).await.unwrap();
    store.instructions().set(&scope(ANN, "assistant"), change("replaced")).await.unwrap();
    assert_eq!(store.instructions().get(&new).await.unwrap().text, "short");
    let ann = store.instructions().get(&scope(ANN, "assistant")).await.unwrap();
    assert_eq!((ann.text.as_str(), ann.version), ("replaced", 2));
    store.close().await;
    for agent in ["one", "two"] {
        old.run(&format!("INSERT INTO agent_configurations (agent_name, soul) VALUES ('{agent}', 'x')"))
            .await;
    }
}

// spec: S-03
async fn a_view_follows_its_table(old: Old) {
    old.run(BARE).await;
    old.run(
        "INSERT INTO user_agent_prompt_customizations VALUES (1, 'ann', 'a', 't', '\"x\"', 1); \
             CREATE VIEW urgent AS SELECT user_id FROM user_agent_prompt_customizations WHERE priority < 3",
    )
    .await;
    old.upgrade().await;
    assert_eq!(old.text("SELECT user_id FROM urgent").await.as_deref(), Some("ann"));
    old.open().await.close().await;
}

// spec: S-03
async fn a_second_run_does_nothing(old: Old) {
    seeded(&old).await;
    old.upgrade().await;
    let before = old.dump().await;
    let again = migrate_legacy(&old.place, &old.path("again.json")).await.unwrap();
    assert_eq!(again.state, LegacyState::NothingToDo);
    assert_eq!((again.export, again.agents.len(), again.instructions.len()), (None, 0, 0));
    assert!(!old.path("again.json").exists());
    assert_eq!(preview_legacy(&old.place).await.unwrap().state, LegacyState::NothingToDo);
    // Not even when the file of the first run is named again.
    assert_eq!(old.upgrade().await.state, LegacyState::NothingToDo);
    assert_eq!(old.dump().await, before);
}

async fn a_trial_changes_nothing(old: Old) {
    seeded(&old).await;
    let before = old.dump().await;
    let planned = preview_legacy(&old.place).await.unwrap();
    assert_eq!((planned.state, &planned.export), (LegacyState::Planned, &None));
    assert_eq!(old.dump().await, before);
    let done = old.upgrade().await;
    assert_eq!(
        (planned.agents, planned.instructions, planned.notes),
        (done.agents, done.instructions, done.notes)
    );
}

async fn either_table_may_be_missing(old: Old) {
    old.run(
        "CREATE TABLE agent_configurations (agent_name TEXT, system_prompt TEXT); \
             INSERT INTO agent_configurations VALUES ('a', 'soul of a')",
    )
    .await;
    let report = old.upgrade().await;
    assert_eq!((report.agents.len(), report.instructions.len()), (1, 0));
    let store = old.open().await;
    assert_eq!(store.instructions().get(&scope("ann", "a")).await.unwrap().version, 0);
    store.close().await;

    let other = if old.is_postgres() { Old::postgres().await } else { Old::file().await };
    other
        .run(
            "CREATE TABLE user_agent_prompt_customizations (user_id TEXT, agent_name TEXT, content {json}); \
               INSERT INTO user_agent_prompt_customizations VALUES ('ann', 'a', '\"x\"')",
        )
        .await;
    let report = other.upgrade().await;
    assert_eq!((report.agents.len(), report.instructions.len()), (0, 1));
    let store = other.open().await;
    assert_eq!(store.instructions().get(&scope("ann", "a")).await.unwrap().text, "x");
    store.close().await;
}

async fn two_at_once_upgrade_once(old: Old) {
    seeded(&old).await;
    let (one, two) = (old.path("one.json"), old.path("two.json"));
    let (first, second) = tokio::join!(migrate_legacy(&old.place, &one), migrate_legacy(&old.place, &two));
    let (first, second) = (first.unwrap(), second.unwrap());
    let mut states = [first.state, second.state];
    states.sort_by_key(|state| *state == LegacyState::Upgraded);
    assert_eq!(states, [LegacyState::NothingToDo, LegacyState::Upgraded]);
    assert_ne!(one.exists(), two.exists());
    let store = old.open().await;
    assert_eq!(store.instructions().history(&scope(ANN, "assistant"), 10).await.unwrap().len(), 1);
    store.close().await;
}

async fn memories_of_another_shape_are_moved_aside(old: Old) {
    seeded(&old).await;
    old.run(
        "CREATE TABLE agent_long_term_memory (id {uuid} PRIMARY KEY, notes TEXT); \
             INSERT INTO agent_long_term_memory VALUES ('00000000-0000-4000-8000-000000000001', 'likes tea')",
    )
    .await;
    let report = old.upgrade().await;
    assert!(report.notes.iter().any(|note| note.contains("agent_long_term_memory_legacy")), "{report:?}");
    assert_eq!(
        old.text("SELECT notes FROM agent_long_term_memory_legacy").await.as_deref(),
        Some("likes tea")
    );
    assert_eq!(table(&exported(&old.path("export.json")), "agent_long_term_memory")[0]["notes"], "likes tea");
    old.open().await.close().await;
}

async fn names_may_be_elsewhere(old: Old) {
    old.run(
        "CREATE TABLE agent_configurations (id INTEGER PRIMARY KEY, system_prompt TEXT, version TEXT); \
             INSERT INTO agent_configurations VALUES (7, 'seven', 'v2')",
    )
    .await;
    let report = old.upgrade().await;
    assert_eq!(report.agents[0].agent, "7");
    assert!(report.notes.iter().any(|note| note.contains("named by their `id`")), "{report:?}");
    let row = old.rows("SELECT agent_name, soul, CAST(version AS TEXT) FROM agent_configurations").await;
    let row: Vec<&str> = row[0].iter().map(|text| text.as_deref().unwrap()).collect();
    assert_eq!(row, ["7", "seven", "1"]);
    assert_eq!(old.text("SELECT version FROM agent_configurations_legacy").await.as_deref(), Some("v2"));
    old.run("INSERT INTO agent_configurations (agent_name) VALUES ('x'), ('y')").await;

    let other = if old.is_postgres() { Old::postgres().await } else { Old::file().await };
    other
        .run(
            "CREATE TABLE agent_configurations (name TEXT, system_prompt TEXT); \
               INSERT INTO agent_configurations VALUES ('ada', 'soul'), (NULL, 'of nobody')",
        )
        .await;
    let report = other.upgrade().await;
    assert!(report.notes.iter().any(|note| note.contains("named by their `name`")), "{report:?}");
    assert!(
        report.notes.iter().any(|note| note.starts_with("1 row of `agent_configurations` without a name"))
    );
    assert_eq!(other.rows("SELECT agent_name, soul FROM agent_configurations").await.len(), 1);
    assert_eq!(table(&exported(&other.path("export.json")), "agent_configurations").len(), 2);
}

async fn finishes_what_others_began(old: Old) {
    old.run(BARE).await;
    old.run("ALTER TABLE agent_configurations RENAME COLUMN system_prompt TO soul; \
             ALTER TABLE agent_configurations ADD COLUMN identity {json}; \
             ALTER TABLE user_agent_prompt_customizations DROP COLUMN content; \
             ALTER TABLE user_agent_prompt_customizations ADD COLUMN instructions TEXT NOT NULL DEFAULT ''; \
             INSERT INTO agent_configurations VALUES ('a', 'soul', '{\"name\": \"Ada\"}'); \
             INSERT INTO user_agent_prompt_customizations (id, user_id, agent_name, instructions) VALUES (1, 'ann', 'a', '\"quoted\"')").await;
    let refusal = Store::open(old.place.clone()).await.unwrap_err();
    let reason = std::error::Error::source(&refusal).unwrap().to_string();
    assert_eq!(reason, "the database has the old shape: `agent_configurations.changed_at` is missing");
    old.upgrade().await;
    let store = old.open().await;
    assert_eq!(store.instructions().get(&scope("ann", "a")).await.unwrap().text, "\"quoted\"");
    let agents = store.agents().list().await.unwrap();
    assert_eq!(agents[0].identity, Some(json!({ "name": "Ada" })));
    store.close().await;
}

async fn identities_become_objects(old: Old) {
    old.run(BARE).await;
    old.run(
        "ALTER TABLE agent_configurations ADD COLUMN identity {json}; \
         INSERT INTO agent_configurations (agent_name, system_prompt, identity) VALUES \
           ('empty', '', '\"\"'), ('list', '', '[1, 2]'), ('object', '', '{\"name\": \"Ada\"}'), ('text', '', '\"Ada\"')",
    )
    .await;
    let report = old.upgrade().await;
    let notes: Vec<usize> = report.agents.iter().map(|agent| agent.notes.len()).collect();
    assert_eq!(notes, [1, 1, 0, 1]);
    let store = old.open().await;
    let identities: Vec<_> =
        store.agents().list().await.unwrap().into_iter().map(|agent| agent.identity).collect();
    store.close().await;
    assert_eq!(
        identities,
        [
            None,
            Some(json!({ "description": "[1,2]" })),
            Some(json!({ "name": "Ada" })),
            Some(json!({ "description": "Ada" })),
        ]
    );
}
