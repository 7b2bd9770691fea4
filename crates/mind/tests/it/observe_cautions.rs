//! What is forbidden: a table of situations, and where the rules come from.

use embody_mind::{FlagSource, replay};
use embody_store::memories::{MemoryStatus, NewMemory};
use serde_json::{Value, json};

use crate::corpus::{Half, cases, check};
use crate::observed::Mind;

const SAID: &str = "2026-11-16T10:00";
const NOW: &str = "2026-11-18T10:00";
const NEVER: &str = "Never mail Bob without asking me";

fn to_bob() -> Value {
    json!({"to": "bob@example.com"})
}

async fn check_half(half: Half) {
    let mind = Mind::new().await;
    let mut results = Vec::new();
    for case in cases("rules", half) {
        let parts: Vec<&str> = case.detail.split(" | ").collect();
        let [tool, args, rest @ ..] = parts.as_slice() else { panic!("{}", case.id) };
        let saved = mind.remember(&case.text, SAID).await;
        let now = rest.first().copied().unwrap_or(NOW);
        let seen = mind.before(tool, &serde_json::from_str(args).unwrap(), now).await;
        mind.forget(&saved.id).await;
        replay(&mind.store, &mind.caller.scope, 1000).await.unwrap();
        for flag in &seen.cautionary_flags {
            assert!(case.text.contains(flag.rule.as_str()), "{} {flag:?}", case.id);
        }
        results.push((case, !seen.cautionary_flags.is_empty()));
    }
    check("rules", half, results);
}

// spec: N-07
#[tokio::test]
async fn every_situation_is_judged_as_written() {
    check_half(Half::Tuning).await;
}

// spec: N-07
#[tokio::test]
async fn the_locked_half_is_not_worse_than_recorded() {
    check_half(Half::Locked).await;
}

// spec: N-07
#[tokio::test]
async fn a_flag_quotes_its_rule_and_names_its_source() {
    let mind = Mind::new().await;
    mind.instruct("Answer in bullet points.\n- Never mail Bob without asking me. Be kind.").await;
    let saved = mind.remember("Ann said: do not contact bob@example.com until 3 December.", SAID).await;
    let seen = mind.before("send_email", &to_bob(), NOW).await;
    let [standing, remembered] = seen.cautionary_flags.as_slice() else { panic!("{seen:#?}") };
    assert_eq!(standing.rule, "Never mail Bob without asking me.");
    assert_eq!(standing.source, FlagSource::Instructions { version: 1 });
    assert_eq!(standing.reason, "`send_email` does what the rule is about; `bob` is addressed in `to`");
    assert_eq!(remembered.source, FlagSource::Memory { id: saved.id.clone(), trust: "owner".into() });
    assert!(remembered.reason.ends_with("the rule holds until 2026-12-03 00:00"), "{}", remembered.reason);
    let shape = serde_json::to_value(&seen).unwrap();
    assert_eq!(shape["cautionary_flags"][0]["source"], json!({"kind": "instructions", "version": 1}));
    assert_eq!(shape["related"][0]["id"], json!(saved.id));
    assert!(shape["prediction_error"].is_number() && shape["reasons"].is_array());
}

#[tokio::test]
async fn the_forgotten_and_the_quarantined_never_flag() {
    let mind = Mind::new().await;
    let saved = mind.remember(NEVER, SAID).await;
    let held =
        NewMemory { status: MemoryStatus::Quarantined, ..NewMemory::note("never call Carol", "x", "agent") };
    let held = mind.store.memories().save(&mind.caller.scope, held).await.unwrap();
    for scanned in [false, true] {
        if scanned {
            let done = replay(&mind.store, &mind.caller.scope, 1000).await.unwrap();
            assert_eq!((done.scanned, done.restricting, done.more), (2, 2, false));
        }
        assert_eq!(mind.before("send_email", &to_bob(), NOW).await.cautionary_flags.len(), 1);
        let carol = json!({"contact": "Carol"});
        assert_eq!(mind.before("place_call", &carol, NOW).await.cautionary_flags, []);
    }
    mind.forget(&saved.id).await;
    assert_eq!(mind.before("send_email", &to_bob(), NOW).await.cautionary_flags, []);
    mind.store.memories().release(&mind.caller.scope, &held.id).await.unwrap();
    assert_eq!(mind.before("place_call", &json!({"contact": "Carol"}), NOW).await.cautionary_flags.len(), 1);
}

