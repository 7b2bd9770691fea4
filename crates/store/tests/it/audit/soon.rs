//! Records that come with an observation, when the database fails them.

use embody_store::Store;
use embody_store::outbox::NewObservation;

use super::note;
use super::tamper::{meddle, outside};
use crate::world::{World, eventually, long, scope};

outside!(what_a_commit_fails_with_is_tried_again, records_stay_when_their_observation_cannot);

fn new(key: &str) -> NewObservation {
    NewObservation {
        scope: scope("ann", "assistant"),
        session: "s".into(),
        key: key.into(),
        payload: "{}".into(),
        pending_limit: 10,
    }
}

// spec: N-07
async fn what_a_commit_fails_with_is_tried_again(world: World) {
    let store = &world.store;
    meddle(store, "ALTER TABLE audit RENAME TO away").await;
    store.outbox().enqueue_deferred(vec![new("1")], vec![note("ann", "first")]).await.unwrap();
    store.audit().append(note("ann", "refused")).await.unwrap_err();
    store.outbox().enqueue_deferred(vec![new("2")], vec![note("ann", "second")]).await.unwrap();
    store.audit().append(note("ann", "refused")).await.unwrap_err();
    meddle(store, "ALTER TABLE away RENAME TO audit").await;
    store.audit().append(note("ann", "third")).await.unwrap();
    assert_eq!(subjects(store).await, ["first", "second", "third"]);
    let claimed = store.outbox().claim(&long("worker"), &[scope("ann", "assistant")], 10).await.unwrap();
    let keys: Vec<_> = claimed.iter().map(|observation| observation.key.as_str()).collect();
    assert_eq!(keys, ["1", "2"]);
}

// spec: N-07
async fn records_stay_when_their_observation_cannot(world: World) {
    let store = &world.store;
    meddle(store, "ALTER TABLE observation_outbox RENAME TO away").await;
    store.outbox().enqueue_deferred(vec![new("1")], vec![note("ann", "first")]).await.unwrap();
    eventually("the record", async || (subjects(store).await == ["first"]).then_some(())).await;
    meddle(store, "ALTER TABLE away RENAME TO observation_outbox").await;
    store.outbox().enqueue_deferred(vec![new("2")], vec![note("ann", "second")]).await.unwrap();
    store.audit().append(note("ann", "third")).await.unwrap();
    assert_eq!(subjects(store).await, ["first", "second", "third"]);
    assert_eq!(store.outbox().pending("ann").await.unwrap().count, 1);
}

async fn subjects(store: &Store) -> Vec<String> {
    let tail = store.audit().tail(10, None).await.unwrap();
    tail.iter().map(|record| record.text("subject").unwrap()).collect()
}
