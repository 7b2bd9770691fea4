//! The outbox: nothing lost, nothing delivered by two at once, the order of a session kept.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use embody_store::audit::{Action, Actor, Event, Operation, Record};
use embody_store::outbox::{NewObservation, Observation};
use embody_store::{LeaseStatus, Scope, Store};

use crate::world::{World, contract, eventually, long, scope, short};

contract!(
    the_same_key_is_kept_once,
    a_full_outbox_says_so,
    records_join_the_observation,
    what_nobody_waits_for_is_kept_too,
    eight_workers_deliver_in_order_and_once,
    only_those_that_are_asked_for_are_taken,
    a_failed_one_holds_its_session_back,
    one_that_was_not_tried_was_no_attempt,
    a_slow_worker_is_refused,
    old_ones_are_dropped,
);

const HOUR: Duration = Duration::from_secs(3600);

fn new(user: &str, session: &str, key: &str) -> NewObservation {
    NewObservation {
        scope: scope(user, "assistant"),
        session: session.into(),
        key: key.into(),
        payload: format!("{{\"tool_name\": \"{key}\"}}"),
        pending_limit: 1000,
    }
}

async fn add(store: &Store, session: &str, key: &str) {
    enqueue(store, new("ann", session, key), Vec::new()).await;
}

/// Adds an observation and waits until it is durable.
async fn enqueue(store: &Store, new: NewObservation, records: Vec<Record>) {
    store.outbox().enqueue_deferred(vec![new], records).await.unwrap();
    store.flush().await.unwrap();
}

fn record(subject: &str) -> Record {
    let actor = Actor { user: "ann".into(), agent: None, session: None, channel: None };
    let operation = Operation { action: Action::Other, subject: subject.into(), note: None };
    Record { actor, event: Event::Operator(operation) }
}

fn everybody() -> [Scope; 2] {
    [scope("ann", "assistant"), scope("bob", "assistant")]
}

fn keys(claimed: &[Observation]) -> Vec<&str> {
    claimed.iter().map(|observation| observation.key.as_str()).collect()
}

// spec: N-06
async fn the_same_key_is_kept_once(world: World) {
    let second = world.second().await;
    let adding = (0..8).map(|number| {
        let store = if number % 2 == 0 { world.store.clone() } else { second.clone() };
        tokio::spawn(async move { add(&store, "s", "call-1").await })
    });
    for task in adding.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    enqueue(&world.store, new("bob", "s", "call-1"), Vec::new()).await;
    assert_eq!(world.store.outbox().pending("ann").await.unwrap().count, 1);
    let all = world.store.outbox().pending_total().await.unwrap();
    assert_eq!(all.count, 2);
    assert!(all.oldest_at.is_some());
    assert_eq!(world.store.outbox().pending("eve").await.unwrap().oldest_at, None);
}

async fn a_full_outbox_says_so(world: World) {
    let small = |key: &str| NewObservation { pending_limit: 2, ..new("ann", "s", key) };
    let pending = async |user: &str| world.store.outbox().pending(user).await.unwrap().count;
    for key in ["1", "2", "3", "1"] {
        enqueue(&world.store, small(key), Vec::new()).await;
    }
    assert_eq!(pending("ann").await, 2);
    let his = NewObservation { pending_limit: 2, ..new("bob", "s", "3") };
    enqueue(&world.store, his, Vec::new()).await;
    assert_eq!(pending("bob").await, 1);
    let claimed = world.store.outbox().claim(&long("worker"), &everybody(), 1).await.unwrap();
    assert_eq!(ack(&world.store, &claimed[0]).await, LeaseStatus::Kept);
    eventually("a place for the third", async || {
        enqueue(&world.store, small("3"), Vec::new()).await;
        (pending("ann").await == 2).then_some(())
    })
    .await;
    let huge = NewObservation { payload: "x".repeat(1024 * 1024 + 1), ..new("ann", "s", "huge") };
    let error = world.store.outbox().enqueue_deferred(vec![huge], Vec::new()).await.unwrap_err();
    assert_eq!(error.to_string(), "the observation has 1048577 bytes; 1048576 are allowed");
}

