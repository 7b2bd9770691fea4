//! Texts that a person changes in an editor: memories, standing instructions, souls.

use std::os::unix::fs::PermissionsExt;

use crate::support::stores::{StoreFixture, on_each_store};
use crate::support::world::{CommandOutput, finish};

on_each_store!(
    a_memory_is_shown_and_edited,
    instructions_are_edited_and_no_change_is_lost,
    an_editor_that_fails_changes_nothing,
    a_soul_is_edited,
);

/// Runs a command with an editor: a shell script that gets the file as `$1`.
fn with_editor(stored: &StoreFixture, script: &str, arguments: &[&str]) -> CommandOutput {
    stored.world.file_outside("editor", format!("#!/bin/sh\n{script}\n"));
    let editor = stored.world.outside("editor");
    std::fs::set_permissions(&editor, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = stored.command(arguments);
    command.env("VISUAL", &editor).env("EDITOR", "false").env("TMPDIR", stored.world.outside("home"));
    finish(command)
}

/// Files of the editor that are left.
fn left(stored: &StoreFixture) -> Vec<std::path::PathBuf> {
    let files = std::fs::read_dir(stored.world.outside("home")).unwrap();
    files.map(|file| file.unwrap().path()).filter(|path| path.to_string_lossy().contains("embody-")).collect()
}

fn a_memory_is_shown_and_edited(stored: &StoreFixture) {
    let add = ["memory", "add", "Ann is back on 3 May.", "--actor", "Ann", "--tag", "leave"];
    let id = stored.run(&add).ok().stdout.trim().to_owned();
    let short = &id[28..];
    let shown = stored.run(&["memory", "show", short]).ok().stdout;
    assert!(shown.starts_with("Ann is back on 3 May.\n\nid        "), "{shown}");
    for line in [
        "kind      note",
        "writer    operator, trust owner",
        "actor     Ann",
        "tags      leave",
        "version   1",
    ] {
        assert!(shown.contains(line), "no {line} in {shown}");
    }
    let edited = stored.run(&["memory", "edit", short, "--text", "Ann is back on 4 May."]).ok().stdout;
    assert_eq!(edited, format!("{id} is now at version 2\n"));
    let edited =
        with_editor(stored, "sed -i 's/4 May/5 June/' \"$1\"", &["memory", "edit", short, "--json"]).ok();
    assert_eq!(edited.json(), serde_json::json!({"id": id, "version": 3, "changed": true}));
    let same = with_editor(stored, "exit 0", &["memory", "edit", short]).ok().stdout;
    assert_eq!(same, format!("{id} is unchanged, still at version 3\n"));
    // The index follows the text, and the history has every version.
    let search = |query: &str| stored.run(&["memory", "search", query, "--json"]).ok().json();
    assert_eq!(search("June")["memories"][0]["text"], "Ann is back on 5 June.");
    assert_eq!(search("May")["memories"], serde_json::json!([]));
    let shown = stored.run(&["memory", "show", short, "--json"]).ok().json();
    let texts: Vec<&str> = shown["versions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|version| version["text"].as_str().unwrap())
        .collect();
    assert_eq!(texts, ["Ann is back on 5 June.", "Ann is back on 4 May.", "Ann is back on 3 May."]);
    let wrong = with_editor(stored, ": > \"$1\"", &["memory", "edit", short]).ended(2);
    wrong.says(&["the memory has no text", "hint: your text is in `"]);
    stored.run(&["memory", "forget", short]).ok();
    stored.run(&["memory", "edit", short, "--text", "x"]).ended(1).says(&["is forgotten", "hint: save"]);
    let tail = stored.run(&["audit", "tail"]).ok().stdout;
    assert_eq!(tail.matches("memory_edited").count(), 2, "{tail}");
}

fn instructions_are_edited_and_no_change_is_lost(stored: &StoreFixture) {
    let append = "printf 'Be brief.' >> \"$1\"";
    assert_eq!(
        with_editor(stored, append, &["instructions", "edit"]).ok().stdout,
        "version 1, 9 characters\n"
    );
    assert_eq!(stored.run(&["instructions", "show"]).ok().stdout, "Be brief.");
    let same = with_editor(stored, "echo >> \"$1\"", &["instructions", "edit"]).ok().stdout;
    assert_eq!(same, "unchanged, still version 1\n", "an editor ends the last line");
    assert_eq!(left(stored), [""; 0].map(std::path::PathBuf::from));
    // Someone else sets them while the editor is open.
    let own = stored.command(&["instructions", "set", "Be kind."]);
    let words = std::iter::once(own.get_program()).chain(own.get_args());
    let line = words.map(|word| format!("'{}'", word.to_str().unwrap())).collect::<Vec<_>>().join(" ");
    let late =
        with_editor(stored, &format!("{append}; {line} > /dev/null"), &["instructions", "edit"]).ended(1);
    late.says(&["the instructions are now at version `2`; nothing was changed", "hint: your text is in `"]);
    assert_eq!(stored.run(&["instructions", "show"]).ok().stdout, "Be kind.");
    let kept = left(stored).remove(0);
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), "Be brief.Be brief.");
    assert_eq!(std::fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(stored.run(&["audit", "tail"]).ok().stdout.contains("instructions_set  assistant  version 2"));
}

fn an_editor_that_fails_changes_nothing(stored: &StoreFixture) {
    stored.run(&["instructions", "set", "Be brief."]).ok();
    let change = "echo changed > \"$1\"";
    let failed = with_editor(stored, &format!("{change}; exit 3"), &["instructions", "edit"]).ended(1);
    failed.says(&["ended with exit status: 3; nothing was changed"]);
    let binary = with_editor(stored, "printf '\\377' > \"$1\"", &["instructions", "edit"]).ended(1);
    binary.says(&["the text is not UTF-8; nothing was changed"]);
    let control = with_editor(stored, "printf 'a\\033[2J' > \"$1\"", &["instructions", "edit"]).ended(1);
    control.says(&["the control character U+001B at byte 1; nothing was changed"]);
    let long =
        with_editor(stored, "head -c 70000 /dev/zero | tr '\\0' x > \"$1\"", &["instructions", "edit"])
            .ended(1);
    long.says(&["the text has more than 65536 bytes; nothing was changed"]);
    let mut missing = stored.command(&["instructions", "edit"]);
    missing.env("EDITOR", "no-such-editor");
    finish(missing).ended(1).says(&["`no-such-editor`", "hint: set VISUAL or EDITOR"]);
    assert_eq!(
        stored.run(&["instructions", "history", "--json"]).ok().json()["versions"].as_array().unwrap().len(),
        1
    );
}

fn a_soul_is_edited(stored: &StoreFixture) {
    let built_in = stored.run(&["soul", "show"]).ok();
    assert!(built_in.stdout.starts_with("Be of use."), "{built_in:#?}");
    built_in.says(&["soul of assistant: built-in"]);
    assert_eq!(with_editor(stored, "exit 0", &["soul", "edit"]).ok().stdout, "SOUL.md is unchanged\n");
    assert!(!stored.world.path("SOUL.md").exists());
    let write = |text: &str| format!("echo '{text}' > \"$1\"");
    let edited = with_editor(stored, &write("Calm."), &["soul", "edit"]).ok();
    assert_eq!((&*edited.stdout, &*edited.stderr), ("SOUL.md: 5 characters\n", ""));
    assert_eq!(std::fs::read_to_string(stored.world.path("SOUL.md")).unwrap(), "Calm.");
    with_editor(stored, &write("Brisk."), &["soul", "edit", "--agent", "coach"]).ok();
    let shown = stored.run(&["soul", "show", "--agent", "coach", "--json"]).ok().json();
    let expected = serde_json::json!({"agent": "coach", "source": "agents/coach/SOUL.md", "text": "Brisk."});
    assert_eq!(shown, expected);
    assert_eq!(stored.run(&["soul", "show"]).ok().stdout, "Calm.");
    assert!(stored.world.show(&["--layout", "full"]).contains("Calm."));
    // What is stored wins over the workspace's file.
    stored.world.file_outside("soul.md", "Stored.");
    let soul = stored.world.outside("soul.md");
    stored.run(&["agent", "set", "assistant", "--soul", soul.to_str().unwrap()]).ok();
    let edited = with_editor(stored, &write("Unused."), &["soul", "edit"]).ok();
    edited.says(&["hint: the agent `assistant` does not use this file: `store: agent assistant` wins"]);
    assert_eq!(stored.run(&["soul", "show"]).ok().stdout, "Stored.");
    // Another program changes the file while the editor is open.
    let file = stored.world.path("SOUL.md");
    let script = format!("{}; echo 'Other.' > '{}'", write("Mine."), file.display());
    let late = with_editor(stored, &script, &["soul", "edit"]).ended(1);
    late.says(&["changed meanwhile; nothing was written", "hint: your text is in `"]);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "Other.\n");
    with_editor(stored, "exit 0", &["soul", "edit", "--agent", "../evil"]).ended(2);
    let tail = stored.run(&["audit", "tail"]).ok().stdout;
    assert!(tail.contains("soul_edited  coach  agents/coach/SOUL.md"), "{tail}");
}
