//! Threads and messages keep their order and their bytes.

use embody_store::threads::{NewMessage, NewThread};

use crate::world::{World, contract, scope};

contract!(
    messages_keep_order_and_bytes,
    an_external_name_finds_its_thread,
    an_external_name_moves_to_another_thread,
    nobody_reads_anothers_thread
);

fn new(external: Option<&str>) -> NewThread {
    NewThread { channel: "web".into(), external: external.map(str::to_owned), title: None }
}

fn says(role: &str, content: &str) -> NewMessage {
    NewMessage { role: role.into(), content: content.into() }
}

async fn messages_keep_order_and_bytes(world: World) {
    let thread = world.store.threads().open(&scope("ann", "assistant"), new(None)).await.unwrap();
    let raw = "{ \"b\":1.0, \"a\" : 12345678901234567890, \"a\":\"\u{1F600}\\u0000\" }";
    world
        .store
        .threads()
        .append("ann", &thread.id, vec![says("user", raw), says("tool", "2")])
        .await
        .unwrap();
    world.store.threads().append("ann", &thread.id, vec![says("assistant", "3")]).await.unwrap();
    let all = world.store.threads().messages("ann", &thread.id, 0, 10).await.unwrap();
    let seen: Vec<_> = all
        .iter()
        .map(|message| (message.seq, message.message.role.as_str(), message.message.content.as_str()))
        .collect();
    assert_eq!(seen, [(1, "user", raw), (2, "tool", "2"), (3, "assistant", "3")]);
    assert_eq!(world.store.threads().messages("ann", &thread.id, 2, 10).await.unwrap().len(), 1);
    assert_eq!(world.store.threads().last_messages("ann", &thread.id, 2).await.unwrap(), all[1..]);
    assert_eq!(world.store.threads().last_messages("ann", &thread.id, 10).await.unwrap(), all);
    assert_eq!(world.store.threads().last_messages("bob", &thread.id, 10).await.unwrap(), []);
    assert_eq!(world.store.threads().get("ann", &thread.id).await.unwrap().unwrap().messages, 3);
}

async fn an_external_name_finds_its_thread(world: World) {
    let ann = scope("ann", "assistant");
    let opening: Vec<_> = (0..16)
        .map(|_| {
            let (store, ann) = (world.store.clone(), ann.clone());
            tokio::spawn(async move { store.threads().open(&ann, new(Some("chat 7"))).await.unwrap().id })
        })
        .collect();
    let mut ids = std::collections::HashSet::new();
    for id in opening {
        ids.insert(id.await.unwrap());
    }
    assert_eq!(ids.len(), 1);
    let other = world.store.threads().open(&ann, new(None)).await.unwrap();
    assert_eq!(world.store.threads().list(&ann, 10).await.unwrap().first().unwrap().id, other.id);
}

async fn an_external_name_moves_to_another_thread(world: World) {
    let (ann, bob) = (scope("ann", "assistant"), scope("bob", "assistant"));
    let threads = || world.store.threads();
    let first = threads().open(&ann, new(None)).await.unwrap();
    let second = threads().open(&ann, new(None)).await.unwrap();
    let bobs = threads().open(&bob, new(Some("v1-a"))).await.unwrap();
    for thread in [&first, &second, &second] {
        threads().set_external(&ann, &thread.id, "v1-a").await.unwrap();
        let now = threads().get("ann", &thread.id).await.unwrap().unwrap();
        assert_eq!(now.external.as_deref(), Some("v1-a"));
    }
    assert_eq!(threads().get("ann", &first.id).await.unwrap().unwrap().external, None);
    assert_eq!(threads().take_external(&ann, "telegram", "v1-a").await.unwrap(), None);
    assert_eq!(threads().take_external(&ann, "web", "v1-a").await.unwrap().unwrap().id, second.id);
    assert_eq!(threads().take_external(&ann, "web", "v1-a").await.unwrap(), None, "only one continues it");
    threads().set_external(&ann, &second.id, "v1-c").await.unwrap();
    threads().clear_external("bob", &second.id).await.unwrap();
    assert!(threads().get("ann", &second.id).await.unwrap().unwrap().external.is_some());
    threads().clear_external("ann", &second.id).await.unwrap();
    assert_eq!(threads().get("ann", &second.id).await.unwrap().unwrap().external, None);
    // Another user's thread keeps its name and cannot be renamed.
    threads().set_external(&ann, &bobs.id, "v1-b").await.unwrap();
    assert_eq!(threads().take_external(&bob, "web", "v1-b").await.unwrap(), None);
    assert_eq!(threads().take_external(&bob, "web", "v1-a").await.unwrap().unwrap().id, bobs.id);
}

async fn nobody_reads_anothers_thread(world: World) {
    let thread = world.store.threads().open(&scope("ann", "assistant"), new(None)).await.unwrap();
    world.store.threads().append("ann", &thread.id, vec![says("user", "1")]).await.unwrap();
    assert_eq!(world.store.threads().get("bob", &thread.id).await.unwrap(), None);
    assert!(world.store.threads().messages("bob", &thread.id, 0, 10).await.unwrap().is_empty());
    let error = world.store.threads().append("bob", &thread.id, vec![says("user", "2")]).await.unwrap_err();
    assert_eq!(error.to_string(), format!("unknown thread `{}`", thread.id));
}

#[tokio::test]
async fn refuses_too_many_bytes_at_once() {
    let world = World::memory().await;
    let thread = world.store.threads().open(&scope("ann", "assistant"), new(None)).await.unwrap();
    let mut messages = vec![says("tool", &"x".repeat(4 * 1024 * 1024)); 4];
    world.store.threads().append("ann", &thread.id, messages.clone()).await.unwrap();
    messages.push(says("user", "x"));
    let error = world.store.threads().append("ann", &thread.id, messages).await.unwrap_err();
    assert_eq!(error.to_string(), "messages of 16777217 bytes at once; 16777216 are allowed");
    assert_eq!(world.store.threads().get("ann", &thread.id).await.unwrap().unwrap().messages, 4);
}
