//! Keys that processes share, and that are exchanged for new ones.

use std::time::Duration;

use crate::world::{World, contract};

contract!(one_key_is_everybodys_until_it_is_old);

const HOUR: Duration = Duration::from_secs(3600);

async fn one_key_is_everybodys_until_it_is_old(world: World) {
    let second = world.second().await;
    let key = world.store.signing_keys().current(HOUR, HOUR).await.unwrap();
    assert_eq!(second.signing_keys().current(HOUR, HOUR).await.unwrap(), key);
    assert_eq!(second.signing_keys().list().await.unwrap(), std::slice::from_ref(&key));
    assert_eq!(format!("{key:?}"), format!("SealKey {{ id: {:?}, .. }}", key.id), "no log has it");
    // One that has sealed for long enough gives way, and is kept for what it has sealed.
    let next = second.signing_keys().current(Duration::ZERO, HOUR).await.unwrap();
    assert!(next.id != key.id && next.key != key.key);
    let known = world.store.signing_keys().list().await.unwrap();
    assert_eq!(known, [next.clone(), key]);
    // And is forgotten when nothing of that can be good any more.
    let last = world.store.signing_keys().current(Duration::ZERO, Duration::ZERO).await.unwrap();
    assert_eq!(world.store.signing_keys().list().await.unwrap(), [last]);
}
