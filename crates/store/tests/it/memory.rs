//! Memories: what is saved is kept, found, forgotten and carried elsewhere, for its own user and agent only.

use std::collections::{BTreeMap, BTreeSet};

use embody_store::memories::{
    ForgetOutcome, FoundMemory, KindCount, Memory, MemoryList, MemorySearch, MemoryStatus, NewMemory,
};
use embody_store::{ErrorKind, Scope, Store};

use crate::world::{World, contract, scope};

contract!(
    is_found_by_its_own_user_and_agent_only,
    every_field_is_kept,
    an_exact_repeat_within_a_session_is_one_memory,
    a_batch_is_kept_whole_or_not_at_all,
    ranks_answers_speakers_and_dates,
    finds_an_answer_however_much_came_between,
    filters_by_kind_and_time,
    a_filter_finds_what_ranks_far_behind,
    lists_the_newest_page_by_page,
    a_memory_of_a_closed_block_can_be_forgotten,
    what_is_forgotten_is_history,
    what_is_quarantined_waits_for_release,
    refuses_what_is_out_of_bounds,
    many_writers_of_one_scope_lose_nothing,
    the_index_stays_true_under_random_changes,
);

/// The 8th of May 2023.
const MAY: i64 = 19_485 * 86_400_000_000;
const DAY: i64 = 86_400_000_000;

fn note(text: &str) -> NewMemory {
    NewMemory::note(text, "owner", "owner")
}

fn said(session: &str, actor: &str, text: &str) -> NewMemory {
    NewMemory { session: Some(session.into()), actor: Some(actor.into()), ..note(text) }
}

fn about(query: &str) -> MemorySearch {
    MemorySearch { query: query.into(), limit: 10, kind: None, since: None }
}

fn newest(limit: u32) -> MemoryList {
    MemoryList { status: MemoryStatus::Active, kind: None, since: None, after: None, limit }
}

fn texts(found: &[FoundMemory]) -> Vec<&str> {
    found.iter().map(|found| found.memory.text.as_str()).collect()
}

async fn save(store: &Store, scope: &Scope, memory: NewMemory) -> String {
    store.memories().save(scope, memory).await.unwrap().id
}

async fn find(store: &Store, scope: &Scope, query: &str) -> Vec<FoundMemory> {
    store.memories().search(scope, &about(query)).await.unwrap()
}

// spec: S-02
async fn is_found_by_its_own_user_and_agent_only(world: World) {
    let store = &world.store;
    let (ann, bob, coach) = (scope("ann", "assistant"), scope("bob", "assistant"), scope("ann", "coach"));
    assert!(find(store, &ann, "tea").await.is_empty());
    let id = save(store, &ann, note("Ann drinks green tea")).await;
    save(store, &bob, note("Bob's tea is black")).await;
    assert_eq!(texts(&find(store, &ann, "Which teas?").await), ["Ann drinks green tea"]);
    assert_eq!(texts(&find(store, &bob, "Which teas?").await), ["Bob's tea is black"]);
    assert!(find(store, &coach, "tea").await.is_empty());
    assert!(find(store, &ann, "coffee").await.is_empty());
    assert!(find(store, &ann, "?!").await.is_empty());
    assert_eq!(store.memories().get(&bob, &id).await.unwrap(), None);
    for stranger in [&bob, &coach] {
        let error = store.memories().forget(stranger, &id).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.to_string()),
            (ErrorKind::NotFound, format!("unknown memory `{id}`"))
        );
        assert!(store.memories().release(stranger, &id).await.is_err());
        assert!(store.memories().history(stranger, &id).await.is_err());
    }
    assert_eq!(find(store, &ann, "tea").await.len(), 1);
}

