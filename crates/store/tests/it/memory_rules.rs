//! Memories that restrict something: noted once, and never counted when they are forgotten or quarantined.

use embody_store::memories::{MemoryStatus, NewMemory};
use embody_store::memory_rules::{MemoryRuleLimits, MemoryRuleScan};

use crate::world::{World, contract, scope};

contract!(
    what_was_noted_is_read_and_what_is_new_too,
    the_forgotten_and_the_quarantined_do_not_count,
    a_released_memory_is_looked_at_again,
    the_mark_never_goes_back,
    the_owners_have_their_own_share,
    what_is_new_and_released_is_looked_at_once,
);

fn note(text: &str) -> NewMemory {
    NewMemory::note(text, "ann", "owner")
}

fn scan(up_to: i64, restricting: &[(i64, i64)]) -> MemoryRuleScan {
    MemoryRuleScan { up_to, restricting: restricting.to_vec(), harmless: Vec::new() }
}

fn limits(each: u32, fresh: u32) -> MemoryRuleLimits {
    MemoryRuleLimits { owners: each, others: each, fresh }
}

async fn seqs(world: &World, limit: u32, fresh: u32) -> Vec<i64> {
    let found =
        world.store.memory_rules().list(&scope("ann", "assistant"), limits(limit, fresh)).await.unwrap();
    found.memories.iter().map(|memory| memory.seq).collect()
}

async fn what_was_noted_is_read_and_what_is_new_too(world: World) {
    let (ann, bob) = (scope("ann", "assistant"), scope("bob", "assistant"));
    let texts = ["one", "never mail Bob", "three", "four", "five"];
    world.store.memories().save_all(&ann, texts.iter().map(|text| note(text)).collect()).await.unwrap();
    world.store.memories().save(&bob, note("never mail Ann")).await.unwrap();
    let fresh = world.store.memory_rules().list_unscanned(&ann, 3).await.unwrap().memories;
    assert_eq!(fresh.iter().map(|memory| memory.text.as_str()).collect::<Vec<_>>(), texts[..3]);
    world.store.memory_rules().record_scan(&ann, scan(3, &[(2, 1)])).await.unwrap();
    let cautions = world.store.memory_rules().list(&ann, limits(10, 10)).await.unwrap();
    assert_eq!(cautions.unscanned, 2);
    assert_eq!(cautions.memories.iter().map(|memory| memory.seq).collect::<Vec<_>>(), [5, 4, 2]);
    assert_eq!(cautions.memories[2].text, "never mail Bob");
    assert_eq!((cautions.memories[2].version, cautions.memories[2].trust.as_str()), (1, "owner"));
    assert_eq!(seqs(&world, 10, 1).await, [5, 2]);
    assert_eq!(seqs(&world, 0, 0).await, Vec::<i64>::new());
    assert_eq!(world.store.memory_rules().list(&bob, limits(10, 0)).await.unwrap().unscanned, 1);
}

async fn the_forgotten_and_the_quarantined_do_not_count(world: World) {
    let ann = scope("ann", "assistant");
    let active = world.store.memories().save(&ann, note("never mail Bob")).await.unwrap();
    let held = NewMemory { status: MemoryStatus::Quarantined, ..note("never mail Carol") };
    let held = world.store.memories().save(&ann, held).await.unwrap();
    assert_eq!(seqs(&world, 10, 10).await, [1]);
    assert_eq!(world.store.memory_rules().list_unscanned(&ann, 10).await.unwrap().memories.len(), 2);
    world.store.memory_rules().record_scan(&ann, scan(2, &[(1, 1), (2, 1)])).await.unwrap();
    assert_eq!(seqs(&world, 10, 10).await, [1]);
    world.store.memories().forget(&ann, &active.id).await.unwrap();
    world.store.memories().release(&ann, &held.id).await.unwrap();
    assert_eq!(seqs(&world, 1, 0).await, [2]);
}

