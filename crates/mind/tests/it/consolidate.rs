//! Tidying up: what becomes one, what never does, and that all of it can be taken back.

use std::collections::BTreeSet;
use std::time::Duration;

use embody_mind::{ConsolidationOutcome, ConsolidationPolicy, ZonedNow, consolidate, undo};
use embody_store::commitments::CommitmentStatus;
use embody_store::memories::{Memory, MemoryList, MemoryStatus, NewMemory};
use embody_store::{Lease, Scope, Store};
use proptest::prelude::*;

use crate::told::{caller, moment, store, tell, wednesday};

/// Long after everything that the tests save, whose times are those of the real clock.
fn later() -> ZonedNow {
    moment("2090-01-01T03:00")
}

fn ann() -> Scope {
    caller("ann").scope
}

fn policy() -> ConsolidationPolicy {
    ConsolidationPolicy::standard("test")
}

fn said(text: &str, session: Option<&str>, hour: i64) -> NewMemory {
    NewMemory {
        session: session.map(str::to_owned),
        actor: Some("ann".into()),
        occurred_at: Some(wednesday().micros() + hour * 3_600_000_000),
        ..NewMemory::note(text, "ann", "owner")
    }
}

async fn save(store: &Store, new: NewMemory) -> String {
    store.memories().save(&ann(), new).await.unwrap().id
}

async fn active(store: &Store) -> BTreeSet<String> {
    let list = MemoryList { status: MemoryStatus::Active, kind: None, since: None, after: None, limit: 1000 };
    store.memories().list(&ann(), &list).await.unwrap().into_iter().map(|memory| memory.id).collect()
}

async fn tidy(store: &Store) -> ConsolidationOutcome {
    consolidate(store, &ann(), &later(), &policy()).await.unwrap()
}

#[tokio::test]
async fn the_same_in_other_words_becomes_one_and_comes_back() {
    let store = store().await;
    save(&store, said("we talked", Some("one"), 0)).await;
    let old = save(&store, said("Ann likes the tea.", Some("one"), 1)).await;
    let new = save(&store, said("ann likes tea", Some("two"), 2)).await;
    let before = active(&store).await;
    let ConsolidationOutcome::Done { run, more: false } = tidy(&store).await else {
        panic!("nothing was done")
    };
    assert_eq!(run.merged, 1);
    let after = active(&store).await;
    assert!(!after.contains(&old) && after.contains(&new));
    assert_eq!(
        tidy(&store).await,
        ConsolidationOutcome::Nothing { more: false },
        "a second run does nothing"
    );
    assert_eq!(undo(&store, &ann(), &run.id, &later()).await.unwrap().memories, 1);
    assert_eq!(active(&store).await, before);
    assert_eq!(tidy(&store).await, ConsolidationOutcome::Nothing { more: false }, "what came back stays");
}

#[tokio::test]
async fn a_later_run_finds_what_an_earlier_one_saw() {
    let store = store().await;
    let old = save(&store, said("Tea!", None, 0)).await;
    assert_eq!(tidy(&store).await, ConsolidationOutcome::Nothing { more: false });
    let new = save(&store, said("tea", None, 1)).await;
    assert!(matches!(tidy(&store).await, ConsolidationOutcome::Done { .. }));
    assert_eq!(active(&store).await, BTreeSet::from([new]));
    assert_eq!(store.memories().get(&ann(), &old).await.unwrap().unwrap().status, MemoryStatus::Forgotten);
}

#[tokio::test]
async fn what_only_looks_alike_stays() {
    let store = store().await;
    let base = said("Bob called", None, 0);
    for new in [
        base.clone(),
        NewMemory { kind: "event".into(), ..base.clone() },
        NewMemory { actor: Some("bob".into()), ..base.clone() },
        NewMemory { writer: "host".into(), ..base.clone() },
        NewMemory { trust: "agent".into(), ..base.clone() },
        NewMemory { tags: vec!["phone".into()], ..base.clone() },
        NewMemory { source: Some("mail".into()), ..base.clone() },
        NewMemory { status: MemoryStatus::Quarantined, text: "bob called".into(), ..base.clone() },
        said("Bob called", None, 24 * 8),
        said("Bob has not called", None, 0),
    ] {
        save(&store, new).await;
    }
    let before = active(&store).await;
    assert_eq!(tidy(&store).await, ConsolidationOutcome::Nothing { more: false });
    assert_eq!(active(&store).await, before);
}

