//! What arrives on a channel: taken once, worked on once and in order, answered in the transaction that ends it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use embody_store::incoming::{
    Cursor, FinishIncoming, Incoming, IncomingChange, IncomingClaim, IncomingState, NewIncoming,
};
use embody_store::{LeaseStatus, Store};

use crate::outgoing;
use crate::world::{World, contract, eventually, long, scope, short};

contract!(
    the_same_one_is_taken_once,
    a_cursor_never_goes_back,
    a_conversation_is_worked_on_in_order,
    eight_workers_never_share_a_message,
    those_that_arrive_at_once_are_never_worked_on_side_by_side,
    a_lost_one_is_unknown_once_and_never_worked_on_again,
    a_message_is_finished_once,
    a_slow_worker_that_nobody_missed_may_end_it,
    what_nobody_has_begun_with_can_be_changed,
    the_reply_is_queued_with_the_end,
    nothing_is_queued_when_the_end_is_refused,
    users_are_kept_apart,
    where_somebody_was_heard_last,
    old_ones_are_forgotten,
);

pub(crate) fn new(user: &str, conversation: &str, external: &str) -> NewIncoming {
    NewIncoming {
        scope: scope(user, "assistant"),
        channel: "telegram".into(),
        conversation: conversation.into(),
        external: external.into(),
        content: format!("{{\"text\":\"{external}\"}}"),
    }
}

pub(crate) fn done() -> FinishIncoming {
    FinishIncoming { state: IncomingState::Done, reason: None, replies: Vec::new() }
}

pub(crate) async fn take(store: &Store, conversation: &str, external: &str) -> Incoming {
    store.incoming().insert(vec![new("ann", conversation, external)], None).await.unwrap().remove(0)
}

async fn what_nobody_has_begun_with_can_be_changed(world: World) {
    take(&world.store, "5", "a").await;
    let change =
        async |external: &str| world.store.incoming().replace("telegram", external, "2").await.unwrap();
    assert_eq!(change("a").await, IncomingChange::Changed);
    assert_eq!(change("b").await, IncomingChange::Missing);
    let claim = claim(&world.store, 1).await.remove(0);
    assert_eq!(claim.incoming.content, "2");
    for _ in 0..2 {
        let IncomingChange::TooLate(known) = change("a").await else { panic!("it was changed") };
        assert_eq!((known.id.as_str(), known.content.as_str()), (claim.incoming.id.as_str(), "2"));
        world.store.incoming().finish(&claim, done()).await.unwrap();
    }
}

pub(crate) async fn claim(store: &Store, limit: u32) -> Vec<IncomingClaim> {
    store.incoming().claim("telegram", &long("worker"), limit).await.unwrap()
}

fn externals(claims: &[IncomingClaim]) -> Vec<&str> {
    claims.iter().map(|claim| claim.incoming.external.as_str()).collect()
}

/// Claims with a lease that runs out at once.
async fn claimed_by_a_slow_worker(store: &Store) -> IncomingClaim {
    store.incoming().claim("telegram", &short("slow"), 1).await.unwrap().remove(0)
}

async fn settled(store: &Store) -> Vec<Incoming> {
    eventually("a lease that ran out", async || {
        let lost = store.incoming().expire("telegram", 10, |_| None).await.unwrap();
        (!lost.is_empty()).then_some(lost)
    })
    .await
}

async fn the_same_one_is_taken_once(world: World) {
    let second = world.second().await;
    let taking: Vec<_> = (0..8)
        .map(|number| {
            let store = if number % 2 == 0 { world.store.clone() } else { second.clone() };
            let new = vec![new("ann", "7", "1"), new("ann", "8", "2"), new("ann", "7", "1")];
            tokio::spawn(async move {
                store.incoming().insert(new, Some(Cursor { name: "telegram", value: 2 })).await.unwrap()
            })
        })
        .collect();
    let mut taken = Vec::new();
    for task in taking {
        taken.extend(task.await.unwrap().into_iter().map(|one| one.external));
    }
    assert_eq!(taken, ["1", "2"]);
    // Neither when it has ended, nor for somebody else.
    for claim in claim(&world.store, 10).await {
        assert_eq!(second.incoming().finish(&claim, done()).await.unwrap(), LeaseStatus::Kept);
    }
    let again = vec![new("ann", "7", "1"), new("bob", "7", "2"), new("bob", "7", "3")];
    let taken = second.incoming().insert(again, None).await.unwrap();
    assert_eq!(taken.iter().map(|one| one.external.as_str()).collect::<Vec<_>>(), ["3"]);
    // Another channel has names of its own.
    let elsewhere = NewIncoming { channel: "mail".into(), ..new("ann", "7", "1") };
    assert_eq!(second.incoming().insert(vec![elsewhere], None).await.unwrap().len(), 1);
}

