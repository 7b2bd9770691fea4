//! What only SQLite can hold: values of any type anywhere, bytes that are no text, tables without row numbers.

use super::old::{Old, exported, table};
use crate::world::scope;

// spec: S-03
#[tokio::test]
async fn values_of_any_type_are_exported_exactly() {
    let old = Old::file().await;
    old.run(
        "CREATE TABLE agent_configurations (agent_name, system_prompt, rowid, odd); \
         INSERT INTO agent_configurations VALUES ('blob', x'6265', 1, x'00ff'), ('number', 5, 2, 1.0), ('real', 2.5, 3, 9e999), \
           ('bad', CAST(x'61ff' AS TEXT), 4, CAST(x'61ff' AS TEXT)), ('nul', 'a' || char(0) || 'b', 5, '0123'), ('null', NULL, 6, NULL);",
    )
    .await;
    let report = old.upgrade().await;
    let export = exported(&old.path("export.json"));
    let odd: Vec<String> =
        table(&export, "agent_configurations").iter().map(|row| row["odd"].to_string()).collect();
    assert_eq!(
        odd,
        [r#"{"$blob":"00ff"}"#, "1.0", r#"{"$real":"inf"}"#, r#"{"$text":"61ff"}"#, "\"0123\"", "null"]
    );
    let souls = old
        .rows("SELECT agent_name || '|' || coalesce(soul, '') FROM agent_configurations ORDER BY agent_name")
        .await;
    let souls: Vec<String> = souls.into_iter().flatten().flatten().collect();
    assert_eq!(souls, ["bad|a\u{fffd}", "blob|be", "nul|a\u{fffd}b", "null|", "number|5", "real|2.5"]);
    let kinds = old.rows("SELECT typeof(odd) FROM agent_configurations_legacy ORDER BY rowid").await;
    let kinds: Vec<String> = kinds.into_iter().flatten().flatten().collect();
    assert_eq!(kinds, ["blob", "real", "real", "text", "text", "null"]);
    let notes: Vec<&String> = report.agents.iter().flat_map(|agent| &agent.notes).collect();
    assert_eq!(
        notes,
        [
            "the soul is not UTF-8: its invalid bytes became U+FFFD",
            "1 NUL characters of the soul became U+FFFD"
        ]
    );
}

#[tokio::test]
async fn bare_text_and_nul_are_taken_and_told() {
    let old = Old::file().await;
    old.run(
        "CREATE TABLE user_agent_prompt_customizations (user_id TEXT, agent_name TEXT, customization_type TEXT, content JSON, priority TEXT, \
           PRIMARY KEY (user_id, agent_name, customization_type)) WITHOUT ROWID; \
         INSERT INTO user_agent_prompt_customizations VALUES ('ann', 'a', 'x', 'be brief', '10'), ('ann', 'a', 'y', '\"a\\u0000b\"', '9'), \
           ('ann', 'a', 'z', 7, 'soon');",
    )
    .await;
    let report = old.upgrade().await;
    let store = old.open().await;
    assert_eq!(
        store.instructions().get(&scope("ann", "a")).await.unwrap().text,
        "a\u{fffd}b\n\nbe brief\n\n7"
    );
    store.close().await;
    assert_eq!(
        report.instructions[0].notes,
        [
            "1 row not a JSON string: kept as compact JSON",
            "1 row not JSON: kept unchanged",
            "1 row with a priority that is not a number: placed after the others",
            "1 NUL characters became U+FFFD"
        ]
    );
}

#[tokio::test]
async fn triggers_views_and_foreign_keys_stay_with_the_old_table() {
    let old = Old::file().await;
    old.run(
        "CREATE TABLE agent_configurations (id INTEGER PRIMARY KEY, agent_name TEXT, system_prompt TEXT); \
         CREATE TABLE agent_tools (agent INTEGER REFERENCES agent_configurations (id), tool TEXT); \
         CREATE TABLE log (x TEXT); \
         CREATE TRIGGER noisy AFTER INSERT ON agent_configurations BEGIN INSERT INTO log VALUES (new.system_prompt); END; \
         CREATE VIEW names AS SELECT agent_name FROM agent_configurations; \
         CREATE VIEW broken AS SELECT lost FROM nowhere; \
         INSERT INTO agent_configurations VALUES (7, 'a', 'soul'); INSERT INTO agent_tools VALUES (7, 'hammer');",
    )
    .await;
    // SQLite checks every view when it renames a table.
    let refusal = old.refused().await;
    assert!(refusal.contains("cannot be renamed") && refusal.contains("broken"), "{refusal}");
    old.run("DROP VIEW broken").await;
    old.upgrade().await;
    assert!(
        exported(&old.path("export.json"))["tables"][0]["schema"]
            .to_string()
            .contains("CREATE TRIGGER noisy")
    );
    assert_eq!(old.text("SELECT agent_name FROM names").await.as_deref(), Some("a"));
    // The connection checks foreign keys: the parent is still found.
    old.run("INSERT INTO agent_tools VALUES (7, 'saw')").await;
    old.run("INSERT INTO agent_configurations (agent_name) VALUES ('x')").await;
    assert_eq!(old.rows("SELECT x FROM log").await, [[Some("soul".to_owned())]]);

    let old = Old::file().await;
    old.run(
        "CREATE TABLE user_agent_prompt_customizations (id INTEGER PRIMARY KEY, user_id TEXT, agent_name TEXT, content TEXT, priority INTEGER); \
         CREATE TABLE votes (customization INTEGER REFERENCES user_agent_prompt_customizations (id)); \
         INSERT INTO user_agent_prompt_customizations VALUES (1, 'ann', 'a', '\"x\"', 1), (2, 'ann', 'a', '\"y\"', 2); \
         INSERT INTO votes VALUES (2);",
    )
    .await;
    old.upgrade().await;
    assert!(old.rows("SELECT \"table\" FROM pragma_foreign_key_check").await.is_empty());
}