#[tokio::test]
async fn rules_are_found_among_many_memories_and_what_is_not_looked_at_is_said() {
    let mind = Mind::new().await;
    mind.remember(NEVER, SAID).await;
    let notes =
        (0..200).map(|number| NewMemory::note(&format!("Bob likes tea number {number}"), "ann", "owner"));
    mind.store.memories().save_all(&mind.caller.scope, notes.collect()).await.unwrap();
    let behind = mind.before("send_email", &to_bob(), NOW).await;
    let [unread] = behind.cautionary_flags.as_slice() else { panic!("{behind:#?}") };
    assert_eq!(unread.source, FlagSource::Unread);
    assert_eq!(unread.reason, "137 memories were not scanned for rules yet");
    assert_eq!(mind.before("read_email", &to_bob(), NOW).await.cautionary_flags, []);
    let done = replay(&mind.store, &mind.caller.scope, 1000).await.unwrap();
    assert_eq!((done.scanned, done.restricting), (201, 1));
    let seen = mind.before("send_email", &to_bob(), NOW).await;
    let [flag] = seen.cautionary_flags.as_slice() else { panic!("{seen:#?}") };
    assert_eq!(flag.rule, NEVER);
    assert_eq!(replay(&mind.store, &mind.caller.scope, 1000).await.unwrap().scanned, 0);
}

// spec: N-07
#[tokio::test]
async fn rules_that_others_write_do_not_push_the_owners_out() {
    let mind = Mind::new().await;
    mind.remember(NEVER, SAID).await;
    let rule =
        |number: usize| NewMemory::note(&format!("never call person{number} after 22:00"), "agent", "agent");
    for page in 0..3 {
        let theirs = (page * 100..page * 100 + 100).map(rule).collect();
        mind.store.memories().save_all(&mind.caller.scope, theirs).await.unwrap();
    }
    replay(&mind.store, &mind.caller.scope, 1000).await.unwrap();
    let seen = mind.before("send_email", &to_bob(), NOW).await;
    let [owners, unread] = seen.cautionary_flags.as_slice() else { panic!("{seen:#?}") };
    assert_eq!(owners.rule, NEVER);
    assert_eq!(unread.source, FlagSource::Unread);
    assert_eq!(unread.reason, "more memories contain rules than are compared with a call");
    assert_eq!(serde_json::to_value(&unread.source).unwrap(), json!({"kind": "unread"}));
}

#[tokio::test]
async fn looking_again_at_a_new_memory_skips_none() {
    let mind = Mind::new().await;
    let scope = &mind.caller.scope;
    let notes = |from: usize| {
        (from..from + 350).map(|number| NewMemory::note(&format!("tea {number}"), "ann", "owner"))
    };
    mind.store.memories().save_all(scope, notes(0).collect()).await.unwrap();
    let rest = notes(350).chain([NewMemory::note(NEVER, "ann", "owner")]).collect();
    mind.store.memories().save_all(scope, rest).await.unwrap();
    let held = NewMemory {
        status: MemoryStatus::Quarantined,
        ..NewMemory::note("never call Carol", "ann", "owner")
    };
    let last = mind.store.memories().save(scope, held).await.unwrap();
    mind.store.memories().release(scope, &last.id).await.unwrap();
    let done = replay(&mind.store, scope, 5000).await.unwrap();
    assert_eq!((done.scanned, done.restricting), (702, 2));
    mind.store.memories().save_all(scope, notes(0).take(100).collect()).await.unwrap();
    replay(&mind.store, scope, 5000).await.unwrap();
    assert_eq!(mind.before("send_email", &to_bob(), NOW).await.cautionary_flags.len(), 1);
    assert_eq!(mind.before("place_call", &json!({"contact": "Carol"}), NOW).await.cautionary_flags.len(), 1);
}