async fn every_field_is_kept(world: World) {
    let ann = scope("ann", "assistant");
    let new = NewMemory {
        text: "Ünïcödé, \"quotes\"\nand 猫 \u{1f600}".into(),
        kind: "fact".into(),
        tags: vec!["a b".into(), "ü".into()],
        actor: Some("Zoë".into()),
        session: Some("s 1".into()),
        writer: "ann@laptop".into(),
        source: Some("https://example.org/?a=b".into()),
        trust: "known".into(),
        occurred_at: Some(MAY),
        status: MemoryStatus::Active,
    };
    let saved = world.store.memories().save(&ann, new.clone()).await.unwrap();
    assert_eq!((saved.version, saved.status, saved.repeated), (1, MemoryStatus::Active, false));
    let memory = world.store.memories().get(&ann, &saved.id).await.unwrap().unwrap();
    assert!(memory.created_at > MAY && memory.changed_at == memory.created_at);
    let expected = Memory {
        id: saved.id.clone(),
        version: 1,
        status: MemoryStatus::Active,
        text: new.text,
        kind: new.kind,
        tags: new.tags,
        actor: new.actor,
        session: new.session,
        writer: new.writer,
        source: new.source,
        trust: new.trust,
        occurred_at: MAY,
        created_at: memory.created_at,
        changed_at: memory.created_at,
    };
    assert_eq!(memory, expected);
    assert_eq!(find(&world.store, &ann, "猫").await[0].memory, expected);
    let undated = save(&world.store, &ann, note("now")).await;
    let undated = world.store.memories().get(&ann, &undated).await.unwrap().unwrap();
    assert_eq!(undated.occurred_at, undated.created_at);
}

async fn an_exact_repeat_within_a_session_is_one_memory(world: World) {
    let (store, ann) = (&world.store, scope("ann", "assistant"));
    let first = store.memories().save(&ann, said("one", "Ann", "I like tea")).await.unwrap();
    let again = store.memories().save(&ann, said("one", "Ann", "I like tea")).await.unwrap();
    assert_eq!((again.id.as_str(), again.version, again.repeated), (first.id.as_str(), 1, true));
    let mut ids = BTreeSet::from([first.id.clone()]);
    for other in [
        said("two", "Ann", "I like tea"),
        said("one", "Bob", "I like tea"),
        said("one", "Ann", "I like tea."),
        NewMemory { kind: "fact".into(), ..said("one", "Ann", "I like tea") },
        NewMemory { status: MemoryStatus::Quarantined, ..said("one", "Ann", "I like tea") },
        note("I like tea"),
    ] {
        let saved = store.memories().save(&ann, other.clone()).await.unwrap();
        assert!(!saved.repeated && ids.insert(saved.id.clone()), "{other:?}");
        assert_eq!(store.memories().save(&ann, other).await.unwrap().id, saved.id);
    }
    store.memories().forget(&ann, &first.id).await.unwrap();
    let anew = store.memories().save(&ann, said("one", "Ann", "I like tea")).await.unwrap();
    assert!(!anew.repeated && !ids.contains(&anew.id), "what was forgotten is no repeat");
}

async fn a_batch_is_kept_whole_or_not_at_all(world: World) {
    let (store, ann) = (&world.store, scope("ann", "assistant"));
    let batch = vec![note("tea"), note("coffee"), note("tea"), said("s", "Ann", "tea")];
    let saved = store.memories().save_all(&ann, batch).await.unwrap();
    let repeated: Vec<bool> = saved.iter().map(|saved| saved.repeated).collect();
    assert_eq!(repeated, [false, false, true, false]);
    assert_eq!(saved[0].id, saved[2].id);
    let broken = vec![note("cocoa"), note("with \0 inside")];
    let error = store.memories().save_all(&ann, broken).await.unwrap_err();
    assert_eq!(error.to_string(), "the text of the memory has a NUL character at byte 5");
    assert!(find(store, &ann, "cocoa").await.is_empty());
    assert!(store.memories().save_all(&ann, Vec::new()).await.unwrap().is_empty());
    let error = store.memories().save_all(&ann, vec![note("x"); 10_001]).await.unwrap_err();
    assert_eq!(error.to_string(), "10001 memories at once; 10000 are allowed");
    assert_eq!(store.memories().list(&ann, &newest(10)).await.unwrap().len(), 3);
}

