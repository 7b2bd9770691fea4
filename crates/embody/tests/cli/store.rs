//! Standing instructions, tokens, agents and receipts, through the commands, on every kind of store.

use crate::support::stores::{StoreFixture, on_each_store};

on_each_store!(
    instructions_reach_the_next_prompt,
    instructions_go_back,
    a_stale_version_is_refused,
    each_agent_of_a_user_has_its_own,
    a_stored_soul_stands_between_folder_and_workspace,
    a_receipt_replays_the_exact_bytes,
    tokens_are_made_listed_and_revoked,
    a_name_that_passes_for_another_users_is_refused,
    wrong_input_is_reported,
);

fn instructions(stored: &StoreFixture, arguments: &[&str]) -> String {
    stored.run(&[&["instructions"], arguments].concat()).ok().stdout
}

// spec: S-06, S-09
fn instructions_reach_the_next_prompt(stored: &StoreFixture) {
    assert_eq!(instructions(stored, &["show"]), "");
    instructions(stored, &["set", "Answer in bullet points."]);
    assert_eq!(instructions(stored, &["show"]), "Answer in bullet points.");
    let prompt = stored.run(&["prompt", "show", "--layout", "channel"]).ok().stdout;
    assert!(prompt.contains("## User Instructions\nAnswer in bullet points.\n"), "{prompt}");
    let report = stored.run(&["prompt", "show", "--layout", "channel", "--json"]).ok().json();
    let section =
        report["sections"].as_array().unwrap().iter().find(|section| section["kind"] == "user_instructions");
    assert_eq!(section.unwrap()["source"], "store: instructions of owner, version 1");
    instructions(stored, &["set", ""]);
    let prompt = stored.run(&["prompt", "show", "--layout", "channel"]).ok().stdout;
    assert!(prompt.contains("(No custom instructions set.)"), "{prompt}");
}