async fn a_cursor_never_goes_back(world: World) {
    let at = |value| Some(Cursor { name: "telegram", value });
    assert_eq!(world.store.incoming().cursor("telegram").await.unwrap(), None);
    world.store.incoming().insert(Vec::new(), at(-5)).await.unwrap();
    assert_eq!(world.store.incoming().cursor("telegram").await.unwrap(), Some(-5));
    world.store.incoming().insert(vec![new("ann", "7", "1")], at(10)).await.unwrap();
    let late = world.store.incoming().insert(vec![new("ann", "7", "2")], at(9)).await.unwrap();
    assert_eq!(late.len(), 1);
    assert_eq!(world.second().await.incoming().cursor("telegram").await.unwrap(), Some(10));
    assert_eq!(world.store.incoming().cursor("mail").await.unwrap(), None);
    // What cannot be kept moves nothing.
    let huge = NewIncoming { content: "x".repeat(1024 * 1024 + 1), ..new("ann", "7", "3") };
    let error = world.store.incoming().insert(vec![huge], at(11)).await.unwrap_err();
    assert_eq!(error.to_string(), "the incoming message has 1048577 bytes; 1048576 are allowed");
    assert_eq!(world.store.incoming().cursor("telegram").await.unwrap(), Some(10));
}

async fn a_conversation_is_worked_on_in_order(world: World) {
    let new = ["1", "2", "3"].map(|external| new("ann", "7", external));
    world.store.incoming().insert(new.to_vec(), None).await.unwrap();
    take(&world.store, "8", "4").await;
    let first = claim(&world.store, 10).await;
    assert_eq!(externals(&first), ["1", "4"]);
    assert!(first.iter().all(|claim| claim.incoming.state == IncomingState::Working));
    assert_eq!(claim(&world.store, 10).await, []);
    assert_eq!(world.store.incoming().claim("mail", &long("worker"), 10).await.unwrap(), []);
    world.store.incoming().finish(&first[0], done()).await.unwrap();
    let failed = FinishIncoming { state: IncomingState::Failed, reason: Some("no".into()), ..done() };
    let second = claim(&world.store, 10).await;
    assert_eq!(externals(&second), ["2"]);
    world.store.incoming().finish(&second[0], failed).await.unwrap();
    assert_eq!(externals(&claim(&world.store, 10).await), ["3"]);
    let states: Vec<_> = world
        .store
        .incoming()
        .list("ann", 10)
        .await
        .unwrap()
        .into_iter()
        .map(|one| (one.external, one.state))
        .collect();
    let expected = [
        ("4", IncomingState::Working),
        ("3", IncomingState::Working),
        ("2", IncomingState::Failed),
        ("1", IncomingState::Done),
    ];
    assert_eq!(states, expected.map(|(external, state)| (external.to_owned(), state)));
}

async fn eight_workers_never_share_a_message(world: World) {
    let second = world.second().await;
    for part in 0..20 {
        let new =
            (0..10).map(|number| new("ann", &format!("chat{}", number % 7), &format!("{part:02}-{number}")));
        world.store.incoming().insert(new.collect(), None).await.unwrap();
    }
    let seen = Arc::new(Mutex::new(BTreeMap::<String, Vec<String>>::new()));
    let workers: Vec<_> = (0..8)
        .map(|worker| {
            let store = if worker % 2 == 0 { world.store.clone() } else { second.clone() };
            let seen = Arc::clone(&seen);
            tokio::spawn(async move {
                loop {
                    let claims = claim(&store, 3).await;
                    let count: usize = seen.lock().unwrap().values().map(Vec::len).sum();
                    if claims.is_empty() && count == 200 {
                        return;
                    }
                    for claim in claims {
                        let Incoming { conversation, external, .. } = claim.incoming.clone();
                        seen.lock().unwrap().entry(conversation).or_default().push(external);
                        assert_eq!(store.incoming().finish(&claim, done()).await.unwrap(), LeaseStatus::Kept);
                    }
                }
            })
        })
        .collect();
    for worker in workers {
        worker.await.unwrap();
    }
    for (conversation, externals) in seen.lock().unwrap().iter() {
        assert!(externals.is_sorted(), "{conversation}: {externals:?}");
        assert_eq!(externals.iter().collect::<BTreeSet<_>>().len(), externals.len());
    }
}

