//! Memories out of one store and into another, with nothing lost and nothing half done; and an index that was damaged.

use embody_store::memories::{MemoryImport, MemorySearch, MemoryStatus, NewMemory};
use embody_store::{ErrorKind, Scope, Store};
use sqlx::{Connection, SqliteConnection};

use crate::world::{World, contract, scope};

contract!(
    everything_survives_the_journey,
    importing_again_changes_nothing,
    a_memory_that_differs_stops_the_import,
    lines_that_are_no_memories_are_named,
);

async fn export(store: &Store, scope: &Scope) -> String {
    let mut lines = Vec::new();
    store.memories().export(scope, &mut lines).await.unwrap();
    String::from_utf8(lines).unwrap()
}

/// Some of everything: sessions, statuses, versions.
async fn fill(store: &Store, scope: &Scope) {
    let new = |number: i64, text: &str| NewMemory {
        session: (number % 3 > 0).then(|| format!("s{}", number % 3)),
        actor: (number % 2 > 0).then(|| "Zoë".to_owned()),
        tags: vec!["t\u{2028}ag".into()],
        source: Some("mail".into()),
        occurred_at: Some(number * 86_400_000_000),
        ..NewMemory::note(text, "owner", "owner")
    };
    let mut ids = Vec::new();
    for (number, text) in
        (1..).zip(["tea?", "green \"tea\"\n", "a dog", "猫 and tea", "rain", "tea in the rain"])
    {
        // The third is released from quarantine, so that it has a history.
        let status = if number == 3 { MemoryStatus::Quarantined } else { MemoryStatus::Active };
        ids.push(store.memories().save(scope, NewMemory { status, ..new(number, text) }).await.unwrap().id);
    }
    let held = NewMemory { status: MemoryStatus::Quarantined, ..new(9, "obey the tea") };
    store.memories().save(scope, held).await.unwrap();
    store.memories().release(scope, &ids[2]).await.unwrap();
    store.memories().forget(scope, &ids[4]).await.unwrap();
}

async fn everything_survives_the_journey(world: World) {
    let (here, there) = (scope("ann", "assistant"), scope("bob", "coach"));
    fill(&world.store, &here).await;
    let lines = export(&world.store, &here).await;
    assert_eq!(lines.lines().count(), 7);
    let done = world.store.memories().import(&there, &lines).await.unwrap();
    assert_eq!(done, MemoryImport { added: 7, unchanged: 0 });
    assert_eq!(export(&world.store, &there).await, lines);
    // A store of another kind takes it too, and ranks alike.
    let other = World::memory().await;
    other.store.memories().import(&here, &lines).await.unwrap();
    assert_eq!(export(&other.store, &here).await, lines);
    for query in ["tea", "does Zoë have a dog", "rain on 5 January 1970", "猫", ""] {
        let search = MemorySearch { query: query.into(), limit: 10, kind: None, since: None };
        let found = world.store.memories().search(&here, &search).await.unwrap();
        assert_eq!(other.store.memories().search(&here, &search).await.unwrap(), found, "{query}");
        assert_eq!(world.store.memories().search(&there, &search).await.unwrap(), found, "{query}");
        assert!(!found.is_empty(), "{query}");
    }
}

async fn importing_again_changes_nothing(world: World) {
    let ann = scope("ann", "assistant");
    fill(&world.store, &ann).await;
    let lines = export(&world.store, &ann).await;
    let again = world.store.memories().import(&ann, &lines).await.unwrap();
    assert_eq!(again, MemoryImport { added: 0, unchanged: 7 });
    let twice = world
        .store
        .memories()
        .import(&scope("bob", "assistant"), &format!("{lines}\n{lines}"))
        .await
        .unwrap();
    assert_eq!(twice, MemoryImport { added: 7, unchanged: 0 });
    assert_eq!(export(&world.store, &ann).await, lines);
    assert_eq!(world.store.memories().import(&ann, "").await.unwrap(), MemoryImport::default());
}

async fn a_memory_that_differs_stops_the_import(world: World) {
    let (ann, bob) = (scope("ann", "assistant"), scope("bob", "assistant"));
    fill(&world.store, &ann).await;
    let lines = export(&world.store, &ann).await;
    let last = lines.lines().last().unwrap();
    let changed = last.replace("obey the tea", "obey the dog");
    world.store.memories().import(&bob, &changed).await.unwrap();
    let before = export(&world.store, &bob).await;
    let error = world.store.memories().import(&bob, &lines).await.unwrap_err();
    let (_, id) = last.split_once("\"id\":\"").unwrap();
    let (id, _) = id.split_once('"').unwrap();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert_eq!(error.to_string(), format!("the memory `{id}` already exists and differs"));
    assert_eq!(export(&world.store, &bob).await, before, "nothing is half-imported");
    let both = format!("{last}\n{changed}");
    let error = world.store.memories().import(&scope("cid", "assistant"), &both).await.unwrap_err();
    assert_eq!(error.to_string(), "line 2 cannot be imported");
}

async fn lines_that_are_no_memories_are_named(world: World) {
    let ann = scope("ann", "assistant");
    fill(&world.store, &ann).await;
    let lines = export(&world.store, &ann).await;
    let first = lines.lines().next().unwrap();
    for (broken, message) in [
        ("{\"memory\":1}".to_owned(), "line 2 is not a memory"),
        (first.replacen("\"text\"", "\"txt\"", 1), "line 2 is not a memory"),
        (first.replacen("tea?", " ", 1), "line 2 cannot be imported"),
        (first.replacen("\"version\":1", "\"version\":0", 1), "line 2 cannot be imported"),
        (first.replacen("tea?", "\\u0000", 1), "line 2 cannot be imported"),
    ] {
        assert_ne!(broken, first);
        let fresh = scope("fresh", "assistant");
        let error = world.store.memories().import(&fresh, &format!("{first}\n{broken}")).await.unwrap_err();
        assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Invalid, message), "{broken}");
        assert_eq!(export(&world.store, &fresh).await, "");
    }
}

/// Never a panic and never a wrong answer.
#[tokio::test]
async fn a_damaged_index_is_an_error() {
    let world = World::file().await;
    let ann = scope("ann", "assistant");
    fill(&world.store, &ann).await;
    let search = MemorySearch { query: "tea".into(), limit: 10, kind: None, since: None };
    assert!(!world.store.memories().search(&ann, &search).await.unwrap().is_empty());
    let file = format!("sqlite://{}", world.folder.path().join("embody.db").display());
    let mut raw = SqliteConnection::connect(&file).await.unwrap();
    sqlx::query("UPDATE memory_postings SET data = x'01ff'").execute(&mut raw).await.unwrap();
    let error = world.store.memories().search(&ann, &search).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.advice().unwrap().contains("rebuild"), "{error:?}");
}
