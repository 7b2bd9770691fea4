//! Notices as their user reads them at a terminal.

use embody_store::Scope;
use embody_store::notices::{NewNotice, NoticeOrigin};
use serde_json::{Value, json};

use crate::support::stores::{StoreFixture, on_each_store};

on_each_store!(notices_are_listed_and_read, a_copy_of_the_store_has_the_notices);

/// Adds a notice; its id.
fn add(stored: &StoreFixture, user: &str, text: &str, urgency: &str) -> String {
    stored.directly(async |store| {
        let new = NewNotice {
            scope: Scope::new(user, "assistant").unwrap(),
            text: text.into(),
            urgency: urgency.into(),
            origin: NoticeOrigin { channel: "mcp".into(), ..NoticeOrigin::default() },
        };
        store.notices().add(new, None).await.unwrap()
    })
}

fn texts(listed: &Value) -> Vec<&str> {
    listed["notices"].as_array().unwrap().iter().map(|one| one["text"].as_str().unwrap()).collect()
}

fn notices_are_listed_and_read(stored: &StoreFixture) {
    assert_eq!(stored.run(&["notices", "list"]).ok().stdout, "No notices.\n");
    stored.run(&["notices", "read", "3e5f01aa"]).ended(1).says(&["has no notice `3e5f01aa`", "notices list"]);
    let tea = add(stored, "owner", "The tea is ready.\n\u{1b}[31mRed.", "high");
    add(stored, "owner", "Post is here.", "normal");
    add(stored, "ann", "Of Ann.", "normal");

    let shown = stored.run(&["notices", "list"]).ok().stdout;
    let heads: Vec<&str> = shown.lines().filter(|line| !line.starts_with(' ')).collect();
    assert_eq!(heads.len(), 2, "{shown}");
    assert!(heads[0].contains("  unread  assistant, MCP host"), "{shown}");
    assert!(heads[1].contains("  unread  high urgency, assistant, MCP host"), "{shown}");
    assert!(shown.contains("\n  Post is here.\n") && shown.contains("\n  The tea is ready.\n"), "{shown}");
    let short = heads[1].split_whitespace().next().unwrap();
    assert!(tea.ends_with(short) && (8..36).contains(&short.len()), "{short} of {tea}");

    assert_eq!(stored.run(&["notices", "read", short]).ok().stdout, "marked 1 notice as read\n");
    assert_eq!(stored.run(&["notices", "read", short, "--json"]).ok().json(), json!({"read": 0}));
    let all = stored.run(&["notices", "list", "--json"]).ok().json();
    assert_eq!(
        (texts(&all), &all["unread"]),
        (vec!["Post is here.", "The tea is ready.\n\u{1b}[31mRed."], &json!(1))
    );
    let [unread, read] = [0, 1].map(|index| &all["notices"][index]);
    assert_eq!((&read["id"], &unread["read_at"]), (&json!(tea), &Value::Null));
    assert!(read["read_at"].as_str().unwrap() >= read["at"].as_str().unwrap(), "{read}");
    assert_eq!(read["origin"]["text"], "assistant, MCP host");
    let unread = stored.run(&["notices", "list", "--unread", "--json"]).ok().json();
    assert_eq!(texts(&unread), ["Post is here."]);

    // Neither in another's list, nor marked by another.
    let anns = stored.run(&["notices", "list", "--user", "ann", "--json"]).ok().json();
    assert_eq!(texts(&anns), ["Of Ann."]);
    let id = anns["notices"][0]["id"].as_str().unwrap();
    stored.run(&["notices", "read", id]).ended(1).says(&["user `owner` has no notice"]);
    stored.run(&["notices", "read"]).ended(2);
    assert_eq!(stored.run(&["notices", "read", "--all"]).ok().stdout, "marked 1 notice as read\n");
    assert_eq!(stored.run(&["notices", "list", "--unread"]).ok().stdout, "No unread notices.\n");
    assert_eq!(stored.run(&["notices", "list", "--user", "ann", "--json"]).ok().json()["unread"], 1);
}

fn a_copy_of_the_store_has_the_notices(stored: &StoreFixture) {
    add(stored, "owner", "Read.", "low");
    stored.run(&["notices", "read", "--all"]).ok();
    add(stored, "owner", "Unread.", "normal");
    let before = stored.run(&["notices", "list", "--json"]).ok().stdout;
    let file = stored.world.outside("backup.db");
    stored.run(&["store", "backup", file.to_str().unwrap()]).ok();
    let copy = format!("sqlite://{}", file.display());
    let after = stored.world.run(&["--store", &copy, "notices", "list", "--json"]).ok().stdout;
    assert_eq!(after, before);
}
