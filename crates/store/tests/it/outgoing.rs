//! What leaves on a channel: durable before it is tried, in order, and no part of it twice.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use embody_store::incoming::FinishIncoming;
use embody_store::outgoing::{NewOutgoing, Outgoing, OutgoingClaim, OutgoingEnd, OutgoingState};
use embody_store::{ErrorKind, LeaseStatus, Store};

use sqlx::Connection;

use crate::incoming;
use crate::world::{World, contract, eventually, long, scope, short};

contract!(
    one_recipient_gets_them_in_order,
    eight_senders_never_share_a_message,
    a_part_is_begun_once,
    what_surely_did_not_leave_is_tried_again,
    a_lost_one_with_a_part_on_its_way_is_unknown_once,
    a_lost_one_without_waits_again,
    a_slow_sender_is_refused,
    ends_are_kept_with_their_reasons,
    old_ones_are_forgotten,
);

pub(crate) fn reply(to: &str, text: &str, about: &str) -> NewOutgoing {
    NewOutgoing { kind: "reply".into(), about: Some(about.into()), ..new("ann", to, text) }
}

fn new(user: &str, to: &str, text: &str) -> NewOutgoing {
    NewOutgoing {
        scope: scope(user, "assistant"),
        channel: "telegram".into(),
        to: to.into(),
        text: text.into(),
        kind: "message".into(),
        urgency: "normal".into(),
        about: None,
    }
}

pub(crate) async fn add(store: &Store, to: &str, text: &str) -> Outgoing {
    store.outgoing().enqueue(new("ann", to, text)).await.unwrap()
}

pub(crate) async fn claim(store: &Store, limit: u32) -> Vec<OutgoingClaim> {
    store.outgoing().claim("telegram", &long("sender"), limit).await.unwrap()
}

fn texts(claims: &[OutgoingClaim]) -> Vec<&str> {
    claims.iter().map(|claim| claim.outgoing.text.as_str()).collect()
}

async fn only(store: &Store) -> Outgoing {
    let mut all = store.outgoing().list("ann", 10).await.unwrap();
    assert_eq!(all.len(), 1);
    all.remove(0)
}

async fn settled(store: &Store) -> Vec<Outgoing> {
    eventually("a lease that ran out", async || {
        let lost = store.outgoing().expire("telegram", 10).await.unwrap();
        (!lost.is_empty()).then_some(lost)
    })
    .await
}

fn again(at: i64) -> OutgoingEnd {
    OutgoingEnd::Again { at, reason: "slow down".into() }
}

async fn one_recipient_gets_them_in_order(world: World) {
    let added = add(&world.store, "7", "one").await;
    assert_eq!(only(&world.store).await, added);
    add(&world.store, "7", "two").await;
    world.store.outgoing().enqueue(new("bob", "7", "his")).await.unwrap();
    add(&world.store, "8", "other").await;
    let first = claim(&world.store, 10).await;
    assert_eq!(texts(&first), ["one", "other"]);
    assert_eq!(first[0].outgoing.state, OutgoingState::Sending);
    assert_eq!(claim(&world.store, 10).await, []);
    assert_eq!(world.store.outgoing().claim("mail", &long("sender"), 10).await.unwrap(), []);
    // One that is to be tried later holds those behind it back.
    assert_eq!(world.store.outgoing().finish(&first[0], again(i64::MAX)).await.unwrap(), LeaseStatus::Kept);
    assert_eq!(claim(&world.store, 10).await, []);
    assert_eq!(world.store.outgoing().list("bob", 10).await.unwrap().len(), 1);
    assert_eq!(world.store.outgoing().list("eve", 10).await.unwrap(), []);
}

