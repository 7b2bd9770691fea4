//! Receipts give back the exact bytes; sections are kept once.

use embody_store::receipts::{NewReceipt, SentRequest};

use crate::world::{World, contract, scope};

contract!(
    replays_the_exact_bytes,
    replays_the_whole_request,
    sections_are_kept_once_and_pruned,
    refuses_parts_that_are_not_the_text
);

fn receipt(parts: &[&str]) -> NewReceipt {
    NewReceipt {
        layout: "channel".into(),
        hash: blake3::hash(parts.concat().as_bytes()).to_hex().to_string(),
        parts: parts.iter().map(|part| (*part).to_owned()).collect(),
        detail: "{}".into(),
        ..NewReceipt::default()
    }
}

async fn replays_the_exact_bytes(world: World) {
    let ann = scope("ann", "assistant");
    let parts = ["## Identity\nAda\u{301}", "\n\n---\n\n", "", "## Soul\r\n\t", "\n\n---\n\n"];
    let id = world.store.receipts().insert(&ann, receipt(&parts)).await.unwrap();
    let found = world.store.receipts().list("ann", &id, 10).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(world.store.receipts().replay(&found[0]).await.unwrap().text, parts.concat());
    let by_hash = world.store.receipts().list("ann", &found[0].hash[..12], 10).await.unwrap();
    assert_eq!(by_hash, found);
    assert!(world.store.receipts().list("bob", &id, 10).await.unwrap().is_empty());
    assert!(world.store.receipts().list("ann", &found[0].hash[..7], 10).await.unwrap().is_empty());
}

async fn replays_the_whole_request(world: World) {
    let ann = scope("ann", "assistant");
    let text = |text: &str| text.to_owned();
    let (tools, messages) =
        (vec![text("{\"name\":\"a\"}")], vec![text("{\"role\":\"user\"}"), text("rules")]);
    let new = NewReceipt { tools: tools.clone(), messages: messages.clone(), ..receipt(&["rules"]) };
    let id = world.store.receipts().insert(&ann, new).await.unwrap();
    let found = world.store.receipts().list("ann", &id, 1).await.unwrap().remove(0);
    assert_eq!(found.usage, None);
    let sent = SentRequest { text: text("rules"), tools, messages };
    assert_eq!(world.store.receipts().replay(&found).await.unwrap(), sent);
    if let Some(sections) = world.count("SELECT count(*) FROM prompt_sections").await {
        assert_eq!(sections, 3, "a message with the text of a section is kept with it");
    }
    world.store.receipts().set_usage("bob", &id, "{\"input\":1}").await.unwrap();
    world.store.receipts().set_usage("ann", &id, "{\"input\":7}").await.unwrap();
    let found = world.store.receipts().list("ann", &id, 1).await.unwrap().remove(0);
    assert_eq!(found.usage.as_deref(), Some("{\"input\":7}"));
    assert_eq!(world.store.receipts().prune(i64::MAX, 10).await.unwrap(), 1);
    if let Some(sections) = world.count("SELECT count(*) FROM prompt_sections").await {
        assert_eq!(sections, 0);
    }
}

async fn sections_are_kept_once_and_pruned(world: World) {
    let (ann, bob) = (scope("ann", "assistant"), scope("bob", "assistant"));
    let sections = async |expected: i64| {
        if let Some(sections) = world.count("SELECT count(*) FROM prompt_sections").await {
            assert_eq!(sections, expected);
        }
    };
    let rules = "rules ".repeat(1000);
    for turn in 0..3 {
        let turn = format!("turn {turn}");
        world.store.receipts().insert(&ann, receipt(&[&rules, &turn])).await.unwrap();
    }
    // The same words of somebody else are not the same section.
    world.store.receipts().insert(&bob, receipt(&[&rules, "turn 0"])).await.unwrap();
    sections(4 + 2).await;
    let latest = world.store.receipts().list_latest("ann", 10).await.unwrap();
    assert_eq!(latest.len(), 3);
    assert_eq!(world.store.receipts().prune(latest[2].created_at, 10).await.unwrap(), 0);
    assert_eq!(world.store.receipts().prune(i64::MAX, 0).await.unwrap(), 0);
    assert_eq!(world.store.receipts().prune(i64::MAX, 2).await.unwrap(), 2);
    assert_eq!(world.store.receipts().list_latest("ann", 10).await.unwrap(), latest[..1]);
    assert_eq!(world.store.receipts().replay(&latest[0]).await.unwrap().text, format!("{rules}turn 2"));
    sections(2 + 2).await;
    assert_eq!(world.store.receipts().prune(i64::MAX, 1).await.unwrap(), 1);
    assert_eq!(world.store.receipts().list_latest("ann", 10).await.unwrap(), []);
    sections(2).await;
    let his = world.store.receipts().list_latest("bob", 10).await.unwrap();
    assert_eq!(world.store.receipts().replay(&his[0]).await.unwrap().text, format!("{rules}turn 0"));
    assert_eq!(world.store.receipts().prune(i64::MAX, 10).await.unwrap(), 1);
    sections(0).await;
    if let Some(parts) = world.count("SELECT count(*) FROM prompt_receipt_parts").await {
        assert_eq!(parts, 0);
    }
}

async fn refuses_parts_that_are_not_the_text(world: World) {
    let wrong = NewReceipt { hash: "00".into(), ..receipt(&["a"]) };
    let error = world.store.receipts().insert(&scope("ann", "assistant"), wrong).await.unwrap_err();
    assert!(error.to_string().ends_with("not `00`"), "{error}");
}

#[tokio::test]
async fn refuses_a_prompt_that_is_too_long() {
    let world = World::memory().await;
    let ann = scope("ann", "assistant");
    let part = "x".repeat(4 * 1024 * 1024);
    let whole = receipt(&[part.as_str(); 4]);
    let error =
        world.store.receipts().insert(&ann, receipt(&[&part, &part, &part, &part, "x"])).await.unwrap_err();
    assert_eq!(error.to_string(), "the prompt has 16777217 bytes; 16777216 are allowed");
    world.store.receipts().insert(&ann, whole).await.unwrap();
}
