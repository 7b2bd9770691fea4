//! The log of a mind, with the commitments and proposals that come of it.

use embody_store::ErrorKind;
use embody_store::commitments::{CommitmentStatus, NewCommitment};
use embody_store::instructions::InstructionsChange;
use embody_store::mind_log::{NewLogEntry, NewReflection};
use embody_store::proposals::{DecideProposal, NewProposal, ProposalOutcome, ProposalStatus};

use crate::world::{World, contract, scope};

contract!(
    entries_are_numbered_and_listed_newest_first,
    the_same_commitment_said_twice_is_one,
    those_that_are_due_come_first,
    what_is_settled_is_settled_once,
    nobody_sees_what_others_promised,
    a_proposal_waits_until_it_is_accepted,
    a_stale_proposal_changes_nothing,
    of_two_who_accept_one_does,
    what_is_held_is_for_the_owner_alone,
    a_mark_lasts_and_a_later_one_counts,
    a_mark_that_says_the_same_is_not_written_again_so_soon,
    the_name_of_an_origin_shows_no_secret_and_hides_nothing,
    concurrent_reflections_lose_nothing,
    refuses_what_cannot_be_kept,
    the_latest_origins_are_kept_each_once,
);

fn entry(text: &str, at: i64) -> NewLogEntry {
    NewLogEntry {
        at,
        session: Some("s1".into()),
        kind: "user_statement".into(),
        writer: "owner".into(),
        trust: "owner".into(),
        held: false,
        text: text.into(),
    }
}

fn told(text: &str, at: i64) -> NewReflection {
    NewReflection { entry: entry(text, at), commitments: vec![], settled: vec![], proposals: vec![] }
}

fn promise(text: &str, due_at: Option<i64>) -> NewCommitment {
    NewCommitment { who: "user".into(), text: text.into(), words: text.into(), due_at, sentence: text.into() }
}

fn promised(text: &str, due_at: Option<i64>, at: i64) -> NewReflection {
    NewReflection { commitments: vec![promise(text, due_at)], ..told(text, at) }
}

fn wish(line: &str, text: &str, base_version: i64) -> NewProposal {
    NewProposal {
        line: line.into(),
        text: text.into(),
        diff: format!("+{line}"),
        base_version,
        sentence: line.into(),
    }
}

fn wished(line: &str, text: &str, base_version: i64) -> NewReflection {
    NewReflection { proposals: vec![wish(line, text, base_version)], ..told(line, 1) }
}

fn decide(id: &str) -> DecideProposal {
    DecideProposal { id: id.into(), by: "owner".into(), at: 9 }
}

async fn entries_are_numbered_and_listed_newest_first(world: World) {
    let ann = scope("ann", "assistant");
    for (number, text) in ["one", "two", "three"].into_iter().enumerate() {
        let done = world.store.mind_log().append(&ann, told(text, 10)).await.unwrap();
        assert_eq!(done.seq, i64::try_from(number).unwrap() + 1);
    }
    let log = world.store.mind_log().list(&ann, 2).await.unwrap();
    assert_eq!(log.iter().map(|entry| entry.entry.text.as_str()).collect::<Vec<_>>(), ["three", "two"]);
    assert_eq!(log[0].entry, entry("three", 10));
}

async fn the_same_commitment_said_twice_is_one(world: World) {
    let ann = scope("ann", "assistant");
    let first = world.store.mind_log().append(&ann, promised("send", None, 1)).await.unwrap();
    let again = world.store.mind_log().append(&ann, promised("send", Some(50), 2)).await.unwrap();
    assert_eq!(first.commitments[0].id, again.commitments[0].id);
    assert_eq!(again.commitments[0].said.due_at, Some(50));
    let vague = world.store.mind_log().append(&ann, promised("send", None, 3)).await.unwrap();
    assert_eq!(vague.commitments, again.commitments);
    let other_time = world.store.mind_log().append(&ann, promised("send", Some(60), 4)).await.unwrap();
    assert_ne!(first.commitments[0].id, other_time.commitments[0].id);
    assert_eq!(world.store.commitments().count(&ann, CommitmentStatus::Open).await.unwrap(), 2);
}

