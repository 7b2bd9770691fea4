//! A lease has one holder at a time; a former holder gets an error.

use embody_store::Fenced;

use crate::world::{World, contract, eventually, long, short};

contract!(one_holds_it, a_holder_that_is_gone_is_replaced);

async fn one_holds_it(world: World) {
    let taking: Vec<_> = (0..8)
        .map(|number| {
            let store = world.store.clone();
            tokio::spawn(async move {
                store.claim_leader_lease("bot", &long(&format!("p{number}"))).await.unwrap()
            })
        })
        .collect();
    let mut held = Vec::new();
    for taken in taking {
        held.extend(taken.await.unwrap());
    }
    assert_eq!(held.len(), 1);
    let post = held.remove(0);
    assert!(world.store.claim_leader_lease("other", &long("p")).await.unwrap().is_some());
    assert_eq!(world.store.renew_leader_lease(&post, long("p").duration).await.unwrap(), Fenced::Kept);
    assert_eq!(world.store.release_leader_lease(&post).await.unwrap(), Fenced::Kept);
    assert_eq!(world.store.renew_leader_lease(&post, long("p").duration).await.unwrap(), Fenced::Lost);
    assert!(world.store.claim_leader_lease("bot", &long("next")).await.unwrap().is_some());
}

async fn a_holder_that_is_gone_is_replaced(world: World) {
    let post = world.store.claim_leader_lease("bot", &short("gone")).await.unwrap().unwrap();
    let next = eventually("the next holder", async || {
        world.store.claim_leader_lease("bot", &long("next")).await.unwrap()
    })
    .await;
    assert!(next.fence > post.fence);
    assert_eq!(world.store.renew_leader_lease(&post, long("gone").duration).await.unwrap(), Fenced::Lost);
    assert_eq!(world.store.release_leader_lease(&post).await.unwrap(), Fenced::Lost);
    assert_eq!(world.store.renew_leader_lease(&next, long("next").duration).await.unwrap(), Fenced::Kept);
}
