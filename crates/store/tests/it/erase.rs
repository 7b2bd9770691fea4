//! Erasing a memory: its text is nowhere afterwards, and the audit chain stays intact.

use std::time::Duration;

use embody_store::approvals::{ApprovalRequest, ApprovalStatus};
use embody_store::audit::{AuditedCall, Event, Fault, Intent, Record, RedactedArguments};
use embody_store::instructions::InstructionsChange;
use embody_store::memories::{EditOutcome, MemoryEdit, MemoryList, MemorySearch, MemoryStatus, NewMemory};
use embody_store::mind_log::{NewLogEntry, NewReflection};
use embody_store::outbox::NewObservation;
use embody_store::receipts::NewReceipt;
use embody_store::sessions::{Bootstrap, OpenSession, Packet};
use embody_store::suspended_calls::NewSuspendedCall;
use embody_store::threads::{NewMessage, NewThread};
use embody_store::transfer::{Target, copy_store};
use embody_store::{CallAwaitingApproval, DatabaseUrl, ErrorKind, Scope, Store};

use crate::approvals::{ask, asked};
use crate::audit::{actor, broken, call, intent, state};
use crate::incoming;
use crate::outgoing;
use crate::world::{World, contract, long, scope};

contract!(
    an_erased_text_is_nowhere,
    an_edited_memory_is_found_by_its_new_text,
    an_erased_record_cannot_be_changed_again,
    a_text_of_one_word_leaves_others_alone
);

const TEXT: &str = "The door of Ann's \"blue\" office opens with 4711.";
/// What must not be left of it, in any form.
const PARTS: [&str; 3] = ["office opens", "blue\\\" office", "with 4711"];

fn json_text() -> String {
    serde_json::json!({ "text": format!("Remember: {TEXT} Thanks."), "n": 1 }).to_string()
}

async fn save(store: &Store, scope: &Scope, text: &str) -> String {
    store.memories().save(scope, NewMemory::note(text, "assistant", "agent")).await.unwrap().id
}

/// Puts the text wherever a text can be stored; returns the memory.
async fn fill(store: &Store, ann: &Scope) -> String {
    let id = save(store, ann, "An old text about the office opens nothing.").await;
    let edit = MemoryEdit { id: id.clone(), text: TEXT.into(), expected_version: Some(1) };
    assert!(matches!(store.memories().edit(ann, edit).await.unwrap(), EditOutcome::Edited(_)));
    save(store, &scope("ann", "coach"), TEXT).await;
    save(store, ann, &format!("Bob says: {TEXT}")).await;
    let other = save(store, ann, &format!("To forget: {TEXT}")).await;
    store.memories().forget(ann, &other).await.unwrap();
    let new = NewThread { channel: "web".into(), external: None, title: Some(format!("About {TEXT}")) };
    let thread = store.threads().open(ann, new).await.unwrap();
    let call =
        serde_json::json!({ "role": "assistant", "calls": [{ "arguments": json_text() }] }).to_string();
    let messages = [json_text(), call].map(|content| NewMessage { role: "user".into(), content });
    store.threads().append("ann", &thread.id, messages.to_vec()).await.unwrap();
    let parts = ["## Memories\n".to_owned(), TEXT.to_owned()];
    let hash = blake3::hash(parts.concat().as_bytes()).to_hex().to_string();
    let receipt = |messages| NewReceipt {
        layout: "channel".into(),
        hash: hash.clone(),
        parts: parts.to_vec(),
        messages,
        detail: "{}".into(),
        ..NewReceipt::default()
    };
    store.receipts().insert(ann, receipt(vec![json_text()])).await.unwrap();
    let change =
        |text: &str| InstructionsChange { text: text.into(), writer: "o".into(), expected_version: None };
    for text in [TEXT, "Be brief."] {
        store.instructions().set(ann, change(text)).await.unwrap();
    }
    let entry = NewLogEntry {
        at: 1,
        session: None,
        kind: "fact".into(),
        writer: "assistant".into(),
        trust: "agent".into(),
        held: false,
        text: TEXT.into(),
    };
    let reflection = NewReflection { entry, commitments: vec![], settled: vec![], proposals: vec![] };
    store.mind_log().append(ann, reflection).await.unwrap();
    fill_queues(store, ann).await;
    id
}