/// Some add to one conversation while others claim: at no time are two of it worked on.
async fn those_that_arrive_at_once_are_never_worked_on_side_by_side(world: World) {
    let second = world.second().await;
    let adding: Vec<_> = (0..4)
        .map(|task| {
            let store = if task % 2 == 0 { world.store.clone() } else { second.clone() };
            tokio::spawn(async move {
                for number in 0..20 {
                    take(&store, "7", &format!("{task}-{number}")).await;
                }
            })
        })
        .collect();
    let working = Arc::new(Mutex::new((0, 0)));
    let workers: Vec<_> = (0..4)
        .map(|worker| {
            let store = if worker % 2 == 0 { world.store.clone() } else { second.clone() };
            let working = Arc::clone(&working);
            tokio::spawn(async move {
                while working.lock().unwrap().1 < 80 {
                    for claim in claim(&store, 5).await {
                        {
                            let mut working = working.lock().unwrap();
                            assert_eq!(working.0, 0, "two of one conversation at once");
                            working.0 += 1;
                        }
                        tokio::task::yield_now().await;
                        {
                            let mut working = working.lock().unwrap();
                            *working = (0, working.1 + 1);
                        }
                        assert_eq!(store.incoming().finish(&claim, done()).await.unwrap(), LeaseStatus::Kept);
                    }
                }
            })
        })
        .collect();
    for task in adding.into_iter().chain(workers) {
        task.await.unwrap();
    }
}

async fn a_lost_one_is_unknown_once_and_never_worked_on_again(world: World) {
    take(&world.store, "7", "1").await;
    take(&world.store, "7", "2").await;
    let second = world.second().await;
    let slow = claimed_by_a_slow_worker(&world.store).await;
    eventually("the lease of the slow worker to run out", async || {
        (!second.incoming().list_unknown(10).await.unwrap().is_empty()).then_some(())
    })
    .await;
    // Not before it is settled does the next one begin.
    assert_eq!(claim(&second, 10).await, []);
    assert_eq!(second.incoming().expire("mail", 10, |_| None).await.unwrap(), []);
    let told = |lost: &Incoming| Some(outgoing::reply(&lost.conversation, "interrupted", &lost.external));
    let (here, there) = tokio::join!(
        world.store.incoming().expire("telegram", 10, told),
        second.incoming().expire("telegram", 10, told)
    );
    let lost: Vec<_> = here.unwrap().into_iter().chain(there.unwrap()).collect();
    assert_eq!(lost.len(), 1);
    assert_eq!((lost[0].external.as_str(), lost[0].state), ("1", IncomingState::Unknown));
    assert_eq!(world.store.incoming().list_unknown(10).await.unwrap(), lost);
    let notices = world.store.outgoing().list("ann", 10).await.unwrap();
    assert_eq!(notices.len(), 1, "its sender is told once");
    assert_eq!(
        (&*notices[0].to, &*notices[0].text, notices[0].about.as_deref()),
        ("7", "interrupted", Some("1"))
    );
    assert_eq!(world.store.incoming().finish(&slow, done()).await.unwrap(), LeaseStatus::Lost);
    assert_eq!(world.store.incoming().renew(&slow, Duration::from_secs(9)).await.unwrap(), LeaseStatus::Lost);
    assert_eq!(second.incoming().expire("telegram", 10, |_| None).await.unwrap(), []);
    assert_eq!(externals(&claim(&second, 10).await), ["2"]);
    assert_eq!(world.store.incoming().insert(vec![new("ann", "7", "1")], None).await.unwrap(), []);
}

