//! Unknown outcomes are listed for their user, and counted for all.

use std::time::Duration;

use embody_store::incoming::NewIncoming;
use embody_store::outgoing::{NewOutgoing, OutgoingEnd};
use embody_store::schedules::{NewSchedule, RunStart};
use embody_store::{Lease, Scope, Store};

use crate::support::stores::{StoreFixture, on_each_store};

on_each_store!(unknown_outcomes_are_listed);

fn lease(duration: Duration) -> Lease {
    Lease { owner: "worker".into(), duration }
}

async fn lost_messages(store: &Store, user: &str) {
    let scope = Scope::new(user, "assistant").unwrap();
    let new = NewIncoming {
        scope: scope.clone(),
        channel: "telegram".into(),
        conversation: format!("chat of {user}"),
        external: user.into(),
        content: "{}".into(),
    };
    store.incoming().insert(vec![new], None).await.unwrap();
    let outgoing = NewOutgoing {
        scope,
        channel: "telegram".into(),
        to: "77".into(),
        text: "hello".into(),
        kind: "notice".into(),
        urgency: "normal".into(),
        about: None,
    };
    store.outgoing().enqueue(outgoing).await.unwrap();
    let claims = store.outgoing().claim("telegram", &lease(Duration::from_secs(60)), 1).await.unwrap();
    store.outgoing().begin_part(&claims[0], 0).await.unwrap();
    store.outgoing().finish(&claims[0], OutgoingEnd::Unknown("no answer".into())).await.unwrap();
    assert_eq!(
        store.incoming().claim("telegram", &lease(Duration::from_millis(1)), 1).await.unwrap().len(),
        1
    );
}

async fn lost_run(store: &Store) {
    let new = NewSchedule {
        scope: Scope::new("ann", "assistant").unwrap(),
        cron: "0 8 * * *".into(),
        timezone: "UTC".into(),
        channel: "scheduled".into(),
        prompt: "read the news".into(),
        misfire: "once".into(),
        next_at: Some(1_000_000),
        origin: embody_store::schedules::ScheduleOrigin::Owner,
        origins: Vec::new(),
        quarantined: false,
    };
    store.schedules().add(new).await.unwrap();
    let claim = store.schedules().claim_due(&lease(Duration::from_secs(60)), 1).await.unwrap().remove(0);
    assert_eq!(store.schedules().start_run(&claim).await.unwrap(), RunStart::Started);
    store.schedules().renew(&claim, Duration::from_millis(1)).await.unwrap();
}

fn unknown_outcomes_are_listed(stored: &StoreFixture) {
    stored.directly(async |store| {
        lost_messages(store, "bob").await;
    });
    let none = stored.run(&["status", "--user", "ann"]).ok().stdout;
    assert!(none.contains("unknown    no message or run has an unknown outcome\n"), "{none}");
    stored.directly(async |store| {
        lost_messages(store, "ann").await;
        lost_run(store).await;
        // Three of ann, two of bob, once the short leases are over.
        while store.incoming().list_unknown(10).await.unwrap().len() < 2
            || store.schedules().list_unknown_runs(10).await.unwrap().is_empty()
        {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
    let status = stored.run(&["--json", "status", "--user", "ann"]).ok().json();
    let lost = status["lost"].as_array().unwrap();
    let seen: Vec<_> =
        lost.iter().map(|one| (one["kind"].as_str().unwrap(), one["about"].as_str().unwrap())).collect();
    assert_eq!(seen, [("run", "due 1970-01-01T00:00:01Z"), ("incoming", "chat of ann"), ("outgoing", "77")]);
    let text = stored.run(&["status", "--user", "ann"]).ok().stdout;
    assert!(text.contains("unknown    3 messages or runs with an unknown outcome"), "{text}");
    assert!(text.contains("incoming  telegram  chat of ann  "), "{text}");
    assert!(!text.contains("chat of bob"), "{text}");
    let doctor = stored.run(&["doctor"]).ok().stdout;
    assert!(doctor.contains("unknown    5 messages or runs with an unknown outcome"), "{doctor}");
}