async fn fill_queues(store: &Store, ann: &Scope) {
    let open = OpenSession {
        scope: ann.clone(),
        id: "s".into(),
        channel: "stdio".into(),
        host: None,
        hello: None,
        idle: None,
    };
    store.sessions().open(open).await.unwrap();
    let Bootstrap::Claimed(claim) = store.sessions().bootstrap("ann", "s", &long("one")).await.unwrap()
    else {
        panic!("not claimed");
    };
    let packet = Packet { text: json_text(), reasons: vec![] };
    store.sessions().set_packet(&claim, packet).await.unwrap();
    let approval = asked(store, ApprovalRequest { args: json_text(), ..ask() }).await;
    let held = CallAwaitingApproval {
        scope: ann.clone(),
        approval: approval.id,
        thread: "t".into(),
        tool: "send".into(),
        arguments: json_text(),
        content: "{}".into(),
    };
    store.calls_awaiting_approval().insert(held).await.unwrap();
    let suspended = NewSuspendedCall {
        user: "ann".into(),
        ticket: "t".into(),
        holder: "one".into(),
        resume_data: Some(json_text()),
        lasts: Duration::from_secs(3600),
    };
    store.suspended_calls().insert(suspended).await.unwrap();
    let observation = NewObservation {
        scope: ann.clone(),
        session: "s".into(),
        key: "k".into(),
        payload: json_text(),
        pending_limit: 9,
    };
    store.outbox().enqueue_deferred(vec![observation], Vec::new()).await.unwrap();
    let arrived = incoming::new("ann", "7", "1");
    let arrived = embody_store::incoming::NewIncoming { content: json_text(), ..arrived };
    store.incoming().insert(vec![arrived], None).await.unwrap();
    outgoing::add(store, "7", TEXT).await;
    for (number, args) in [json_text(), "{}".to_owned()].iter().enumerate() {
        let call = AuditedCall { args: RedactedArguments::of(args), ..call(&format!("c{number}")) };
        let event = Event::Intent(Intent { call, ..intent("c") });
        store.audit().append(Record { actor: actor("ann"), event }).await.unwrap();
    }
    store.flush().await.unwrap();
}

/// Every byte of the store: its own file, or a copy of a PostgreSQL database as a file.
async fn bytes(world: &World) -> Vec<u8> {
    let read = |path: &std::path::Path| {
        let mut all = std::fs::read(path).unwrap();
        all.extend(std::fs::read(path.with_extension("db-wal")).unwrap_or_default());
        all
    };
    match world.store.url() {
        DatabaseUrl::Memory => Vec::new(),
        DatabaseUrl::File(path) => read(path),
        url => {
            let copy = world.folder.path().join("copy.db");
            let _ = std::fs::remove_file(&copy);
            copy_store(url, &DatabaseUrl::File(copy.clone()), Target::Empty).await.unwrap();
            read(&copy)
        }
    }
}

fn has(bytes: &[u8], part: &str) -> bool {
    bytes.windows(part.len()).any(|window| window == part.as_bytes())
}