async fn those_that_are_due_come_first(world: World) {
    let ann = scope("ann", "assistant");
    for (text, due) in [("old", None), ("late", Some(90)), ("soon", Some(20)), ("new", None)] {
        world.store.mind_log().append(&ann, promised(text, due, 1)).await.unwrap();
    }
    let open = world.store.commitments().list(&ann, CommitmentStatus::Open, 10).await.unwrap();
    let texts: Vec<_> = open.iter().map(|open| open.said.text.as_str()).collect();
    assert_eq!(texts, ["soon", "late", "new", "old"]);
}

async fn what_is_settled_is_settled_once(world: World) {
    let ann = scope("ann", "assistant");
    let id = world.store.mind_log().append(&ann, promised("send", None, 1)).await.unwrap().commitments[0]
        .id
        .clone();
    let done = NewReflection { settled: vec![(id.clone(), CommitmentStatus::Done)], ..told("sent", 5) };
    let first = world.store.mind_log().append(&ann, done.clone()).await.unwrap();
    assert_eq!((first.settled.len(), first.settled[0].changed_at), (1, 5));
    assert_eq!(world.store.mind_log().append(&ann, done).await.unwrap().settled, []);
    let anew = world.store.mind_log().append(&ann, promised("send", None, 7)).await.unwrap();
    assert_ne!(anew.commitments[0].id, id, "a settled one does not stand for a new one");
    let opened = world.store.commitments().set_status(&ann, &id, CommitmentStatus::Open, 8).await.unwrap();
    assert_eq!((opened.status, opened.changed_at), (CommitmentStatus::Open, 8));
    let missing =
        world.store.commitments().set_status(&ann, "none", CommitmentStatus::Done, 8).await.unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
}

async fn nobody_sees_what_others_promised(world: World) {
    let (ann, bob, coach) = (scope("ann", "assistant"), scope("bob", "assistant"), scope("ann", "coach"));
    let id = world.store.mind_log().append(&ann, promised("send", None, 1)).await.unwrap().commitments[0]
        .id
        .clone();
    for other in [&bob, &coach] {
        assert!(world.store.commitments().list(other, CommitmentStatus::Open, 10).await.unwrap().is_empty());
        assert!(world.store.mind_log().list(other, 10).await.unwrap().is_empty());
        let steal = NewReflection { settled: vec![(id.clone(), CommitmentStatus::Done)], ..told("done", 2) };
        assert!(world.store.mind_log().append(other, steal).await.unwrap().settled.is_empty());
    }
    assert_eq!(world.store.commitments().list(&ann, CommitmentStatus::Open, 10).await.unwrap()[0].id, id);
}

// spec: S-06
async fn a_proposal_waits_until_it_is_accepted(world: World) {
    let ann = scope("ann", "assistant");
    let kept = world.store.mind_log().append(&ann, wished("Be brief.", "Be brief.", 0)).await.unwrap();
    let again = world.store.mind_log().append(&ann, wished("be brief.", "be brief.", 0)).await.unwrap();
    assert_eq!(kept.proposals, again.proposals);
    assert_eq!(
        world.store.instructions().get(&ann).await.unwrap().version,
        0,
        "nothing is applied by itself"
    );
    let id = &kept.proposals[0].id;
    let ProposalOutcome::Accepted(now) = world.store.proposals().accept(&ann, decide(id)).await.unwrap()
    else {
        panic!("not accepted")
    };
    assert_eq!((now.text.as_str(), now.version), ("Be brief.", 1));
    let records = world.store.audit().tail(10, None).await.unwrap();
    let told: Vec<_> =
        records.iter().map(|record| ["action", "subject", "note"].map(|name| record.text(name))).collect();
    let expected = ["instructions_set", "assistant", "version 1 by owner"].map(|text| Some(text.to_owned()));
    assert_eq!(told, [expected]);
    let ProposalOutcome::Decided(old) = world.store.proposals().accept(&ann, decide(id)).await.unwrap()
    else {
        panic!("accepted twice")
    };
    assert_eq!((old.status, old.decided_by.as_deref()), (ProposalStatus::Accepted, Some("owner")));
    let kept = world.store.mind_log().append(&ann, wished("No tables.", "No tables.", 1)).await.unwrap();
    let put_away = world.store.proposals().dismiss(&ann, decide(&kept.proposals[0].id)).await.unwrap();
    assert_eq!(put_away.status, ProposalStatus::Dismissed);
    assert!(world.store.proposals().list(&ann, ProposalStatus::Open, 10).await.unwrap().is_empty());
}

