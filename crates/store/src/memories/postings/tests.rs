//! The block format against plain lists: what goes in comes out, whatever happens to it in between.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

type Memories = BTreeMap<u32, Vec<Posting>>;

fn memory(seq: u32) -> impl Strategy<Value = Vec<Posting>> {
    let hit = (1_u16..6, 0_u16..60);
    (0_u32..100_000, prop::collection::btree_map(0_u16..2000, hit, 1..4)).prop_map(move |(session, hits)| {
        let posting = |(chunk, (count, more)): (u16, (u16, u16))| Posting {
            seq,
            session,
            chunk,
            count,
            length: count + more,
        };
        hits.into_iter().map(posting).collect()
    })
}

fn memories(most: usize) -> impl Strategy<Value = Memories> {
    prop::collection::btree_set(1_u32..5_000_000, 0..most)
        .prop_flat_map(|seqs| {
            seqs.into_iter().map(|seq| memory(seq).prop_map(move |one| (seq, one))).collect::<Vec<_>>()
        })
        .prop_map(|all| all.into_iter().collect())
}

/// The table of one term.
#[derive(Default)]
struct Table(BTreeMap<i64, Vec<u8>>);

impl Table {
    fn append(&mut self, postings: &[Posting]) {
        let mut tail = self.0.get(&OPEN).map_or_else(Tail::default, |data| Tail::open(data).unwrap());
        let closed = tail.push(postings);
        for block in closed.into_iter().chain([tail.block()]) {
            self.0.insert(block.key, block.data);
        }
    }

    /// As the statement does: the first block whose key is not below the memory.
    fn replace(&mut self, seq: u32, postings: &[Posting]) {
        let found =
            self.0.range(i64::from(seq)..).next().map(|(key, data)| Block { key: *key, data: data.clone() });
        let Some(block) = found else { return };
        self.0.remove(&block.key);
        for block in replace(&block, seq, postings).unwrap() {
            assert!(self.0.insert(block.key, block.data).is_none(), "two blocks have one key");
        }
    }

    fn read(&self) -> Vec<Posting> {
        let mut postings = Vec::new();
        for data in self.0.values() {
            decode(data, &mut postings).unwrap();
        }
        postings
    }
}

fn flat(memories: &Memories) -> Vec<Posting> {
    memories.values().flatten().copied().collect()
}

proptest! {
    #[test]
    fn what_is_appended_is_read_in_order(memories in memories(400)) {
        let mut table = Table::default();
        memories.values().for_each(|memory| table.append(memory));
        prop_assert_eq!(table.read(), flat(&memories));
        for (key, data) in &table.0 {
            prop_assert!(data.len() < 800, "block {key} has {} bytes", data.len());
        }
    }

    #[test]
    fn forgetting_and_revising_keep_all_others(
        (memories, changes) in memories(300).prop_flat_map(|memories| {
            let seqs: Vec<u32> = memories.keys().copied().chain([7]).collect();
            let change = prop::sample::select(seqs).prop_flat_map(|seq| prop::option::of(memory(seq)).prop_map(move |new| (seq, new)));
            (Just(memories), prop::collection::vec(change, 0..100))
        })
    ) {
        let mut table = Table::default();
        let mut expected = memories.clone();
        memories.values().for_each(|memory| table.append(memory));
        for (seq, new) in changes.into_iter().filter(|_| !memories.is_empty()) {
            if table.0.range(i64::from(seq)..).next().is_none() {
                continue;
            }
            expected.remove(&seq);
            expected.extend(new.clone().map(|new| (seq, new)));
            table.replace(seq, &new.unwrap_or_default());
        }
        prop_assert_eq!(table.read(), flat(&expected));
        let last = expected.keys().next_back().copied().unwrap_or(0).max(memories.keys().next_back().copied().unwrap_or(0)) + 1;
        let newest = Posting { seq: last, session: 1, chunk: 0, count: 1, length: 9 };
        table.append(&[newest]);
        prop_assert_eq!(table.read().last().copied(), Some(newest));
    }

    #[test]
    fn damage_is_an_error_or_still_in_order(
        memories in memories(60),
        harm in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut table = Table::default();
        memories.values().for_each(|memory| table.append(memory));
        for data in table.0.values() {
            let mut damaged = data.clone();
            for (place, byte) in &harm {
                let place = place.index(damaged.len());
                damaged[place] = *byte;
            }
            damaged.truncate(cut.index(damaged.len() + 1));
            let mut postings = Vec::new();
            if decode(&damaged, &mut postings).is_ok() {
                prop_assert!(postings.is_sorted_by_key(|posting| (posting.seq, posting.chunk)));
            }
            let _ = Tail::open(&damaged);
        }
    }

    #[test]
    fn noise_is_no_block(noise in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut postings = Vec::new();
        if decode(&noise, &mut postings).is_ok() {
            prop_assert_eq!(noise.first(), Some(&1));
        }
    }
}

#[test]
fn a_cut_block_is_damaged() {
    let mut tail = Tail::default();
    tail.push(&[Posting { seq: 300, session: 70, chunk: 2, count: 3, length: 40 }]);
    let data = tail.block().data;
    for length in 0..data.len() {
        assert_eq!(decode(&data[..length], &mut Vec::new()), Err(DamagedBlock), "cut to {length} bytes");
    }
    assert_eq!(decode(&[&data[..], &[0]].concat(), &mut Vec::new()), Err(DamagedBlock));
}

#[test]
fn numbers_of_every_length_survive() {
    for value in (0..62).map(|bits| (1_u64 << bits) - 1).chain([u64::MAX >> 1]) {
        let mut bytes = Vec::new();
        varint::write(&mut bytes, value);
        let mut rest = bytes.as_slice();
        assert_eq!((varint::read(&mut rest), rest.len()), (Some(value), 0));
    }
    assert_eq!(varint::read(&mut [0xff; 12].as_slice()), None);
    for difference in [0, 1, -1, i64::from(u32::MAX), -i64::from(u32::MAX)] {
        assert_eq!(varint::unzigzag(varint::zigzag(difference)), difference);
    }
}
