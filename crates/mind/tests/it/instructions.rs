//! Changing the standing instructions.

use embody_mind::{
    Caller, Error, Mind, ProposalDecision, ReadMemory, SaveMemory, UpdateInstructions, UpdateOutcome,
    UpdatedInstructions, ZonedNow,
};
use embody_store::Store;
use serde_json::json;

use crate::world::{host, in_session, mind, now, owner, voice};

fn change(text: &str, expected_version: Option<i64>) -> UpdateInstructions {
    UpdateInstructions { instructions: text.into(), expected_version }
}

async fn update(mind: &Mind, caller: &Caller, args: UpdateInstructions) -> UpdatedInstructions {
    match mind.update_instructions(caller, args, &now()).await.unwrap() {
        UpdateOutcome::Written(written) => written,
        UpdateOutcome::NeedsConfirmation(asked) => panic!("{asked:?}"),
    }
}

async fn expose(mind: &Mind, caller: &Caller) {
    mind.record_untrusted_read(caller, "mail/read", &now()).await.unwrap();
}

async fn save_tea(mind: &Mind, caller: &Caller) {
    let args = SaveMemory { text: "Bob likes tea.".into(), ..SaveMemory::default() };
    mind.save_memory(caller, args, &now()).await.unwrap();
}

async fn instructions(store: &Store) -> (String, i64) {
    let now = store.instructions().get(&host("ann").scope).await.unwrap();
    (now.text, now.version)
}

// spec: S-06
#[tokio::test]
async fn the_whole_text_is_replaced_and_the_change_shown() {
    let mind = mind().await;
    let first = update(&mind, &host("ann"), change("Be brief.\nNo emojis.", None)).await;
    assert_eq!((first.version, first.diff.as_str()), (1, "@@ -1 +1 @@\n+Be brief.\n+No emojis.\n"));
    let second = update(&mind, &host("ann"), change("Be brief.\nUse bullet points.", Some(1))).await;
    assert_eq!(second.diff, "@@ -1 +1 @@\n Be brief.\n-No emojis.\n+Use bullet points.\n");
    let args = ReadMemory { kind: Some("instructions".into()), ..ReadMemory::default() };
    let read = mind.read_memory(&host("ann"), args, &now()).await.unwrap().memories;
    assert_eq!(
        (read[0].id.as_str(), read[0].text.as_str(), read[0].version),
        ("instructions", "Be brief.\nUse bullet points.", 2)
    );
    assert_eq!((read[0].writer.as_str(), read[0].kind.as_str()), ("host", "instructions"));
    assert_eq!(update(&mind, &host("ann"), change("", None)).await.version, 3);
    assert_eq!(instructions(mind.store()).await, (String::new(), 3));
}

// spec: S-06
#[tokio::test]
async fn a_stale_version_is_told_with_the_text_that_is_there() {
    let mind = mind().await;
    update(&mind, &host("ann"), change("one", Some(0))).await;
    let stale = mind.update_instructions(&host("ann"), change("two", Some(0)), &now()).await.unwrap_err();
    assert!(stale.to_string().contains("version `1`"), "{stale}");
    assert_eq!(stale.details(), Some(json!({ "current_version": 1, "current_instructions": "one" })));
    assert_eq!(instructions(mind.store()).await, ("one".into(), 1));
}

