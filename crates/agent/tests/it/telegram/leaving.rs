//! Outgoing messages arrive whole and once, whatever Telegram does.

use std::sync::Arc;

use embody_store::Scope;
use embody_store::outgoing::{NewOutgoing, Outgoing, OutgoingState};
use serde_json::{Value, json};

use super::world::{ANN, OWNER, World, eventually, private};

fn outgoing(text: &str) -> NewOutgoing {
    NewOutgoing {
        scope: Scope::new("owner", "assistant").unwrap(),
        channel: "telegram".to_owned(),
        to: OWNER.to_string(),
        text: text.to_owned(),
        kind: "message".to_owned(),
        urgency: "normal".to_owned(),
        about: None,
    }
}

/// Sends one message with these faults; returns the outcome and its reason.
async fn sent_over(world: &World, text: &str, faults: Value) -> (OutgoingState, String) {
    world.faults(faults).await;
    let id = world.store.outgoing().enqueue(outgoing(text)).await.unwrap().id;
    let bot = world.echo();
    let ended = eventually(async || {
        let all = world.store.outgoing().list("owner", 100).await.unwrap();
        all.into_iter().find(|one| one.id == id && one.finished_at.is_some())
    })
    .await;
    bot.stop().await;
    (ended.state, ended.reason.unwrap_or_default())
}

#[tokio::test]
async fn a_long_answer_arrives_whole_and_valid() {
    let world = World::new().await;
    let mut answer = String::from("# A long answer\n\n");
    let mut number = 0;
    while answer.len() < 20_000 {
        number += 1;
        answer.push_str(&format!(
            "Paragraph **{number}** with _words_, `code & <tags>` and [a link](https://x.example/?a={number}&b=2).\n\n\
             ```rust\nfn number() -> u32 {{ {number} }} // <{number}>\n```\n\n- one\n- two 👩‍🚀\n\n| a | b |\n|---|---|\n| {number} | x |\n\n"
        ));
    }
    let whole = answer.clone();
    let bot = world.bot(move |_| {
        let answer = whole.clone();
        async move { Ok(Some(answer)) }
    });
    world.updates(json!([private(OWNER, 1, "tell me all")])).await;
    world.quiet().await;
    bot.stop().await;
    let texts = world.texts(OWNER).await;
    assert!(texts.len() >= 4, "{} parts", texts.len());
    let all = texts.concat();
    for seen in 1..=number {
        assert!(all.contains(&format!("Paragraph {seen} with words, code & <tags> and a link.")), "{seen}");
        assert!(all.contains(&format!("fn number() -> u32 {{ {seen} }} // <{seen}>")), "{seen}");
    }
    let sent = world.sent("sendMessage").await;
    assert!(
        sent.iter()
            .all(|part| part["parse_mode"] == "HTML" && part["link_preview_options"]["is_disabled"] == true)
    );
    let entities = sent.iter().flat_map(|part| part["entities"].as_array().unwrap().clone());
    assert_eq!(entities.filter(|entity| entity["type"] == "text_link").count(), number);
}

#[tokio::test]
async fn when_there_is_too_much_it_waits_as_long_as_it_is_told() {
    let world = World::new().await;
    let long = "word ".repeat(1500);
    let faults = json!([{"method": "sendMessage", "status": 429, "retry_after": 1, "times": 2, "after": 1}]);
    assert_eq!(sent_over(&world, &long, faults).await.0, OutgoingState::Sent);
    assert_eq!(world.texts(OWNER).await.concat().trim_end(), long.trim_end());
    assert_eq!(world.store.outgoing().list("owner", 1).await.unwrap()[0].attempts, 3);
}

#[tokio::test]
async fn what_telegram_cannot_format_is_sent_as_it_is() {
    let world = World::new().await;
    let words = "Bad Request: can't parse entities: Unsupported start tag \"x\" at byte offset 3";
    let faults = json!([{"method": "sendMessage", "status": 400, "description": words, "times": 1}]);
    assert_eq!(sent_over(&world, "**a** < b", faults).await.0, OutgoingState::Sent);
    let sent = world.sent("sendMessage").await;
    assert_eq!((sent.len(), &sent[0]["text"], sent[0].get("parse_mode")), (1, &json!("a < b"), None));
}

#[tokio::test]
async fn who_has_blocked_the_bot_gets_nothing_and_the_reason_is_kept() {
    let world = World::new().await;
    let words = "Forbidden: bot was blocked by the user";
    let faults = json!([{"method": "sendMessage", "chat": OWNER, "status": 403, "description": words}]);
    let (state, reason) = sent_over(&world, "hello", faults).await;
    assert_eq!((state, reason), (OutgoingState::Failed, format!("Telegram returned 403: {words}")));
}

#[tokio::test]
async fn what_may_have_been_sent_is_never_sent_again() {
    for (fault, sent) in [
        (json!({"method": "sendMessage", "times": 1, "cut": "after"}), 1),
        (json!({"method": "sendMessage", "times": 1, "cut": "before"}), 0),
        (json!({"method": "sendMessage", "times": 1, "status": 500}), 0),
    ] {
        let world = World::new().await;
        let (state, reason) = sent_over(&world, "hello", json!([fault])).await;
        assert_eq!(state, OutgoingState::Unknown, "{fault}");
        assert!(reason.starts_with("it is unknown whether Telegram accepted it"), "{reason}");
        assert_eq!(world.texts(OWNER).await.len(), sent, "{fault}");
        assert_eq!(world.store.outgoing().list_unknown(10).await.unwrap().len(), 1);
    }
}