#[tokio::test]
async fn it_goes_on_where_it_stopped() {
    let store = store().await;
    for number in 0..5 {
        save(&store, said(&format!("thing {number}"), None, number)).await;
    }
    let policy = ConsolidationPolicy { memories: 2, ..policy() };
    let mut rounds = Vec::new();
    for _ in 0..4 {
        rounds.push(consolidate(&store, &ann(), &later(), &policy).await.unwrap());
    }
    let nothing = |more| ConsolidationOutcome::Nothing { more };
    assert_eq!(rounds, [nothing(true), nothing(true), nothing(false), nothing(false)]);
    let wrong = ConsolidationPolicy { memories: 0, ..policy };
    let error = consolidate(&store, &ann(), &later(), &wrong).await.unwrap_err();
    assert!(error.to_string().contains("`0` memories"), "{error}");
}

#[tokio::test]
async fn it_waits_until_it_is_quiet() {
    let store = store().await;
    tell(&store, "hello", None, &later()).await;
    assert_eq!(tidy(&store).await, ConsolidationOutcome::NotQuiet);
    let eager = ConsolidationPolicy { quiet: Duration::ZERO, ..policy() };
    let outcome = consolidate(&store, &ann(), &later(), &eager).await.unwrap();
    assert_eq!(outcome, ConsolidationOutcome::Nothing { more: false });
}

#[tokio::test]
async fn old_commitments_lapse_and_the_log_is_pruned() {
    let store = store().await;
    tell(&store, "I'll send it tomorrow", None, &wednesday()).await;
    tell(&store, "I'll fix that", None, &wednesday()).await;
    let sixty_days_later = moment("2026-12-20T10:30");
    let done = consolidate(&store, &ann(), &sixty_days_later, &policy()).await.unwrap();
    let ConsolidationOutcome::Done { run, .. } = done else { panic!("nothing was done") };
    assert_eq!((run.lapsed, run.pruned), (1, 0));
    let lapsed = store.commitments().list(&ann(), CommitmentStatus::Lapsed, 9).await.unwrap();
    assert_eq!(lapsed[0].said.text, "send it");
    let undone = undo(&store, &ann(), &run.id, &sixty_days_later).await.unwrap();
    assert_eq!((undone.commitments, undone.left), (1, 0));
    let ConsolidationOutcome::Done { run, .. } = tidy(&store).await else { panic!("nothing was done") };
    assert_eq!((run.lapsed, run.pruned), (2, 2));
    let undone = undo(&store, &ann(), &run.id, &later()).await.unwrap();
    assert_eq!((undone.commitments, undone.entries, undone.left), (2, 2, 0));
    assert_eq!(tidy(&store).await, ConsolidationOutcome::Nothing { more: false });
}

#[tokio::test]
async fn an_idle_mind_writes_nothing() {
    let store = store().await;
    let claim = async || {
        let lease = Lease { owner: "test".into(), duration: Duration::from_secs(9) };
        let claim = store.consolidations().claim(&ann(), &lease).await.unwrap().unwrap();
        store.consolidations().release(&claim).await.unwrap();
        claim.fence
    };
    save(&store, said("Bob called", None, 0)).await;
    assert_eq!(tidy(&store).await, ConsolidationOutcome::Nothing { more: false });
    let fence = claim().await;
    for _ in 0..3 {
        assert_eq!(tidy(&store).await, ConsolidationOutcome::Nothing { more: false });
    }
    assert_eq!(claim().await, fence + 1, "every claim in between would have raised it");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Whatever was saved: what is forgotten has a newer memory of its kind, writer and trust in its place, a second run
    /// does nothing, and taking it back leaves what was there.
    #[test]
    fn nothing_is_lost(saved in prop::collection::vec((0..4_usize, 0..3_usize, 0..2_usize, 0..40_i64), 1..25)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let store = store().await;
            for (text, session, trust, hour) in saved {
                let text = ["Ann likes tea", "ann likes the tea!", "Bob called", "bob called."][text];
                let session = [None, Some("one"), Some("two")][session];
                let trust = ["owner", "agent"][trust].to_owned();
                save(&store, NewMemory { trust, ..said(text, session, hour) }).await;
            }
            let before = active(&store).await;
            let outcome = tidy(&store).await;
            let after = active(&store).await;
            assert!(after.is_subset(&before));
            let mut left = Vec::new();
            for id in &after {
                left.push(store.memories().get(&ann(), id).await.unwrap().unwrap());
            }
            for gone in before.difference(&after) {
                let gone = store.memories().get(&ann(), gone).await.unwrap().unwrap();
                let about = |memory: &Memory| (memory.trust.clone(), memory.writer.clone(), memory.kind.clone());
                assert!(left.iter().any(|kept| kept.id > gone.id && about(kept) == about(&gone)), "{gone:?}");
            }
            assert_eq!(tidy(&store).await, ConsolidationOutcome::Nothing { more: false });
            if let ConsolidationOutcome::Done { run, .. } = outcome {
                undo(&store, &ann(), &run.id, &later()).await.unwrap();
            }
            assert_eq!(active(&store).await, before);
        });
    }
}
