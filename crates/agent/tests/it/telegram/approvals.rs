//! Approvals with buttons: exact text, the right person, the right chat, and the outcome.

use std::time::Duration;

use embody_store::Scope;
use embody_store::approvals::{
    Answer, Approval, ApprovalRequest, ApprovalStatus, AskOutcome, DecideApproval,
};
use serde_json::{Value, json};

use super::world::{ANN, GROUP, OWNER, STRANGER, World, eventually};

async fn ask(world: &World, user: &str, via: &str, args: &Value) -> Approval {
    ask_within(world, user, via, args, Duration::from_secs(300)).await
}

async fn ask_within(world: &World, user: &str, via: &str, args: &Value, timeout: Duration) -> Approval {
    let asked = world
        .store
        .approvals()
        .ask(ApprovalRequest {
            scope: Scope::new(user, "assistant").unwrap(),
            session: "s".to_owned(),
            channel: "web".to_owned(),
            body: "mail".to_owned(),
            tool: "send_email".to_owned(),
            class: "human_visible_write".to_owned(),
            args: args.to_string(),
            pin: "p".to_owned(),
            policy: format!("v1/human_visible_write/{via}"),
            reason: "mail leaves the building".to_owned(),
            flags: Vec::new(),
            timeout,
        })
        .await
        .unwrap();
    match asked.asked {
        AskOutcome::New(approval) => approval,
        other => panic!("{other:?}"),
    }
}

fn press(from: i64, chat: i64, data: &str, text: &str) -> Value {
    json!({"callback_query": {
        "id": format!("press-{from}"), "from": {"id": from, "first_name": "X"}, "data": data,
        "message": {"message_id": 1, "chat": {"id": chat}, "text": text}
    }})
}

/// The data of the two buttons.
fn buttons(sent: &Value) -> (String, String) {
    let row = sent["reply_markup"]["inline_keyboard"][0].as_array().unwrap();
    assert_eq!(row.len(), 2);
    let data = |button: &Value| button["callback_data"].as_str().unwrap().to_owned();
    (data(&row[0]), data(&row[1]))
}

async fn status(world: &World, approval: &Approval) -> (ApprovalStatus, Option<String>) {
    let now = world.store.approvals().get(&approval.user, &approval.id).await.unwrap().unwrap();
    (now.status, now.decided_by)
}

async fn answers(world: &World, count: usize) -> Vec<String> {
    let answered = eventually(async || {
        Some(world.sent("answerCallbackQuery").await).filter(|answered| answered.len() >= count)
    })
    .await;
    answered.iter().map(|answered| answered["text"].as_str().unwrap().to_owned()).collect()
}

