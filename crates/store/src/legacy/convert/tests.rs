//! Tests of the conversion.

use super::super::table::{AGENTS, CUSTOMIZATIONS, Column};
use super::*;

fn table(name: &'static str, sources: [&'static str; 3], columns: &[&str], rows: Vec<Vec<Cell>>) -> Table {
    let column = |name: &&str| Column { name: (*name).to_owned(), ..Column::default() };
    Table { name, columns: columns.iter().map(column).collect(), sources, rows, ..Table::default() }
}

fn customizations(text: &'static str, rows: Vec<Vec<Cell>>) -> Table {
    let columns = ["user_id", "agent_name", text, "priority", "is_active"];
    table(CUSTOMIZATIONS, ["user_id", "agent_name", text], &columns, rows)
}

fn text(text: &str) -> Cell {
    Cell::Text(text.into())
}

fn row(content: &str, priority: Cell) -> Vec<Cell> {
    vec![text("ann"), text("assistant"), text(content), priority, Cell::Null]
}

fn join_one(column: &'static str, rows: Vec<Vec<Cell>>) -> (String, LegacyInstructions) {
    let mut joined = instructions(&customizations(column, rows));
    assert_eq!(joined.len(), 1);
    let (report, text) = joined.remove(0);
    (text, report)
}

// spec: S-03
#[test]
fn the_lowest_priority_number_comes_first() {
    let (text, report) = join_one(
        "content",
        vec![
            row("\"null\"", Cell::Null),
            row("\"ten\"", Cell::Int(10)),
            row("\"first two\"", Cell::Int(2)),
            row("\"second two\"", Cell::Int(2)),
            row("{\"b\": 1, \"a\": [ ]}", text("-1")),
        ],
    );
    assert_eq!(text, "{\"b\":1,\"a\":[]}\n\nfirst two\n\nsecond two\n\nten\n\nnull");
    assert_eq!((report.rows, report.joined, report.characters), (5, 5, 48));
    assert_eq!(report.notes, ["1 row not a JSON string: kept as compact JSON"]);
}

// spec: S-03
#[test]
fn rows_without_text_leave_no_trace_in_it() {
    let mut off = row("\"off\"", Cell::Int(0));
    off[4] = text("false");
    let mut sql_null = row("", Cell::Int(5));
    sql_null[2] = Cell::Null;
    let (text, report) = join_one(
        "content",
        vec![
            off,
            row("\"\"", Cell::Int(1)),
            row("\"\"", Cell::Int(2)),
            row("\"only\"", Cell::Int(3)),
            sql_null,
        ],
    );
    assert_eq!(text, "only");
    assert_eq!(report.notes, ["1 row inactive: only in the export", "3 rows without any text"]);
}

#[test]
fn odd_rows_are_noted() {
    let mut blob = row("", Cell::Int(5));
    blob[2] = Cell::Blob(vec![0xff, 0xfe]);
    let (joined, report) = join_one(
        "content",
        vec![
            row("bare", Cell::Int(1)),
            row("\"a\\u0000b\"", Cell::Int(2)),
            row("c\0d", Cell::Int(3)),
            row("\"\\udc00\"", text("soon")),
            blob,
        ],
    );
    assert_eq!(joined, "bare\n\na\u{fffd}b\n\nc\u{fffd}d\n\n\"\\udc00\"");
    assert_eq!(
        report.notes,
        [
            "2 rows not JSON: kept unchanged",
            "1 row with an incomplete surrogate pair: kept as JSON",
            "1 row with bytes that are not text: only in the export",
            "1 row with a priority that is not a number: placed after the others",
            "2 NUL characters became U+FFFD",
        ]
    );
}

#[test]
fn plain_texts_stay_as_they_are() {
    let (text, report) = join_one("instructions", vec![row("\"quoted\"", Cell::Null), row("", Cell::Null)]);
    assert_eq!(text, "\"quoted\"");
    assert_eq!(report.notes, ["1 row without any text"]);
}

#[test]
fn names_decide_the_group_and_a_row_needs_both() {
    let of = |user: Cell| vec![user, text("assistant"), text("\"x\""), Cell::Null, Cell::Null];
    let rows = vec![of(Cell::Null), of(Cell::Int(7)), of(text("")), row("\"y\"", Cell::Null)];
    let joined = instructions(&customizations("content", rows));
    let users: Vec<&str> = joined.iter().map(|(report, _)| report.user.as_str()).collect();
    assert_eq!(users, ["", "7", "ann"]);
    assert_eq!(joined[0].0.notes, ["no command can select it: the user has no name"]);
}