async fn an_erased_text_is_nowhere(world: World) {
    let (store, ann) = (&world.store, scope("ann", "assistant"));
    let second = world.second().await;
    let id = fill(store, &ann).await;
    save(store, &scope("bob", "assistant"), "Bob's own words.").await;
    let is_file = !matches!(store.url(), DatabaseUrl::Memory);
    if is_file {
        let before = bytes(&world).await;
        assert!(PARTS.iter().all(|part| has(&before, part)), "the search can find it");
    }
    let plan = store.memories().plan_erase(&ann, &id).await.unwrap();
    assert_eq!((plan.memory.text.as_str(), plan.versions, plan.is_too_short), (TEXT, 1, false));
    let done = second.memories().erase(&ann, &id).await.unwrap();
    let counts = |report: &embody_store::memories::EraseReport| {
        let mut counts: Vec<(&str, u64)> =
            report.places.iter().map(|place| (place.what, place.count)).collect();
        counts.sort_unstable();
        counts
    };
    assert_eq!(counts(&plan), counts(&done));
    let expected = [
        ("approvals", 1),
        ("audit records", 1),
        ("calls that wait for approval", 1),
        ("incoming messages", 1),
        ("memory history", 1),
        ("messages", 2),
        ("mind log", 1),
        ("observations for the mind", 1),
        ("old standing instructions", 1),
        ("other memories", 3),
        ("outgoing messages", 1),
        ("receipts of prompts", 1),
        ("sessions", 1),
        ("suspended calls", 1),
        ("titles of conversations", 1),
    ];
    assert_eq!(counts(&done), expected);
    if is_file {
        let after = bytes(&world).await;
        for part in PARTS {
            assert!(!has(&after, part), "{part:?} is left");
        }
        assert!(has(&after, "Bob's own words."), "the search reads the store");
    }
    assert_eq!(state(&store.audit().verify().await.unwrap()), &embody_store::audit::ChainState::Intact);
    only_the_tombstone_is_left(store, &ann, &id).await;
    it_stays_erased(store, &ann, &id).await;
}

async fn only_the_tombstone_is_left(store: &Store, ann: &Scope, id: &str) {
    let tombstone = store.memories().get(ann, id).await.unwrap().unwrap();
    assert_eq!((tombstone.status, tombstone.text.as_str()), (MemoryStatus::Erased, ""));
    assert_eq!((tombstone.writer.as_str(), tombstone.version), ("operator", 3));
    assert_eq!(store.memories().history(ann, id).await.unwrap(), [tombstone]);
    let search = MemorySearch { query: "office door blue".into(), limit: 9, kind: None, since: None };
    assert_eq!(store.memories().search(ann, &search).await.unwrap(), []);
    let list = |status| MemoryList { status, kind: None, since: None, after: None, limit: 9 };
    let texts = async |scope: &Scope, status| -> Vec<String> {
        let found = store.memories().list(scope, &list(status)).await.unwrap();
        found.into_iter().map(|memory| memory.text).collect()
    };
    assert_eq!(texts(ann, MemoryStatus::Active).await, ["Bob says: [erased]"]);
    assert_eq!(texts(&scope("ann", "coach"), MemoryStatus::Erased).await, [""], "it said nothing else");
    let approval =
        store.approvals().list("ann", embody_store::approvals::ApprovalFilter::All, 9).await.unwrap();
    assert_eq!(approval[0].status, ApprovalStatus::Expired, "a changed call cannot be approved");
    let thread = store.threads().list(ann, 1).await.unwrap().remove(0);
    for message in store.threads().messages("ann", &thread.id, 0, 9).await.unwrap() {
        let content: serde_json::Value = serde_json::from_str(&message.message.content).unwrap();
        assert!(content.to_string().contains("Remember: [erased] Thanks."), "{content}");
    }
}

async fn it_stays_erased(store: &Store, ann: &Scope, id: &str) {
    let list = MemoryList { status: MemoryStatus::Active, kind: None, since: None, after: None, limit: 9 };
    for refused in [store.memories().forget(ann, id).await, store.memories().release(ann, id).await] {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Conflict);
    }
    let again = store.memories().erase(ann, id).await.unwrap();
    assert_eq!((again.places, again.memory.version), (vec![], 3));
    // It is neither exported nor brought back by an import.
    let mut exported = Vec::new();
    assert_eq!(store.memories().export(ann, &mut exported).await.unwrap(), 2);
    let line = String::from_utf8(exported).unwrap().lines().next().unwrap().to_owned();
    let forged = line.replace(&store.memories().list(ann, &list).await.unwrap()[0].id, id);
    assert!(forged.contains(id), "{forged}");
    let error = store.memories().import(ann, &forged).await.unwrap_err();
    assert!(error.to_string().contains("was erased here"), "{error}");
}