#[tokio::test]
async fn what_is_no_message_fails_at_once_and_holds_nothing_up() {
    let world = World::new().await;
    let lost = NewOutgoing { to: "ann".to_owned(), ..outgoing("x") };
    world.store.outgoing().enqueue(lost).await.unwrap();
    assert_eq!(sent_over(&world, "\u{200b}", json!([])).await.1, "the message has no visible text");
    assert_eq!(sent_over(&world, "hello", json!([])).await.0, OutgoingState::Sent);
    let all = world.store.outgoing().list("owner", 10).await.unwrap();
    let wrong = all.iter().find(|one| one.to == "ann").unwrap();
    assert_eq!(wrong.reason.as_deref(), Some("`ann` is not a Telegram chat id"));
}

/// Breaks the store with this statement until both messages have hit the error.
async fn sent_over_a_broken_store(breaking: &'static str, does_leave: bool) {
    let world = World::new().await;
    world.sql(breaking).await;
    world.store.outgoing().enqueue(outgoing(&"word ".repeat(1500))).await.unwrap();
    let bot = world.echo();
    for chat in [OWNER, ANN] {
        if chat == ANN {
            world
                .store
                .outgoing()
                .enqueue(NewOutgoing { to: ANN.to_string(), ..outgoing("second") })
                .await
                .unwrap();
        }
        if does_leave {
            eventually(async || (!world.texts(chat).await.is_empty()).then_some(())).await;
        } else {
            // The first has been tried before the second is claimed.
            let is_taken = |one: &Outgoing| one.to == chat.to_string() && one.state == OutgoingState::Sending;
            eventually(async || {
                world.store.outgoing().list("owner", 9).await.unwrap().iter().any(is_taken).then_some(())
            })
            .await;
            assert!(world.texts(OWNER).await.is_empty());
        }
    }
    world.sql("DROP TRIGGER breaking").await;
    world.quiet().await;
    bot.stop().await;
    assert_eq!((world.texts(OWNER).await.len(), world.texts(ANN).await.len()), (2, 1));
    let all = world.store.outgoing().list("owner", 9).await.unwrap();
    assert!(all.iter().all(|one| (one.state, one.attempts) == (OutgoingState::Sent, 1)), "{all:?}");
}

#[tokio::test]
async fn a_part_waits_for_the_store_and_leaves_once() {
    let breaking = "CREATE TRIGGER breaking BEFORE UPDATE ON outgoing WHEN NEW.parts_begun > OLD.parts_begun \
                    BEGIN SELECT RAISE(ABORT, 'broken'); END";
    sent_over_a_broken_store(breaking, false).await;
}

#[tokio::test]
async fn what_has_left_is_written_down_once_the_store_is_back() {
    let breaking = "CREATE TRIGGER breaking BEFORE UPDATE ON outgoing WHEN NEW.parts_sent > OLD.parts_sent \
                    BEGIN SELECT RAISE(ABORT, 'broken'); END";
    sent_over_a_broken_store(breaking, true).await;
}

#[tokio::test]
async fn who_was_killed_between_two_parts_goes_on_with_the_next() {
    let mut world = World::new().await;
    world.lease = std::time::Duration::from_secs(2);
    world
        .sql(
            "CREATE TRIGGER breaking BEFORE UPDATE ON outgoing WHEN NEW.parts_begun > OLD.parts_begun \
             AND OLD.parts_begun = 1 BEGIN SELECT RAISE(ABORT, 'broken'); END",
        )
        .await;
    let long = "word ".repeat(1500);
    world.store.outgoing().enqueue(outgoing(&long)).await.unwrap();
    let bot = world.echo();
    eventually(async || {
        world
            .store
            .outgoing()
            .list("owner", 1)
            .await
            .unwrap()
            .iter()
            .any(|one| one.parts_sent == 1)
            .then_some(())
    })
    .await;
    bot.kill().await;
    world.sql("DROP TRIGGER breaking").await;
    world.lease = super::world::LEASE;
    let bot = world.echo();
    world.quiet().await;
    bot.stop().await;
    assert_eq!(world.texts(OWNER).await.concat().trim_end(), long.trim_end());
    assert_eq!(world.store.outgoing().list("owner", 1).await.unwrap()[0].state, OutgoingState::Sent);
}

#[tokio::test]
async fn what_a_turn_waits_for_is_one_message_that_is_edited_and_removed() {
    let world = World::new().await;
    let next = Arc::new(tokio::sync::Notify::new());
    let bot =
        world.bot_that_waits(&[Some("retry 1 of 7 …"), Some("retry 2 of 7 …"), None], Arc::clone(&next));
    world.updates(json!([private(OWNER, 1, "hello")])).await;
    assert_eq!(world.seen(OWNER, 1).await, ["retry 1 of 7 …"]);
    next.notify_one();
    let edited = eventually(async || world.sent("editMessageText").await.pop()).await;
    assert_eq!(edited["visible"], "retry 2 of 7 …");
    // It is removed as soon as the turn waits no more, and not again at the end.
    next.notify_one();
    let removed = eventually(async || world.sent("deleteMessage").await.pop()).await;
    assert_eq!(removed["message_id"], edited["message_id"]);
    next.notify_one();
    assert_eq!(world.seen(OWNER, 2).await, ["retry 1 of 7 …", "At last."]);
    assert_eq!(world.sent("deleteMessage").await.len(), 1);
    bot.stop().await;
}

#[tokio::test]
async fn what_an_interrupted_turn_waited_for_is_removed() {
    let world = World::new().await;
    let bot = world.bot_that_waits(&[Some("retry 1 of 7 …")], Arc::default());
    world.updates(json!([private(OWNER, 1, "hello")])).await;
    assert_eq!(world.seen(OWNER, 1).await, ["retry 1 of 7 …"]);
    bot.stop().await;
    eventually(async || world.sent("deleteMessage").await.pop()).await;
}