// spec: N-10
#[tokio::test]
async fn a_call_is_shown_exactly_and_a_press_decides() {
    let world = World::new().await;
    let bot = world.echo();
    let args = json!({"body": "Hi <b>Bob</b> & co,\nhidden\u{200b}end **x**", "to": "bob@example.com"});
    let approval = ask(&world, "owner", "console,telegram", &args).await;
    let text = world.seen(OWNER, 1).await.remove(0);
    assert!(text.starts_with("Send email to bob@example.com? 2 lines, mail/send_email\n"), "{text}");
    for part in [
        "send_email",
        "bob@example.com",
        "Hi <b>Bob</b> & co,",
        "hidden⟨U+200B⟩end **x**",
        "mail leaves the building",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    let sent = world.sent("sendMessage").await;
    let (approve, deny) = buttons(&sent[0]);
    // Other people cannot decide, nor can the owner in a group.
    world
        .updates(json!([
            press(ANN, ANN, &approve, &text),
            press(STRANGER, STRANGER, &approve, &text),
            press(OWNER, GROUP, &approve, &text),
            press(OWNER, OWNER, "approve:no-such-id", &text),
            press(OWNER, OWNER, "what?", &text),
        ]))
        .await;
    let told = answers(&world, 5).await;
    assert!(told[..3].iter().all(|told| told == "You cannot decide about this call."), "{told:?}");
    assert_eq!(status(&world, &approval).await, (ApprovalStatus::Pending, None));
    world.updates(json!([press(OWNER, OWNER, &approve, &text)])).await;
    assert_eq!(answers(&world, 6).await[5], "✅ Approved by telegram:11.");
    assert_eq!(status(&world, &approval).await, (ApprovalStatus::Approved, Some("telegram:11".to_owned())));
    let edited = eventually(async || world.sent("editMessageText").await.pop()).await;
    assert!(edited["visible"].as_str().unwrap().ends_with("✅ Approved by telegram:11."));
    assert!(edited.get("reply_markup").is_none());
    // Too late for the other button.
    world.updates(json!([press(OWNER, OWNER, &deny, &text)])).await;
    assert_eq!(answers(&world, 7).await[6], "✅ Approved by telegram:11.");
    bot.stop().await;
    assert_eq!(world.texts(OWNER).await.len(), 1);
}

#[tokio::test]
async fn the_owner_decides_about_the_calls_of_guests_and_what_is_decided_elsewhere_is_shown() {
    let world = World::new().await;
    let bot = world.echo();
    let ann = ask(&world, "telegram:22", "telegram", &json!({"to": "x"})).await;
    let text = world.seen(OWNER, 1).await.remove(0);
    assert!(text.contains("of user telegram:22"), "{text}");
    let deny = format!("deny:{}", ann.id);
    let approve = format!("approve:{}", ann.id);
    world
        .updates(json!([
            press(ANN, ANN, &approve, &text),
            press(ANN, ANN, &deny, &text),
            press(OWNER, OWNER, &deny, &text),
        ]))
        .await;
    let not_yours = "You cannot decide about this call.";
    assert_eq!(answers(&world, 3).await, [not_yours, not_yours, "⛔ Denied by telegram:11."]);
    assert_eq!(status(&world, &ann).await, (ApprovalStatus::Denied, Some("telegram:11".to_owned())));
    let guest = ask(&world, "guest", "telegram", &json!({"to": "y"})).await;
    world.seen(OWNER, 2).await;
    assert_eq!(world.texts(ANN).await, [""; 0]);
    let word = DecideApproval {
        user: "guest".to_owned(),
        id: guest.id.clone(),
        answer: Answer::Approve,
        by: "cli".to_owned(),
    };
    world.store.approvals().decide(word).await.unwrap();
    let edited = eventually(async || {
        let edits = world.sent("editMessageText").await;
        edits.into_iter().find(|edit| edit["visible"].as_str().is_some_and(|text| text.contains("guest")))
    })
    .await;
    assert!(edited["visible"].as_str().unwrap().ends_with("✅ Approved by cli."), "{edited}");
    bot.stop().await;
}

#[tokio::test]
async fn what_is_not_for_telegram_or_not_shown_whole_has_no_button() {
    let world = World::new().await;
    let silent = ask(&world, "owner", "console,cli", &json!({"to": "x"})).await;
    let huge = ask(&world, "owner", "telegram", &json!({"text": "x".repeat(20_000)})).await;
    let bot = world.echo();
    let text = world.seen(OWNER, 1).await.remove(0);
    assert!(text.contains("use the console"), "{text}");
    assert!(!text.contains('`') && !text.contains("embody"), "a command in {text}");
    assert!(world.sent("sendMessage").await[0].get("reply_markup").is_none());
    // A forged press does not count either.
    let data = |approval: &Approval, answer: &str| format!("{answer}:{}", approval.id);
    world
        .updates(json!([
            press(OWNER, OWNER, &data(&silent, "approve"), "x"),
            press(OWNER, OWNER, &data(&huge, "approve"), "x"),
            press(OWNER, OWNER, &data(&huge, "deny"), "x"),
        ]))
        .await;
    let told = answers(&world, 3).await;
    assert!(told[..2].iter().all(|told| told == "This call cannot be approved here."), "{told:?}");
    assert_eq!(status(&world, &silent).await.0, ApprovalStatus::Pending);
    assert_eq!(status(&world, &huge).await.0, ApprovalStatus::Denied);
    bot.stop().await;
}

#[tokio::test]
async fn nobody_is_asked_twice_and_long_words_come_in_parts_with_the_buttons_last() {
    let world = World::new().await;
    let bot = world.echo();
    let long: Vec<String> = (0..600).map(|line| format!("line {line}")).collect();
    ask(&world, "owner", "telegram", &json!({"text": long.join("\n")})).await;
    world.quiet().await;
    bot.stop().await;
    let bot = world.echo();
    world.quiet().await;
    bot.stop().await;
    let sent = world.sent("sendMessage").await;
    assert!(sent.len() > 1, "{} parts", sent.len());
    assert_eq!(sent.iter().filter(|part| part.get("reply_markup").is_some()).count(), 1);
    buttons(sent.last().unwrap());
    let all = world.texts(OWNER).await.concat();
    assert_eq!(all.matches("Asked because: ").count(), 1);
    assert!(all.contains("line 0⏎") && all.contains("line 599"));
}

#[tokio::test]
async fn a_call_that_cannot_be_asked_about_keeps_no_other_from_it() {
    let world = World::new().await;
    world
        .sql(
            "CREATE TRIGGER full BEFORE INSERT ON outgoing WHEN NEW.user_id IN ('first', 'last') \
             BEGIN SELECT RAISE(ABORT, 'full'); END",
        )
        .await;
    for user in ["first", "middle", "last"] {
        ask(&world, user, "telegram", &json!({"to": "x"})).await;
    }
    let bot = world.echo();
    let text = world.seen(OWNER, 1).await.remove(0);
    assert!(text.contains("of user middle"), "{text}");
    // They are not forgotten either.
    world.sql("DROP TRIGGER full").await;
    world.seen(OWNER, 3).await;
    bot.stop().await;
}

// spec: N-10
#[tokio::test]
async fn a_denial_is_taken_back_with_a_button_and_old_rules_are_told() {
    let world = World::new().await;
    let bot = world.echo();
    let approval = ask(&world, "owner", "telegram", &json!({"to": "bob@example.com"})).await;
    let text = world.seen(OWNER, 1).await.remove(0);
    let press_owner = |data: String| press(OWNER, OWNER, &data, &text);
    world.updates(json!([press_owner(format!("deny:{}", approval.id))])).await;
    assert_eq!(answers(&world, 1).await, ["⛔ Denied by telegram:11."]);
    let edited = eventually(async || world.sent("editMessageText").await.pop()).await;
    let button = &edited["reply_markup"]["inline_keyboard"][0][0];
    let again = button["callback_data"].as_str().unwrap().to_owned();
    assert_eq!((&button["text"], &*again), (&json!("↩ Ask me again"), &*format!("again:{}", approval.id)));
    world
        .updates(json!([
            press(ANN, ANN, &again, &text),
            press(OWNER, GROUP, &again, &text),
            press_owner(again.clone()),
            press_owner(again),
        ]))
        .await;
    let not_yours = "You cannot decide about this call.";
    let taken_back = "↩ Taken back: you are asked when the agent makes the call again.";
    let over = "No denial stands any more: you are asked when the agent makes the call again.";
    assert_eq!(answers(&world, 5).await[1..], [not_yours, not_yours, taken_back, over]);
    let next = ask(&world, "owner", "telegram", &json!({"to": "bob@example.com"})).await;
    world.seen(OWNER, 2).await;
    assert_ne!(next.id, approval.id);
    bot.stop().await;
    // The rules are another version now.
    let bot = world.bot_with(world.new_bot().with_policy_version(|| "v2".to_owned()));
    world.updates(json!([press_owner(format!("approve:{}", next.id))])).await;
    let told = answers(&world, 6).await;
    assert_eq!(told[5], "Asked under rules that have changed since; approve the new question instead.");
    assert_eq!(status(&world, &next).await.0, ApprovalStatus::Pending);
    world.updates(json!([press_owner(format!("deny:{}", next.id))])).await;
    answers(&world, 7).await;
    assert_eq!(status(&world, &next).await.0, ApprovalStatus::Denied);
    bot.stop().await;
}

// spec: N-10
#[tokio::test]
async fn a_message_says_whether_its_call_expired_without_an_answer_or_unused() {
    let world = World::new().await;
    let bot = world.echo();
    let brief = |to: &str| json!({ "to": to });
    let unanswered = ask_within(&world, "owner", "telegram", &brief("x"), Duration::from_secs(3)).await;
    let unused = ask_within(&world, "owner", "telegram", &brief("y"), Duration::from_secs(3)).await;
    world.seen(OWNER, 2).await;
    let approve = DecideApproval {
        user: "owner".to_owned(),
        id: unused.id.clone(),
        answer: Answer::Approve,
        by: "cli".to_owned(),
    };
    world.store.approvals().decide(approve).await.unwrap();
    let ends = eventually(async || {
        let edited = world.sent("editMessageText").await;
        (edited.len() >= 2).then_some(edited)
    })
    .await;
    let ends: Vec<&str> =
        ends.iter().map(|one| one["visible"].as_str().unwrap().lines().last().unwrap()).collect();
    assert_eq!(ends, ["✅ Approved by cli.", "⌛ Expired without an answer."]);
    assert_eq!(status(&world, &unanswered).await.1, None);
    bot.stop().await;
}
