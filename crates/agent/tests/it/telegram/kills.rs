//! Kills at every step: no message is answered twice, and none is lost without being listed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use embody_store::incoming::IncomingState;
use embody_store::outgoing::OutgoingState;
use serde_json::{Value, json};

use super::world::{ANN, LEASE, OWNER, World, eventually, private};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn none_twice_and_none_lost() {
    const MESSAGES: i64 = 500;
    const KILLS: i64 = 24;
    let mut world = World::new().await;
    world.lease = Duration::from_millis(400);
    let turns = Arc::new(AtomicUsize::new(0));
    let mut after = 0..0;
    for kill in 0..=KILLS {
        // More messages arrive while it is being killed.
        let given = kill * MESSAGES / (KILLS + 1)..(kill + 1) * MESSAGES / (KILLS + 1);
        let last = given.clone();
        let update = |n| private(if n % 2 == 0 { OWNER } else { ANN }, n + 1, &format!("message {n}"));
        world.updates(json!(given.map(update).collect::<Vec<Value>>())).await;
        if kill == KILLS {
            world.lease = LEASE;
        }
        let polls = world.state().await["polls"].as_u64();
        let count = Arc::clone(&turns);
        let bot = world.bot(move |text| {
            count.fetch_add(1, Ordering::Relaxed);
            async move { Ok(Some(format!("Reply to {text}."))) }
        });
        if kill == KILLS {
            world.quiet().await;
            bot.stop().await;
            after = last;
        } else {
            // Later each time, so that every step is interrupted once.
            eventually(async || (world.state().await["polls"].as_u64() > polls).then_some(())).await;
            tokio::time::sleep(Duration::from_millis(5 * u64::try_from(kill).unwrap())).await;
            bot.kill().await;
        }
    }
    let mut answers: BTreeMap<i64, usize> = BTreeMap::new();
    for text in [world.texts(OWNER).await, world.texts(ANN).await].concat() {
        if let Some(number) = text.strip_prefix("Reply to message ") {
            *answers.entry(number.trim_end_matches('.').parse().unwrap()).or_default() += 1;
        }
    }
    let lost_in = world.store.incoming().list_unknown(1000).await.unwrap();
    let lost_out = world.store.outgoing().list_unknown(1000).await.unwrap();
    // Each of the two chats has one turn and one message in progress, so a kill leaves at most that many behind.
    let most = usize::try_from(KILLS).unwrap() * 2;
    assert!(lost_in.len() <= most && lost_out.len() <= most, "{} and {}", lost_in.len(), lost_out.len());
    println!("{} turns and {} messages were under way at a kill", lost_in.len(), lost_out.len());
    for number in 0..MESSAGES {
        let name = format!("42:{}:{}", if number % 2 == 0 { OWNER } else { ANN }, number + 1);
        let listed = lost_in.iter().any(|one| one.external == name)
            || lost_out.iter().any(|one| one.about.as_deref() == Some(name.as_str()));
        let answered = answers.get(&number).copied().unwrap_or(0);
        assert!(answered <= 1, "message {number} was answered {answered} times");
        assert!(answered == 1 || listed, "message {number} is lost");
    }
    assert!(turns.load(Ordering::Relaxed) <= usize::try_from(MESSAGES).unwrap(), "a turn was run twice");
    // The messages that arrived after the last kill.
    assert!(after.clone().all(|number| answers.contains_key(&number)), "{after:?} of {answers:?}");
}

#[tokio::test]
async fn whoever_was_interrupted_is_told_once() {
    let mut world = World::new().await;
    world.lease = Duration::from_millis(400);
    let bot = world.bot(|_| std::future::pending());
    world.updates(json!([private(OWNER, 1, "hello"), private(OWNER, 2, "again")])).await;
    eventually(async || (!world.asked.lock().unwrap().is_empty()).then_some(())).await;
    bot.kill().await;
    world.lease = LEASE;
    let bot = world.echo();
    let texts = world.seen(OWNER, 2).await;
    world.quiet().await;
    bot.stop().await;
    assert_eq!(world.texts(OWNER).await.len(), 2);
    let notice = texts.iter().find(|text| text.starts_with("I was interrupted")).unwrap();
    assert!(texts.contains(&"You said: again".to_owned()) && notice.contains("Send it again"), "{texts:?}");
    let lost = world.store.incoming().list_unknown(10).await.unwrap();
    assert_eq!((lost.len(), lost[0].external.as_str()), (1, "42:11:1"));
}

#[tokio::test]
async fn a_polite_end_lets_turns_end_and_tells_those_that_cannot() {
    let world = World::new().await;
    let bot = world.bot(|text| async move {
        if text == "slow" {
            return std::future::pending().await;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        Ok(Some("done".to_owned()))
    });
    world.updates(json!([private(OWNER, 1, "quick"), private(ANN, 1, "slow")])).await;
    eventually(async || (world.asked.lock().unwrap().len() == 2).then_some(())).await;
    bot.stop().await;
    assert_eq!(world.texts(OWNER).await, ["done"]);
    assert!(world.texts(ANN).await[0].starts_with("I was interrupted"));
    assert_eq!(world.store.incoming().list("owner", 1).await.unwrap()[0].state, IncomingState::Done);
    assert_eq!(world.store.incoming().list("telegram:22", 1).await.unwrap()[0].state, IncomingState::Unknown);
    assert_eq!(world.store.outgoing().list("telegram:22", 1).await.unwrap()[0].state, OutgoingState::Sent);
}

#[tokio::test]
async fn a_notice_that_cannot_be_queued_keeps_no_other_from_it() {
    let mut world = World::new().await;
    world.lease = Duration::from_millis(400);
    let bot = world.bot(|_| std::future::pending());
    // Ann's is settled first.
    world.updates(json!([private(ANN, 1, "hello")])).await;
    eventually(async || (world.asked.lock().unwrap().len() == 1).then_some(())).await;
    world.updates(json!([private(OWNER, 1, "hello")])).await;
    eventually(async || (world.asked.lock().unwrap().len() == 2).then_some(())).await;
    bot.kill().await;
    world
        .sql(
            "CREATE TRIGGER full BEFORE INSERT ON outgoing WHEN NEW.user_id = 'telegram:22' \
             BEGIN SELECT RAISE(ABORT, 'full'); END",
        )
        .await;
    eventually(async || (world.store.incoming().list_unknown(9).await.unwrap().len() == 2).then_some(()))
        .await;
    world.lease = LEASE;
    let bot = world.echo();
    assert!(world.seen(OWNER, 1).await[0].starts_with("I was interrupted"));
    bot.stop().await;
    assert!(world.texts(ANN).await.is_empty());
}
