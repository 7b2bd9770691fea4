//! What is refused, and that a refusal changes nothing and leaves nothing behind.

use embody_store::legacy::{migrate_legacy, preview_legacy};
use embody_store::{DatabaseUrl, ErrorKind};

use super::old::{BARE, Old, on_each};

on_each!(
    a_database_without_the_old_tables,
    two_agents_of_one_name,
    tables_of_somebody_else,
    shapes_that_cannot_be_understood,
    an_export_that_cannot_be_written,
);

async fn a_database_without_the_old_tables(old: Old) {
    assert!(
        old.refused().await.contains("neither `agent_configurations` nor `user_agent_prompt_customizations`")
    );
    old.run("CREATE TABLE something (x TEXT)").await;
    assert!(old.refused().await.contains("check that the URL names the right database"));
}

// spec: S-03
async fn two_agents_of_one_name(old: Old) {
    old.run(
        "CREATE TABLE agent_configurations (id INTEGER, agent_name TEXT, system_prompt TEXT); \
             INSERT INTO agent_configurations VALUES (1, 'a', 'one'), (2, 'a', 'other')",
    )
    .await;
    assert!(old.refused().await.contains("has two rows named `a`"));
}

async fn tables_of_somebody_else(old: Old) {
    old.run(BARE).await;
    old.run("CREATE TABLE tasks (x TEXT); CREATE TABLE messages (x TEXT)").await;
    let refusal = old.refused().await;
    assert!(refusal.contains("names that embody needs: `tasks`, `messages`"), "{refusal}");
    old.run("DROP TABLE tasks; DROP TABLE messages; CREATE TABLE agent_configurations_legacy (x TEXT)").await;
    assert!(old.refused().await.contains("names that embody needs: `agent_configurations_legacy`"));
}

async fn shapes_that_cannot_be_understood(old: Old) {
    old.run("CREATE TABLE agent_configurations (agent_name TEXT, prompt TEXT)").await;
    assert!(old.refused().await.contains("neither `system_prompt` nor `soul`"));
    old.run("DROP TABLE agent_configurations; CREATE VIEW agent_configurations AS SELECT 'a' AS agent_name")
        .await;
    assert!(old.refused().await.contains("`agent_configurations` is "));
}

// spec: S-03
async fn an_export_that_cannot_be_written(old: Old) {
    old.run(BARE).await;
    old.run("INSERT INTO agent_configurations VALUES ('a', 'soul')").await;
    let before = old.dump().await;
    let error = migrate_legacy(&old.place, &old.path("no/such/folder/x.json")).await.unwrap_err();
    assert!(error.to_string().ends_with("cannot be written; nothing was changed"), "{error}");
    std::fs::write(old.path("mine.json"), "precious").unwrap();
    let error = migrate_legacy(&old.place, &old.path("mine.json")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.to_string().contains("exists already"), "{error}");
    assert_eq!(std::fs::read_to_string(old.path("mine.json")).unwrap(), "precious");
    assert_eq!(old.dump().await, before);
    let left = std::fs::read_dir(old.folder.path()).unwrap().map(|file| file.unwrap().file_name());
    assert!(left.into_iter().all(|name| !name.to_string_lossy().starts_with('.')));
}

#[tokio::test]
async fn a_file_that_is_not_there_is_not_made() {
    let folder = tempfile::tempdir().unwrap();
    let place = DatabaseUrl::File(folder.path().join("no.db"));
    let error = preview_legacy(&place).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    std::fs::write(
        folder.path().join("text.db"),
        "this is no database, but long enough to be taken for one".repeat(9),
    )
    .unwrap();
    let error = preview_legacy(&DatabaseUrl::File(folder.path().join("text.db"))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert_eq!(preview_legacy(&DatabaseUrl::Memory).await.unwrap_err().kind(), ErrorKind::Invalid);
}
