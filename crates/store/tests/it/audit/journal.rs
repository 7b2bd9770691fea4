//! Putting things on record and reading them back.

use std::collections::HashSet;

use embody_store::ErrorKind;
use embody_store::audit::{
    AuditOutcome, AuditRange, CallEnd, ChainState, DecisionKind, DecisionRecord, Event, Read, Record,
    RedactedArguments, TaskMessage, TaskMessageKind,
};
use serde_json::{Value, json};

use super::{actor, append, assert_intact, call, intent, note};
use crate::world::{World, contract};

contract!(
    a_write_has_an_intent_and_an_outcome,
    every_event_is_kept_whole,
    what_is_said_to_a_task_is_kept_without_secrets,
    a_write_without_an_outcome_is_listed,
    a_write_is_given_up_once_and_only_while_it_is_open,
    the_tail_is_of_one_user_or_of_all,
    a_range_is_read_newest_first,
    a_follower_gets_each_new_record_once,
    the_export_has_every_record_in_order,
    sixty_four_tasks_make_one_chain,
    closing_writes_what_was_put_off,
    refuses_what_a_database_cannot_hold,
    an_empty_chain_is_intact,
);

// spec: N-14
async fn a_write_has_an_intent_and_an_outcome(world: World) {
    let begun = world.store.audit().begin(&actor("ann"), intent("c-1")).await.unwrap();
    assert_eq!(begun.call_id(), "c-1");
    let seen = world.store.audit().tail(10, None).await.unwrap();
    assert_eq!(seen.len(), 1, "durable when it returns");
    assert_eq!(seen[0].event, "intent");
    world.store.audit().finish(begun, AuditOutcome::Failed, Some("no such chat".into())).await.unwrap();
    // A durable record behind it in the queue means that it is written too.
    append(&world.store, 1).await;
    let seen = world.store.audit().tail(10, Some("ann")).await.unwrap();
    let events: Vec<_> = seen.iter().map(|record| record.event.as_str()).collect();
    assert_eq!(events, ["intent", "outcome", "operator"]);
    let outcome: Value = serde_json::from_str(&seen[1].detail).unwrap();
    assert_eq!(outcome, json!({"call_id": "c-1", "outcome": "failed", "detail": "no such chat"}));
    assert_intact(&world.store, 3).await;
}

