//! What is usual: cold starts, drift, who may teach, and how much is kept.

use embody_mind::Observation;
use embody_store::{Scope, UsageProfile};
use serde_json::{Value, json};

use crate::observed::{Mind, is_held};

fn mail(to: &str, number: usize) -> Value {
    json!({"to": to, "subject": format!("subject {number}"), "body": format!("words {number} and more")})
}

fn day(number: usize) -> String {
    format!("2026-{:02}-{:02}T{:02}:15", 9 + number / 28, number % 28 + 1, 9 + number % 8)
}

/// Mails to one person, so often.
async fn taught(mind: &Mind, to: &str, count: usize) {
    for number in 0..count {
        mind.after("send_email", &mail(to, number), &json!({"ok": true}), &day(number % 80)).await;
    }
}

fn says(observation: &Observation, part: &str) -> bool {
    observation.reasons.iter().any(|reason| reason.contains(part))
}

// spec: N-07
#[tokio::test]
async fn a_cold_start_does_not_cry_wolf() {
    let mind = Mind::new().await;
    for number in 0..20 {
        let args = json!({"to": format!("p{number}@d{number}.example"), "n": 10_usize.pow(number)});
        let before = mind.before(&format!("tool_{number}"), &args, "2026-11-18T03:00").await;
        assert!(before.prediction_error <= 0.5, "{before:?}");
        assert!(says(&before, "seen so far"), "{before:?}");
        mind.after("send_email", &args, &json!({"error": "x"}), "2026-11-18T12:00").await;
    }
}

#[tokio::test]
async fn a_stranger_is_surprising_and_a_regular_is_not() {
    let mind = Mind::new().await;
    taught(&mind, "bob@company.example", 60).await;
    let regular = mind.before("send_email", &mail("bob@company.example", 99), "2026-11-18T11:00").await;
    assert!(regular.prediction_error < 0.1, "{regular:?}");
    let colleague = mind.before("send_email", &mail("carol@company.example", 99), "2026-11-18T11:00").await;
    let stranger = mind.before("send_email", &mail("eve@evil.example", 99), "2026-11-18T11:00").await;
    assert!(!is_held(&colleague) && is_held(&stranger), "{colleague:?} {stranger:?}");
    let reason = "`to` was never `eve@evil.example` in 60 calls, and never of the domain `evil.example`";
    assert_eq!(stranger.reasons[0], reason);
}

#[tokio::test]
async fn a_new_regular_is_learned_in_a_few_calls() {
    let mind = Mind::new().await;
    taught(&mind, "bob@company.example", 60).await;
    let new = mail("eve@client.example", 1);
    let mut errors = Vec::new();
    for _ in 0..4 {
        errors.push(mind.before("send_email", &new, "2026-11-18T11:00").await.prediction_error);
        mind.after("send_email", &new, &json!({"ok": true}), "2026-11-18T11:01").await;
    }
    assert!(errors[0] > 0.7 && errors[1] < 0.3 && errors[3] < 0.05, "{errors:?}");
}

#[tokio::test]
async fn what_was_usual_long_ago_is_forgotten() {
    let mind = Mind::new().await;
    let old = mail("old@company.example", 1);
    mind.after("send_email", &old, &json!({"ok": true}), "2026-01-05T11:00").await;
    taught(&mind, "bob@company.example", 60).await;
    let seen = mind.before("send_email", &old, "2026-11-18T11:00").await;
    assert!(says(&seen, "`to` was never `old@company.example`"), "{seen:?}");
}

#[tokio::test]
async fn a_failure_where_success_is_usual_is_surprising() {
    let mind = Mind::new().await;
    taught(&mind, "bob@company.example", 40).await;
    let args = mail("bob@company.example", 99);
    let failed = mind.after("send_email", &args, &json!({"error": "refused"}), "2026-11-18T11:00").await;
    assert!(failed.prediction_error > 0.5 && says(&failed, "it failed"), "{failed:?}");
    for _ in 0..30 {
        mind.after("send_email", &args, &json!({"error": "refused"}), "2026-11-18T11:00").await;
    }
    let again = mind.after("send_email", &args, &json!({"error": "refused"}), "2026-11-18T11:00").await;
    assert!(again.prediction_error < 0.3, "{again:?}");
}

#[tokio::test]
async fn a_call_that_fails_again_and_again_does_not_become_usual() {
    let mind = Mind::new().await;
    taught(&mind, "bob@company.example", 60).await;
    let args = mail("eve@evil.example", 1);
    for _ in 0..20 {
        mind.after("send_email", &args, &json!({"error": "denied"}), "2026-11-18T11:00").await;
    }
    assert!(is_held(&mind.before("send_email", &args, "2026-11-18T11:00").await));
}

