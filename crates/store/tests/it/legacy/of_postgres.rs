//! What only PostgreSQL has: types, policies, foreign keys that are checked, triggers that interfere, several schemas.

use embody_store::instructions::InstructionsChange;

use super::old::{BARE, Old, exported, table};
use crate::world::scope;

#[tokio::test]
async fn types_of_all_kinds_are_exported_exactly() {
    let old = Old::postgres().await;
    old.run(
        "CREATE TYPE mood AS ENUM ('dry'); \
         CREATE TABLE agent_configurations (agent_name VARCHAR(20) PRIMARY KEY, system_prompt VARCHAR(99) NOT NULL DEFAULT '', identity JSON, \
           at TIMESTAMPTZ, n NUMERIC, f FLOAT8, b BYTEA, tags TEXT[], m mood NOT NULL, twice TEXT GENERATED ALWAYS AS (lower(system_prompt)) STORED); \
         ALTER TABLE agent_configurations DROP COLUMN twice; \
         INSERT INTO agent_configurations VALUES ('a', 'soul', '{\"name\":\"A\\u0000da\", \"name\": 1}', '2026-02-03 04:05:06.000007+08', \
           123456789012345678901234567890.10, 0.1, '\\x00ff', '{\"a,b\",NULL}', 'dry')",
    )
    .await;
    let report = old.upgrade().await;
    let export = exported(&old.path("export.json"));
    let row = &table(&export, "agent_configurations")[0];
    for (column, text) in [
        ("identity", "{\"name\":\"A\\u0000da\", \"name\": 1}"),
        ("at", "2026-02-02 20:05:06.000007+00"),
        ("n", "123456789012345678901234567890.10"),
        ("f", "0.1"),
        ("b", "\\x00ff"),
        ("tags", "{\"a,b\",NULL}"),
        ("m", "dry"),
    ] {
        assert_eq!(row[column], text, "{column}");
    }
    assert_eq!(report.agents[0].notes.len(), 1);
    assert_eq!(
        report.notes,
        ["`agent_configurations` is now `agent_configurations_legacy`, with all its columns"]
    );
    assert_eq!(
        old.text("SELECT identity::text FROM agent_configurations").await.as_deref(),
        Some("{\"name\": 1}")
    );
    old.open().await.close().await;
}

/// Constraints, policies and triggers stay with the old table: the new one takes what the store writes.
// spec: S-03
#[tokio::test]
async fn nothing_of_an_old_table_blocks_the_new_one() {
    for company in [
        "CREATE TABLE people (id UUID PRIMARY KEY); INSERT INTO people VALUES ('00000000-0000-4000-8000-00000000000a'); \
         ALTER TABLE user_agent_prompt_customizations ADD CONSTRAINT of_people FOREIGN KEY (user_id) REFERENCES people (id)",
        "ALTER TABLE user_agent_prompt_customizations ENABLE ROW LEVEL SECURITY; \
         CREATE POLICY own ON user_agent_prompt_customizations USING (user_id IS NOT NULL)",
        "ALTER TABLE user_agent_prompt_customizations ADD CONSTRAINT known FOREIGN KEY (agent_name) \
           REFERENCES agent_configurations (agent_name) DEFERRABLE INITIALLY DEFERRED",
        "CREATE FUNCTION sorted() RETURNS TRIGGER LANGUAGE plpgsql AS 'BEGIN IF NEW.priority IS NULL THEN RETURN NULL; END IF; RETURN NEW; END'; \
         CREATE TRIGGER sorted BEFORE INSERT ON user_agent_prompt_customizations FOR EACH ROW EXECUTE FUNCTION sorted()",
        "CREATE FUNCTION frozen() RETURNS TRIGGER LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; \
         CREATE TRIGGER frozen BEFORE UPDATE ON user_agent_prompt_customizations FOR EACH ROW EXECUTE FUNCTION frozen()",
    ] {
        let old = Old::postgres().await;
        old.run(
            "CREATE TABLE agent_configurations (agent_name TEXT PRIMARY KEY, system_prompt TEXT); \
             CREATE TABLE user_agent_prompt_customizations (user_id UUID, agent_name TEXT, content JSONB, priority INTEGER); \
             INSERT INTO agent_configurations VALUES ('a', 'soul'); \
             INSERT INTO user_agent_prompt_customizations VALUES ('00000000-0000-4000-8000-00000000000a', 'a', '\"x\"', 1)",
        )
        .await;
        old.run(company).await;
        old.upgrade().await;
        let store = old.open().await;
        let ann = scope("00000000-0000-4000-8000-00000000000a", "a");
        assert_eq!(store.instructions().get(&ann).await.unwrap().text, "x");
        let change =
            |text: &str| InstructionsChange { text: text.into(), writer: "x".into(), expected_version: None };
        store.instructions().set(&scope("carl", "an unknown agent"), change("short")).await.unwrap();
        store.instructions().set(&ann, change("replaced")).await.unwrap();
        assert_eq!(store.instructions().get(&ann).await.unwrap().text, "replaced");
        store.close().await;
    }
}

#[tokio::test]
async fn rows_that_refer_to_old_rows_stay_valid() {
    for check in ["DEFERRABLE INITIALLY DEFERRED", ""] {
        let old = Old::postgres().await;
        old.run(BARE).await;
        old.run(&format!(
            "CREATE TABLE votes (customization INTEGER REFERENCES user_agent_prompt_customizations (id) {check}); \
             INSERT INTO user_agent_prompt_customizations VALUES (1, 'ann', 'a', 't', '\"x\"', 1), (2, 'ann', 'a', 'u', '\"y\"', 2); \
             INSERT INTO votes VALUES (2)"
        ))
        .await;
        old.upgrade().await;
        let store = old.open().await;
        assert_eq!(store.instructions().get(&scope("ann", "a")).await.unwrap().text, "x\n\ny");
        store.close().await;
        let voted =
            "SELECT user_id FROM votes JOIN user_agent_prompt_customizations_legacy ON id = customization";
        assert_eq!(old.text(voted).await.as_deref(), Some("ann"));
    }
}

#[tokio::test]
async fn tables_of_another_schema_are_left_alone() {
    let old = Old::postgres().await;
    old.run("CREATE SCHEMA elsewhere; CREATE TABLE elsewhere.agent_configurations (agent_name TEXT, system_prompt TEXT)").await;
    assert!(old.refused().await.contains("nothing to upgrade"));
}