async fn eight_senders_never_share_a_message(world: World) {
    let second = world.second().await;
    for number in 0..100 {
        add(&world.store, &format!("chat{}", number % 7), &format!("{number:03}")).await;
    }
    let sent = Arc::new(Mutex::new(BTreeMap::<String, Vec<String>>::new()));
    let senders: Vec<_> = (0..8)
        .map(|sender| {
            let store = if sender % 2 == 0 { world.store.clone() } else { second.clone() };
            let sent = Arc::clone(&sent);
            tokio::spawn(async move {
                loop {
                    let claims = claim(&store, 3).await;
                    let count: usize = sent.lock().unwrap().values().map(Vec::len).sum();
                    if claims.is_empty() && count == 100 {
                        return;
                    }
                    for claim in claims {
                        assert_eq!(store.outgoing().begin_part(&claim, 0).await.unwrap(), LeaseStatus::Kept);
                        let Outgoing { to, text, .. } = claim.outgoing.clone();
                        sent.lock().unwrap().entry(to).or_default().push(text);
                        let end = store.outgoing().finish(&claim, OutgoingEnd::Sent).await.unwrap();
                        assert_eq!(end, LeaseStatus::Kept);
                    }
                }
            })
        })
        .collect();
    for sender in senders {
        sender.await.unwrap();
    }
    for (to, texts) in sent.lock().unwrap().iter() {
        assert!(texts.windows(2).all(|pair| pair[0] < pair[1]), "{to}: {texts:?}");
    }
    let all = world.store.outgoing().list("ann", 1000).await.unwrap();
    assert!(all.iter().all(|one| (one.state, one.parts_sent) == (OutgoingState::Sent, 1)));
}