async fn records_join_the_observation(world: World) {
    enqueue(&world.store, new("ann", "s", "1"), vec![record("a"), record("b")]).await;
    let full = NewObservation { pending_limit: 1, ..new("ann", "s", "2") };
    enqueue(&world.store, full, vec![record("c")]).await;
    assert_eq!(world.store.outbox().pending("ann").await.unwrap().count, 1);
    if let Some(records) = world.count("SELECT count(*) FROM audit").await {
        assert_eq!(records, 3);
    }
}

// spec: N-07
async fn what_nobody_waits_for_is_kept_too(world: World) {
    for number in 0..20 {
        let observation = new("ann", "s", &format!("{number:02}"));
        world
            .store
            .outbox()
            .enqueue_deferred(vec![observation], vec![record(&number.to_string())])
            .await
            .unwrap();
    }
    eventually("all of them in the outbox", async || {
        (world.store.outbox().pending("ann").await.unwrap().count == 20).then_some(())
    })
    .await;
    if let Some(records) = world.count("SELECT count(*) FROM audit").await {
        assert_eq!(records, 20);
    }
    let claimed = world.store.outbox().claim(&long("worker"), &everybody(), 50).await.unwrap();
    assert_eq!(keys(&claimed), (0..20).map(|number| format!("{number:02}")).collect::<Vec<_>>());
}

// spec: N-06
async fn eight_workers_deliver_in_order_and_once(world: World) {
    let second = world.second().await;
    for number in 0..10 {
        let adding = (0..20).map(|session| {
            let store = world.store.clone();
            tokio::spawn(
                async move { add(&store, &format!("s{session}"), &format!("{session}-{number}")).await },
            )
        });
        for task in adding.collect::<Vec<_>>() {
            task.await.unwrap();
        }
    }
    let delivered = Arc::new(Mutex::new(BTreeMap::<String, Vec<String>>::new()));
    let workers: Vec<_> = (0..8)
        .map(|worker| {
            let store = if worker % 2 == 0 { world.store.clone() } else { second.clone() };
            let delivered = Arc::clone(&delivered);
            tokio::spawn(async move {
                loop {
                    let claimed = store.outbox().claim(&long("worker"), &everybody(), 7).await.unwrap();
                    if claimed.is_empty() && store.outbox().pending_total().await.unwrap().count == 0 {
                        return;
                    }
                    for observation in claimed {
                        let session = observation.session.clone();
                        delivered.lock().unwrap().entry(session).or_default().push(observation.key.clone());
                        assert_eq!(ack(&store, &observation).await, LeaseStatus::Kept);
                    }
                }
            })
        })
        .collect();
    for worker in workers {
        worker.await.unwrap();
    }
    let delivered = delivered.lock().unwrap();
    assert_eq!(delivered.len(), 20);
    for session in 0..20 {
        let expected: Vec<_> = (0..10).map(|number| format!("{session}-{number}")).collect();
        assert_eq!(delivered[&format!("s{session}")], expected);
    }
}

// spec: N-06
async fn only_those_that_are_asked_for_are_taken(world: World) {
    for (user, agent) in [("ann", "assistant"), ("ann", "writer"), ("bob", "assistant")] {
        let observation = NewObservation {
            scope: scope(user, agent),
            ..new(user, &format!("s of {agent}"), &format!("{user} {agent}"))
        };
        enqueue(&world.store, observation, Vec::new()).await;
    }
    let claim = async |of: &[Scope]| world.store.outbox().claim(&long("worker"), of, 10).await.unwrap();
    assert!(claim(&[]).await.is_empty());
    // Neither her other agent nor his: a pair is both.
    assert!(claim(&[scope("bob", "writer"), scope("eve", "assistant")]).await.is_empty());
    assert_eq!(
        keys(&claim(&[scope("ann", "writer"), scope("bob", "assistant")]).await),
        ["ann writer", "bob assistant"]
    );
    let last = claim(&everybody()).await;
    assert_eq!((keys(&last), last[0].attempts), (vec!["ann assistant"], 1));
}

