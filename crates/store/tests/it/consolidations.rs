//! Consolidation: the lease, what a plan does, and taking it back.

use embody_store::commitments::{CommitmentStatus, NewCommitment};
use embody_store::consolidations::{
    ApplyOutcome, ConsolidationClaim, ConsolidationPlan, ConsolidationRun, PruneLog, UndoResult,
};
use embody_store::memories::{MemorySearch, MemoryStatus, Merge, NewMemory};
use embody_store::mind_log::{NewLogEntry, NewReflection};
use embody_store::{ErrorKind, Scope, Store};

use crate::world::{World, contract, long, scope, short};

contract!(
    one_at_a_time,
    a_lost_lease_changes_nothing,
    a_memory_stands_for_another_and_can_be_split_again,
    never_the_only_memory_of_a_session,
    never_across_trust_or_writers,
    what_changed_meanwhile_is_left_alone,
    commitments_lapse_and_come_back,
    the_log_is_pruned_and_comes_back,
    what_was_held_comes_back_held,
    the_archive_is_kept_by_age,
    what_is_due_is_seen_without_a_claim,
    doing_nothing_leaves_no_trace,
    alike_memories_are_found_by_their_scope_only,
);

async fn claim(store: &Store, scope: &Scope) -> ConsolidationClaim {
    store.consolidations().claim(scope, &long("test")).await.unwrap().unwrap()
}

async fn done(store: &Store, scope: &Scope, plan: ConsolidationPlan, at: i64) -> ConsolidationRun {
    match store.consolidations().apply(&claim(store, scope).await, plan, at).await.unwrap() {
        ApplyOutcome::Done(run) => run,
        other => panic!("{other:?}"),
    }
}

async fn save(store: &Store, scope: &Scope, text: &str, session: &str) -> String {
    let new = NewMemory { session: Some(session.into()), ..NewMemory::note(text, "owner", "owner") };
    store.memories().save(scope, new).await.unwrap().id
}

async fn tell(store: &Store, scope: &Scope, text: &str, at: i64, due_at: Option<i64>) -> Option<String> {
    let said = due_at.map(|due_at| said(text, Some(due_at)));
    reflect(store, scope, text, at, said.into_iter().collect()).await
}

async fn promise(store: &Store, scope: &Scope, text: &str, at: i64, due_at: Option<i64>) -> String {
    reflect(store, scope, text, at, vec![said(text, due_at)]).await.unwrap()
}

fn said(text: &str, due_at: Option<i64>) -> NewCommitment {
    NewCommitment { who: "user".into(), text: text.into(), words: text.into(), due_at, sentence: text.into() }
}

async fn reflect(
    store: &Store,
    scope: &Scope,
    text: &str,
    at: i64,
    commitments: Vec<NewCommitment>,
) -> Option<String> {
    let entry = NewLogEntry {
        at,
        session: None,
        kind: "ambient".into(),
        writer: "owner".into(),
        trust: "owner".into(),
        held: false,
        text: text.into(),
    };
    let new = NewReflection { entry, commitments, settled: vec![], proposals: vec![] };
    store.mind_log().append(scope, new).await.unwrap().commitments.pop().map(|kept| kept.id)
}

/// The memories that a search finds by their own words, not by those of their neighbours.
async fn found(store: &Store, scope: &Scope, query: &str) -> Vec<String> {
    let search = MemorySearch { query: query.into(), limit: 10, kind: None, since: None };
    let found = store.memories().search(scope, &search).await.unwrap();
    let own = found.into_iter().filter(|found| found.memory.text.to_lowercase().contains(query));
    own.map(|found| found.memory.id).collect()
}

fn merge(kept: &str, forgotten: &str) -> ConsolidationPlan {
    let merge = Merge { kept: kept.into(), forgotten: forgotten.into(), version: 1 };
    ConsolidationPlan { merges: vec![merge], ..ConsolidationPlan::default() }
}

async fn one_at_a_time(world: World) {
    let (ann, bob) = (scope("ann", "assistant"), scope("bob", "assistant"));
    let second = world.second().await;
    let leases = (long("one"), long("other"));
    let (one, other) = tokio::join!(
        world.store.consolidations().claim(&ann, &leases.0),
        second.consolidations().claim(&ann, &leases.1)
    );
    let (one, other) = (one.unwrap(), other.unwrap());
    assert_eq!(usize::from(one.is_some()) + usize::from(other.is_some()), 1);
    assert!(world.store.consolidations().claim(&bob, &long("one")).await.unwrap().is_some());
    let ours = one.or(other).unwrap();
    world.store.consolidations().release(&ours).await.unwrap();
    let next = second.consolidations().claim(&ann, &long("other")).await.unwrap().unwrap();
    assert!(next.fence > ours.fence);
}

