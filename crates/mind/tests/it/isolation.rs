//! Two users' memories never mix, whatever is done in which order, one after the other or at once.

use std::collections::HashMap;

use embody_mind::{Caller, ForgetMemory, Mind, ReadMemory, Recall, SaveMemory, UpdateInstructions};

use crate::world::{host, mind, now};

const USERS: [&str; 4] = ["ann", "bob", "cleo", "dan"];
const TOPICS: [&str; 5] = ["tea", "trains", "the garden", "invoices", "chess"];

/// A small generator: the same numbers on every machine.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        usize::try_from((mixed ^ (mixed >> 27)) % sides as u64).unwrap()
    }
}

/// What one user has, as they know it.
#[derive(Default)]
struct Known {
    active: HashMap<String, String>,
    instructions: String,
}

async fn operate(
    mind: &Mind,
    caller: &Caller,
    known: &mut Known,
    dice: &mut Dice,
    others_id: Option<String>,
) {
    let user = caller.scope.user();
    let topic = TOPICS[dice.roll(TOPICS.len())];
    match dice.roll(10) {
        0..5 => {
            let text = format!("{user} wrote about {topic}, number {}", dice.roll(1_000_000));
            let args = SaveMemory { text: text.clone(), ..SaveMemory::default() };
            let saved = mind.save_memory(caller, args, &now()).await.unwrap();
            known.active.insert(saved.id, text);
        }
        5..7 => {
            let args = ReadMemory { query: topic.into(), limit: Some(50), ..ReadMemory::default() };
            check(mind.read_memory(caller, args, &now()).await.unwrap().memories, known);
        }
        7 => {
            let args = Recall { query: format!("number {topic}"), k: Some(50), facet: None };
            check(mind.recall(caller, args, &now()).await.unwrap().memories, known);
        }
        8 => {
            let own = known.active.keys().min().cloned();
            if let Some(id) = own {
                mind.forget_memory(caller, ForgetMemory { id: id.clone() }, &now()).await.unwrap();
                known.active.remove(&id);
            }
            if let Some(id) = others_id {
                assert!(mind.forget_memory(caller, ForgetMemory { id: id.clone() }, &now()).await.is_err());
                let uri = format!("memory://{id}");
                assert!(mind.read_resource(caller, &uri, &now()).await.is_err());
            }
        }
        _ => {
            let args = ReadMemory { kind: Some("instructions".into()), ..ReadMemory::default() };
            let read = mind.read_memory(caller, args, &now()).await.unwrap().memories;
            assert_eq!(read[0].text, known.instructions);
            known.instructions = format!("{user} likes {topic}, {}", dice.roll(1_000_000));
            let args = UpdateInstructions {
                instructions: known.instructions.clone(),
                expected_version: Some(read[0].version),
            };
            mind.confirm_instructions(caller, args.instructions, read[0].version).await.unwrap();
        }
    }
}

fn check(found: Vec<embody_mind::MemoryEntry>, known: &Known) {
    for entry in found {
        assert_eq!(
            known.active.get(&entry.id),
            Some(&entry.text),
            "somebody else's memory, or a forgotten one"
        );
    }
}

// spec: S-02
#[tokio::test]
async fn ten_thousand_random_operations_of_four_users() {
    let mind = mind().await;
    let mut dice = Dice(20_261_116);
    let mut known: HashMap<&str, Known> = HashMap::new();
    for _ in 0..10_000 {
        let user = USERS[dice.roll(USERS.len())];
        let other = USERS[dice.roll(USERS.len())];
        let others_id =
            known.get(other).filter(|_| other != user).and_then(|other| other.active.keys().min().cloned());
        operate(&mind, &host(user), known.entry(user).or_default(), &mut dice, others_id).await;
    }
    for user in USERS {
        let catalog = mind.store().memories().count_by_kind(&host(user).scope).await.unwrap();
        let count: u64 = catalog.iter().map(|kind| kind.memories).sum();
        assert_eq!(count, known[user].active.len() as u64, "{user}");
        assert!(count > 100, "{user} hardly took part: {count}");
    }
}

// spec: S-02
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thirty_two_at_once() {
    let mind = mind().await;
    let tasks: Vec<_> = (0..32_u64)
        .map(|number| {
            let mind = mind.clone();
            tokio::spawn(async move {
                let caller = host(&format!("user{number}"));
                let (mut dice, mut known) = (Dice(number), Known::default());
                for _ in 0..40 {
                    operate(&mind, &caller, &mut known, &mut dice, None).await;
                }
                known.active.len() as u64
            })
        })
        .collect();
    for (number, task) in tasks.into_iter().enumerate() {
        let expected = task.await.unwrap();
        let counts =
            mind.store().memories().count_by_kind(&host(&format!("user{number}")).scope).await.unwrap();
        assert_eq!(counts.iter().map(|kind| kind.memories).sum::<u64>(), expected);
    }
}