/// The same order, and the same scores, on every backend.
async fn ranks_answers_speakers_and_dates(world: World) {
    let (store, ann) = (&world.store, scope("ann", "assistant"));
    let at = |day: i64, memory: NewMemory| NewMemory { occurred_at: Some(MAY + day * DAY), ..memory };
    for memory in [
        at(0, said("one", "Ann", "Hello!")),
        at(0, said("one", "Bob", "What is your sister's dog called?")),
        at(0, said("one", "Ann", "Rex, after the film")),
        at(0, said("one", "Bob", "Lovely name")),
        at(40, said("two", "Bob", "I went camping by the lake")),
        at(40, said("two", "Ann", "I went camping too")),
        at(80, said("three", "Bob", "I went camping by the sea")),
    ] {
        save(store, &ann, memory).await;
    }
    let first = |found: Vec<FoundMemory>| found[0].memory.text.clone();
    assert_eq!(first(find(store, &ann, "the name of the dog of Ann's sister").await), "Rex, after the film");
    assert_eq!(first(find(store, &ann, "Did Ann go camping?").await), "I went camping too");
    assert_eq!(first(find(store, &ann, "Bob camping in June 2023").await), "I went camping by the lake");
    assert_eq!(first(find(store, &ann, "Bob camping on 27 July").await), "I went camping by the sea");
    let found = find(store, &ann, "Where did Bob camp?").await;
    let scored: Vec<String> =
        found.iter().map(|found| format!("{:.6} {}", found.score, found.memory.text)).collect();
    assert_eq!(
        scored,
        [
            "1.924504 I went camping by the lake",
            "1.607547 I went camping by the sea",
            "1.033914 I went camping too",
        ],
    );
}

/// In a scope that is not read whole: right after the question, and with other sessions' memories in between.
async fn finds_an_answer_however_much_came_between(world: World) {
    let (store, ann) = (&world.store, scope("ann", "assistant"));
    let asked =
        |session, thing: &str| said(session, "Bob", &format!("And what is your sister's {thing} called?"));
    let others = |from: u32| (from..from + 200).map(|number| said("other", "Eve", &format!("Line {number}")));
    let mut memories = vec![asked("one", "dog")];
    memories.extend(others(0));
    memories.extend([said("one", "Ann", "Rex"), asked("two", "cat"), said("two", "Ann", "Tom")]);
    memories.extend(others(200));
    store.memories().save_all(&ann, memories).await.unwrap();
    for (question, answer) in [("Ann's sister's dog?", "Rex"), ("Ann's sister's cat?", "Tom")] {
        let found = find(store, &ann, question).await;
        assert_eq!(texts(&found).first(), Some(&answer));
        let others = found.iter().filter(|found| found.memory.actor.as_deref() == Some("Eve"));
        assert_eq!(others.count(), 0, "what stands beside by chance does not count");
    }
}

async fn filters_by_kind_and_time(world: World) {
    let (store, ann) = (&world.store, scope("ann", "assistant"));
    for (day, kind, text) in
        [(0, "fact", "green tea"), (1, "plan", "buy tea"), (2, "fact", "black tea"), (3, "plan", "tea party")]
    {
        let memory = NewMemory { kind: kind.into(), occurred_at: Some(MAY + day * DAY), ..note(text) };
        save(store, &ann, memory).await;
    }
    let search = async |query: &str, kind: Option<&str>, since: Option<i64>| {
        let search = MemorySearch { kind: kind.map(str::to_owned), since, ..about(query) };
        let found = store.memories().search(&ann, &search).await.unwrap();
        found.into_iter().map(|found| found.memory.text).collect::<BTreeSet<String>>()
    };
    let set = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<BTreeSet<String>>();
    for query in ["tea", ""] {
        assert_eq!(search(query, Some("fact"), None).await, set(&["green tea", "black tea"]));
        assert_eq!(search(query, None, Some(MAY + 2 * DAY)).await, set(&["black tea", "tea party"]));
        assert_eq!(search(query, Some("plan"), Some(MAY + 2 * DAY)).await, set(&["tea party"]));
        assert_eq!(search(query, Some("nothing"), None).await, set(&[]));
        assert_eq!(search(query, None, None).await.len(), 4);
    }
    let counts = store.memories().count_by_kind(&ann).await.unwrap();
    let count = |kind: &str, memories| KindCount { kind: kind.into(), memories };
    assert_eq!(counts, [count("fact", 2), count("plan", 2)]);
}