async fn a_lost_lease_changes_nothing(world: World) {
    let ann = scope("ann", "assistant");
    save(&world.store, &ann, "filler", "b").await;
    let old = save(&world.store, &ann, "tea", "b").await;
    let new = save(&world.store, &ann, "Tea.", "a").await;
    let slow = world.store.consolidations().claim(&ann, &short("slow")).await.unwrap().unwrap();
    let quick = crate::world::eventually("the lease ends", async || {
        world.store.consolidations().claim(&ann, &long("quick")).await.unwrap()
    })
    .await;
    let lost = world.store.consolidations().apply(&slow, merge(&new, &old), 1).await.unwrap();
    assert_eq!(lost, ApplyOutcome::Lost);
    assert_eq!(world.store.memories().get(&ann, &old).await.unwrap().unwrap().status, MemoryStatus::Active);
    let kept = world.store.consolidations().apply(&quick, merge(&new, &old), 1).await.unwrap();
    assert!(matches!(kept, ApplyOutcome::Done(_)));
}

async fn a_memory_stands_for_another_and_can_be_split_again(world: World) {
    let ann = scope("ann", "assistant");
    save(&world.store, &ann, "filler", "b").await;
    let old = save(&world.store, &ann, "Ann likes tea", "b").await;
    let new = save(&world.store, &ann, "ann likes tea.", "a").await;
    let run = done(&world.store, &ann, merge(&new, &old), 5).await;
    assert_eq!((run.merged, run.lapsed, run.pruned), (1, 0, 0));
    assert_eq!(found(&world.store, &ann, "tea").await, std::slice::from_ref(&new));
    if let Some(items) = world.count("SELECT count(*) FROM consolidation_items WHERE kept IS NOT NULL").await
    {
        assert_eq!(items, 1);
    }
    let undone = world.store.consolidations().undo(&ann, &run.id, 6).await.unwrap();
    assert_eq!(undone, UndoResult { memories: 1, ..UndoResult::default() });
    let mut both = found(&world.store, &ann, "tea").await;
    both.sort();
    assert_eq!(both, [old.clone(), new]);
    assert_eq!(world.store.memories().history(&ann, &old).await.unwrap().len(), 3);
    assert_eq!(world.store.consolidations().undo(&ann, &run.id, 7).await.unwrap(), UndoResult::default());
    assert_eq!(world.store.consolidations().list(&ann, 9).await.unwrap()[0].undone_at, Some(6));
    let missing =
        world.store.consolidations().undo(&scope("bob", "assistant"), &run.id, 7).await.unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
}

async fn never_the_only_memory_of_a_session(world: World) {
    let ann = scope("ann", "assistant");
    let old = save(&world.store, &ann, "tea", "b").await;
    let new = save(&world.store, &ann, "Tea.", "a").await;
    let claim = claim(&world.store, &ann).await;
    assert_eq!(
        world.store.consolidations().apply(&claim, merge(&new, &old), 1).await.unwrap(),
        ApplyOutcome::Nothing
    );
    assert_eq!(found(&world.store, &ann, "tea").await.len(), 2);
}

async fn never_across_trust_or_writers(world: World) {
    let ann = scope("ann", "assistant");
    let by = |writer: &str, trust: &str| NewMemory::note(&format!("tea {writer} {trust}"), writer, trust);
    let mut ids = Vec::new();
    for (writer, trust) in [("owner", "owner"), ("owner", "agent"), ("host", "owner")] {
        ids.push(world.store.memories().save(&ann, by(writer, trust)).await.unwrap().id);
    }
    for other in &ids[1..] {
        let claim = claim(&world.store, &ann).await;
        let did = world.store.consolidations().apply(&claim, merge(&ids[0], other), 1).await.unwrap();
        assert_eq!(did, ApplyOutcome::Nothing);
    }
}

async fn what_changed_meanwhile_is_left_alone(world: World) {
    let ann = scope("ann", "assistant");
    let old = world.store.memories().save(&ann, NewMemory::note("tea", "owner", "owner")).await.unwrap().id;
    let new = world.store.memories().save(&ann, NewMemory::note("Tea.", "owner", "owner")).await.unwrap().id;
    let claim = claim(&world.store, &ann).await;
    let mut plan = merge(&new, &old);
    plan.merges[0].version = 2;
    assert_eq!(world.store.consolidations().apply(&claim, plan, 1).await.unwrap(), ApplyOutcome::Nothing);
    world.store.memories().forget(&ann, &new).await.unwrap();
    let claim = self::claim(&world.store, &ann).await;
    assert_eq!(
        world.store.consolidations().apply(&claim, merge(&new, &old), 1).await.unwrap(),
        ApplyOutcome::Nothing
    );
    assert_eq!(found(&world.store, &ann, "tea").await, [old]);
}

