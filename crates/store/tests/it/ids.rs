//! Short ids: found by their end among the ids of one user, and long enough to name one id.

use embody_store::IdSet;
use embody_store::memories::NewMemory;
use embody_store::threads::NewThread;
use embody_store::tokens::{NewToken, TokenScope};

use crate::world::{World, contract, scope};

contract!(
    the_short_form_of_an_id_finds_only_that_id,
    ids_of_others_are_not_found,
    ids_of_every_kind_are_found
);

async fn the_short_form_of_an_id_finds_only_that_id(world: World) {
    let (store, ann) = (&world.store, scope("ann", "assistant"));
    let mut ids = Vec::new();
    for number in 0..20 {
        let memory = NewMemory::note(&format!("Fact {number}."), "operator", "owner");
        ids.push(store.memories().save(&ann, memory).await.unwrap().id);
    }
    let set = IdSet::Memories(&ann);
    assert_eq!(store.ids().matching(set, "", 100).await.unwrap(), ids);
    assert_eq!(store.ids().matching(set, "", 3).await.unwrap(), ids[..3]);
    // A short beginning is a time that the others share.
    assert_eq!(store.ids().matching(set, &ids[7][..4], 100).await.unwrap(), ids);
    assert!(store.ids().matching(set, &ids[7][..13], 100).await.unwrap().contains(&ids[7]));
    assert_eq!(store.ids().matching(set, &ids[7][..35], 100).await.unwrap(), [ids[7].clone()]);
    assert_eq!(store.ids().matching(set, &ids[7], 100).await.unwrap(), [ids[7].clone()]);
    assert_eq!(store.ids().newest(set, 2).await.unwrap(), [ids[19].clone(), ids[18].clone()]);
    // Also of those that are not shown together with the others.
    let short = store.ids().shorten(set, vec![ids[7].clone()]).await.unwrap();
    assert!(short.of(&ids[7]).len() >= 8 && ids[7].ends_with(short.of(&ids[7])));
    assert_eq!(short.of(&ids[8]), ids[8], "not looked up");
    let short = store.ids().shorten(set, ids.clone()).await.unwrap();
    for id in &ids {
        let found = store.ids().matching(set, short.of(id), 2).await.unwrap();
        assert_eq!(&found, std::slice::from_ref(id));
        assert!(!short.of(id).starts_with('-'), "{}", short.of(id));
    }
    // Nothing in a text has a meaning of its own.
    for text in ["%", "_", "0%", "' OR 1 = 1 --", "x"] {
        assert!(store.ids().matching(set, text, 10).await.unwrap().is_empty(), "{text}");
    }
}

async fn ids_of_others_are_not_found(world: World) {
    let (store, ann) = (&world.store, scope("ann", "assistant"));
    let id = store.memories().save(&ann, NewMemory::note("Tea.", "operator", "owner")).await.unwrap().id;
    for other in [scope("bob", "assistant"), scope("ann", "coach")] {
        assert!(store.ids().matching(IdSet::Memories(&other), &id, 10).await.unwrap().is_empty());
        assert!(store.ids().newest(IdSet::Memories(&other), 10).await.unwrap().is_empty());
    }
    let new = NewThread { channel: "web".into(), external: None, title: None };
    let thread = store.threads().open(&ann, new).await.unwrap().id;
    assert!(store.ids().matching(IdSet::Threads("bob"), &thread, 10).await.unwrap().is_empty());
    assert_eq!(store.ids().matching(IdSet::Threads("ann"), &thread, 10).await.unwrap(), [thread]);
}

async fn ids_of_every_kind_are_found(world: World) {
    let (store, ann) = (&world.store, scope("ann", "assistant"));
    let new = |user: &str| NewToken {
        user: user.into(),
        scope: TokenScope::Mcp,
        label: String::new(),
        expires_at: None,
        may_approve: false,
    };
    for user in ["ann", "bob"] {
        store.tokens().add(new(user)).await.unwrap();
    }
    assert_eq!(store.ids().matching(IdSet::Tokens, "", 10).await.unwrap().len(), 2);
    for set in [
        IdSet::Approvals,
        IdSet::Commitments(&ann),
        IdSet::Consolidations(&ann),
        IdSet::Notices("ann"),
        IdSet::Proposals(&ann),
        IdSet::Receipts("ann"),
        IdSet::Schedules("ann"),
        IdSet::Threads("ann"),
    ] {
        assert!(store.ids().matching(set, "", 10).await.unwrap().is_empty(), "{set:?}");
        assert!(store.ids().newest(set, 10).await.unwrap().is_empty(), "{set:?}");
        let short = store.ids().shorten(set, vec!["0123456789".into()]).await.unwrap();
        assert_eq!(short.of("0123456789"), "23456789", "{set:?}");
    }
}
