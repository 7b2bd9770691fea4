//! Threads and messages keep their order and their bytes.

use embody_store::{NewMessage, NewThread};

use crate::world::{World, contract, scope};

contract!(messages_keep_order_and_bytes, an_external_name_finds_its_thread, nobody_reads_anothers_thread);

fn new(external: Option<&str>) -> NewThread {
    NewThread { channel: "web".into(), external: external.map(str::to_owned), title: None }
}

fn says(role: &str, content: &str) -> NewMessage {
    NewMessage { role: role.into(), content: content.into() }
}

async fn messages_keep_order_and_bytes(world: World) {
    let thread = world.store.open_thread(&scope("ann", "assistant"), new(None)).await.unwrap();
    let raw = "{ \"b\":1.0, \"a\" : 12345678901234567890, \"a\":\"\u{1F600}\\u0000\" }";
    world.store.append_messages("ann", &thread.id, vec![says("user", raw), says("tool", "2")]).await.unwrap();
    world.store.append_messages("ann", &thread.id, vec![says("assistant", "3")]).await.unwrap();
    let all = world.store.messages("ann", &thread.id, 0, 10).await.unwrap();
    let seen: Vec<_> = all
        .iter()
        .map(|message| (message.seq, message.message.role.as_str(), message.message.content.as_str()))
        .collect();
    assert_eq!(seen, [(1, "user", raw), (2, "tool", "2"), (3, "assistant", "3")]);
    assert_eq!(world.store.messages("ann", &thread.id, 2, 10).await.unwrap().len(), 1);
    assert_eq!(world.store.last_messages("ann", &thread.id, 2).await.unwrap(), all[1..]);
    assert_eq!(world.store.last_messages("ann", &thread.id, 10).await.unwrap(), all);
    assert_eq!(world.store.last_messages("bob", &thread.id, 10).await.unwrap(), []);
    assert_eq!(world.store.thread("ann", &thread.id).await.unwrap().unwrap().messages, 3);
}

async fn an_external_name_finds_its_thread(world: World) {
    let ann = scope("ann", "assistant");
    let opening: Vec<_> = (0..16)
        .map(|_| {
            let (store, ann) = (world.store.clone(), ann.clone());
            tokio::spawn(async move { store.open_thread(&ann, new(Some("chat 7"))).await.unwrap().id })
        })
        .collect();
    let mut ids = std::collections::HashSet::new();
    for id in opening {
        ids.insert(id.await.unwrap());
    }
    assert_eq!(ids.len(), 1);
    let other = world.store.open_thread(&ann, new(None)).await.unwrap();
    assert_eq!(world.store.threads(&ann, 10).await.unwrap().first().unwrap().id, other.id);
}

async fn nobody_reads_anothers_thread(world: World) {
    let thread = world.store.open_thread(&scope("ann", "assistant"), new(None)).await.unwrap();
    world.store.append_messages("ann", &thread.id, vec![says("user", "1")]).await.unwrap();
    assert_eq!(world.store.thread("bob", &thread.id).await.unwrap(), None);
    assert!(world.store.messages("bob", &thread.id, 0, 10).await.unwrap().is_empty());
    let error = world.store.append_messages("bob", &thread.id, vec![says("user", "2")]).await.unwrap_err();
    assert_eq!(error.to_string(), format!("there is no thread `{}`", thread.id));
}

#[tokio::test]
async fn refuses_too_many_bytes_at_once() {
    let world = World::memory().await;
    let thread = world.store.open_thread(&scope("ann", "assistant"), new(None)).await.unwrap();
    let mut messages = vec![says("tool", &"x".repeat(4 * 1024 * 1024)); 4];
    world.store.append_messages("ann", &thread.id, messages.clone()).await.unwrap();
    messages.push(says("user", "x"));
    let error = world.store.append_messages("ann", &thread.id, messages).await.unwrap_err();
    assert_eq!(error.to_string(), "messages of 16777217 bytes at once; 16777216 are allowed");
    assert_eq!(world.store.thread("ann", &thread.id).await.unwrap().unwrap().messages, 4);
}