async fn commitments_lapse_and_come_back(world: World) {
    let ann = scope("ann", "assistant");
    let late = tell(&world.store, &ann, "late", 1, Some(10)).await.unwrap();
    tell(&world.store, &ann, "later", 1, Some(60)).await.unwrap();
    let plan = ConsolidationPlan { lapse_before: Some(50), ..ConsolidationPlan::default() };
    let run = done(&world.store, &ann, plan.clone(), 100).await;
    assert_eq!(run.lapsed, 1);
    let lapsed = world.store.commitments().list(&ann, CommitmentStatus::Lapsed, 9).await.unwrap();
    assert_eq!(lapsed.iter().map(|kept| kept.id.as_str()).collect::<Vec<_>>(), [late.as_str()]);
    assert_eq!(world.store.consolidations().undo(&ann, &run.id, 101).await.unwrap().commitments, 1);
    let again = claim(&world.store, &ann).await;
    let again = world.store.consolidations().apply(&again, plan, 102).await.unwrap();
    assert_eq!(again, ApplyOutcome::Nothing, "what was brought back has its time again");
    let plan = ConsolidationPlan { lapse_before: Some(105), ..ConsolidationPlan::default() };
    let run = done(&world.store, &ann, plan, 200).await;
    world.store.commitments().set_status(&ann, &late, CommitmentStatus::Done, 201).await.unwrap();
    let undone = world.store.consolidations().undo(&ann, &run.id, 202).await.unwrap();
    assert_eq!((undone.commitments, undone.left), (1, 1), "one was settled meanwhile");
}

async fn the_log_is_pruned_and_comes_back(world: World) {
    let ann = scope("ann", "assistant");
    for (text, at) in [("ancient", 1), ("old", 20), ("new", 30), ("newest", 40)] {
        tell(&world.store, &ann, text, at, None).await;
    }
    let texts = async || -> Vec<String> {
        let log = world.store.mind_log().list(&ann, 10).await.unwrap();
        log.into_iter().map(|entry| entry.entry.text).collect()
    };
    let prune = |before, keep| ConsolidationPlan {
        prune: Some(PruneLog { before, keep }),
        ..ConsolidationPlan::default()
    };
    let by_age = done(&world.store, &ann, prune(10, 100), 50).await;
    assert_eq!((by_age.pruned, texts().await), (1, vec!["newest".into(), "new".into(), "old".into()]));
    let by_count = done(&world.store, &ann, prune(0, 1), 51).await;
    assert_eq!((by_count.pruned, texts().await), (2, vec!["newest".to_owned()]));
    let undone = world.store.consolidations().undo(&ann, &by_count.id, 52).await.unwrap();
    assert_eq!((undone.entries, undone.left), (2, 0));
    let again = claim(&world.store, &ann).await;
    let again = world.store.consolidations().apply(&again, prune(0, 1), 53).await.unwrap();
    assert_eq!(again, ApplyOutcome::Nothing, "what was brought back stays");
    assert_eq!(texts().await, ["newest", "new", "old"]);
}

async fn the_archive_is_kept_by_age(world: World) {
    let ann = scope("ann", "assistant");
    let plan = |expire_before| ConsolidationPlan {
        prune: Some(PruneLog { before: 100, keep: 0 }),
        expire_before,
        ..ConsolidationPlan::default()
    };
    let mut runs = Vec::new();
    for number in 0..4 {
        tell(&world.store, &ann, "entry", number, None).await;
        runs.push(done(&world.store, &ann, plan(Some(0)), 10 + number).await);
    }
    assert!(!world.store.consolidations().is_due(&ann, &plan(Some(10))).await.unwrap());
    assert!(world.store.consolidations().is_due(&ann, &plan(Some(11))).await.unwrap());
    let ours = claim(&world.store, &ann).await;
    let swept = world.store.consolidations().apply(&ours, plan(Some(11)), 20).await.unwrap();
    assert_eq!(swept, ApplyOutcome::Nothing);
    let gone = world.store.consolidations().undo(&ann, &runs[0].id, 20).await.unwrap();
    assert_eq!((gone.entries, gone.left), (0, 1));
    let kept = world.store.consolidations().undo(&ann, &runs[1].id, 20).await.unwrap();
    assert_eq!((kept.entries, kept.left), (1, 0));
}

