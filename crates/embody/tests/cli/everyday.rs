//! Everyday commands as a person types them: short ids, decisions at a terminal, the record of the day.

use std::time::{Duration, Instant};

use embody_store::approvals::{Approval, ApprovalRequest, ApprovalStatus};
use embody_store::audit::{
    Actor, AuditOutcome, AuditedCall, CallEnd, DecisionKind, DecisionRecord, Event, Intent, Read, Record,
    RedactedArguments,
};
use embody_store::{Scope, Store};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::operator::{ask, asked, policy, status};
use crate::support::stores::{StoreFixture, on_each_store};
use crate::terminal::Terminal;

on_each_store!(
    the_end_of_an_id_is_enough,
    an_unclear_id_is_rejected,
    only_a_person_decides_about_the_newest_call,
    a_person_watches_calls,
    a_call_is_one_line_with_its_outcome,
    new_calls_are_followed,
    the_day_is_told_in_sentences,
    changes_of_the_operator_are_on_record,
);

/// The first word of each line that is not indented.
fn first_words(list: &str) -> Vec<String> {
    let lines = list.lines().filter(|line| !line.starts_with(' '));
    lines.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

fn add(stored: &StoreFixture, text: &str) -> String {
    stored.run(&["memory", "add", text]).ok().stdout.trim().to_owned()
}

fn ids(stored: &StoreFixture, command: &[&str], list: &str) -> Vec<String> {
    let all = stored.run(&[command, &["--json"]].concat()).ok().json();
    let id = |item: &Value| item["id"].as_str().unwrap().to_owned();
    all[list].as_array().unwrap().iter().map(id).collect()
}

fn the_end_of_an_id_is_enough(stored: &StoreFixture) {
    let memories = ["Ann likes tea.", "Bob likes coffee."].map(|text| add(stored, text));
    let shown = first_words(&stored.run(&["memory", "list"]).ok().stdout);
    let full = ids(stored, &["memory", "list"], "memories");
    assert_eq!(full.len(), 2);
    for (short, full) in shown.iter().zip(&full) {
        assert!(full.ends_with(short) && (8..36).contains(&short.len()), "{short} of {full}");
        let history = stored.run(&["memory", "history", short, "--json"]).ok().json();
        assert_eq!(history["versions"][0]["id"], **full);
    }
    let after = ids(stored, &["memory", "list", "--after", &shown[0]], "memories");
    assert_eq!(after, [memories[0].clone()]);
    let forgotten = stored.run(&["memory", "forget", &shown[0]]).ok().stdout;
    assert_eq!(forgotten, format!("{} is forgotten\n", memories[1]));

    stored.run(&["schedule", "add", "--cron", "@daily", "--timezone", "UTC", "Digest."]).ok();
    let (schedule, short) = (
        ids(stored, &["schedule", "list"], "schedules"),
        first_words(&stored.run(&["schedule", "list"]).ok().stdout),
    );
    assert!(short[0].len() < 36, "{short:?}");
    assert_eq!(
        stored.run(&["schedule", "pause", &short[0]]).ok().stdout,
        format!("paused {}\n", schedule[0])
    );
    stored.run(&["schedule", "runs", &short[0]]).ok();
    assert!(stored.run(&["schedule", "resume", &schedule[0][32..]]).ok().stdout.contains(&*schedule[0]));
    stored.run(&["schedule", "remove", &short[0]]).ok();
    assert_eq!(stored.run(&["schedule", "list"]).ok().stdout, "No schedules.\n");

    stored.run(&["token", "add", "--user", "ann", "--scope", "mcp"]).ok();
    let token = ids(stored, &["token", "list"], "tokens").remove(0);
    let list = stored.run(&["token", "list"]).ok().stdout;
    assert!(list.contains(&token[28..]) && !list.contains(&*token), "{list}");
    assert_eq!(stored.run(&["token", "revoke", &token[..13]]).ok().stdout, format!("revoked {token}\n"));
}

fn an_unclear_id_is_rejected(stored: &StoreFixture) {
    let unknown = stored.run(&["memory", "forget", "0123"]).ended(1);
    unknown.says(&["error: unknown memory `0123`", "hint: `embody memory list` shows the ids"]);
    // A beginning names an id as long as no other has it.
    let first = add(stored, "One.");
    assert!(stored.run(&["memory", "show", &first[..4]]).ok().stdout.contains("One."));
    let ids = [first, add(stored, "Two.")];
    stored.run(&["memory", "forget", &ids[0][..4]]).ended(2).says(&["more than one id matches"]);
    let shown = first_words(&stored.run(&["memory", "list"]).ok().stdout);
    stored
        .run(&["memory", "forget", &ids[0][33..]])
        .ended(2)
        .says(&["is too short for an id", "hint: write at least 4 characters of its end or its beginning"]);
    // Another user's ids are neither found nor named.
    let foreign = stored.run(&["memory", "forget", &shown[0], "--user", "bob"]).ended(1);
    assert!(!foreign.stderr.contains("the newest ids"), "{foreign:#?}");
    let unknown = stored.run(&["memory", "forget", "ffff"]).ended(1);
    unknown.says(&["unknown memory `ffff`", "the newest ids are ", &shown[0], &shown[1]]);
    assert_eq!(
        stored.run(&["memory", "list", "--json"]).ok().json()["memories"].as_array().unwrap().len(),
        2
    );
}

fn waiting(stored: &StoreFixture, to: &str) -> Approval {
    let args = format!("{{\"body\":\"Hi\",\"to\":\"{to}\"}}");
    asked(stored, ApprovalRequest { policy: policy(stored, "elicitation,cli"), args, ..ask() })
}

fn only_a_person_decides_about_the_newest_call(stored: &StoreFixture) {
    let none = Terminal::of_person(&stored.command(&["approvals", "approve", "--last"]));
    let (code, text) = none.end();
    assert!(code.code() == Some(1) && text.contains("no call waits for approval"), "{text}");
    let approvals = ["ann@example.com", "bob@example.com", "cat@example.com"].map(|to| waiting(stored, to));
    // Without a terminal, and with one that is not the session's own, as a host's shell tool may have it.
    for command in
        [&["approvals", "approve", "--last"][..], &["approvals", "deny", "--last"], &["approvals", "watch"]]
    {
        stored.run(command).ended(1).says(&["needs a terminal", "hint: run it yourself in a terminal"]);
        let (code, text) = Terminal::start(stored.command(command)).end();
        assert!(code.code() == Some(1) && text.contains("needs a terminal"), "{text}");
    }
    assert!(approvals.iter().all(|approval| status(stored, &approval.id).0 == ApprovalStatus::Pending));
    for (answer, wanted) in [("\n", ApprovalStatus::Pending), ("y\n", ApprovalStatus::Approved)] {
        let mut terminal = Terminal::of_person(&stored.command(&["approvals", "approve", "--last"]));
        terminal.until("cat@example.com");
        terminal.until("Approve this call? [y/N] ");
        terminal.write(answer);
        let (code, text) = terminal.end();
        assert_eq!(code.success(), wanted == ApprovalStatus::Approved, "{text}");
        assert_eq!(status(stored, &approvals[2].id).0, wanted, "{text}");
    }
    let (code, text) = Terminal::of_person(&stored.command(&["approvals", "deny", "--last"])).end();
    assert!(code.success() && text.contains("bob@example.com") && text.contains("denied "), "{text}");
    let now = approvals.map(|approval| status(stored, &approval.id).0);
    assert_eq!(now, [ApprovalStatus::Pending, ApprovalStatus::Denied, ApprovalStatus::Approved]);
    stored.run(&["approvals", "approve"]).ended(2);
    stored.run(&["approvals", "approve", "0123", "--last"]).ended(2);
}

/// Presses a key until the call has that status: a key that comes too soon after a call is shown does not count.
fn press(terminal: &mut Terminal, key: &str, stored: &StoreFixture, id: &str, wanted: ApprovalStatus) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while status(stored, id).0 != wanted {
        assert!(Instant::now() < deadline, "not {wanted:?}: {}", terminal.text());
        terminal.write(key);
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn a_person_watches_calls(stored: &StoreFixture) {
    let mut terminal = Terminal::of_person(&stored.command(&["approvals", "watch"]));
    terminal.until("Waiting for calls that need approval.");
    // A key that was pressed before anything was shown approves nothing.
    terminal.write("y");
    let first = waiting(stored, "ann@example.com");
    terminal.until("Send email to ann@example.com?");
    terminal.until("y approve");
    press(&mut terminal, "y", stored, &first.id, ApprovalStatus::Approved);
    terminal.until("approved");
    let second = waiting(stored, "bob@example.com");
    terminal.until("bob@example.com");
    press(&mut terminal, "n", stored, &second.id, ApprovalStatus::Denied);
    terminal.until("denied");
    let third = waiting(stored, "cat@example.com");
    terminal.until("cat@example.com");
    stored.run(&["approvals", "deny", &third.id]).ok();
    terminal.until("denied by cli");
    // One that is too long to be shown at once is shown whole before it can be approved.
    let lines: String = (0..40).map(|number| format!("line {number}\\n")).collect();
    let args = format!("{{\"body\":\"{lines}\",\"to\":\"dan@example.com\"}}");
    let long = asked(stored, ApprovalRequest { policy: policy(stored, "elicitation,cli"), args, ..ask() });
    terminal.until("press d to see all of it");
    press(&mut terminal, "y", stored, &long.id, ApprovalStatus::Approved);
    terminal.until("line 39");
    terminal.until("approved");
    terminal.write("\u{3}");
    let (code, text) = terminal.end();
    assert!(code.success(), "{code:?} {text}");
}

fn actor() -> Actor {
    let named = |name: &str| Some(name.to_owned());
    Actor { user: "owner".into(), agent: named("assistant"), session: named("s"), channel: named("mcp") }
}

fn call(id: &str, tool: &str, class: &str) -> AuditedCall {
    let args = RedactedArguments::of("{\"to\":\"ann@example.com\"}");
    AuditedCall { call_id: id.into(), body: "mail".into(), tool: tool.into(), class: class.into(), args }
}

async fn write(store: &Store, id: &str, tool: &str, outcome: Option<AuditOutcome>) {
    let intent = Intent { call: call(id, tool, "write"), approval: None };
    let begun = store.audit().begin(&actor(), intent).await.unwrap();
    if let Some(outcome) = outcome {
        store.audit().finish(begun, outcome, Some("as told".into())).await.unwrap();
    }
}

async fn record(store: &Store, event: Event) {
    store.audit().append(Record { actor: actor(), event }).await.unwrap();
}

/// Two mails, a failed one, one in progress, a read and a denied call.
fn a_day(stored: &StoreFixture) {
    stored.directly(async |store| {
        write(store, "1", "send_email", Some(AuditOutcome::Done)).await;
        write(store, "2", "send_email", Some(AuditOutcome::Done)).await;
        write(store, "3", "delete_email", Some(AuditOutcome::Failed)).await;
        write(store, "4", "move_email", None).await;
        record(store, Event::Read(Read { call: call("5", "list", "read"), outcome: AuditOutcome::Done }))
            .await;
        let denied = DecisionRecord {
            call: call("6", "purge", "destructive"),
            decision: DecisionKind::Deny,
            reason: "never".into(),
        };
        record(store, Event::Decision(denied)).await;
    });
}

fn tail(stored: &StoreFixture, flags: &[&str]) -> Vec<String> {
    let text = stored.run(&[&["audit", "tail"], flags].concat()).ok().stdout;
    text.lines().map(|line| line.split_whitespace().skip(2).collect::<Vec<_>>().join(" ")).collect()
}

fn a_call_is_one_line_with_its_outcome(stored: &StoreFixture) {
    a_day(stored);
    let mail = r#"{"to":"ann@example.com"}"#;
    let all = [
        format!("done owner mail/send_email {mail} as told"),
        format!("done owner mail/send_email {mail} as told"),
        format!("failed owner mail/delete_email {mail} as told"),
        format!("open owner mail/move_email {mail}"),
        format!("done owner mail/list {mail}"),
        format!("denied owner mail/purge {mail} never"),
    ];
    assert_eq!(tail(stored, &[]), all);
    assert_eq!(tail(stored, &["--since", "2h"]), all);
    assert_eq!(tail(stored, &["--since", "yesterday", "-n", "1"]), all[5..]);
    assert_eq!(tail(stored, &["--tool", "*_email", "--outcome", "done"]), all[..2]);
    assert_eq!(tail(stored, &["--tool", "mail/list"]), all[4..5]);
    assert_eq!(tail(stored, &["--outcome", "denied", "--body", "mail"]), all[5..]);
    for flags in [&["--until", "2h"][..], &["--body", "desk"], &["--user", "bob"], &["--since", "2100-01-01"]]
    {
        let none = stored.run(&[&["audit", "tail"], flags].concat()).ok().stdout;
        assert_eq!(none, "No matching record.\n", "{flags:?}");
    }
    stored.run(&["audit", "tail", "--since", "soon"]).ended(2).says(&["soon", "a day such as yesterday"]);
    let json = stored.run(&["audit", "tail", "--json"]).ok().json();
    let first = &json["records"][0];
    assert_eq!(
        (&first["outcome"], &first["event"], &first["outcome_detail"]),
        (&json!("done"), &json!("intent"), &json!("as told"))
    );
    for time in [&first["at"], &first["ended_at"]] {
        assert!(time.as_str().unwrap().parse::<jiff::Timestamp>().is_ok(), "{time}");
    }
    assert_eq!(json["records"].as_array().unwrap().len(), 6);
    assert_eq!(
        (&json["records"][3]["outcome"], &json["records"][3]["ended_at"]),
        (&json!("open"), &Value::Null)
    );
}

fn new_calls_are_followed(stored: &StoreFixture) {
    a_day(stored);
    let mut terminal =
        Terminal::start(stored.command(&["audit", "tail", "--follow", "--tool", "*_email", "-n", "1"]));
    terminal.until("mail/move_email");
    stored.directly(async |store| {
        write(store, "7", "other", Some(AuditOutcome::Done)).await;
        write(store, "8", "archive_email", Some(AuditOutcome::Done)).await;
        // Ends later, or never.
        write(store, "9", "copy_email", None).await;
    });
    terminal.until("done");
    terminal.until("mail/archive_email");
    terminal.until("open");
    terminal.until("mail/copy_email");
    let end = CallEnd { call_id: "4".into(), outcome: AuditOutcome::Failed, detail: None };
    stored.directly(async |store| record(store, Event::Outcome(end)).await);
    terminal.until("failed");
    terminal.until("mail/move_email");
    terminal.signal(Signal::INT);
    let (code, text) = terminal.end();
    assert!(code.success() && !text.contains("mail/other") && !text.contains("send_email"), "{text}");
}

fn the_day_is_told_in_sentences(stored: &StoreFixture) {
    let nothing = stored.run(&["today"]).ok().stdout;
    assert!(nothing.contains("\nThe agent did nothing.\n"), "{nothing}");
    a_day(stored);
    let denied = asked(stored, ApprovalRequest { scope: Scope::new("owner", "assistant").unwrap(), ..ask() });
    stored.run(&["approvals", "deny", &denied.id]).ok();
    let args = "{}".to_owned();
    asked(stored, ApprovalRequest { scope: Scope::new("owner", "assistant").unwrap(), args, ..ask() });
    let today = stored.run(&["today"]).ok().stdout;
    let lines: Vec<&str> = today.lines().skip(1).collect();
    assert_eq!(
        lines,
        [
            "Sent 2 emails (mail).",
            "Failed: mail/delete_email (1).",
            "Without an outcome yet: mail/move_email (1).",
            "1 read.",
            "You were asked about 2 calls.",
            "1 call was denied by you.",
            "1 call was denied by the rules.",
            "1 call waits for you: `embody approvals list`.",
        ]
    );
    let json = stored.run(&["today", "--json"]).ok().json();
    assert_eq!(
        (&json["reads"], &json["denied"], &json["waiting"]["approvals"]),
        (&json!(1), &json!(1), &json!(1))
    );
    let before = stored.run(&["today", "--date", "2020-02-03"]).ok().stdout;
    assert!(before.starts_with("Monday, 2020-02-03\nThe agent did nothing.\n"), "{before}");
    assert_eq!(stored.run(&["today", "--user", "bob", "--json"]).ok().json()["reads"], 0);
    stored.run(&["today", "--date", "someday"]).ended(2).says(&["write today, yesterday, a weekday"]);
}

fn changes_of_the_operator_are_on_record(stored: &StoreFixture) {
    let memory = add(stored, "Ann likes tea.");
    add(stored, "Bob likes coffee.");
    stored.run(&["memory", "forget", &memory]).ok();
    stored.run(&["memory", "forget", &memory]).ok();
    let schedule =
        stored.run(&["schedule", "add", "--in", "1d", "--timezone", "UTC", "Digest.", "--json"]).ok().json();
    let schedule = schedule["id"].as_str().unwrap();
    for word in ["pause", "resume", "remove"] {
        stored.run(&["schedule", word, schedule]).ok();
    }
    let export = stored.run(&["memory", "export"]).ok().stdout;
    stored.world.file("memories.jsonl", export);
    let file = stored.world.path("memories.jsonl");
    stored.run(&["memory", "import", file.to_str().unwrap()]).ok();
    stored.run(&["memory", "import", file.to_str().unwrap(), "--agent", "coach"]).ok();
    let json = stored.run(&["audit", "tail", "--json"]).ok().json();
    let records = json["records"].as_array().unwrap();
    let actions: Vec<&str> =
        records.iter().map(|record| record["detail"]["action"].as_str().unwrap()).collect();
    assert_eq!(
        actions,
        [
            "memory_saved",
            "memory_saved",
            "memory_forgotten",
            "schedule_added",
            "schedule_paused",
            "schedule_resumed",
            "schedule_removed",
            "memories_imported",
        ]
    );
    assert_eq!(records[2]["detail"]["subject"], memory);
    assert!(stored.run(&["audit", "verify"]).ok().stdout.starts_with("intact"));
    let today = stored.run(&["today"]).ok().stdout;
    assert!(
        today.contains("You changed: memories imported, memory forgotten, memory saved (2), "),
        "{today}"
    );
}
