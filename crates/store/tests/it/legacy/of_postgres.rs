//! What only PostgreSQL has: types, policies, foreign keys that are checked, triggers that interfere, several schemas.

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
        ["`agent_configurations.m` had no default and was demanded; it may be empty now"]
    );
    assert_eq!(
        old.text("SELECT identity::text FROM agent_configurations").await.as_deref(),
        Some("{\"name\": 1}")
    );
    old.open().await.close().await;
}

// spec: S-03
#[tokio::test]
async fn what_blocks_it_is_named() {
    for (blocker, words) in [
        (
            "CREATE TABLE people (id UUID PRIMARY KEY); INSERT INTO people VALUES ('00000000-0000-4000-8000-00000000000a'); \
             ALTER TABLE user_agent_prompt_customizations ADD CONSTRAINT of_people FOREIGN KEY (user_id) REFERENCES people (id)",
            ["foreign key constraint \"of_people\"", "user_id"],
        ),
        (
            "ALTER TABLE user_agent_prompt_customizations ENABLE ROW LEVEL SECURITY; \
             CREATE POLICY own ON user_agent_prompt_customizations USING (user_id IS NOT NULL)",
            ["policy own on table user_agent_prompt_customizations", "user_id"],
        ),
        (
            "ALTER TABLE user_agent_prompt_customizations ADD CONSTRAINT known FOREIGN KEY (agent_name) REFERENCES agent_configurations (agent_name)",
            ["would refuse what embody writes", "known"],
        ),
        (
            "ALTER TABLE user_agent_prompt_customizations ADD CONSTRAINT known FOREIGN KEY (agent_name) \
               REFERENCES agent_configurations (agent_name) DEFERRABLE INITIALLY DEFERRED",
            ["would refuse what embody writes", "known"],
        ),
        (
            "CREATE FUNCTION sorted() RETURNS TRIGGER LANGUAGE plpgsql AS 'BEGIN IF NEW.priority IS NULL THEN RETURN NULL; END IF; RETURN NEW; END'; \
             CREATE TRIGGER sorted BEFORE INSERT ON user_agent_prompt_customizations FOR EACH ROW EXECUTE FUNCTION sorted()",
            ["would refuse what embody writes", "has no field \"priority\""],
        ),
        (
            "CREATE FUNCTION frozen() RETURNS TRIGGER LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; \
             CREATE TRIGGER frozen BEFORE UPDATE ON user_agent_prompt_customizations FOR EACH ROW EXECUTE FUNCTION frozen()",
            ["only 0 of 1 rows", "a trigger of the table"],
        ),
    ] {
        let old = Old::postgres().await;
        old.run(
            "CREATE TABLE agent_configurations (agent_name TEXT PRIMARY KEY, system_prompt TEXT); \
             CREATE TABLE user_agent_prompt_customizations (user_id UUID, agent_name TEXT, content JSONB, priority INTEGER); \
             INSERT INTO agent_configurations VALUES ('a', 'soul'); \
             INSERT INTO user_agent_prompt_customizations VALUES ('00000000-0000-4000-8000-00000000000a', 'a', '\"x\"', 1)",
        )
        .await;
        old.run(blocker).await;
        let refusal = old.refused().await;
        assert!(words.iter().all(|word| refusal.contains(word)), "{refusal}");
    }
}

#[tokio::test]
async fn keys_without_defaults_fill_themselves() {
    for (kind, key) in [("UUID", "gen_random_uuid()"), ("TEXT", "'k'"), ("SMALLINT", "40")] {
        let old = Old::postgres().await;
        old.run(&format!(
            "CREATE TABLE agent_configurations (\"the id\" {kind} PRIMARY KEY, agent_name TEXT, system_prompt TEXT); \
             INSERT INTO agent_configurations VALUES ({key}, 'a', 'soul')"
        ))
        .await;
        let report = old.upgrade().await;
        assert!(report.notes[0].starts_with("`agent_configurations.the id` had no default"), "{report:?}");
        old.run("INSERT INTO agent_configurations (agent_name) VALUES ('x'), ('y')").await;
        if kind == "SMALLINT" {
            let ids =
                old.rows("SELECT \"the id\"::text FROM agent_configurations WHERE \"the id\" > 40").await;
            assert_eq!(ids.len(), 2, "{ids:?}");
        }
    }
}

#[tokio::test]
async fn rows_that_wait_for_the_end_are_settled_first() {
    let old = Old::postgres().await;
    old.run(BARE).await;
    old.run(
        "CREATE TABLE votes (customization INTEGER REFERENCES user_agent_prompt_customizations (id) DEFERRABLE INITIALLY DEFERRED); \
         INSERT INTO user_agent_prompt_customizations VALUES (1, 'ann', 'a', 't', '\"x\"', 1), (2, 'ann', 'a', 'u', '\"y\"', 2); \
         INSERT INTO votes VALUES (1)",
    )
    .await;
    old.upgrade().await;
    let store = old.open().await;
    assert_eq!(store.instructions().get(&scope("ann", "a")).await.unwrap().text, "x\n\ny");
    store.close().await;

    let old = Old::postgres().await;
    old.run(BARE).await;
    old.run(
        "CREATE TABLE votes (customization INTEGER CONSTRAINT voted REFERENCES user_agent_prompt_customizations (id)); \
         INSERT INTO user_agent_prompt_customizations VALUES (1, 'ann', 'a', 't', '\"x\"', 1), (2, 'ann', 'a', 'u', '\"y\"', 2); \
         INSERT INTO votes VALUES (2)",
    )
    .await;
    let refusal = old.refused().await;
    assert!(refusal.contains("voted") && refusal.contains("votes"), "{refusal}");
}

#[tokio::test]
async fn tables_of_another_schema_are_left_alone() {
    let old = Old::postgres().await;
    old.run("CREATE SCHEMA elsewhere; CREATE TABLE elsewhere.agent_configurations (agent_name TEXT, system_prompt TEXT)").await;
    assert!(old.refused().await.contains("nothing to upgrade"));
}