/// Both ways: a filter that leaves few, and one that leaves too many to look at before ranking.
async fn a_filter_finds_what_ranks_far_behind(world: World) {
    let (store, ann) = (&world.store, scope("ann", "assistant"));
    let best = (0..900).map(|number| NewMemory { kind: "loud".into(), ..note(&format!("tea {number}")) });
    let filler = "so many other words stand here that it matches less well than any other, number";
    let rest =
        (0..5200).map(|number| NewMemory { kind: "quiet".into(), ..note(&format!("{filler} {number}")) });
    let wanted = NewMemory { kind: "quiet".into(), ..note(&format!("tea: {filler}")) };
    let rare = NewMemory { kind: "rare".into(), ..note(&format!("{filler}, and tea")) };
    store.memories().save_all(&ann, best.chain(rest).chain([wanted, rare]).collect()).await.unwrap();
    for (kind, text) in [("quiet", format!("tea: {filler}")), ("rare", format!("{filler}, and tea"))] {
        let search = MemorySearch { kind: Some(kind.into()), limit: 3, ..about("tea") };
        let found = store.memories().search(&ann, &search).await.unwrap();
        assert_eq!(texts(&found), [text.as_str()]);
    }
    let search = MemorySearch { limit: 200, ..about("tea") };
    assert_eq!(store.memories().search(&ann, &search).await.unwrap().len(), 200);
}

// spec: S-05
async fn lists_the_newest_page_by_page(world: World) {
    let (store, ann) = (&world.store, scope("ann", "assistant"));
    for (number, day) in [5, 1, 3, 3, 2].into_iter().enumerate() {
        let memory = NewMemory { occurred_at: Some(MAY + day * DAY), ..note(&format!("{number}")) };
        save(store, &ann, memory).await;
    }
    let mut seen = Vec::new();
    let mut list = newest(2);
    loop {
        let page = store.memories().list(&ann, &list).await.unwrap();
        let Some(last) = page.last() else { break };
        list.after = Some(last.id.clone());
        seen.extend(page.into_iter().map(|memory| memory.text));
    }
    assert_eq!(seen, ["0", "3", "2", "4", "1"]);
    let found = store.memories().search(&ann, &MemorySearch { limit: 2, ..about("  ") }).await.unwrap();
    assert_eq!(texts(&found), ["0", "3"]);
    let unknown = MemoryList { after: Some("nowhere".into()), ..newest(2) };
    assert_eq!(store.memories().list(&ann, &unknown).await.unwrap_err().kind(), ErrorKind::NotFound);
}

async fn a_memory_of_a_closed_block_can_be_forgotten(world: World) {
    let (store, ann) = (&world.store, scope("ann", "assistant"));
    let many = (0..1000).map(|number| note(&format!("tea number {number}"))).collect();
    let ids: Vec<String> =
        store.memories().save_all(&ann, many).await.unwrap().into_iter().map(|saved| saved.id).collect();
    assert_eq!(find(store, &ann, "3").await[0].memory.id, ids[3]);
    store.memories().forget(&ann, &ids[3]).await.unwrap();
    assert!(find(store, &ann, "3").await.is_empty());
    assert_eq!(find(store, &ann, "7").await[0].memory.id, ids[7]);
    let history = store.memories().history(&ann, &ids[3]).await.unwrap();
    assert_eq!(history.iter().map(|past| past.version).collect::<Vec<_>>(), [2, 1]);
    let missing = store.memories().forget(&ann, "nowhere").await.unwrap_err();
    assert_eq!(missing.to_string(), "unknown memory `nowhere`");
}

async fn what_is_forgotten_is_history(world: World) {
    let (store, ann) = (&world.store, scope("ann", "assistant"));
    let id = save(store, &ann, said("one", "Ann", "The code word is heron")).await;
    let other = save(store, &ann, said("one", "Bob", "The heron is grey")).await;
    let kept = store.memories().forget_if(&ann, &id, |memory| memory.trust != "owner").await.unwrap();
    assert!(matches!(&kept, ForgetOutcome::Refused(memory) if memory.version == 1), "{kept:?}");
    let allowed = store.memories().forget_if(&ann, &id, |memory| memory.trust == "owner").await.unwrap();
    let ForgetOutcome::Forgotten(memory) = allowed else { panic!("{allowed:?}") };
    assert_eq!((memory.version, memory.status), (2, MemoryStatus::Forgotten));
    assert_eq!(store.memories().forget(&ann, &id).await.unwrap(), memory, "forgetting again changes nothing");
    let ids: Vec<String> =
        find(store, &ann, "heron").await.into_iter().map(|found| found.memory.id).collect();
    assert_eq!(ids, [other.as_str()]);
    assert_eq!(store.memories().list(&ann, &newest(10)).await.unwrap().len(), 1);
    assert_eq!(store.memories().count_by_kind(&ann).await.unwrap()[0].memories, 1);
    assert_eq!(store.memories().get(&ann, &id).await.unwrap(), Some(memory));
    let states: Vec<MemoryStatus> =
        store.memories().history(&ann, &id).await.unwrap().iter().map(|past| past.status).collect();
    assert_eq!(states, [MemoryStatus::Forgotten, MemoryStatus::Active]);
    let error = store.memories().release(&ann, &id).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string()),
        (ErrorKind::Conflict, format!("the memory `{id}` is forgotten"))
    );
}

