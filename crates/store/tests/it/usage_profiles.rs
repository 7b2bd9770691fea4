//! What an agent is used to: read together, changed together, nobody else's.

use std::sync::Arc;

use embody_store::{ErrorKind, UsageProfile};

use crate::world::{World, contract, scope};

contract!(
    habits_are_kept_by_scope_and_removed_when_empty,
    two_replicas_lose_no_change,
    too_much_is_refused_and_changes_nothing,
);

fn habit(subject: &str, data: &[u8]) -> UsageProfile {
    UsageProfile { subject: subject.into(), data: data.to_vec() }
}

fn names(subjects: &[&str]) -> Vec<String> {
    subjects.iter().map(|subject| (*subject).to_owned()).collect()
}

async fn habits_are_kept_by_scope_and_removed_when_empty(world: World) {
    let (ann, bob) = (scope("ann", "assistant"), scope("bob", "assistant"));
    let asked = names(&["a", "b", "c"]);
    let made = |_| vec![habit("b", &[2, 0, 255]), habit("a", &[1])];
    world.store.usage_profiles().update(&ann, asked.clone(), 1, made).await.unwrap();
    let kept = world.store.usage_profiles().list(&ann, &asked).await.unwrap();
    assert_eq!(kept, [habit("a", &[1]), habit("b", &[2, 0, 255])]);
    assert_eq!(world.store.usage_profiles().list(&bob, &asked).await.unwrap(), []);
    world.store.usage_profiles().update(&ann, Vec::new(), 2, |_| vec![habit("a", &[])]).await.unwrap();
    assert_eq!(world.store.usage_profiles().list(&ann, &asked).await.unwrap(), [habit("b", &[2, 0, 255])]);
}

async fn two_replicas_lose_no_change(world: World) {
    let ann = Arc::new(scope("ann", "assistant"));
    let stores = [world.store.clone(), world.second().await];
    let workers = (0..8).map(|worker| {
        let (store, ann) = (stores[worker % 2].clone(), Arc::clone(&ann));
        tokio::spawn(async move {
            for _ in 0..10 {
                let add = |before: std::collections::BTreeMap<String, Vec<u8>>| {
                    let count = before.get("count").map_or(0, |data| data[0]);
                    vec![habit("count", &[count + 1])]
                };
                store.usage_profiles().update(&ann, names(&["count"]), 1, add).await.unwrap();
            }
        })
    });
    for worker in workers.collect::<Vec<_>>() {
        worker.await.unwrap();
    }
    assert_eq!(
        world.store.usage_profiles().list(&ann, &names(&["count"])).await.unwrap(),
        [habit("count", &[80])]
    );
}

async fn too_much_is_refused_and_changes_nothing(world: World) {
    let ann = scope("ann", "assistant");
    let large = |_| vec![habit("small", &[1]), habit("large", &vec![0; 64 * 1024 + 1])];
    let error = world.store.usage_profiles().update(&ann, Vec::new(), 1, large).await.unwrap_err();
    assert_eq!(error.to_string(), "the usage profile `large` has 65537 bytes; 65536 are allowed");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert_eq!(world.store.usage_profiles().list(&ann, &names(&["small"])).await.unwrap(), []);
    let many: Vec<String> = (0..65).map(|number| number.to_string()).collect();
    let error = world.store.usage_profiles().list(&ann, &many).await.unwrap_err();
    assert_eq!(error.to_string(), "65 usage profiles at once; 64 are allowed");
}
