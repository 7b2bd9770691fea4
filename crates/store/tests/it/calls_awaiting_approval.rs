//! A call that waits for its approval is made by one process, whoever that is.

use embody_store::CallAwaitingApproval;

use crate::world::{World, contract, scope};

contract!(it_waits_for_whoever_takes_it);

fn held(user: &str, approval: &str, thread: &str) -> CallAwaitingApproval {
    CallAwaitingApproval {
        scope: scope(user, "assistant"),
        approval: approval.into(),
        thread: thread.into(),
        tool: "send_message".into(),
        arguments: r#"{"to":"bob"}"#.into(),
        content: "{}".into(),
    }
}

// spec: N-10
async fn it_waits_for_whoever_takes_it(world: World) {
    let second = world.second().await;
    let (one, two, bobs) = (held("ann", "a1", "t"), held("ann", "a2", "u"), held("bob", "a1", "t"));
    for call in [&one, &two, &bobs] {
        world.store.calls_awaiting_approval().insert(call.clone()).await.unwrap();
    }
    let again = CallAwaitingApproval { arguments: "{}".into(), ..two.clone() };
    world.store.calls_awaiting_approval().insert(again.clone()).await.unwrap();
    // Nobody knows of an approval any more: nobody waits for it.
    assert_eq!(second.calls_awaiting_approval().list_decided(10).await.unwrap(), [one.clone(), again, bobs]);
    assert_eq!(second.calls_awaiting_approval().list_decided(1).await.unwrap(), std::slice::from_ref(&one));
    assert_eq!(second.calls_awaiting_approval().list_in_thread("ann", "t").await.unwrap(), [one]);
    assert_eq!(second.calls_awaiting_approval().list_in_thread("bob", "u").await.unwrap(), []);
    let (here, there) = tokio::join!(
        world.store.calls_awaiting_approval().claim("ann", "a1"),
        second.calls_awaiting_approval().claim("ann", "a1")
    );
    assert_eq!(usize::from(here.unwrap()) + usize::from(there.unwrap()), 1);
    assert!(!second.calls_awaiting_approval().claim("ann", "none").await.unwrap());
    assert_eq!(second.calls_awaiting_approval().list_decided(10).await.unwrap().len(), 2);
    assert!(world.store.calls_awaiting_approval().insert(held("ann", "", "t")).await.is_err());
}
