//! Several stores on one database: one chain for each key, and nobody's record is lost.

use embody_store::audit::ChainState;
use embody_store::{DatabaseUrl, Store};

use super::{append, assert_intact, note, state};
use crate::world::World;

/// Appends from both at once.
async fn append_both(one: &Store, other: &Store, count: usize) {
    let append = |store: &Store, name: &'static str| {
        let store = store.clone();
        tokio::spawn(async move {
            for number in 0..count {
                store.audit().append(note(name, &format!("{number}"))).await.unwrap();
            }
        })
    };
    let (one, other) = (append(one, "ann"), append(other, "bob"));
    one.await.unwrap();
    other.await.unwrap();
}

#[tokio::test]
async fn two_stores_on_one_file_share_a_chain() {
    let world = World::file().await;
    let other = Store::open(world.store.url().clone()).await.unwrap();
    append_both(&world.store, &other, 100).await;
    assert_intact(&world.store, 200).await;
    assert_intact(&other, 200).await;
}

#[tokio::test]
async fn two_processes_of_one_replica_share_a_chain() {
    let world = World::postgres().await;
    let other = Store::open(world.store.url().clone()).await.unwrap();
    append_both(&world.store, &other, 100).await;
    assert_intact(&world.store, 200).await;
    assert_intact(&other, 200).await;
}

async fn replicas_have_chains_of_their_own(world: World) {
    let DatabaseUrl::Postgres { url, .. } = world.store.url().clone() else { panic!() };
    let keys = world.folder.path().join("other");
    let other = Store::open(DatabaseUrl::Postgres { url, direct_url: None, keys }).await.unwrap();
    append_both(&world.store, &other, 100).await;
    for store in [&world.store, &other] {
        let report = store.audit().verify().await.unwrap();
        assert_eq!(state(&report), &ChainState::Intact);
        let records: Vec<_> = report.chains.iter().map(|chain| chain.records).collect();
        assert_eq!(records, [100, 100]);
        let away: Vec<_> = report.chains.iter().filter(|chain| chain.state == ChainState::KeyAway).collect();
        assert_eq!(away.len(), 1);
        assert!(away[0].first_at.is_some() && away[0].last_at >= away[0].first_at);
    }
    let mut text = Vec::new();
    assert_eq!(world.store.audit().export(&mut text).await.unwrap(), 200);
    assert_eq!(world.store.audit().tail(200, Some("bob")).await.unwrap().len(), 100);
}

#[tokio::test]
async fn replicas_have_chains_of_their_own_postgres() {
    replicas_have_chains_of_their_own(World::postgres().await).await;
}

#[tokio::test]
async fn replicas_have_chains_of_their_own_pooled() {
    replicas_have_chains_of_their_own(World::pooled().await).await;
}

#[tokio::test]
async fn a_chain_is_found_again() {
    for world in [World::file().await, World::postgres().await] {
        let place = world.store.url().clone();
        append(&world.store, 3).await;
        world.store.close().await;
        let store = Store::open(place).await.unwrap();
        append(&store, 3).await;
        assert_intact(&store, 6).await;
    }
}