fn agent_table(rows: Vec<Vec<Cell>>) -> Table {
    let columns = ["agent_name", "soul", "identity"];
    table(AGENTS, columns, &columns, rows)
}

// spec: S-03
#[test]
fn a_soul_is_kept_to_the_letter() {
    let soul = " {\"not\": \"parsed\"}\r\n\n ü \u{202e}";
    let new = agents(&agent_table(vec![
        vec![text("b"), text(soul), text("{ \"name\": \"Ada\" }")],
        vec![text("a"), Cell::Null, Cell::Null],
        vec![Cell::Null, text("lost?"), Cell::Null],
    ]))
    .unwrap();
    let [(a, no_soul, no_identity), (b, kept, identity)] = &new[..] else { panic!("{new:?}") };
    assert_eq!((a.agent.as_str(), no_soul, no_identity), ("a", &None, &None));
    assert_eq!((kept.as_deref(), identity), (Some(soul), &Some(json!({ "name": "Ada" }))));
    assert_eq!(b.characters, soul.chars().count());
    assert!(b.notes.is_empty());
}

#[test]
fn two_agents_of_one_name_are_refused() {
    let twin = || vec![text("a"), Cell::Null, Cell::Null];
    let error = agents(&agent_table(vec![twin(), twin()])).unwrap_err();
    assert_eq!(error.to_string(), "`agent_configurations` has two rows named `a`");
}

#[test]
fn changes_of_an_agent_are_noted() {
    let new = agents(&agent_table(vec![vec![text("a\nb"), text("x\0"), text("Ada")]])).unwrap();
    let (report, soul, identity) = &new[0];
    assert_eq!((soul.as_deref(), identity), (Some("x\u{fffd}"), &Some(json!({ "description": "Ada" }))));
    assert_eq!(
        report.notes,
        [
            "1 NUL characters of the soul became U+FFFD",
            "the identity was not a JSON object and became the description in one",
            "no command can select it: the name of the agent `a\\nb` has control characters",
        ]
    );
}

// spec: S-03
#[test]
fn content_becomes_text() {
    for (stored, text, note) in [
        ("", None, Some(EMPTY)),
        (" null ", Some("null"), Some(JSON)),
        ("\"\"", None, Some(EMPTY)),
        ("\"be brief\"", Some("be brief"), None),
        (r#""a\n\"b\" \u00e9 \ud83d\ude00 \u0000""#, Some("a\n\"b\" é 😀 \0"), None),
        ("\"null\"", Some("null"), None),
        (" 5 ", Some("5"), Some(JSON)),
        ("1e400", Some("1e400"), Some(JSON)),
        ("123456789012345678901234567890.10", Some("123456789012345678901234567890.10"), Some(JSON)),
        ("false", Some("false"), Some(JSON)),
        (
            "{ \"z\" : [ 1 , {\"a\": \" x  y \\\" \"} ],\n\t\"a\": null, \"z\": {} }",
            Some(r#"{"z":[1,{"a":" x  y \" "}],"a":null,"z":{}}"#),
            Some(JSON),
        ),
        (r#""\ud800 half""#, Some(r#""\ud800 half""#), Some(HALVED)),
        ("be brief", Some("be brief"), Some(BARE)),
        ("{not json}", Some("{not json}"), Some(BARE)),
        ("\"open", Some("\"open"), Some(BARE)),
        ("  ", Some("  "), Some(BARE)),
    ] {
        assert_eq!(content_text(stored), (text.map(str::to_owned), note), "{stored:?}");
    }
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(content_text(&deep), (Some(deep.clone()), Some(JSON)));
}

#[test]
fn identities_are_objects_afterwards() {
    assert_eq!(to_identity(r#"{"name": "Ada", "name": 1}"#), (Some(json!({ "name": 1 })), None));
    assert_eq!(to_identity(" null "), (None, None));
    for (text, object) in [
        ("Ada", json!({ "description": "Ada" })),
        (r#""a \"b\" \u0000""#, json!({ "description": "a \"b\" \u{fffd}" })),
        ("[1e999, 2]", json!({ "description": "[1e999,2]" })),
        (r#"{"a": 1e999}"#, json!({ "description": "{\"a\":1e999}" })),
        ("true", json!({ "description": "true" })),
        (r#"{"a": "\u0000 \\u0000 \\\u0000"}"#, json!({ "a": "\u{fffd} \\u0000 \\\u{fffd}" })),
    ] {
        let (identity, note) = to_identity(text);
        assert_eq!(identity, Some(object));
        assert!(note.is_some(), "{text}");
    }
    for empty in ["", "\"\""] {
        assert_eq!(to_identity(empty), (None, Some("the identity was empty, and is left out")));
    }
}