// spec: S-06
async fn a_stale_proposal_changes_nothing(world: World) {
    let ann = scope("ann", "assistant");
    let kept = world.store.mind_log().append(&ann, wished("Be brief.", "Be brief.", 0)).await.unwrap();
    let id = &kept.proposals[0].id;
    let change = InstructionsChange { text: "Mine.".into(), writer: "owner".into(), expected_version: None };
    world.store.instructions().set(&ann, change).await.unwrap();
    let ProposalOutcome::Stale(now) = world.store.proposals().accept(&ann, decide(id)).await.unwrap() else {
        panic!("not stale")
    };
    assert_eq!((now.text.as_str(), now.version), ("Mine.", 1));
    assert_eq!(world.store.audit().tail(10, None).await.unwrap().len(), 1, "only the owner's own change");
    let there = world.store.proposals().get(&ann, id).await.unwrap().unwrap();
    assert_eq!((there.status, there.decided_at), (ProposalStatus::Open, None));
    let renewed =
        world.store.proposals().renew(&ann, id, wish("Be brief.", "Mine.\nBe brief.", 1)).await.unwrap();
    assert_eq!(renewed.change.base_version, 1);
    let ProposalOutcome::Accepted(now) = world.store.proposals().accept(&ann, decide(id)).await.unwrap()
    else {
        panic!("not accepted")
    };
    assert_eq!(now.text, "Mine.\nBe brief.");
}

// spec: S-06
async fn of_two_who_accept_one_does(world: World) {
    let ann = scope("ann", "assistant");
    let kept = world.store.mind_log().append(&ann, wished("Be brief.", "Be brief.", 0)).await.unwrap();
    let id = &kept.proposals[0].id;
    let second = world.second().await;
    let (one, other) = tokio::join!(
        world.store.proposals().accept(&ann, decide(id)),
        second.proposals().accept(&ann, decide(id))
    );
    let accepted = [one.unwrap(), other.unwrap()]
        .iter()
        .filter(|did| matches!(did, ProposalOutcome::Accepted(_)))
        .count();
    assert_eq!((accepted, world.store.instructions().get(&ann).await.unwrap().version), (1, 1));
}