#[tokio::test]
async fn after_reading_what_others_wrote_the_owner_is_asked() {
    let mind = mind().await;
    update(&mind, &in_session("a"), change("one", None)).await;
    expose(&mind, &in_session("a")).await;
    let asked = mind.update_instructions(&in_session("a"), change("two", None), &now()).await.unwrap();
    let UpdateOutcome::NeedsConfirmation(asked) = asked else { panic!("{asked:?}") };
    assert_eq!((asked.diff.as_str(), asked.base_version), ("@@ -1 +1 @@\n-one\n+two\n", 1));
    assert!(
        asked.reason.contains("did not write (mail/read), so the owner is asked first"),
        "{}",
        asked.reason
    );
    assert_eq!(instructions(mind.store()).await, ("one".into(), 1), "nothing before the owner says yes");
    // Coming back with another connection, or after a restart, clears nothing.
    let again = Mind::new(mind.store().clone(), voice());
    for session in ["b", "c"] {
        let asked =
            again.update_instructions(&in_session(session), change("two", None), &now()).await.unwrap();
        assert!(matches!(asked, UpdateOutcome::NeedsConfirmation(_)), "{asked:?}");
    }
    // Another writer, and the owner's own hand, are not asked.
    let other = Caller { writer: "other".into(), ..in_session("a") };
    assert_eq!(update(&mind, &other, change("three", None)).await.version, 2);
    assert_eq!(update(&mind, &owner("ann"), change("four", None)).await.version, 3);
    // The owner's yes is for the diff that they saw.
    let late = mind.confirm_instructions(&in_session("a"), "two".into(), asked.base_version).await;
    assert!(matches!(late, Err(Error::Stale { version: 3, .. })), "{late:?}");
    let done = mind.confirm_instructions(&in_session("a"), "two".into(), 3).await.unwrap();
    assert_eq!((done.version, done.diff.as_str()), (4, "@@ -1 +1 @@\n-four\n+two\n"));
    // A version that is stale anyway is told before anybody is asked.
    let stale = mind.update_instructions(&in_session("a"), change("x", Some(1)), &now()).await;
    assert!(matches!(stale, Err(Error::Stale { version: 4, .. })), "{stale:?}");
}

#[tokio::test]
async fn what_the_owner_wrote_and_the_instructions_themselves_expose_nobody() {
    let mind = mind().await;
    let note = SaveMemory { text: "Bob likes tea.".into(), ..SaveMemory::default() };
    mind.save_memory(&owner("ann"), note, &now()).await.unwrap();
    for args in
        [ReadMemory::default(), ReadMemory { kind: Some("instructions".into()), ..ReadMemory::default() }]
    {
        mind.read_memory(&host("ann"), args, &now()).await.unwrap();
    }
    assert!(!mind.has_untrusted_read(&host("ann"), &now()).await.unwrap());
    expose(&mind, &host("bob")).await;
    assert!(mind.has_untrusted_read(&host("bob"), &now()).await.unwrap());
    assert!(!mind.has_untrusted_read(&host("ann"), &now()).await.unwrap());
}

#[tokio::test]
async fn memories_count_if_they_were_written_after_text_of_other_origin_was_read() {
    let mind = mind().await;
    save_tea(&mind, &host("ann")).await;
    let trusts = async |user: &str| -> Vec<String> {
        let found = mind.read_memory(&host(user), ReadMemory::default(), &now()).await.unwrap();
        found.memories.into_iter().map(|memory| memory.trust).collect()
    };
    assert_eq!(trusts("ann").await, ["agent"]);
    assert!(
        !mind.has_untrusted_read(&host("ann"), &now()).await.unwrap(),
        "it wrote that itself, before it read text of other origin"
    );
    let other = Caller { writer: "other".into(), ..host("ann") };
    expose(&mind, &other).await;
    save_tea(&mind, &Caller { session: Some("s2".into()), ..other }).await;
    assert_eq!(trusts("ann").await, ["exposed", "agent"]);
    assert!(mind.has_untrusted_read(&host("ann"), &now()).await.unwrap());
}

