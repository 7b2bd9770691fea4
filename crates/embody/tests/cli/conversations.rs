//! `embody thread …`: the stored conversations.

use embody_store::Scope;
use embody_store::threads::{NewMessage, NewThread};
use serde_json::{Value, json};

use crate::support::stores::{StoreFixture, on_each_store};
use crate::terminal::Terminal;

on_each_store!(
    a_conversation_is_listed_and_read,
    a_conversation_is_exported,
    a_conversation_gets_a_title_and_is_deleted,
    conversations_of_others_are_not_found,
);

fn message(role: &str, content: &Value) -> NewMessage {
    NewMessage { role: role.into(), content: content.to_string() }
}

fn add(stored: &StoreFixture, agent: &str, title: Option<&str>) -> String {
    let call =
        json!({"id": "c1", "name": "send_note", "arguments": "{\"to\":\"ann\",\"text\":\"Hi\\nthere\"}"});
    let messages = vec![
        message("user", &json!({"role": "user", "text": "Tell Ann about Rome.\nSoon."})),
        message("assistant", &json!({"role": "assistant", "text": "I ask her.", "calls": [call]})),
        message(
            "tool",
            &json!({
                "role": "tool", "call_id": "c1", "name": "send_note", "text": "waits for approval", "is_error": true,
                "decision": "pending", "approval": "a1",
            }),
        ),
        message("summary", &json!({"text": "left out", "through": 1})),
        message("assistant", &json!({"role": "assistant", "text": "It waits for you."})),
    ];
    let new = NewThread { channel: "web".into(), external: None, title: title.map(str::to_owned) };
    stored.directly(async |store| {
        let thread = store.threads().open(&Scope::new("owner", agent).unwrap(), new).await.unwrap();
        store.threads().append("owner", &thread.id, messages).await.unwrap();
        thread.id
    })
}

fn a_conversation_is_listed_and_read(stored: &StoreFixture) {
    assert_eq!(stored.run(&["thread", "list"]).ok().stdout, "No conversations.\n");
    let titled = add(stored, "assistant", Some("Rome"));
    let untitled = add(stored, "assistant", None);
    let list = stored.run(&["thread", "list"]).ok().stdout;
    let lines: Vec<&str> = list.lines().collect();
    assert_eq!(lines.len(), 3, "{list}");
    // The latest first; the first words stand for a title.
    assert!(lines[1].contains(&untitled[28..]) && lines[1].contains("Tell Ann about Rome."), "{list}");
    assert!(
        lines[2].contains(&titled[28..]) && lines[2].contains("Rome") && lines[2].contains(" 5 "),
        "{list}"
    );
    let json = stored.run(&["thread", "list", "--json", "--limit", "1"]).ok().json();
    assert_eq!(json["threads"][0]["id"], *untitled);
    assert_eq!(json["threads"][0]["channel"], "web");
    assert_eq!(json["threads"].as_array().unwrap().len(), 1);

    let shown = stored.run(&["thread", "show", &titled[28..]]).ok().stdout;
    for part in [
        "Rome\nwith assistant on web, 5 messages, since ",
        "\nuser  ",
        "  Tell Ann about Rome.\n  Soon.\n\nassistant  ",
        "  I ask her.\n  → send_note {\"to\":\"ann\",\"text\":\"Hi\\nthere\"}\n  ← send_note (pending): waits for approval\n  It waits for you.\n",
    ] {
        assert!(shown.contains(part), "no {part:?} in {shown}");
    }
    assert!(!shown.contains("left out"), "{shown}");
    let last = stored.run(&["thread", "show", &titled, "--last", "1"]).ok().stdout;
    assert!(last.contains("It waits for you.") && !last.contains("I ask her."), "{last}");
    stored
        .run(&["thread", "show", "ffff"])
        .ended(1)
        .says(&["unknown thread `ffff`", "hint: the newest ids are"]);
}

fn a_conversation_is_exported(stored: &StoreFixture) {
    let id = add(stored, "assistant", Some("Rome"));
    let markdown = stored.run(&["thread", "export", &id[28..]]).ok().stdout;
    assert!(markdown.starts_with("# Rome\n\nwith assistant on web, "), "{markdown}");
    for part in [
        "\n## user · ",
        "\nTell Ann about Rome.\nSoon.\n",
        "\n> → send_note {",
        "\n> ← send_note (pending): ",
    ] {
        assert!(markdown.contains(part), "no {part:?} in {markdown}");
    }
    let file = stored.world.outside("rome.json");
    let to_file = ["thread", "export", &id, "--format", "json", file.to_str().unwrap()];
    stored.run(&to_file).ok().says(&["wrote "]);
    let written: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(written["thread"]["id"], *id);
    assert_eq!(written["messages"].as_array().unwrap().len(), 5, "nothing is left out");
    assert_eq!(written["messages"][1]["content"]["calls"][0]["name"], "send_note");
    assert_eq!(stored.run(&["thread", "export", &id, "--json"]).ok().json(), written);
    stored.run(&to_file).ended(1).says(&["cannot be written", "hint: choose another file"]);
}

fn a_conversation_gets_a_title_and_is_deleted(stored: &StoreFixture) {
    let id = add(stored, "assistant", None);
    let short = &id[28..];
    let renamed = stored.run(&["thread", "rename", short, "Trip to Rome"]).ok().stdout;
    assert_eq!(renamed, format!("{id}: Trip to Rome\n"));
    stored.run(&["thread", "rename", short, " "]).ended(2).says(&["error: the title is empty"]);
    assert!(stored.run(&["thread", "list"]).ok().stdout.contains("Trip to Rome"));
    // Without a terminal no one is asked; at one, only `y` deletes.
    stored.run(&["thread", "delete", short]).ended(2).says(&["hint: `--yes` deletes it without asking"]);
    let mut terminal = Terminal::of_person(&stored.command(&["thread", "delete", short]));
    terminal.until("Delete `Trip to Rome` with 5 messages? It cannot be undone. [y/N] ");
    terminal.write("\n");
    let (code, text) = terminal.end();
    assert!(code.code() == Some(1) && text.contains("nothing was deleted"), "{text}");
    let deleted = stored.run(&["thread", "delete", short, "--yes", "--json"]).ok().json();
    assert_eq!(deleted, json!({"id": id, "state": "deleted", "messages": 5}));
    stored.run(&["thread", "show", &id]).ended(1).says(&["unknown thread"]);
    assert_eq!(
        stored.directly(async |store| store.threads().messages("owner", &id, 0, 9).await.unwrap()),
        []
    );
    let tail = stored.run(&["audit", "tail"]).ok().stdout;
    for action in ["thread_renamed", "thread_deleted"] {
        assert!(tail.contains(&format!("{action}  {id}")), "no {action} in {tail}");
    }
}

fn conversations_of_others_are_not_found(stored: &StoreFixture) {
    let id = add(stored, "coach", None);
    assert_eq!(stored.run(&["thread", "list"]).ok().stdout, "No conversations.\n");
    stored
        .run(&["thread", "show", &id])
        .ended(1)
        .says(&["belongs to agent `coach`", "hint: pass `--agent coach`"]);
    stored.run(&["thread", "show", &id, "--agent", "coach"]).ok();
    for command in [&["thread", "show"][..], &["thread", "delete", "--yes"], &["thread", "export"]] {
        let command = [command, &[&id[28..], "--user", "bob", "--agent", "coach"]].concat();
        stored.run(&command).ended(1).says(&["unknown thread"]);
    }
}