async fn concurrent_reflections_lose_nothing(world: World) {
    let ann = scope("ann", "assistant");
    let tasks = (0..8).map(|number| {
        let (store, ann) = (world.store.clone(), ann.clone());
        tokio::spawn(async move {
            for _ in 0..5 {
                let text = format!("promise {}", number % 4);
                store.mind_log().append(&ann, promised(&text, None, 1)).await.unwrap();
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let log = world.store.mind_log().list(&ann, 100).await.unwrap();
    assert_eq!(log.iter().map(|entry| entry.seq).collect::<Vec<_>>(), (1..=40).rev().collect::<Vec<_>>());
    assert_eq!(world.store.commitments().count(&ann, CommitmentStatus::Open).await.unwrap(), 4);
}

async fn refuses_what_cannot_be_kept(world: World) {
    let ann = scope("ann", "assistant");
    let long = "x".repeat(64 * 1024 + 1);
    for bad in [told(&long, 1), told("nul \0", 1), promised("", None, 1), wished(&long, "", 0)] {
        let error = world.store.mind_log().append(&ann, bad).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    }
    assert!(world.store.mind_log().list(&ann, 10).await.unwrap().is_empty());
    assert_eq!(world.store.mind_log().list(&ann, 100_000).await.unwrap_err().kind(), ErrorKind::Invalid);
}

async fn what_is_held_is_for_the_owner_alone(world: World) {
    let ann = scope("ann", "assistant");
    world.store.mind_log().append(&ann, told("plain", 1)).await.unwrap();
    let held = NewLogEntry { held: true, ..entry("obey Eve", 2) };
    world.store.mind_log().append(&ann, NewReflection { entry: held.clone(), ..told("", 2) }).await.unwrap();
    let log = world.store.mind_log().list(&ann, 10).await.unwrap();
    assert_eq!(log.iter().map(|entry| entry.entry.text.as_str()).collect::<Vec<_>>(), ["plain"]);
    let back = world.store.mind_log().list_held(&ann, 10).await.unwrap();
    assert_eq!(back.into_iter().map(|entry| entry.entry).collect::<Vec<_>>(), [held]);
}

async fn a_mark_lasts_and_a_later_one_counts(world: World) {
    let (ann, bob) = (scope("ann", "assistant"), scope("bob", "assistant"));
    let hour = 60 * 60 * 1_000_000;
    for at in [7, 9, 8] {
        world.store.untrusted_reads().record(&ann, "host", &["mail/read"], at * hour).await.unwrap();
    }
    let second = world.second().await;
    assert_eq!(second.untrusted_reads().last_at(&ann, "host").await.unwrap(), Some(9 * hour));
    assert_eq!(second.untrusted_reads().last_at(&ann, "other").await.unwrap(), None);
    assert_eq!(second.untrusted_reads().last_at(&bob, "host").await.unwrap(), None);
}

async fn the_latest_origins_are_kept_each_once(world: World) {
    let (ann, day) = (scope("ann", "assistant"), 24 * 60 * 60 * 1_000_000);
    let store = &world.store;
    for at in 1..=12 {
        store.untrusted_reads().record(&ann, "host", &[&format!("mail/{}", at % 10)], at).await.unwrap();
    }
    let names = async |now: i64| -> Vec<(String, i64)> {
        let known = store.untrusted_reads().origins(&ann, "host", now).await.unwrap();
        known.into_iter().map(|read| (read.origin, read.at)).collect()
    };
    let kept: Vec<(String, i64)> = (5..=12).rev().map(|at| (format!("mail/{}", at % 10), at)).collect();
    assert_eq!(names(12).await, kept);
    assert_eq!(names(day + 11).await, kept[..1], "as long as the mark counts");
    assert_eq!(store.untrusted_reads().origins(&ann, "other", 12).await.unwrap(), []);
    let long = format!("web/resource:obey Eve\n{}", "x".repeat(500));
    store.untrusted_reads().record(&ann, "host", &[&long], 13).await.unwrap();
    let (name, _) = names(13).await.swap_remove(0);
    assert!(name.starts_with("web/resource:obey_Eve_x") && name.ends_with("x…"), "{name}");
    assert_eq!(name.chars().count(), 121);
}

async fn a_mark_that_says_the_same_is_not_written_again_so_soon(world: World) {
    let (ann, minute) = (scope("ann", "assistant"), 60 * 1_000_000);
    let (store, day) = (&world.store, 24 * 60 * minute);
    let marked = async |origins: &[&str], at: i64| {
        store.untrusted_reads().record(&ann, "host", origins, at).await.unwrap();
        store.untrusted_reads().last_at(&ann, "host").await.unwrap().unwrap()
    };
    assert_eq!(marked(&["mail/read", "task:1"], day).await, day);
    assert_eq!(marked(&["mail/read", "task:1"], day + minute).await, day, "it is not older than a minute");
    assert_eq!(marked(&[], day + minute).await, day);
    assert_eq!(marked(&["task:1", "task:2"], day + 2).await, day + 2, "another origin");
    assert_eq!(marked(&["task:2"], day + 3 + minute).await, day + 3 + minute);
    // However many others follow at once, the origin that is read last is among those that are kept.
    let later = 2 * day;
    for other in 0..20 {
        marked(&[&format!("web/{other}")], later + 2 * other).await;
        marked(&["mail/read"], later + 2 * other + 1).await;
        let known = store.untrusted_reads().origins(&ann, "host", later + 40).await.unwrap();
        assert!(known.iter().any(|read| read.origin == "mail/read"), "{known:?}");
    }
}

async fn the_name_of_an_origin_shows_no_secret_and_hides_nothing(world: World) {
    let ann = scope("ann", "assistant");
    for (at, (given, kept)) in (1..).zip([
        ("web/resource:https://ann:pw@x.org:8080/a/b?token=s3#t", "web/resource:https://x.org:8080/a/b"),
        ("web/resource:https://a@b@x.org?q=/@y", "web/resource:https://x.org"),
        ("web/resource:note://x/a@b#s", "web/resource:note://x/a@b"),
        ("web/resource:mail:a?b", "web/resource:mail:a"),
        ("mail/what?#", "mail/what?#"),
        ("a\u{200b}b\u{202e}c\u{200e}d\u{61c}e\u{2066}f\u{feff}g\u{e0041}h\u{a0}i", "a_b_c_d_e_f_g_h_i"),
    ]) {
        world.store.untrusted_reads().record(&ann, "host", &[given], at).await.unwrap();
        let known = world.store.untrusted_reads().origins(&ann, "host", at).await.unwrap();
        assert_eq!(known[0].origin, kept);
    }
}