async fn one_that_was_not_tried_was_no_attempt(world: World) {
    add(&world.store, "s", "1").await;
    add(&world.store, "s", "2").await;
    for _ in 0..3 {
        let claimed = world.store.outbox().claim(&long("worker"), &everybody(), 10).await.unwrap();
        assert_eq!(claimed.iter().map(|one| one.attempts).collect::<Vec<_>>(), [1, 1]);
        let put_back = world.store.outbox().release(&claimed[0], Duration::ZERO).await.unwrap();
        assert_eq!(put_back, LeaseStatus::Kept);
    }
}

async fn a_failed_one_holds_its_session_back(world: World) {
    for key in ["1", "2", "3"] {
        add(&world.store, "s", key).await;
    }
    let claimed = world.store.outbox().claim(&long("worker"), &everybody(), 10).await.unwrap();
    assert_eq!(keys(&claimed), ["1", "2", "3"]);
    assert_eq!(ack(&world.store, &claimed[0]).await, LeaseStatus::Kept);
    assert_eq!(world.store.outbox().retry(&claimed[1], HOUR).await.unwrap(), LeaseStatus::Kept);
    add(&world.store, "t", "other session").await;
    let next = world.store.outbox().claim(&long("worker"), &everybody(), 10).await.unwrap();
    assert_eq!(keys(&next), ["other session"]);
    assert_eq!(world.store.outbox().retry(&claimed[1], Duration::ZERO).await.unwrap(), LeaseStatus::Kept);
    let again = eventually("the failed one to be due", async || {
        let again = world.store.outbox().claim(&long("worker"), &everybody(), 10).await.unwrap();
        (!again.is_empty()).then_some(again)
    })
    .await;
    assert_eq!(keys(&again), ["2", "3"]);
    assert_eq!(again.iter().map(|observation| observation.attempts).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(again[0].payload, "{\"tool_name\": \"2\"}");
}

async fn a_slow_worker_is_refused(world: World) {
    add(&world.store, "s", "1").await;
    add(&world.store, "s", "2").await;
    let second = world.second().await;
    let slow = world.store.outbox().claim(&short("slow"), &everybody(), 10).await.unwrap();
    let quick = eventually("the lease of the slow worker to run out", async || {
        let claimed = second.outbox().claim(&long("quick"), &everybody(), 10).await.unwrap();
        (!claimed.is_empty()).then_some(claimed)
    })
    .await;
    assert_eq!(keys(&quick), ["1", "2"]);
    assert_eq!(ack(&world.store, &slow[0]).await, LeaseStatus::Lost);
    assert_eq!(world.store.outbox().retry(&slow[1], Duration::ZERO).await.unwrap(), LeaseStatus::Lost);
    for observation in &quick {
        assert_eq!(ack(&second, observation).await, LeaseStatus::Kept);
    }
    assert_eq!(world.store.outbox().pending("ann").await.unwrap().count, 0);
}

async fn old_ones_are_dropped(world: World) {
    for key in ["1", "2", "3"] {
        add(&world.store, "s", key).await;
    }
    add(&world.store, "t", "held").await;
    let held = world.store.outbox().claim(&long("worker"), &everybody(), 10).await.unwrap();
    assert_eq!(world.store.outbox().retry(&held[0], Duration::ZERO).await.unwrap(), LeaseStatus::Kept);
    assert_eq!(world.store.outbox().prune(HOUR, 10).await.unwrap(), 0);
    let mut dropped = 0;
    eventually("three to be dropped, two at most at a time", async || {
        let now = world.store.outbox().prune(Duration::ZERO, 2).await.unwrap();
        assert!(now <= 2);
        dropped += now;
        (dropped == 3).then_some(())
    })
    .await;
    assert_eq!(world.store.outbox().pending("ann").await.unwrap().count, 1);
    assert_eq!(ack(&world.store, &held[3]).await, LeaseStatus::Kept);
}

async fn ack(store: &Store, observation: &Observation) -> LeaseStatus {
    match store.outbox().complete(std::slice::from_ref(observation)).await.unwrap() {
        0 => LeaseStatus::Lost,
        _ => LeaseStatus::Kept,
    }
}