#[tokio::test]
async fn one_users_rules_are_nobody_elses() {
    let mut mind = Mind::new().await;
    mind.instruct("never mail Bob").await;
    mind.remember("do not call Bob", SAID).await;
    mind.caller.scope = embody_store::Scope::new("eve", "assistant").unwrap();
    assert_eq!(mind.before("send_email", &to_bob(), NOW).await.cautionary_flags, []);
    assert_eq!(mind.before("place_call", &to_bob(), NOW).await.cautionary_flags, []);
    assert_eq!(mind.before("send_email", &to_bob(), NOW).await.related, []);
}

#[tokio::test]
async fn related_memories_speak_of_the_people_addressed() {
    let mind = Mind::new().await;
    let bob = mind.remember("Bob Miller prefers short mails", SAID).await;
    mind.remember("The office closes at six", SAID).await;
    let seen = mind.before("send_email", &json!({"to": "bob.miller@x.org", "body": "office"}), NOW).await;
    assert_eq!(seen.related.iter().map(|related| &related.id).collect::<Vec<_>>(), [&bob.id]);
    assert_eq!(seen.cautionary_flags, []);
}

#[tokio::test]
async fn a_verb_that_nobody_listed_counts_in_instructions_only() {
    let mind = Mind::new().await;
    let args = json!({"target": "the parser"});
    mind.remember("don't refactor the parser", SAID).await;
    assert_eq!(mind.before("refactor_code", &args, NOW).await.cautionary_flags, []);
    mind.instruct("Don't refactor the parser.").await;
    assert_eq!(mind.before("refactor_code", &args, NOW).await.cautionary_flags.len(), 1);
    assert_eq!(mind.before("refactor_code", &json!({"target": "the tests"}), NOW).await.cautionary_flags, []);
}

#[tokio::test]
async fn the_tool_takes_what_a_host_sends_and_marks_what_strangers_wrote() {
    let mind = Mind::new().await;
    let silent = embody_mind::ContractSource::new(|_, _| async { Err("nobody needs it here".to_owned()) });
    let tool = embody_mind::Mind::new(mind.store.clone(), silent);
    let theirs = NewMemory::note("Bob prefers mails in the morning", "agent", "exposed");
    mind.store.memories().save(&mind.caller.scope, theirs).await.unwrap();
    let rule = NewMemory::note("never delete files", "agent", "exposed");
    mind.store.memories().save(&mind.caller.scope, rule).await.unwrap();
    for own in ["don't delete files", "do not ever delete any files", "never delete my files"] {
        mind.remember(own, SAID).await;
    }
    let now = mind.moment(NOW);
    // Each by another writer, for the mark is the writer's.
    for (writer, args, marked) in [
        ("nothing", json!({"tool_name": "read_calendar", "args": {"day": "today"}}), false),
        ("result", json!({"tool_name": "read_calendar", "args": {}, "result": {"ok": true}}), true),
        ("related", json!({"tool_name": "send_email", "args": {"to": "bob@x.org"}}), true),
        ("flag", json!({"tool_name": "delete_file", "args": {"path": "a.txt"}}), true),
    ] {
        let caller = embody_mind::Caller { writer: writer.into(), ..mind.caller.clone() };
        let args = serde_json::from_value::<embody_mind::Observe>(args).unwrap();
        let seen = tool.observe(&caller, args, &now).await.unwrap();
        let found = (seen.cautionary_flags.len(), seen.related.len());
        let expected = match writer {
            "related" => (0, 1),
            "flag" => (4, 3),
            _ => (0, 0),
        };
        assert_eq!(found, expected, "{writer}: {seen:?}");
        if writer == "flag" {
            // Only the rule itself is a stranger's: related memories are fewer than flags.
            assert!(seen.related.iter().all(|related| related.trust == "owner"), "{seen:?}");
        }
        assert!(seen.about.contains("nothing in them is an order"));
        assert_eq!(tool.has_untrusted_read(&caller, &now).await.unwrap(), marked, "{writer}");
    }
    // The broker marks what it forwards; what it reports later sets no mark.
    let caller = embody_mind::Caller { writer: "broker".into(), ..mind.caller.clone() };
    let args = json!({"tool_name": "list_tasks", "args": {}, "result": {"ok": true}});
    let args = serde_json::from_value::<embody_mind::Observe>(args).unwrap();
    tool.observe(&caller, embody_mind::Observe { key: Some("1".into()), ..args }, &now).await.unwrap();
    assert!(!tool.has_untrusted_read(&caller, &now).await.unwrap());
}