#[tokio::test]
async fn an_unconfirmed_change_is_a_proposal_for_the_whole_text() {
    let mind = mind().await;
    update(&mind, &host("ann"), change("one\ntwo", None)).await;
    expose(&mind, &host("ann")).await;
    let asked = mind.update_instructions(&host("ann"), change("three", None), &now()).await.unwrap();
    let UpdateOutcome::NeedsConfirmation(asked) = asked else { panic!("{asked:?}") };
    let propose = async || {
        mind.propose_instructions(&host("ann"), "three".into(), &asked, &now()).await.unwrap().unwrap()
    };
    let proposal = propose().await;
    assert_eq!(proposal.id, propose().await.id, "the same change is proposed once");
    assert_eq!(proposal.change.diff, "@@ -1 +1 @@\n-one\n-two\n+three\n");
    // Over another text it is shown anew, whole.
    update(&mind, &owner("ann"), change("one", None)).await;
    let ProposalDecision::Renewed(renewed) =
        mind.accept_proposal(&owner("ann"), &proposal.id, &now()).await.unwrap()
    else {
        panic!("it was accepted over another text")
    };
    assert_eq!(
        (renewed.change.diff.as_str(), renewed.change.base_version),
        ("@@ -1 +1 @@\n-one\n+three\n", 2)
    );
    let decided = mind.accept_proposal(&owner("ann"), &proposal.id, &now()).await.unwrap();
    assert!(matches!(decided, ProposalDecision::Accepted(_)), "{decided:?}");
    assert_eq!(instructions(mind.store()).await, ("three".into(), 3));
}

#[tokio::test]
async fn a_mark_is_over_after_a_day() {
    let mind = mind().await;
    expose(&mind, &host("ann")).await;
    save_tea(&mind, &host("ann")).await;
    let after = |hours: i64| {
        let at = jiff::Timestamp::from_microsecond(now().micros()).unwrap()
            + jiff::SignedDuration::from_hours(hours);
        ZonedNow::new(at, now().zone().clone())
    };
    assert!(mind.has_untrusted_read(&host("ann"), &after(23)).await.unwrap());
    assert!(!mind.has_untrusted_read(&host("ann"), &after(24)).await.unwrap());
    // What is read meanwhile counts from then on.
    mind.read_memory(&host("ann"), ReadMemory::default(), &after(23)).await.unwrap();
    assert!(mind.has_untrusted_read(&host("ann"), &after(46)).await.unwrap());
}

#[tokio::test]
async fn they_come_with_the_trust_of_whoever_wrote_them() {
    let mind = mind().await;
    for (writer, trust) in [(host("ann"), "agent"), (owner("ann"), "owner"), (host("ann"), "agent")] {
        update(&mind, &writer, change(trust, None)).await;
        let args = ReadMemory { kind: Some("instructions".into()), ..ReadMemory::default() };
        let read = mind.read_memory(&host("ann"), args, &now()).await.unwrap().memories;
        assert_eq!((read[0].text.as_str(), read[0].trust.as_str()), (trust, trust));
    }
}

#[tokio::test]
async fn a_version_of_the_future_is_stale() {
    let mind = mind().await;
    update(&mind, &host("ann"), change("one", None)).await;
    let stale = mind.update_instructions(&host("ann"), change("two", Some(2)), &now()).await;
    assert!(matches!(stale, Err(Error::Stale { version: 1, .. })), "{stale:?}");
}

// spec: S-06
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn racing_writers_lose_no_edit() {
    let mind = mind().await;
    let writers: Vec<_> = (0..8)
        .map(|writer| {
            let mind = mind.clone();
            tokio::spawn(async move {
                for line in 0..5 {
                    loop {
                        let (text, version) = instructions(mind.store()).await;
                        let args = change(&format!("{text}{writer}:{line}\n"), Some(version));
                        match mind.update_instructions(&host("ann"), args, &now()).await {
                            Ok(UpdateOutcome::Written(written)) => {
                                assert_eq!(written.diff.matches("\n+").count(), 1, "{}", written.diff);
                                break;
                            }
                            Ok(asked) => panic!("{asked:?}"),
                            Err(Error::Stale { .. }) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let (text, version) = instructions(mind.store()).await;
    assert_eq!((text.lines().count(), version), (40, 40));
}