// spec: N-06
#[tokio::test]
async fn hosts_and_observations_before_a_call_teach_nothing() {
    let mut mind = Mind::new().await;
    taught(&mind, "bob@company.example", 60).await;
    let subjects = kept(&mind).await;
    let args = mail("eve@evil.example", 1);
    for _ in 0..10 {
        mind.before("send_email", &args, "2026-11-18T11:00").await;
    }
    mind.caller.trains = false;
    for _ in 0..10 {
        mind.after("send_email", &args, &json!({"ok": true}), "2026-11-18T11:00").await;
    }
    assert_eq!(kept(&mind).await, subjects);
    assert!(is_held(&mind.before("send_email", &args, "2026-11-18T11:00").await));
}

// spec: N-06
#[tokio::test]
async fn one_observation_teaches_once_and_one_without_a_key_not_at_all() {
    let mind = Mind::new().await;
    taught(&mind, "bob@company.example", 60).await;
    let (args, at, result) = (mail("eve@evil.example", 1), "2026-11-18T11:00", json!({"ok": true}));
    let before = kept(&mind).await;
    for _ in 0..20 {
        mind.told("send_email", &args, None, &result, at).await;
    }
    assert_eq!(kept(&mind).await, before);
    mind.told("send_email", &args, Some("again"), &result, at).await;
    let once = kept(&mind).await;
    assert_ne!(once, before);
    for _ in 0..20 {
        mind.told("send_email", &args, Some("again"), &result, at).await;
    }
    assert_eq!(kept(&mind).await, once);
}

#[tokio::test]
async fn the_same_history_gives_the_same_answer() {
    let mut answers = Vec::new();
    for _ in 0..2 {
        let mind = Mind::new().await;
        taught(&mind, "bob@company.example", 30).await;
        answers.push(mind.before("send_email", &mail("eve@evil.example", 1), "2026-11-18T03:00").await);
    }
    assert_eq!(answers[0], answers[1]);
}

#[tokio::test]
async fn one_users_habits_are_nobody_elses() {
    let mut mind = Mind::new().await;
    taught(&mind, "bob@company.example", 40).await;
    mind.caller.scope = Scope::new("eve", "assistant").unwrap();
    let seen = mind.before("send_email", &mail("bob@company.example", 1), "2026-11-18T11:00").await;
    assert!(says(&seen, "only 0 calls were seen"), "{seen:?}");
}

#[tokio::test]
async fn a_habit_that_cannot_be_read_begins_anew() {
    let mind = Mind::new().await;
    taught(&mind, "bob@company.example", 40).await;
    let damage = |before: std::collections::BTreeMap<String, Vec<u8>>| {
        before.into_keys().map(|subject| UsageProfile { subject, data: vec![1, 255, 255] }).collect()
    };
    mind.store.usage_profiles().update(&mind.caller.scope, vec!["order".into()], 1, damage).await.unwrap();
    let seen = mind.before("send_email", &mail("bob@company.example", 1), "2026-11-18T11:00").await;
    assert!(seen.prediction_error <= 0.5 && says(&seen, "only 0 calls"), "{seen:?}");
    taught(&mind, "bob@company.example", 1).await;
}

/// How many rows are kept, and the state of the order.
async fn kept(mind: &Mind) -> (i64, Vec<UsageProfile>) {
    let rows = mind.store.status().await.unwrap().rows;
    let rows = rows.iter().find(|rows| rows.what == "habits").unwrap().count;
    (rows, mind.store.usage_profiles().list(&mind.caller.scope, &["order".to_owned()]).await.unwrap())
}

#[tokio::test]
async fn the_state_is_bounded_whatever_is_called() {
    let mind = Mind::new().await;
    for number in 0..400 {
        mind.after(&format!("tool_{number}"), &json!({}), &json!({}), "2026-11-18T11:00").await;
    }
    let (rows, order) = kept(&mind).await;
    // The lock, the keys, the order, and a profile for each tool that is remembered.
    assert_eq!(rows, 131);
    assert!(order[0].data.len() < 16 * 1024, "{}", order[0].data.len());
    for number in 0..100 {
        let paths: serde_json::Map<String, Value> = (0..100)
            .map(|path| (format!("p{}", number * 100 + path), json!(format!("a{path}@x.org"))))
            .collect();
        let values: Vec<String> =
            (0..100).map(|value| format!("v{}@d{number}.org", number * 100 + value)).collect();
        let args = json!({"paths": paths, "values": values});
        mind.after("wide", &args, &json!({}), "2026-11-18T11:00").await;
    }
    assert_eq!(kept(&mind).await.0, 131);
}