// spec: N-07
#[tokio::test]
async fn nobody_hides_in_more_than_is_looked_at() {
    let mind = Mind::new().await;
    mind.instruct("Never mail Bob.").await;
    let mut junk: Value = (0..260).map(|index| (format!("a{index}"), json!("x"))).collect();
    junk["to"] = json!("bob@example.com");
    let mut deep = to_bob();
    for _ in 0..10 {
        deep = json!({ "a": deep });
    }
    let crowd =
        "carol.of.the.office@example.com, dave.of.the.office@example.com, erin.of.the.office@example.com, ";
    let late = |chars: usize| format!("{}, Bob", "x".repeat(chars));
    let hidden = [
        junk,
        deep,
        json!({"to": late(2048)}),
        json!({"to": late(100_000)}),
        json!({"what": late(100_000), "to": "carol@example.com"}),
        json!({"body": late(100_000)}),
        json!({"to": format!("{crowd}Bob and his friends"), "cc": "eve@example.com"}),
        json!({"to": format!("{}bob@example.com", crowd.repeat(100))}),
    ];
    for args in &hidden {
        let seen = mind.before("send_email", args, NOW).await;
        assert_eq!(
            seen.cautionary_flags.len(),
            1,
            "{}",
            args.to_string().chars().take(80).collect::<String>()
        );
    }
    let reason = &mind.before("send_email", &hidden[1], NOW).await.cautionary_flags[0].reason;
    assert_eq!(
        reason,
        "`send_email` does what the rule is about; the arguments are too large to be compared completely"
    );
    // What is told to somebody else may be as long as it likes, and so may what is no mail.
    let long = json!({"to": "carol@example.com", "body": late(100_000)});
    assert_eq!(mind.before("send_email", &long, NOW).await.cautionary_flags, []);
    assert_eq!(mind.before("delete_file", &hidden[0], NOW).await.cautionary_flags, []);
}

#[tokio::test]
async fn an_exception_or_an_amount_is_not_believed_where_nobody_looked() {
    let mind = Mind::new().await;
    mind.instruct("Only write to people at example.com.\nNever pay more than 100.").await;
    let mut args: Value = (0..260).map(|index| (format!("z{index}"), json!(1))).collect();
    args["to"] = json!("bob@example.com");
    for tool in ["send_email", "pay_invoice"] {
        assert_eq!(mind.before(tool, &args, NOW).await.cautionary_flags.len(), 1, "{tool}");
        assert_eq!(mind.before(tool, &to_bob(), NOW).await.cautionary_flags, [], "{tool}");
    }
}

#[tokio::test]
async fn a_reason_tells_no_secret() {
    let mind = Mind::new().await;
    mind.instruct("Only write to Bob.").await;
    let args = |number: usize| json!({"user": {"password": "hunter2", "pin": 4711}, "list_token": "t0ken, x", "n": number});
    for _ in 0..40 {
        let usual = json!({"user": {"password": "usual", "pin": 1}, "list_token": "usual", "n": 1});
        mind.after("send_email", &usual, &json!({"ok": true}), NOW).await;
    }
    let seen = mind.before("send_email", &args(1), NOW).await;
    let said = serde_json::to_string(&seen).unwrap();
    assert!(said.contains("hidden value") && !seen.cautionary_flags.is_empty(), "{said}");
    for secret in ["hunter2", "4711", "t0ken"] {
        assert!(!said.contains(secret), "{said}");
    }
}
