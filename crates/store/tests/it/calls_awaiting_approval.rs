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
        world.store.store_call_awaiting_approval(call.clone()).await.unwrap();
    }
    let again = CallAwaitingApproval { arguments: "{}".into(), ..two.clone() };
    world.store.store_call_awaiting_approval(again.clone()).await.unwrap();
    // Nobody knows of an approval any more: nobody waits for it.
    assert_eq!(second.decided_calls(10).await.unwrap(), [one.clone(), again, bobs]);
    assert_eq!(second.decided_calls(1).await.unwrap(), std::slice::from_ref(&one));
    assert_eq!(second.calls_awaiting_approval_in("ann", "t").await.unwrap(), [one]);
    assert_eq!(second.calls_awaiting_approval_in("bob", "u").await.unwrap(), []);
    let (here, there) = tokio::join!(
        world.store.claim_call_awaiting_approval("ann", "a1"),
        second.claim_call_awaiting_approval("ann", "a1")
    );
    assert_eq!(usize::from(here.unwrap()) + usize::from(there.unwrap()), 1);
    assert!(!second.claim_call_awaiting_approval("ann", "none").await.unwrap());
    assert_eq!(second.decided_calls(10).await.unwrap().len(), 2);
    assert!(world.store.store_call_awaiting_approval(held("ann", "", "t")).await.is_err());
}
