//! Receipts give back the exact bytes; sections are kept once.

use embody_store::NewReceipt;

use crate::world::{World, contract, scope};

contract!(replays_the_exact_bytes, sections_are_kept_once_and_pruned, refuses_parts_that_are_not_the_text);

fn receipt(parts: &[&str]) -> NewReceipt {
    NewReceipt {
        layout: "channel".into(),
        hash: blake3::hash(parts.concat().as_bytes()).to_hex().to_string(),
        parts: parts.iter().map(|part| (*part).to_owned()).collect(),
        detail: "{}".into(),
    }
}

async fn replays_the_exact_bytes(world: World) {
    let ann = scope("ann", "assistant");
    let parts = ["## Identity\nAda\u{301}", "\n\n---\n\n", "", "## Soul\r\n\t", "\n\n---\n\n"];
    let id = world.store.keep_receipt(&ann, receipt(&parts)).await.unwrap();
    let found = world.store.receipts("ann", &id, 10).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(world.store.replay(&found[0]).await.unwrap(), parts.concat());
    let by_hash = world.store.receipts("ann", &found[0].hash[..12], 10).await.unwrap();
    assert_eq!(by_hash, found);
    assert!(world.store.receipts("bob", &id, 10).await.unwrap().is_empty());
    assert!(world.store.receipts("ann", &found[0].hash[..7], 10).await.unwrap().is_empty());
}

async fn sections_are_kept_once_and_pruned(world: World) {
    let ann = scope("ann", "assistant");
    let rules = "rules ".repeat(1000);
    for turn in 0..3 {
        let turn = format!("turn {turn}");
        world.store.keep_receipt(&ann, receipt(&[&rules, &turn])).await.unwrap();
    }
    let latest = world.store.latest_receipts("ann", 10).await.unwrap();
    assert_eq!(latest.len(), 3);
    assert!(world.store.replay(&latest[0]).await.unwrap().ends_with("turn 2"));
    let gone = world.store.prune_receipts(latest[0].created_at).await.unwrap();
    assert!(gone <= 2);
    let latest = world.store.latest_receipts("ann", 10).await.unwrap();
    for receipt in &latest {
        assert!(world.store.replay(receipt).await.unwrap().starts_with("rules rules"));
    }
    world.store.prune_receipts(i64::MAX).await.unwrap();
    assert!(world.store.latest_receipts("ann", 10).await.unwrap().is_empty());
}

async fn refuses_parts_that_are_not_the_text(world: World) {
    let wrong = NewReceipt { hash: "00".into(), ..receipt(&["a"]) };
    let error = world.store.keep_receipt(&scope("ann", "assistant"), wrong).await.unwrap_err();
    assert!(error.to_string().ends_with("not to `00`"), "{error}");
}