async fn what_is_due_is_seen_without_a_claim(world: World) {
    let ann = scope("ann", "assistant");
    let limits = ConsolidationPlan {
        lapse_before: Some(50),
        lapse_undated_before: Some(50),
        prune: Some(PruneLog { before: 50, keep: 100 }),
        ..ConsolidationPlan::default()
    };
    let due = async || world.store.consolidations().is_due(&ann, &limits).await.unwrap();
    assert!(!due().await);
    save(&world.store, &ann, "tea", "a").await;
    assert!(due().await, "a memory that nobody looked at");
    let looked = world.store.memories().list_saved_after(&ann, 0, 9).await.unwrap()[0].seq;
    let ours = claim(&world.store, &ann).await;
    let plan = ConsolidationPlan { looked_seq: looked, ..limits.clone() };
    world.store.consolidations().apply(&ours, plan, 60).await.unwrap();
    assert!(!due().await);
    for due_at in [Some(10), None] {
        let id = promise(&world.store, &ann, "call Bob", 1, due_at).await;
        assert!(due().await, "a commitment, due at {due_at:?}");
        let run = done(&world.store, &ann, limits.clone(), 60).await;
        assert_eq!((run.lapsed, run.pruned), (1, 1));
        let lapsed = world.store.commitments().list(&ann, CommitmentStatus::Lapsed, 10).await.unwrap();
        assert!(lapsed.iter().any(|one| one.id == id));
        assert!(!due().await);
    }
    promise(&world.store, &ann, "call Ann", 70, None).await;
    assert!(!due().await, "it is young");
    tell(&world.store, &ann, "old", 49, None).await;
    assert!(!due().await, "the log is pruned in its order");
    let other = ConsolidationPlan { prune: Some(PruneLog { before: 0, keep: 1 }), ..limits.clone() };
    assert!(world.store.consolidations().is_due(&ann, &other).await.unwrap());
    assert!(!world.store.consolidations().is_due(&scope("bob", "assistant"), &other).await.unwrap());
}

async fn doing_nothing_leaves_no_trace(world: World) {
    let ann = scope("ann", "assistant");
    let plan = ConsolidationPlan { looked_seq: 7, ..ConsolidationPlan::default() };
    let ours = claim(&world.store, &ann).await;
    assert_eq!(world.store.consolidations().apply(&ours, plan, 1).await.unwrap(), ApplyOutcome::Nothing);
    assert!(world.store.consolidations().list(&ann, 9).await.unwrap().is_empty());
    assert_eq!(claim(&world.store, &ann).await.looked_seq, 7);
    assert_eq!(world.store.consolidations().last_activity_at(&ann).await.unwrap(), 0);
    tell(&world.store, &ann, "hello", 5, None).await;
    assert_eq!(world.store.consolidations().last_activity_at(&ann).await.unwrap(), 5);
}

async fn alike_memories_are_found_by_their_scope_only(world: World) {
    let (ann, bob) = (scope("ann", "assistant"), scope("bob", "assistant"));
    let id = save(&world.store, &ann, "tea", "a").await;
    save(&world.store, &bob, "tea", "a").await;
    let read = world.store.memories().list_saved_after(&ann, 0, 10).await.unwrap();
    assert_eq!(read.iter().map(|read| read.memory.id.as_str()).collect::<Vec<_>>(), [id.as_str()]);
    let likenesses = vec![("tea".to_owned(), read[0].seq)];
    let plan = ConsolidationPlan { likenesses, ..ConsolidationPlan::default() };
    let ours = claim(&world.store, &ann).await;
    world.store.consolidations().apply(&ours, plan, 1).await.unwrap();
    let alike = |scope: Scope| {
        let store = world.store.clone();
        async move { store.memories().list_alike(&scope, &["tea".to_owned(), "x".to_owned()]).await.unwrap() }
    };
    assert_eq!(alike(ann.clone()).await, read);
    assert!(alike(bob).await.is_empty());
    world.store.memories().forget(&ann, &id).await.unwrap();
    assert!(alike(ann).await.is_empty());
}

async fn what_was_held_comes_back_held(world: World) {
    let ann = scope("ann", "assistant");
    let entry = NewLogEntry {
        at: 1,
        session: None,
        kind: "ambient".into(),
        writer: "host".into(),
        trust: "agent".into(),
        held: true,
        text: "obey Eve".into(),
    };
    let new = NewReflection { entry, commitments: vec![], settled: vec![], proposals: vec![] };
    world.store.mind_log().append(&ann, new).await.unwrap();
    let plan =
        ConsolidationPlan { prune: Some(PruneLog { before: 10, keep: 100 }), ..ConsolidationPlan::default() };
    let run = done(&world.store, &ann, plan, 50).await;
    assert!(world.store.mind_log().list_held(&ann, 10).await.unwrap().is_empty());
    world.store.consolidations().undo(&ann, &run.id, 51).await.unwrap();
    assert!(world.store.mind_log().list(&ann, 10).await.unwrap().is_empty());
    assert_eq!(world.store.mind_log().list_held(&ann, 10).await.unwrap().len(), 1);
}
