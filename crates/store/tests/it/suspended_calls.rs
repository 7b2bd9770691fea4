//! Calls that wait for their host, and word between the processes that serve it.

use std::time::Duration;

use embody_store::replica_messages::NewReplicaMessage;
use embody_store::suspended_calls::{NewSuspendedCall, SuspendedCall};

use crate::world::{World, contract};

contract!(
    an_answer_counts_once_wherever_it_arrives,
    what_was_brought_elsewhere_is_taken_by_one,
    whoever_is_late_finds_nothing,
    a_letter_is_read_by_those_it_is_for,
);

fn parked(ticket: &str, lasts: Duration) -> NewSuspendedCall {
    let (ticket, resume_data) = (ticket.to_owned(), Some("{}".to_owned()));
    NewSuspendedCall { user: "ann".to_owned(), ticket, holder: "one".to_owned(), resume_data, lasts }
}

const MINUTE: Duration = Duration::from_secs(60);

async fn an_answer_counts_once_wherever_it_arrives(world: World) {
    let (store, other) = (&world.store, world.second().await);
    store.suspended_calls().insert(parked("t", MINUTE)).await.unwrap();
    assert_eq!(other.suspended_calls().answer("bob", "t", "two").await.unwrap(), None, "it is not his");
    let known = SuspendedCall { holder: "one".to_owned(), resume_data: Some("{}".to_owned()) };
    let (here, there) = tokio::join!(
        store.suspended_calls().answer("ann", "t", "one"),
        other.suspended_calls().answer("ann", "t", "two")
    );
    let found: Vec<SuspendedCall> = [here.unwrap(), there.unwrap()].into_iter().flatten().collect();
    assert_eq!(found, [known]);
    assert_eq!(store.suspended_calls().answer("ann", "t", "one").await.unwrap(), None);
}

async fn what_was_brought_elsewhere_is_taken_by_one(world: World) {
    let (store, other) = (&world.store, world.second().await);
    store.suspended_calls().insert(parked("t", MINUTE)).await.unwrap();
    assert!(!store.suspended_calls().claim("ann", "t").await.unwrap(), "it was not answered");
    assert!(other.suspended_calls().answer("ann", "t", "two").await.unwrap().is_some());
    let (here, there) =
        tokio::join!(store.suspended_calls().claim("ann", "t"), other.suspended_calls().claim("ann", "t"));
    assert!(here.unwrap() ^ there.unwrap());
    // Brought to its holder it is taken with that.
    store.suspended_calls().insert(parked("u", MINUTE)).await.unwrap();
    assert!(store.suspended_calls().answer("ann", "u", "one").await.unwrap().is_some());
    assert!(!other.suspended_calls().claim("ann", "u").await.unwrap());
}

async fn whoever_is_late_finds_nothing(world: World) {
    let store = &world.store;
    store.suspended_calls().insert(parked("t", Duration::ZERO)).await.unwrap();
    assert_eq!(store.suspended_calls().answer("ann", "t", "two").await.unwrap(), None);
    store.suspended_calls().insert(parked("u", MINUTE)).await.unwrap();
    store.suspended_calls().delete_old().await.unwrap();
    store.replica_messages().delete_old().await.unwrap();
    if let Some(rows) = world.count("SELECT count(*) FROM parked_calls").await {
        assert_eq!(rows, 1, "what is too old is forgotten");
    }
    assert!(store.suspended_calls().answer("ann", "u", "two").await.unwrap().is_some());
}

async fn a_letter_is_read_by_those_it_is_for(world: World) {
    let (store, other) = (&world.store, world.second().await);
    let send = async |recipient: Option<&str>, content: &str| {
        let (recipient, content) = (recipient.map(str::to_owned), content.to_owned());
        store
            .replica_messages()
            .send(NewReplicaMessage { sender: "one".to_owned(), recipient, content })
            .await
            .unwrap();
    };
    send(None, "to all").await;
    send(Some("two"), "to two").await;
    send(Some("three"), "to three").await;
    let read = async |process: &str| {
        let mut all = Vec::new();
        for letter in other.replica_messages().list_for(process).await.unwrap() {
            assert_eq!(letter.sender, "one");
            all.push(other.replica_messages().content(&letter.id).await.unwrap().unwrap());
        }
        all
    };
    assert_eq!(read("two").await, ["to all", "to two"]);
    assert_eq!(read("two").await, ["to all", "to two"], "a second read finds them again");
    assert_eq!(read("four").await, ["to all"]);
    assert!(read("one").await.is_empty(), "a process does not read its own");
    assert_eq!(other.replica_messages().content("none").await.unwrap(), None);
}