async fn what_is_quarantined_waits_for_release(world: World) {
    let (store, ann) = (&world.store, scope("ann", "assistant"));
    let held = NewMemory { status: MemoryStatus::Quarantined, ..said("one", "Ann", "Always mail the heron") };
    save(store, &ann, said("one", "Bob", "Where is the heron?")).await;
    let held = store.memories().save(&ann, held).await.unwrap();
    assert_eq!(held.status, MemoryStatus::Quarantined);
    save(store, &ann, said("one", "Bob", "By the lake, the heron")).await;
    assert_eq!(find(store, &ann, "mail the heron").await.len(), 2, "neither as a match nor as a neighbour");
    let waiting = MemoryList { status: MemoryStatus::Quarantined, ..newest(10) };
    assert_eq!(store.memories().list(&ann, &waiting).await.unwrap()[0].id, held.id);
    let released = store.memories().release(&ann, &held.id).await.unwrap();
    assert_eq!((released.version, released.status), (2, MemoryStatus::Active));
    assert_eq!(store.memories().release(&ann, &held.id).await.unwrap().version, 2);
    assert_eq!(find(store, &ann, "mail").await[0].memory.id, held.id);
    let error = NewMemory { status: MemoryStatus::Forgotten, ..note("x") };
    let error = store.memories().save(&ann, error).await.unwrap_err();
    assert_eq!(error.to_string(), "a new memory cannot have the status `forgotten`");
}

async fn refuses_what_is_out_of_bounds(world: World) {
    let (store, ann) = (&world.store, scope("ann", "assistant"));
    let long = "x".repeat(64 * 1024 + 1);
    for (memory, message) in [
        (note(" \n"), "the memory has no text"),
        (note(&long), "the text of the memory has 65537 bytes; 65536 are allowed"),
        (note("a\0"), "the text of the memory has a NUL character at byte 1"),
        (NewMemory { kind: String::new(), ..note("x") }, "the kind has no name"),
        (
            NewMemory { actor: Some("a\0b".into()), ..note("x") },
            "the name of the actor `a\\0b` has control characters",
        ),
        (
            NewMemory { session: Some("s".repeat(300)), ..note("x") },
            "the name of the session is longer than 256 bytes",
        ),
        (NewMemory { source: Some("s\0".into()), ..note("x") }, "the source has a NUL character at byte 1"),
        (NewMemory { tags: vec!["t".into(); 33], ..note("x") }, "the memory has 33 tags; 32 are allowed"),
        (
            NewMemory { occurred_at: Some(i64::MAX), ..note("x") },
            "`occurred_at` is `9223372036854775807`, which is not in the years 1 to 9999",
        ),
    ] {
        let error = store.memories().save(&ann, memory).await.unwrap_err();
        assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Invalid, message));
    }
    let whole = "tea ".repeat(16 * 1024);
    let saved = save(store, &ann, note(&whole)).await;
    assert_eq!(store.memories().get(&ann, &saved).await.unwrap().unwrap().text, whole);
    assert_eq!(find(store, &ann, "tea").await.len(), 1);
    let error = store.memories().search(&ann, &about(&"q ".repeat(9000))).await.unwrap_err();
    assert_eq!(error.to_string(), "the query has 18000 bytes; 16384 are allowed");
    let error = store.memories().search(&ann, &MemorySearch { limit: 201, ..about("x") }).await.unwrap_err();
    assert_eq!(error.to_string(), "the limit is `201`; at most 200 memories are returned");
    assert!(
        store.memories().search(&ann, &MemorySearch { limit: 0, ..about("tea") }).await.unwrap().is_empty()
    );
    assert!(store.memories().search(&ann, &about("tea\0")).await.is_err());
}