async fn every_event_is_kept_whole(world: World) {
    let event = Event::Decision(DecisionRecord {
        call: call("c-1"),
        decision: DecisionKind::Held,
        reason: "the mind flagged it".into(),
    });
    world.store.audit().append(Record { actor: actor("ann"), event }).await.unwrap();
    let event = Event::Read(Read { call: call("c-2"), outcome: AuditOutcome::Done });
    world.store.audit().append(Record { actor: actor("ann"), event }).await.unwrap();
    world
        .store
        .audit()
        .append(Record { actor: actor("ann"), event: Event::Intent(intent("c-3")) })
        .await
        .unwrap();
    let details: Vec<Value> = world
        .store
        .audit()
        .tail(10, None)
        .await
        .unwrap()
        .iter()
        .map(|record| serde_json::from_str(&record.detail).unwrap())
        .collect();
    let digest = blake3::hash(br#"{"to":"bob","text":"hello"}"#).to_hex().to_string();
    let call = |id: &str| {
        json!({
            "call_id": id, "body": "teams", "tool": "send_message", "class": "human_visible_write",
            "args_digest": digest, "args_excerpt": {"to": "bob", "text": "hello"},
        })
    };
    let with = |id: &str, more: Value| {
        let mut whole = call(id);
        whole.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        whole
    };
    assert_eq!(details[0], with("c-1", json!({"decision": "held", "reason": "the mind flagged it"})));
    assert_eq!(details[1], with("c-2", json!({"outcome": "done"})));
    assert_eq!(details[2], with("c-3", json!({"approval": "a-1"})));
}

async fn what_is_said_to_a_task_is_kept_without_secrets(world: World) {
    let open = world.store.audit().begin(&actor("ann"), intent("c-1")).await.unwrap();
    let stop = TaskMessage {
        call_id: Some("c-1".into()),
        body: "files".into(),
        tool: Some("remove".into()),
        task: "7".into(),
        said: TaskMessageKind::Cancel,
        args: None,
        outcome: AuditOutcome::Done,
        detail: None,
    };
    let answers = r#"{"ask":{"action":"accept","content":{"password":"swordfish"}}}"#;
    let update = TaskMessage {
        call_id: None,
        tool: None,
        task: format!("Bearer abcdefghijklmnop {}", "x".repeat(100_000)),
        said: TaskMessageKind::Update,
        args: Some(RedactedArguments::of(answers)),
        outcome: AuditOutcome::Failed,
        detail: Some("no such task".into()),
        ..stop.clone()
    };
    for said in [stop, update] {
        world.store.audit().append(Record { actor: actor("ann"), event: Event::Task(said) }).await.unwrap();
    }
    let seen = world.store.audit().tail(2, None).await.unwrap();
    assert!(seen.iter().all(|record| record.event == "task" && record.session.is_some()));
    let [stop, update] = [0, 1].map(|at| serde_json::from_str::<Value>(&seen[at].detail).unwrap());
    let known = json!({"call_id": "c-1", "tool": "remove", "body": "files", "task": "7", "said": "cancel", "outcome": "done"});
    assert_eq!(stop, known);
    assert_eq!(update["args_digest"], blake3::hash(answers.as_bytes()).to_hex().as_str());
    assert_eq!(update["args_excerpt"]["ask"]["content"]["password"], "[redacted]");
    assert_eq!(update["args_excerpt"]["ask"]["action"], "accept");
    assert_eq!((&update["said"], &update["detail"]), (&json!("update"), &json!("no such task")));
    assert!(update.get("call_id").is_none() && update.get("tool").is_none(), "{update}");
    let task = update["task"].as_str().unwrap();
    assert!(task.len() < 4096 && !task.contains("abcdefghijklmnop"), "{task}");
    // It is no outcome of the call.
    assert_eq!(world.store.audit().open_writes(i64::MAX, 10).await.unwrap().len(), 1);
    world.store.audit().finish(open, AuditOutcome::Done, None).await.unwrap();
}

async fn a_write_without_an_outcome_is_listed(world: World) {
    let store = &world.store;
    let ann = store.audit().begin(&actor("ann"), intent("c-1")).await.unwrap();
    let lost = store.audit().begin(&actor("bob"), intent("c-1")).await.unwrap();
    let other = store.audit().begin(&actor("ann"), intent("c-2")).await.unwrap();
    store.audit().finish(ann, AuditOutcome::Done, None).await.unwrap();
    store.audit().finish(other, AuditOutcome::Unknown, None).await.unwrap();
    append(store, 1).await;
    let open = store.audit().open_writes(i64::MAX, 10).await.unwrap();
    let seen: Vec<_> = open.iter().map(|record| (record.user.as_str(), record.text("call_id"))).collect();
    assert_eq!(seen, [("bob", Some("c-1".to_owned()))]);
    assert_eq!(open[0].text("tool").as_deref(), Some("send_message"));
    assert!(
        store.audit().open_writes(open[0].at, 10).await.unwrap().is_empty(),
        "only those before the time"
    );
    let end = CallEnd { call_id: "c-1".into(), outcome: AuditOutcome::Unknown, detail: None };
    store.audit().append(Record { actor: actor("bob"), event: Event::Outcome(end) }).await.unwrap();
    assert!(store.audit().open_writes(i64::MAX, 10).await.unwrap().is_empty());
    drop(lost);
}

async fn a_write_is_given_up_once_and_only_while_it_is_open(world: World) {
    let store = &world.store;
    let outcomes = async || -> Vec<(String, String)> {
        append(store, 1).await;
        let tail = store.audit().tail(100, Some("ann")).await.unwrap();
        let ends = tail.iter().filter(|record| record.event == "outcome");
        ends.map(|end| (end.text("call_id").unwrap(), end.text("outcome").unwrap())).collect()
    };
    let said = |call: &str, outcome: &str| (call.to_owned(), outcome.to_owned());
    let close = |id: &str| store.audit().close_unknown(actor("ann"), id.to_owned(), None);
    // The outcome came first, in the same commit or before.
    let done = store.audit().begin(&actor("ann"), intent("c-1")).await.unwrap();
    let (finished, closed) = tokio::join!(store.audit().finish(done, AuditOutcome::Done, None), close("c-1"));
    finished.and(closed).unwrap();
    close("c-1").await.unwrap();
    assert_eq!(outcomes().await, [said("c-1", "done")]);
    // Several give it up at once.
    let late = store.audit().begin(&actor("ann"), intent("c-2")).await.unwrap();
    let (one, two, three) = tokio::join!(close("c-2"), close("c-2"), close("c-2"));
    one.and(two).and(three).unwrap();
    store.audit().close_unknown(actor("bob"), "c-2".into(), None).await.unwrap();
    assert_eq!(outcomes().await, [said("c-1", "done"), said("c-2", "unknown")]);
    assert!(store.audit().open_writes(i64::MAX, 10).await.unwrap().is_empty());
    // Whoever made it was alive after all, and knows.
    store.audit().finish(late, AuditOutcome::Failed, None).await.unwrap();
    close("c-2").await.unwrap();
    assert_eq!(outcomes().await[1..], [said("c-2", "unknown"), said("c-2", "failed")]);
}

async fn the_tail_is_of_one_user_or_of_all(world: World) {
    for number in 0..5 {
        world.store.audit().append(note("ann", &format!("a{number}"))).await.unwrap();
        world.store.audit().append(note("bob", &format!("b{number}"))).await.unwrap();
    }
    let subjects = async |count, user| -> Vec<String> {
        let tail = world.store.audit().tail(count, user).await.unwrap();
        tail.iter().map(|record| record.text("subject").unwrap()).collect()
    };
    assert_eq!(subjects(3, None).await, ["b3", "a4", "b4"]);
    assert_eq!(subjects(2, Some("ann")).await, ["a3", "a4"]);
    assert_eq!(subjects(2, Some("eve")).await, [""; 0]);
}

async fn the_export_has_every_record_in_order(world: World) {
    let many = (0..600).map(|number| world.store.audit().append_deferred(note("ann", &format!("n{number}"))));
    for soon in many {
        soon.await.unwrap();
    }
    append(&world.store, 1).await;
    let mut text = Vec::new();
    assert_eq!(world.store.audit().export(&mut text).await.unwrap(), 601);
    let lines: Vec<Value> =
        String::from_utf8(text).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let places: Vec<i64> = lines.iter().map(|line| line["seq"].as_i64().unwrap()).collect();
    assert_eq!(places, (1..=601).collect::<Vec<_>>());
    let first = &lines[0];
    assert_eq!(first["detail"], json!({"action": "other", "subject": "n0"}));
    assert_eq!((&first["user"], &first["agent"]), (&json!("ann"), &json!("assistant")));
    assert_eq!((&first["session"], &first["channel"]), (&json!("s-1"), &json!("web")));
    assert_eq!(first["mac"].as_str().unwrap().len(), 64);
    let macs: HashSet<_> = lines.iter().map(|line| line["mac"].to_string()).collect();
    assert_eq!(macs.len(), 601);
}

async fn sixty_four_tasks_make_one_chain(world: World) {
    let tasks: Vec<_> = (0..64)
        .map(|task| {
            let store = world.store.clone();
            tokio::spawn(async move {
                for number in 0..10 {
                    let id = format!("{task}-{number}");
                    let begun = store.audit().begin(&actor("ann"), intent(&id)).await.unwrap();
                    store.audit().finish(begun, AuditOutcome::Done, None).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    append(&world.store, 1).await;
    assert_intact(&world.store, 64 * 10 * 2 + 1).await;
    assert!(world.store.audit().open_writes(i64::MAX, 10).await.unwrap().is_empty());
}

async fn closing_writes_what_was_put_off(world: World) {
    let place = world.store.url().clone();
    for number in 0..300 {
        world.store.audit().append_deferred(note("ann", &format!("n{number}"))).await.unwrap();
    }
    if matches!(place, embody_store::DatabaseUrl::Memory) {
        // Nothing of it can be seen after closing; a durable write shows that the queue is written in order.
        append(&world.store, 1).await;
        return assert_intact(&world.store, 301).await;
    }
    let World { store, folder } = world;
    store.close().await;
    let again = embody_store::Store::open(place).await.unwrap();
    assert_intact(&again, 300).await;
    drop(folder);
}

async fn refuses_what_a_database_cannot_hold(world: World) {
    let error = world.store.audit().append(note("a\0b", "x")).await.unwrap_err();
    assert_eq!(error.to_string(), "the name of the user `a\\0b` has control characters");
    let mut nameless = intent("c-1");
    nameless.call.tool = String::new();
    let error = world.store.audit().begin(&actor("ann"), nameless).await.unwrap_err();
    assert_eq!((error.kind(), error.to_string()), (ErrorKind::Invalid, "the tool has no name".to_owned()));
    // Free text may hold anything.
    world.store.audit().append(note("ann", "nul \0, line\nend, \u{1F600}, \"quoted\"")).await.unwrap();
    let tail = world.store.audit().tail(1, None).await.unwrap();
    assert_eq!(tail[0].text("subject").unwrap(), "nul \0, line\nend, \u{1F600}, \"quoted\"");
    let long = "\u{1}".repeat(100_000);
    world.store.audit().append(note("ann", &long)).await.unwrap();
    let tail = world.store.audit().tail(1, None).await.unwrap();
    assert!(tail[0].detail.len() < 3 * 1024, "{}", tail[0].detail.len());
    assert_intact(&world.store, 2).await;
}

async fn an_empty_chain_is_intact(world: World) {
    let report = world.store.audit().verify().await.unwrap();
    assert_eq!(report.chains.len(), 1);
    assert_eq!((report.chains[0].records, &report.chains[0].state), (0, &ChainState::Intact));
    assert_eq!((report.chains[0].first_at, report.chains[0].last_at), (None, None));
}

async fn a_range_is_read_newest_first(world: World) {
    let store = &world.store;
    for number in 0..300 {
        store
            .audit()
            .append_deferred(note(if number % 2 == 0 { "ann" } else { "bob" }, &number.to_string()))
            .await
            .unwrap();
    }
    store.flush().await.unwrap();
    let all = store.audit().tail(1000, None).await.unwrap();
    let range = |user: Option<&str>, since, until| AuditRange { user: user.map(str::to_owned), since, until };
    let read = async |range: AuditRange| {
        let (mut tail, mut found) = (store.audit().newest_first(range), Vec::new());
        loop {
            let page = tail.next().await.unwrap();
            if page.is_empty() {
                found.reverse();
                return found;
            }
            found.extend(page);
        }
    };
    assert_eq!(read(range(None, i64::MIN, i64::MAX)).await, all);
    let of_ann: Vec<_> = all.iter().filter(|record| record.user == "ann").cloned().collect();
    assert_eq!((of_ann.len(), read(range(Some("ann"), i64::MIN, i64::MAX)).await), (150, of_ann));
    let (from, to) = (all[100].at, all[200].at);
    let between: Vec<_> = all.iter().filter(|record| (from..to).contains(&record.at)).cloned().collect();
    assert_eq!(read(range(None, from, to)).await, between);
    assert!(read(range(Some("cat"), i64::MIN, i64::MAX)).await.is_empty());
}

async fn a_follower_gets_each_new_record_once(world: World) {
    append(&world.store, 2).await;
    let mut follower = world.store.audit().follow().await.unwrap();
    assert!(follower.next().await.unwrap().is_empty());
    let second = world.second().await;
    append(&second, 3).await;
    let new = follower.next().await.unwrap();
    assert_eq!(new, world.store.audit().tail(3, None).await.unwrap());
    assert!(follower.next().await.unwrap().is_empty());
    append(&world.store, 2).await;
    let newest = world.store.audit().tail(1, None).await.unwrap();
    follower.skip(&newest[0]);
    assert!(follower.next().await.unwrap().is_empty());
}
