//! Standing instructions: replace, compare-and-set, history, revert.

use embody_store::ErrorKind;
use embody_store::instructions::{InstructionsChange, InstructionsOutcome};

use crate::world::{World, contract, scope};

contract!(
    replaces_for_one_user_and_agent_only,
    a_stale_version_changes_nothing,
    two_writers_lose_no_edit,
    keeps_every_version_and_reverts,
    a_change_is_on_record_and_a_refused_one_is_not,
    refuses_what_a_database_cannot_hold,
);

fn change(text: &str, expected_version: Option<i64>) -> InstructionsChange {
    InstructionsChange { text: text.into(), writer: "owner".into(), expected_version }
}

// spec: S-06, S-02
async fn replaces_for_one_user_and_agent_only(world: World) {
    let (ann, bob, other) = (scope("ann", "assistant"), scope("bob", "assistant"), scope("ann", "coach"));
    world.store.instructions().set(&ann, change("bullet points", None)).await.unwrap();
    assert_eq!(world.store.instructions().get(&ann).await.unwrap().text, "bullet points");
    assert_eq!(world.store.instructions().get(&bob).await.unwrap().version, 0);
    assert_eq!(world.store.instructions().get(&other).await.unwrap().text, "");
    world.store.instructions().set(&ann, change("", None)).await.unwrap();
    let cleared = world.store.instructions().get(&ann).await.unwrap();
    assert_eq!((cleared.text.as_str(), cleared.version), ("", 2));
}

// spec: S-06
async fn a_stale_version_changes_nothing(world: World) {
    let ann = scope("ann", "assistant");
    world.store.instructions().set(&ann, change("one", Some(0))).await.unwrap();
    let stale = world.store.instructions().set(&ann, change("two", Some(0))).await.unwrap();
    let InstructionsOutcome::Stale(current) = stale else { panic!("{stale:?}") };
    assert_eq!((current.text.as_str(), current.version), ("one", 1));
    assert_eq!(world.store.instructions().get(&ann).await.unwrap(), current);
}

// spec: S-06
async fn two_writers_lose_no_edit(world: World) {
    let ann = scope("ann", "assistant");
    let writers = (0..8).map(|writer| {
        let (store, ann) = (world.store.clone(), ann.clone());
        tokio::spawn(async move {
            for line in 0..5 {
                loop {
                    let before = store.instructions().get(&ann).await.unwrap();
                    let text = format!("{}{writer}:{line}\n", before.text);
                    let outcome =
                        store.instructions().set(&ann, change(&text, Some(before.version))).await.unwrap();
                    if matches!(outcome, InstructionsOutcome::Written(_)) {
                        break;
                    }
                }
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    let end = world.store.instructions().get(&ann).await.unwrap();
    assert_eq!(end.text.lines().count(), 40, "{}", end.text);
    assert_eq!(end.version, 40);
}

// spec: S-06
async fn keeps_every_version_and_reverts(world: World) {
    let ann = scope("ann", "assistant");
    for text in ["one", "two", "three"] {
        world.store.instructions().set(&ann, change(text, None)).await.unwrap();
    }
    let back = world.store.instructions().revert(&ann, 1, "operator").await.unwrap();
    assert_eq!((back.text.as_str(), back.version), ("one", 4));
    let history = world.store.instructions().history(&ann, 10).await.unwrap();
    let seen: Vec<_> = history
        .iter()
        .map(|past| (past.instructions.version, past.instructions.text.as_str(), past.writer.as_str()))
        .collect();
    assert_eq!(
        seen,
        [(4, "one", "operator"), (3, "three", "owner"), (2, "two", "owner"), (1, "one", "owner")]
    );
    let error = world.store.instructions().revert(&ann, 9, "operator").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(error.to_string(), "the instructions have no version `9`");
}

// spec: S-06, N-14
async fn a_change_is_on_record_and_a_refused_one_is_not(world: World) {
    let ann = scope("ann", "assistant");
    world.store.instructions().set(&ann, change("one", Some(0))).await.unwrap();
    world.store.instructions().set(&ann, change("two", Some(0))).await.unwrap();
    let records = world.store.audit().tail(10, Some("ann")).await.unwrap();
    let told: Vec<_> = records
        .iter()
        .map(|record| ["action", "subject", "note"].map(|member| record.text(member)))
        .collect();
    let expected = ["instructions_set", "assistant", "version 1 by owner"].map(|text| Some(text.to_owned()));
    assert_eq!(told, [expected]);
}

async fn refuses_what_a_database_cannot_hold(world: World) {
    let ann = scope("ann", "assistant");
    let error = world.store.instructions().set(&ann, change("a\0b", None)).await.unwrap_err();
    assert_eq!(error.to_string(), "the text of the instructions has a NUL character at byte 1");
    let long = "x".repeat(64 * 1024 + 1);
    let error = world.store.instructions().set(&ann, change(&long, None)).await.unwrap_err();
    assert_eq!(error.to_string(), "the text of the instructions has 65537 bytes; 65536 are allowed");
    assert_eq!(world.store.instructions().get(&ann).await.unwrap().version, 0);
}
