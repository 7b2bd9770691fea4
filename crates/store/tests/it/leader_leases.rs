//! A lease has one holder at a time; a former holder gets an error.

use embody_store::LeaseStatus;

use crate::world::{World, contract, eventually, long, short};

contract!(one_holds_it, a_holder_that_is_gone_is_replaced);

async fn one_holds_it(world: World) {
    let taking: Vec<_> = (0..8)
        .map(|number| {
            let store = world.store.clone();
            tokio::spawn(async move {
                store.leader_leases().claim("bot", &long(&format!("p{number}"))).await.unwrap()
            })
        })
        .collect();
    let mut held = Vec::new();
    for taken in taking {
        held.extend(taken.await.unwrap());
    }
    assert_eq!(held.len(), 1);
    let post = held.remove(0);
    assert!(world.store.leader_leases().claim("other", &long("p")).await.unwrap().is_some());
    assert_eq!(
        world.store.leader_leases().renew(&post, long("p").duration).await.unwrap(),
        LeaseStatus::Kept
    );
    assert_eq!(world.store.leader_leases().release(&post).await.unwrap(), LeaseStatus::Kept);
    assert_eq!(
        world.store.leader_leases().renew(&post, long("p").duration).await.unwrap(),
        LeaseStatus::Lost
    );
    assert!(world.store.leader_leases().claim("bot", &long("next")).await.unwrap().is_some());
}

async fn a_holder_that_is_gone_is_replaced(world: World) {
    let post = world.store.leader_leases().claim("bot", &short("gone")).await.unwrap().unwrap();
    let next = eventually("the next holder", async || {
        world.store.leader_leases().claim("bot", &long("next")).await.unwrap()
    })
    .await;
    assert!(next.fence > post.fence);
    assert_eq!(
        world.store.leader_leases().renew(&post, long("gone").duration).await.unwrap(),
        LeaseStatus::Lost
    );
    assert_eq!(world.store.leader_leases().release(&post).await.unwrap(), LeaseStatus::Lost);
    assert_eq!(
        world.store.leader_leases().renew(&next, long("next").duration).await.unwrap(),
        LeaseStatus::Kept
    );
}