async fn a_part_is_begun_once(world: World) {
    add(&world.store, "7", "long").await;
    let claim = claim(&world.store, 1).await.remove(0);
    let error = world.store.outgoing().begin_part(&claim, 1).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert_eq!(
        error.to_string(),
        format!("the part `1` of the message `{}` cannot be sent: the next part is `0`", claim.outgoing.id)
    );
    assert_eq!(world.store.outgoing().begin_part(&claim, 0).await.unwrap(), LeaseStatus::Kept);
    assert_eq!(only(&world.store).await.parts_sent, 0);
    assert_eq!(world.store.outgoing().begin_part(&claim, 0).await.unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(world.store.outgoing().begin_part(&claim, 1).await.unwrap(), LeaseStatus::Kept);
    assert_eq!(only(&world.store).await.parts_sent, 1);
    assert_eq!(world.store.outgoing().finish_part(&claim, 0).await.unwrap(), LeaseStatus::Lost);
    assert_eq!(world.store.outgoing().finish_part(&claim, 1).await.unwrap(), LeaseStatus::Kept);
    assert_eq!(only(&world.store).await.parts_sent, 2);
    assert_eq!(world.store.outgoing().begin_part(&claim, 2).await.unwrap(), LeaseStatus::Kept);
    assert_eq!(world.store.outgoing().finish(&claim, OutgoingEnd::Sent).await.unwrap(), LeaseStatus::Kept);
    let sent = only(&world.store).await;
    assert_eq!((sent.state, sent.parts_sent, sent.attempts), (OutgoingState::Sent, 3, 1));
    assert_eq!(world.store.outgoing().begin_part(&claim, 3).await.unwrap(), LeaseStatus::Lost);
}

async fn what_surely_did_not_leave_is_tried_again(world: World) {
    add(&world.store, "7", "long").await;
    let first = claim(&world.store, 1).await.remove(0);
    for part in 0..2 {
        assert_eq!(world.store.outgoing().begin_part(&first, part).await.unwrap(), LeaseStatus::Kept);
    }
    assert_eq!(world.store.outgoing().finish(&first, again(1)).await.unwrap(), LeaseStatus::Kept);
    let waiting = only(&world.store).await;
    assert_eq!((waiting.state, waiting.reason.as_deref()), (OutgoingState::Waiting, Some("slow down")));
    let second = claim(&world.store, 1).await.remove(0);
    assert_eq!((second.outgoing.parts_sent, second.outgoing.attempts), (1, 2));
    assert_eq!(world.store.outgoing().begin_part(&first, 1).await.unwrap(), LeaseStatus::Lost);
    assert_eq!(world.store.outgoing().begin_part(&second, 1).await.unwrap(), LeaseStatus::Kept);
    assert_eq!(world.store.outgoing().finish(&second, OutgoingEnd::Sent).await.unwrap(), LeaseStatus::Kept);
    let sent = only(&world.store).await;
    assert_eq!((sent.state, sent.parts_sent, sent.reason), (OutgoingState::Sent, 2, None));
}

/// Claims with a lease that runs out soon, and begins the part in time.
async fn begun_by_a_slow_sender(store: &Store) -> OutgoingClaim {
    eventually("a part that began before its lease ran out", async || {
        store.outgoing().expire("telegram", 10).await.unwrap();
        let claim =
            store.outgoing().claim("telegram", &short("slow"), 1).await.unwrap().into_iter().next()?;
        (store.outgoing().begin_part(&claim, 0).await.unwrap() == LeaseStatus::Kept).then_some(claim)
    })
    .await
}

async fn a_lost_one_with_a_part_on_its_way_is_unknown_once(world: World) {
    add(&world.store, "7", "one").await;
    add(&world.store, "7", "two").await;
    let second = world.second().await;
    let slow = begun_by_a_slow_sender(&world.store).await;
    eventually("the lease to run out", async || {
        (!second.outgoing().list_unknown(10).await.unwrap().is_empty()).then_some(())
    })
    .await;
    assert_eq!(claim(&second, 10).await, []);
    let (here, there) =
        tokio::join!(world.store.outgoing().expire("telegram", 10), second.outgoing().expire("telegram", 10));
    let lost: Vec<_> = here.unwrap().into_iter().chain(there.unwrap()).collect();
    assert_eq!(lost.len(), 1);
    assert_eq!((lost[0].text.as_str(), lost[0].state), ("one", OutgoingState::Unknown));
    assert!(lost[0].finished_at.is_some());
    assert_eq!(world.store.outgoing().list_unknown(10).await.unwrap(), lost);
    assert_eq!(world.store.outgoing().begin_part(&slow, 1).await.unwrap(), LeaseStatus::Lost);
    assert_eq!(world.store.outgoing().finish(&slow, OutgoingEnd::Sent).await.unwrap(), LeaseStatus::Lost);
    assert_eq!(texts(&claim(&second, 10).await), ["two"]);
}

async fn a_lost_one_without_waits_again(world: World) {
    add(&world.store, "7", "one").await;
    let slow = world.store.outgoing().claim("telegram", &short("slow"), 1).await.unwrap().remove(0);
    let back = settled(&world.store).await;
    assert_eq!((back[0].state, back[0].finished_at), (OutgoingState::Waiting, None));
    assert_eq!(world.store.outgoing().list_unknown(10).await.unwrap(), []);
    assert_eq!(world.store.outgoing().begin_part(&slow, 0).await.unwrap(), LeaseStatus::Lost);
    let next = claim(&world.store, 1).await.remove(0);
    assert_eq!(next.outgoing.attempts, 2);
    assert_eq!(world.store.outgoing().begin_part(&next, 0).await.unwrap(), LeaseStatus::Kept);
    assert_eq!(world.store.outgoing().finish(&slow, OutgoingEnd::Sent).await.unwrap(), LeaseStatus::Lost);
    // Between two parts nothing is on its way either.
    assert_eq!(world.store.outgoing().finish_part(&next, 0).await.unwrap(), LeaseStatus::Kept);
    assert_eq!(
        world.store.outgoing().renew(&next, Duration::from_millis(1)).await.unwrap(),
        LeaseStatus::Kept
    );
    let back = settled(&world.store).await;
    assert_eq!((back[0].state, back[0].parts_sent), (OutgoingState::Waiting, 1));
}

async fn a_slow_sender_is_refused(world: World) {
    add(&world.store, "7", "one").await;
    let slow = world.store.outgoing().claim("telegram", &short("slow"), 1).await.unwrap().remove(0);
    settled(&world.store).await;
    let quick = claim(&world.store, 1).await.remove(0);
    assert!(quick.fence > slow.fence);
    let long = Duration::from_secs(60);
    assert_eq!(world.store.outgoing().renew(&slow, long).await.unwrap(), LeaseStatus::Lost);
    assert_eq!(world.store.outgoing().finish_part(&slow, 0).await.unwrap(), LeaseStatus::Lost);
    assert_eq!(world.store.outgoing().finish(&slow, again(0)).await.unwrap(), LeaseStatus::Lost);
    assert_eq!(world.store.outgoing().renew(&quick, long).await.unwrap(), LeaseStatus::Kept);
    assert_eq!(world.store.outgoing().begin_part(&quick, 0).await.unwrap(), LeaseStatus::Kept);
    let mut stranger = quick.clone();
    stranger.outgoing.user = "bob".into();
    assert_eq!(world.store.outgoing().finish(&stranger, OutgoingEnd::Sent).await.unwrap(), LeaseStatus::Lost);
    assert_eq!(world.store.outgoing().finish(&quick, OutgoingEnd::Sent).await.unwrap(), LeaseStatus::Kept);
    assert_eq!(world.store.outgoing().finish(&quick, OutgoingEnd::Sent).await.unwrap(), LeaseStatus::Lost);
}

async fn ends_are_kept_with_their_reasons(world: World) {
    for (end, state) in [
        (OutgoingEnd::Failed("blocked\0".into()), OutgoingState::Failed),
        (OutgoingEnd::Unknown("no answer".into()), OutgoingState::Unknown),
    ] {
        add(&world.store, "7", "text").await;
        let claim = claim(&world.store, 1).await.remove(0);
        assert_eq!(world.store.outgoing().begin_part(&claim, 0).await.unwrap(), LeaseStatus::Kept);
        assert_eq!(world.store.outgoing().finish(&claim, end).await.unwrap(), LeaseStatus::Kept);
        let ended = world.store.outgoing().list("ann", 1).await.unwrap().remove(0);
        assert_eq!((ended.state, ended.parts_sent), (state, 0));
        assert!(ended.finished_at.is_some());
    }
    let reasons: Vec<_> = world
        .store
        .outgoing()
        .list("ann", 10)
        .await
        .unwrap()
        .into_iter()
        .filter_map(|one| one.reason)
        .collect();
    assert_eq!(reasons, ["no answer", "blocked\u{fffd}"]);
    assert_eq!(world.store.outgoing().list_unknown(10).await.unwrap().len(), 1);
    let huge = new("ann", "7", &"x".repeat(256 * 1024 + 1));
    let error = world.store.outgoing().enqueue(huge).await.unwrap_err();
    assert_eq!(error.to_string(), "the outgoing message has 262145 bytes; 262144 are allowed");
}

async fn old_ones_are_forgotten(world: World) {
    for text in ["one", "two"] {
        add(&world.store, "7", text).await;
    }
    let claim = claim(&world.store, 1).await.remove(0);
    world.store.outgoing().finish(&claim, OutgoingEnd::Sent).await.unwrap();
    assert_eq!(world.store.outgoing().prune(Duration::from_secs(3600), 10).await.unwrap(), 0);
    eventually("it to be old", async || {
        (world.store.outgoing().prune(Duration::ZERO, 10).await.unwrap() == 1).then_some(())
    })
    .await;
    assert_eq!(only(&world.store).await.text, "two");
}

#[tokio::test]
async fn beyond_ten_thousand_of_one_user_the_sender_hears_of_it() {
    let world = World::file().await;
    fill(&world).await;
    let error = world.store.outgoing().enqueue(new("ann", "7", "more")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Full);
    assert_eq!(error.to_string(), "10000 messages of `ann` wait to be sent");
    world.store.outgoing().enqueue(new("bob", "7", "his")).await.unwrap();
    // A reply that has no room ends the work all the same, and is there to be seen.
    incoming::take(&world.store, "7", "1").await;
    let claim = incoming::claim(&world.store, 1).await.remove(0);
    let finish = FinishIncoming { replies: vec![reply("7", "answer", "1")], ..incoming::done() };
    assert_eq!(world.store.incoming().finish(&claim, finish).await.unwrap(), LeaseStatus::Kept);
    let kept = world.store.outgoing().list("ann", 1).await.unwrap().remove(0);
    assert_eq!((kept.text.as_str(), kept.state), ("answer", OutgoingState::Failed));
    assert_eq!(kept.reason.as_deref(), Some("10000 messages of this user wait to be sent"));
}

/// Past the store, which would count them one by one.
async fn fill(world: &World) {
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(world.folder.path().join("embody.db"));
    let mut conn = sqlx::SqliteConnection::connect_with(&options).await.unwrap();
    sqlx::query(
        "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 10000) \
         INSERT INTO outgoing (user_id, id, agent, channel, recipient, kind, urgency, seq, state, created_at, text) \
         SELECT 'ann', printf('0-%05d', n), 'assistant', 'telegram', n, 'message', 'normal', 1, 'waiting', 1, 'x' \
         FROM numbers",
    )
    .execute(&mut conn)
    .await
    .unwrap();
    conn.close().await.unwrap();
}
