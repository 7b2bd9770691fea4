//! `embody memory erase`: the text is gone, also from the files of SQLite, and the audit chain is intact.

use embody_store::Scope;
use embody_store::audit::{Actor, AuditedCall, Event, Intent, Record, RedactedArguments};
use embody_store::threads::{NewMessage, NewThread};
use serde_json::json;

use crate::support::stores::{StoreFixture, on_each_store};
use crate::terminal::Terminal;

on_each_store!(a_text_is_erased_everywhere, a_person_is_asked_first, an_erased_memory_stays_erased,);

const TEXT: &str = "Ann's door code is \"sesame 4711\" since May.";
const PARTS: [&str; 2] = ["door code", "sesame"];

/// A memory, and its text in a conversation and in the audit chain.
fn add(stored: &StoreFixture) -> String {
    let id = stored.run(&["memory", "add", TEXT]).ok().stdout.trim().to_owned();
    let args = json!({ "text": TEXT }).to_string();
    stored.directly(async |store| {
        let scope = Scope::new("owner", "assistant").unwrap();
        let new = NewThread { channel: "web".into(), external: None, title: Some("Codes".into()) };
        let thread = store.threads().open(&scope, new).await.unwrap();
        let content = json!({"role": "user", "text": format!("Remember: {TEXT}")}).to_string();
        let message = NewMessage { role: "user".into(), content };
        store.threads().append("owner", &thread.id, vec![message]).await.unwrap();
        let call = AuditedCall {
            call_id: "c1".into(),
            body: "mind".into(),
            tool: "save_memory".into(),
            class: "write".into(),
            args: RedactedArguments::of(&args),
        };
        let agent = Some("assistant".to_owned());
        let actor = Actor { user: "owner".into(), agent, session: None, channel: None };
        let event = Event::Intent(Intent { call, approval: None });
        store.audit().append(Record { actor, event }).await.unwrap();
    });
    id
}

/// What the store's files contain; of PostgreSQL, what a backup of it contains.
fn bytes(stored: &StoreFixture, name: &str) -> Vec<u8> {
    let folders = [stored.world.workspace(), stored.world.outside("elsewhere")];
    let files = folders.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten();
    let files = files.map(|file| file.unwrap().path());
    let is_store = |path: &std::path::PathBuf| {
        path.file_name().is_some_and(|name| {
            let name = name.to_string_lossy();
            name.contains(".db") && !name.contains(".audit.")
        })
    };
    let mut all: Vec<u8> = files.filter(is_store).flat_map(|path| std::fs::read(path).unwrap()).collect();
    let backup = stored.world.outside(name);
    stored.run(&["store", "backup", backup.to_str().unwrap()]).ok();
    all.extend(std::fs::read(backup).unwrap());
    all
}

fn has(bytes: &[u8], part: &str) -> bool {
    bytes.windows(part.len()).any(|window| window == part.as_bytes())
}

fn a_text_is_erased_everywhere(stored: &StoreFixture) {
    let id = add(stored);
    let before = bytes(stored, "before.db");
    assert!(PARTS.iter().all(|part| has(&before, part)), "the search can find it");
    // Another process has the store open meanwhile, as `embody up` does.
    let erased = stored.directly(async |store| {
        store.memories().count_by_kind(&Scope::new("owner", "assistant").unwrap()).await.unwrap();
        stored.run(&["memory", "erase", &id[28..], "--yes"]).ok().stdout
    });
    assert_eq!(
        erased,
        format!("{id} is erased\nThe text was also removed from messages (1), audit records (1).\n")
    );
    let after = bytes(stored, "after.db");
    for part in PARTS {
        assert!(!has(&after, part), "{part:?} is left");
    }
    assert!(has(&after, "Codes"), "the rest is there");
    stored.run(&["audit", "verify"]).ok();
    let tail = stored.run(&["audit", "tail", "--json"]).ok().stdout;
    assert!(tail.contains("memory_erased") && tail.contains("[erased]"), "{tail}");
    let thread = stored.run(&["thread", "list", "--json"]).ok().json()["threads"][0]["id"].clone();
    let shown = stored.run(&["thread", "show", thread.as_str().unwrap()]).ok().stdout;
    assert!(shown.contains("Remember: [erased]"), "{shown}");
}

fn a_person_is_asked_first(stored: &StoreFixture) {
    let id = add(stored);
    let short = &id[28..];
    stored.run(&["memory", "erase", short]).ended(2).says(&["hint: `--yes` erases it without asking"]);
    for (answer, gone) in [("\n", false), ("y\n", true)] {
        let mut terminal = Terminal::of_person(&stored.command(&["memory", "erase", short]));
        terminal.until("The text is removed from this memory and from messages (1), audit records (1).");
        terminal.until("Erase it? It cannot be undone. [y/N] ");
        terminal.write(answer);
        let (code, text) = terminal.end();
        assert_eq!(code.success(), gone, "{text}");
        let found = stored.run(&["memory", "search", "door", "--json"]).ok().json();
        assert_eq!(found["memories"].as_array().unwrap().is_empty(), gone);
    }
}

fn an_erased_memory_stays_erased(stored: &StoreFixture) {
    let id = add(stored);
    let erased = stored.run(&["memory", "erase", &id, "--yes", "--json"]).ok().json();
    assert_eq!(
        (&erased["id"], &erased["status"], &erased["by"]),
        (&json!(id), &json!("erased"), &json!("operator"))
    );
    assert_eq!(
        erased["places"],
        json!([{"what": "messages", "count": 1}, {"what": "audit records", "count": 1}])
    );
    assert_eq!(erased["searched_elsewhere"], true);
    let shown = stored.run(&["memory", "show", &id]).ok().stdout;
    assert!(shown.starts_with("The text was erased 20") && shown.contains("status    erased"), "{shown}");
    let listed = stored.run(&["memory", "list", "--status", "erased", "--json"]).ok().json();
    assert_eq!((&listed["memories"][0]["id"], &listed["memories"][0]["text"]), (&json!(id), &json!("")));
    let again = stored.run(&["memory", "erase", &id]).ok().stdout;
    assert_eq!(again, format!("{id} is erased\n"));
    for command in [&["memory", "forget"][..], &["memory", "release"], &["memory", "edit", "--text", "x"]] {
        stored.run(&[command, &[&id]].concat()).ended(1).says(&["is erased"]);
    }
    assert_eq!(stored.run(&["memory", "export"]).ok().stdout, "");
    stored.run(&["memory", "erase", &id, "--yes", "--user", "bob"]).ended(1).says(&["unknown memory"]);
}