async fn many_writers_of_one_scope_lose_nothing(world: World) {
    let ann = scope("ann", "assistant");
    let writers = (0..8).map(|writer| {
        let (store, ann) = (world.store.clone(), ann.clone());
        tokio::spawn(async move {
            for number in 0..6 {
                let text = format!("tea w{writer}n{number}");
                save(&store, &ann, said(if number % 2 == 0 { "shared" } else { "other" }, "Ann", &text))
                    .await;
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    let search = MemorySearch { limit: 200, ..about("tea") };
    assert_eq!(world.store.memories().search(&ann, &search).await.unwrap().len(), 48);
    for writer in 0..8 {
        let found = find(&world.store, &ann, &format!("w{writer}n3")).await;
        assert_eq!(found[0].memory.text, format!("tea w{writer}n3"));
    }
}

/// Numbers that are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }

    fn text(&mut self) -> String {
        const WORDS: [&str; 12] = [
            "tea", "dog", "lake", "violin", "rain", "camping", "sister", "heron", "why?", "the", "猫",
            "running",
        ];
        let count = if self.roll(20) == 0 { 150 } else { 1 + self.roll(8) };
        (0..count).map(|_| WORDS[self.roll(12) as usize]).collect::<Vec<_>>().join(" ")
    }
}

/// Whatever happened, the index is the one that would be built anew; and two users never see each other.
// spec: S-02
async fn the_index_stays_true_under_random_changes(world: World) {
    let store = &world.store;
    let scopes = [scope("ann", "assistant"), scope("bob", "assistant")];
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let mut kept: [BTreeMap<String, MemoryStatus>; 2] = Default::default();
    for _ in 0..250 {
        let whose = dice.roll(2) as usize;
        let (scope, kept) = (&scopes[whose], &mut kept[whose]);
        let choices: Vec<String> = kept.keys().cloned().collect();
        let chosen = choices.get(dice.roll(choices.len().max(1) as u64) as usize).cloned();
        match (dice.roll(10), chosen) {
            (0..3, Some(id)) => {
                kept.insert(id.clone(), store.memories().forget(scope, &id).await.unwrap().status);
            }
            (3, Some(id)) if kept[&id] == MemoryStatus::Quarantined => {
                kept.insert(id.clone(), store.memories().release(scope, &id).await.unwrap().status);
            }
            (roll, _) => {
                let status = if roll > 6 { MemoryStatus::Quarantined } else { MemoryStatus::Active };
                let session = format!("s{}", dice.roll(5));
                let actor = if dice.roll(2) == 0 { "Ann" } else { "Bob" };
                let memory = NewMemory { status, ..said(&session, actor, &dice.text()) };
                let saved = store.memories().save(scope, memory).await.unwrap();
                kept.insert(saved.id, saved.status);
            }
        }
    }
    for (scope, kept) in scopes.iter().zip(&kept) {
        let mut before = Vec::new();
        let queries =
            ["why does the heron play the violin", "tea", "did Ann see a dog in the rain", "猫 lake camping"];
        for query in queries {
            let found =
                store.memories().search(scope, &MemorySearch { limit: 200, ..about(query) }).await.unwrap();
            let statuses = found.iter().map(|found| kept.get(&found.memory.id).copied());
            assert!(
                !found.is_empty() && statuses.into_iter().all(|status| status == Some(MemoryStatus::Active))
            );
            before.push(found);
        }
        let mut lines = Vec::new();
        store.memories().export(scope, &mut lines).await.unwrap();
        let anew = Scope::new("carl", scope.user()).unwrap();
        store.memories().import(&anew, std::str::from_utf8(&lines).unwrap()).await.unwrap();
        for (query, before) in queries.into_iter().zip(before) {
            let after =
                store.memories().search(&anew, &MemorySearch { limit: 200, ..about(query) }).await.unwrap();
            assert_eq!(after, before, "{query}");
        }
    }
}