async fn a_message_is_finished_once(world: World) {
    take(&world.store, "7", "1").await;
    let claim = claim(&world.store, 1).await.remove(0);
    let stale = IncomingClaim { fence: claim.fence - 1, ..claim.clone() };
    assert_eq!(world.store.incoming().finish(&stale, done()).await.unwrap(), LeaseStatus::Lost);
    assert_eq!(
        world.store.incoming().renew(&stale, Duration::from_secs(9)).await.unwrap(),
        LeaseStatus::Lost
    );
    assert_eq!(
        world.store.incoming().renew(&claim, Duration::from_secs(9)).await.unwrap(),
        LeaseStatus::Kept
    );
    assert_eq!(world.store.incoming().finish(&claim, done()).await.unwrap(), LeaseStatus::Kept);
    assert_eq!(world.store.incoming().finish(&claim, done()).await.unwrap(), LeaseStatus::Lost);
    let waiting = FinishIncoming { state: IncomingState::Waiting, ..done() };
    let error = world.store.incoming().finish(&claim, waiting).await.unwrap_err();
    assert_eq!(error.to_string(), "an incoming message cannot end in the state `waiting`");
}

async fn a_slow_worker_that_nobody_missed_may_end_it(world: World) {
    take(&world.store, "7", "1").await;
    let slow = claimed_by_a_slow_worker(&world.store).await;
    eventually("the lease to run out", async || {
        (!world.store.incoming().list_unknown(10).await.unwrap().is_empty()).then_some(())
    })
    .await;
    assert_eq!(world.store.incoming().list("ann", 1).await.unwrap()[0].state, IncomingState::Unknown);
    let odd = FinishIncoming { reason: Some(format!("{}\0", "é".repeat(1000))), ..done() };
    assert_eq!(world.store.incoming().finish(&slow, odd).await.unwrap(), LeaseStatus::Kept);
    assert_eq!(world.store.incoming().expire("telegram", 10, |_| None).await.unwrap(), []);
    let ended = world.store.incoming().list("ann", 1).await.unwrap().remove(0);
    assert_eq!(
        (ended.state, ended.reason.unwrap()),
        (IncomingState::Done, format!("{}\u{fffd}", "é".repeat(1000)))
    );
}

async fn the_reply_is_queued_with_the_end(world: World) {
    take(&world.store, "7", "1").await;
    let claim = claim(&world.store, 1).await.remove(0);
    let replies = ["one", "two"].map(|text| outgoing::reply("7", text, "1")).to_vec();
    let finish = FinishIncoming { replies, ..done() };
    assert_eq!(world.store.incoming().finish(&claim, finish.clone()).await.unwrap(), LeaseStatus::Kept);
    // Told twice, it is still one end and one answer.
    assert_eq!(world.store.incoming().finish(&claim, finish).await.unwrap(), LeaseStatus::Lost);
    let left = world.store.outgoing().list("ann", 10).await.unwrap();
    let seen: Vec<_> = left.iter().map(|one| (one.text.as_str(), one.about.as_deref())).collect();
    assert_eq!(seen, [("two", Some("1")), ("one", Some("1"))]);
    assert_eq!(outgoing::claim(&world.store, 10).await[0].outgoing.text, "one");
}

async fn nothing_is_queued_when_the_end_is_refused(world: World) {
    take(&world.store, "7", "1").await;
    let slow = claimed_by_a_slow_worker(&world.store).await;
    assert_eq!(settled(&world.store).await.len(), 1);
    let finish = FinishIncoming { replies: vec![outgoing::reply("7", "late", "1")], ..done() };
    assert_eq!(world.store.incoming().finish(&slow, finish).await.unwrap(), LeaseStatus::Lost);
    assert_eq!(world.store.outgoing().list("ann", 10).await.unwrap(), []);
    take(&world.store, "7", "2").await;
    let next = claim(&world.store, 1).await.remove(0);
    let empty = FinishIncoming { replies: vec![outgoing::reply("7", "", "2")], ..done() };
    let error = world.store.incoming().finish(&next, empty).await.unwrap_err();
    assert_eq!(error.to_string(), "the outgoing message is empty");
    assert_eq!(world.store.incoming().finish(&next, done()).await.unwrap(), LeaseStatus::Kept);
}