async fn an_edited_memory_is_found_by_its_new_text(world: World) {
    let (store, ann) = (&world.store, scope("ann", "assistant"));
    let id = save(store, &ann, "Ann likes tea.").await;
    let edit =
        |text: &str, version| MemoryEdit { id: id.clone(), text: text.into(), expected_version: version };
    let EditOutcome::Edited(now) =
        store.memories().edit(&ann, edit("Ann likes coffee.", Some(1))).await.unwrap()
    else {
        panic!("not edited");
    };
    assert_eq!((now.version, now.writer.as_str(), now.trust.as_str()), (2, "operator", "owner"));
    let found = async |query: &str| {
        let search = MemorySearch { query: query.into(), limit: 9, kind: None, since: None };
        store.memories().search(&ann, &search).await.unwrap().len()
    };
    assert_eq!((found("coffee").await, found("tea").await), (1, 0));
    assert!(matches!(
        store.memories().edit(&ann, edit("x y", Some(1))).await.unwrap(),
        EditOutcome::Stale(_)
    ));
    let same = store.memories().edit(&ann, edit("Ann likes coffee.", None)).await.unwrap();
    assert!(matches!(same, EditOutcome::Unchanged(_)));
    assert_eq!(store.memories().edit(&ann, edit(" ", None)).await.unwrap_err().kind(), ErrorKind::Invalid);
    let texts: Vec<String> =
        store.memories().history(&ann, &id).await.unwrap().into_iter().map(|memory| memory.text).collect();
    assert_eq!(texts, ["Ann likes coffee.", "Ann likes tea."]);
    assert_eq!(
        store.memories().edit(&scope("bob", "assistant"), edit("x", None)).await.unwrap_err().kind(),
        ErrorKind::NotFound
    );
}

async fn an_erased_record_cannot_be_changed_again(world: World) {
    let (store, ann) = (&world.store, scope("ann", "assistant"));
    let id = fill(store, &ann).await;
    store.memories().erase(&ann, &id).await.unwrap();
    let changed = "UPDATE audit SET detail = replace(detail, '\"body\":\"teams\"', '\"body\":\"mails\"') \
         WHERE detail LIKE '%[erased]%'";
    if !world.execute(changed).await {
        return;
    }
    assert_eq!(broken(store).await.fault, Fault::Changed);
    // A record that claims to be erased, and was not by this chain.
    let forged = "UPDATE audit SET detail = replace(detail, '\"body\":\"mails\"', '\"body\":\"teams\"'); \
         UPDATE audit SET detail = '{\"args_excerpt\":\"[erased]\"}' WHERE detail LIKE '%\"call_id\":\"c1\"%'";
    world.execute(forged).await;
    let found = broken(store).await;
    assert_eq!(found.fault, Fault::Changed);
}

async fn a_text_of_one_word_leaves_others_alone(world: World) {
    let (store, ann) = (&world.store, scope("ann", "assistant"));
    let id = save(store, &ann, "assistant").await;
    save(store, &ann, "The assistant is kind.").await;
    let report = store.memories().erase(&ann, &id).await.unwrap();
    assert!(report.is_too_short && report.places.is_empty(), "{report:?}");
    let list = MemoryList { status: MemoryStatus::Active, kind: None, since: None, after: None, limit: 9 };
    assert_eq!(store.memories().list(&ann, &list).await.unwrap()[0].text, "The assistant is kind.");
}