// spec: S-06
fn instructions_go_back(stored: &StoreFixture) {
    for text in ["one", "two\nlines", "three"] {
        instructions(stored, &["set", text]);
    }
    instructions(stored, &["revert", "2"]);
    assert_eq!(instructions(stored, &["show"]), "two\nlines");
    let history = stored.run(&["instructions", "history", "--json"]).ok().json();
    let texts: Vec<&str> = history["versions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|version| version["text"].as_str().unwrap())
        .collect();
    assert_eq!(texts, ["two\nlines", "three", "two\nlines", "one"]);
    assert!(history["versions"][0].get("diff").is_none(), "{history}");
    let history = stored.run(&["instructions", "history", "--diff", "--limit", "3", "--json"]).ok().json();
    let diffs: Vec<&str> = history["versions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|version| version["diff"].as_str().unwrap())
        .collect();
    let expected = ["-three\n+two\n+lines\n", "-two\n-lines\n+three\n", "-one\n+two\n+lines\n"];
    assert_eq!(diffs, expected.map(|lines| format!("@@ -1 +1 @@\n{lines}")));
    let shown = stored.run(&["instructions", "history", "--diff"]).ok().stdout;
    assert!(shown.ends_with("one\n         @@ -1 +1 @@\n         +one\n"), "{shown}");
    stored
        .run(&["instructions", "revert", "9"])
        .ended(1)
        .says(&["error: the instructions have no version `9`", "hint: `embody instructions history`"]);
}

// spec: S-06
fn a_stale_version_is_refused(stored: &StoreFixture) {
    instructions(stored, &["set", "one", "--expected-version", "0"]);
    stored
        .run(&["instructions", "set", "two", "--expected-version", "0"])
        .ended(1)
        .says(&["error: the instructions are now at version `1`; nothing was changed", "hint:"]);
    assert_eq!(instructions(stored, &["show"]), "one");
}

// spec: S-09
fn each_agent_of_a_user_has_its_own(stored: &StoreFixture) {
    instructions(stored, &["set", "for ann", "--user", "ann"]);
    instructions(stored, &["set", "for ann's coach", "--user", "ann", "--agent", "coach"]);
    assert_eq!(instructions(stored, &["show", "--user", "ann"]), "for ann");
    assert_eq!(instructions(stored, &["show", "--user", "ann", "--agent", "coach"]), "for ann's coach");
    assert_eq!(instructions(stored, &["show"]), "");
}

// spec: S-02
fn a_stored_soul_stands_between_folder_and_workspace(stored: &StoreFixture) {
    let world = &stored.world;
    world.file("SOUL.md", "the workspace's soul");
    world.file("IDENTITY.md", "---\nname: Workspace\n---\n");
    world.file("new.md", "the stored soul");
    let soul =
        |name: &str| stored.run(&["prompt", "show", "--layout", "channel", "--agent", name]).ok().stdout;
    assert!(soul("coach").contains("the workspace's soul"));
    let file = world.path("new.md");
    let identity = "{\"name\": \"Stored\", \"description\": \"a coach\"}";
    stored.run(&["agent", "set", "coach", "--soul", file.to_str().unwrap(), "--identity", identity]).ok();
    let prompt = soul("coach");
    assert!(prompt.contains("the stored soul") && prompt.contains("You are Stored — a coach."), "{prompt}");
    assert!(soul("other").contains("the workspace's soul"));
    world.file("agents/coach/SOUL.md", "the folder's soul");
    let prompt = soul("coach");
    assert!(prompt.contains("the folder's soul") && prompt.contains("You are Stored"), "{prompt}");
    let removed = stored.run(&["agent", "remove", "coach", "--json"]).ok().json();
    assert_eq!((&removed["name"], &removed["state"]), (&"coach".into(), &"removed".into()));
    stored.run(&["agent", "show", "coach"]).ended(1).says(&["the store has no agent `coach`"]);
}

fn a_receipt_replays_the_exact_bytes(stored: &StoreFixture) {
    instructions(stored, &["set", "Répondez ☂ \u{200d} en français."]);
    let sent = stored.run(&["prompt", "show", "--receipt", "--json"]).ok().json();
    let (id, text, hash) = (&sent["receipt"], sent["text"].as_str().unwrap(), sent["hash"].as_str().unwrap());
    instructions(stored, &["set", "Something else."]);
    assert_eq!(stored.run(&["prompt", "receipt", id.as_str().unwrap()]).ok().stdout, text);
    assert_eq!(stored.run(&["prompt", "receipt", &hash[..10]]).ok().stdout, text);
    let mut kept = stored.run(&["prompt", "receipt", hash, "--json"]).ok().json();
    // A receipt has the definitions too; the command that makes it prints only their account.
    for tool in kept["tools"].as_array_mut().unwrap() {
        let definition = tool.as_object_mut().unwrap().remove("definition").unwrap();
        assert_eq!(definition["name"], tool["name"]);
    }
    assert_eq!(kept, sent);
    let name = format!("receipt:{}", id.as_str().unwrap());
    let workspace = stored.world.workspace();
    let workspace = workspace.to_str().unwrap();
    let diff = stored.run(&["prompt", "diff", &name, workspace, "--exit-code"]).ended(1).stdout;
    assert!(diff.contains("user_instructions"), "{diff}");
    stored
        .run(&["prompt", "receipt", "nope"])
        .ended(1)
        .says(&["error: user `owner` has no receipt `nope`", "hint: `embody prompt receipt` lists"]);
}

fn tokens_are_made_listed_and_revoked(stored: &StoreFixture) {
    let made = stored.run(&["token", "add", "--user", "ann", "--scope", "mcp", "--label", "laptop"]).ok();
    let secret = made.stdout.trim();
    assert!(secret.starts_with("embody_") && !secret.contains(char::is_whitespace), "{made:?}");
    assert!(made.stderr.contains("it is not shown again"));
    let listed = stored.run(&["token", "list", "--json"]).ok();
    assert!(!listed.stdout.contains(secret));
    let id = listed.json()["tokens"][0]["id"].as_str().unwrap().to_owned();
    stored.run(&["token", "revoke", &id]).ok();
    assert_eq!(stored.run(&["token", "list", "--json"]).ok().json()["tokens"][0]["state"], "revoked");
    stored
        .run(&["token", "revoke", "nope"])
        .ended(1)
        .says(&["unknown token `nope`", "hint: `embody token list`"]);
}

fn a_name_that_passes_for_another_users_is_refused(stored: &StoreFixture) {
    let add = |user: &str| stored.run(&["token", "add", "--user", user, "--scope", "chat"]);
    // There may be no store yet, and so no other user.
    stored
        .run(&["instructions", "show", "--user", "bob\u{200b}"])
        .ended(2)
        .says(&["`bob⟨U+200B⟩` has an invisible character"]);
    // Nothing is known of the owner yet either.
    add("\u{43e}wner").ended(2).says(&["`⟨U+043E⟩wner` looks like that of `owner`"]);
    for user in ["ann", "telegram:123", "Анна", "Jörg"] {
        add(user).ok();
        add(user).ok();
        stored.run(&["instructions", "show", "--user", user]).ok();
    }
    for (user, words) in [
        ("\u{430}nn", "`⟨U+0430⟩nn` looks like that of `ann`"),
        ("ann\u{200b}", "has an invisible character"),
        ("\u{202e}nna", "has an invisible character"),
        ("ann\u{7}", "control characters"),
        (" ann", "starts or ends with a space"),
    ] {
        add(user).ended(2).says(&[words]);
        stored.run(&["instructions", "set", "Be kind.", "--user", user]).ended(2).says(&[words]);
        stored.run(&["status", "--user", user]).ended(2).says(&[words]);
    }
    let listed = stored.run(&["user", "list", "--json"]).ok().json();
    assert_eq!(listed["users"].as_array().unwrap().len(), 4, "{listed}");
}

fn wrong_input_is_reported(stored: &StoreFixture) {
    for command in [&["instructions", "show"][..], &["status"], &["run", "hello"]] {
        for (flag, shown) in [("--user", "--user <USER>"), ("--agent", "--agent <AGENT>")] {
            let done = stored.run(&[command, &[flag, " "]].concat()).ended(2);
            done.says(&[&format!("error: invalid value ' ' for '{shown}': a name cannot be empty")]);
        }
    }
    stored.run(&["token", "add", "--user", "ann", "--scope", "root"]).ended(2);
    stored
        .run(&["token", "add", "--user", "ann", "--scope", "mcp", "--expires", "soon"])
        .ended(2)
        .says(&["write a duration such as 30d or 12h"]);
    stored
        .run(&["agent", "set", "coach", "--identity", "Ada"])
        .ended(2)
        .says(&["error: the identity is not valid JSON"]);
    stored
        .run(&["agent", "set", "coach", "--identity", "[]"])
        .ended(2)
        .says(&["error: the identity is not a JSON object", "hint: write it like {\"name\""]);
}

/// Looking must not make anything.
#[test]
fn reading_makes_no_store() {
    let stored = StoreFixture::workspace();
    stored.run(&["instructions", "show"]).ok();
    stored.run(&["instructions", "history"]).ok();
    stored.run(&["token", "list"]).ok();
    stored.run(&["prompt", "show"]).ok();
    assert!(!stored.world.path("embody.db").exists());
}

/// What is not there cannot be removed, and a store for it is not made.
#[test]
fn removing_what_is_not_there_makes_no_store() {
    let stored = StoreFixture::workspace();
    for (arguments, reported) in [
        (["memory", "forget", "nope"], "unknown memory `nope`"),
        (["memory", "release", "nope"], "unknown memory `nope`"),
        (["token", "revoke", "nope"], "unknown token `nope`"),
        (["agent", "remove", "nope"], "the store has no agent `nope`"),
    ] {
        stored.run(&arguments).ended(1).says(&[reported, "hint: "]);
    }
    assert!(!stored.world.path("embody.db").exists());
}

/// A store that ends with the command, or another one than was meant, would lose what is written to it.
#[test]
fn an_address_that_keeps_nothing_is_refused() {
    let stored = StoreFixture::workspace();
    for (address, reported) in [
        ("sqlite::memory:", "is a store in memory"),
        ("sqlite:x.db?mode=memory", "takes no options"),
        ("mysql://me:hunter2@h/x", "is neither a postgres:// nor an sqlite: address"),
        ("postgres://", "names no server"),
        ("./x.db", "is neither a postgres:// nor an sqlite: address"),
    ] {
        let hint = "hint: write sqlite:PATH for a SQLite file, or postgres://USER@HOST/DATABASE";
        let done = stored.run(&["--store", address, "memory", "add", "one"]).ended(2).says(&[reported, hint]);
        assert!(!done.stderr.contains("hunter2"), "{}", done.stderr);
    }
    stored.run(&["--store", "sqlite:./x.db", "memory", "add", "one"]).ok();
    assert!(stored.world.outside("x.db").exists());
}

#[test]
fn a_wrong_password_is_reported_and_not_shown() {
    let stored = StoreFixture::workspace();
    let url = crate::support::stores::database();
    let (_, rest) = url.split_once('@').unwrap();
    let url = format!("postgres://embody:wr0ng-secret@{rest}");
    let done = stored.run(&["--store", &url, "instructions", "show"]).ended(1);
    let done = done.says(&[
        "error: the store `postgres://127.0.0.1:",
        "caused by: the database server refuses the connection",
        "hint: check the user, the password",
    ]);
    assert!(!done.stderr.contains("wr0ng-secret"));
}

#[test]
fn a_file_that_is_not_a_database_is_reported() {
    let stored = StoreFixture::workspace();
    stored.world.file("embody.db", "not a database at all ".repeat(500));
    stored.run(&["prompt", "show"]).ended(1).says(&[
        "embody.db` cannot be opened",
        "caused by: the file is not a database",
        "hint: restore a backup",
    ]);
}