async fn a_released_memory_is_looked_at_again(world: World) {
    let ann = scope("ann", "assistant");
    let held = NewMemory { status: MemoryStatus::Quarantined, ..note("never mail Bob") };
    let saved = world.store.memories().save(&ann, held).await.unwrap();
    world.store.memory_rules().record_scan(&ann, scan(1, &[])).await.unwrap();
    assert_eq!(seqs(&world, 10, 10).await, Vec::<i64>::new());
    world.store.memories().release(&ann, &saved.id).await.unwrap();
    assert_eq!(seqs(&world, 10, 10).await, [1]);
    let again = world.store.memory_rules().list_unscanned(&ann, 10).await.unwrap().memories;
    assert_eq!(again.iter().map(|memory| (memory.seq, memory.version)).collect::<Vec<_>>(), [(1, 2)]);
    // A scan of the version before does not count.
    let late = MemoryRuleScan { up_to: 1, restricting: Vec::new(), harmless: vec![(1, 1)] };
    world.store.memory_rules().record_scan(&ann, late).await.unwrap();
    assert_eq!(seqs(&world, 10, 10).await, [1]);
    let timely = MemoryRuleScan { up_to: 1, restricting: Vec::new(), harmless: vec![(1, 2)] };
    world.store.memory_rules().record_scan(&ann, timely).await.unwrap();
    assert_eq!(seqs(&world, 10, 10).await, Vec::<i64>::new());
}

async fn the_mark_never_goes_back(world: World) {
    let ann = scope("ann", "assistant");
    let texts = ["one", "two", "three"];
    world.store.memories().save_all(&ann, texts.iter().map(|text| note(text)).collect()).await.unwrap();
    world.store.memory_rules().record_scan(&ann, scan(3, &[])).await.unwrap();
    world.store.memory_rules().record_scan(&ann, scan(1, &[(1, 1)])).await.unwrap();
    let cautions = world.store.memory_rules().list(&ann, limits(10, 10)).await.unwrap();
    assert_eq!((cautions.unscanned, cautions.memories.len()), (0, 1));
}

async fn the_owners_have_their_own_share(world: World) {
    let ann = scope("ann", "assistant");
    let theirs = |text: &str| NewMemory::note(text, "agent", "agent");
    let notes = vec![note("never mail Bob"), theirs("never one"), theirs("never two"), theirs("never three")];
    let saved = world.store.memories().save_all(&ann, notes).await.unwrap();
    world.store.memory_rules().record_scan(&ann, scan(4, &[(1, 1), (2, 1), (3, 1), (4, 1)])).await.unwrap();
    let few = world.store.memory_rules().list(&ann, limits(2, 0)).await.unwrap();
    assert_eq!(few.memories.iter().map(|memory| memory.seq).collect::<Vec<_>>(), [1, 4, 3]);
    assert!(few.more);
    world.store.memories().forget(&ann, &saved[3].id).await.unwrap();
    let all = world.store.memory_rules().list(&ann, limits(2, 0)).await.unwrap();
    assert_eq!(all.memories.iter().map(|memory| memory.seq).collect::<Vec<_>>(), [1, 3, 2]);
    assert!(!all.more);
}

async fn what_is_new_and_released_is_looked_at_once(world: World) {
    let ann = scope("ann", "assistant");
    let held = NewMemory { status: MemoryStatus::Quarantined, ..note("never mail Bob") };
    let saved = world.store.memories().save_all(&ann, vec![note("one"), note("two"), held]).await.unwrap();
    world.store.memories().release(&ann, &saved[2].id).await.unwrap();
    let first = world.store.memory_rules().list_unscanned(&ann, 1).await.unwrap();
    assert_eq!((first.memories.len(), first.up_to), (1, 1));
    let all = world.store.memory_rules().list_unscanned(&ann, 10).await.unwrap();
    assert_eq!(all.memories.iter().map(|memory| memory.seq).collect::<Vec<_>>(), [1, 2, 3]);
    world.store.memory_rules().record_scan(&ann, scan(all.up_to, &[(3, 2)])).await.unwrap();
    let rest = world.store.memory_rules().list_unscanned(&ann, 10).await.unwrap();
    assert_eq!((rest.memories.len(), rest.up_to), (0, 3));
}