async fn users_are_kept_apart(world: World) {
    world.store.incoming().insert(vec![new("ann", "7", "1"), new("bob", "7", "2")], None).await.unwrap();
    assert_eq!(world.store.incoming().list("ann", 10).await.unwrap().len(), 1);
    assert_eq!(world.store.incoming().list("eve", 10).await.unwrap(), []);
    // They speak in one chat: it is answered in order all the same.
    let first = claim(&world.store, 10).await;
    assert_eq!(externals(&first), ["1"]);
    let mut stranger = first[0].clone();
    stranger.incoming.user = "bob".into();
    assert_eq!(world.store.incoming().finish(&stranger, done()).await.unwrap(), LeaseStatus::Lost);
    assert_eq!(world.store.incoming().finish(&first[0], done()).await.unwrap(), LeaseStatus::Kept);
    assert_eq!(claim(&world.store, 10).await[0].incoming.user, "bob");
}

async fn where_somebody_was_heard_last(world: World) {
    let ann = scope("ann", "assistant");
    let heard = async || {
        let heard = world.store.incoming().last_seen_channel("ann", "assistant").await.unwrap();
        heard.map(|heard| (heard.channel, heard.conversation))
    };
    let here = |channel: &str, conversation: &str| Some((channel.to_owned(), conversation.to_owned()));
    assert_eq!(heard().await, None);
    world.store.incoming().set_last_seen_channel(&ann, "web", "thread-1").await.unwrap();
    assert_eq!(heard().await, here("web", "thread-1"));
    world.store.incoming().insert(vec![new("ann", "7", "1"), new("ann", "8", "2")], None).await.unwrap();
    assert_eq!(heard().await, here("telegram", "8"));
    world.store.incoming().set_last_seen_channel(&ann, "scheduled", "digest").await.unwrap();
    world.store.incoming().insert(vec![new("ann", "7", "1"), new("bob", "9", "3")], None).await.unwrap();
    assert_eq!(heard().await, here("telegram", "8"));
    assert_eq!(world.store.incoming().last_seen_channel("ann", "other").await.unwrap(), None);
    world.store.incoming().set_last_seen_channel(&ann, "web", "thread-1").await.unwrap();
    assert_eq!(heard().await, here("web", "thread-1"));
}

async fn old_ones_are_forgotten(world: World) {
    for external in ["1", "2", "3"] {
        take(&world.store, "7", external).await;
    }
    for _ in 0..2 {
        let claim = claim(&world.store, 1).await.remove(0);
        world.store.incoming().finish(&claim, done()).await.unwrap();
    }
    assert_eq!(world.store.incoming().prune(Duration::from_secs(3600), 10).await.unwrap(), 0);
    let mut gone = 0;
    eventually("both to be old", async || {
        gone += world.store.incoming().prune(Duration::ZERO, 1).await.unwrap();
        (gone == 2).then_some(())
    })
    .await;
    assert_eq!(world.store.incoming().prune(Duration::ZERO, 10).await.unwrap(), 0);
    assert_eq!(world.store.incoming().list("ann", 10).await.unwrap()[0].external, "3");
}

#[tokio::test]
async fn beyond_ten_thousand_of_one_user_none_is_lost_in_silence() {
    let world = World::memory().await;
    for part in 0..10 {
        let new = (0..1000).map(|number| new("ann", "7", &format!("{part}-{number}"))).collect();
        assert_eq!(world.store.incoming().insert(new, None).await.unwrap().len(), 1000);
    }
    let new = vec![new("ann", "8", "more"), new("bob", "8", "his")];
    let at = Some(Cursor { name: "telegram", value: 3 });
    let taken = world.store.incoming().insert(new, at).await.unwrap();
    assert_eq!((taken[0].state, taken[0].content.as_str()), (IncomingState::Failed, "null"));
    assert_eq!(taken[0].reason.as_deref(), Some("10000 messages of this user are already waiting"));
    assert_eq!(taken[1].state, IncomingState::Waiting);
    assert_eq!(world.store.incoming().cursor("telegram").await.unwrap(), Some(3));
    assert_eq!(world.store.incoming().list("ann", 1).await.unwrap(), taken[..1]);
    assert_eq!(externals(&claim(&world.store, 10).await), ["0-0", "his"]);
    let too_many = vec![new_one(); 1001];
    let error = world.store.incoming().insert(too_many, None).await.unwrap_err();
    assert_eq!(error.to_string(), "1001 incoming messages at once; 1000 are allowed");
}

fn new_one() -> NewIncoming {
    new("ann", "7", "one")
}
