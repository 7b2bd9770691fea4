//! Which definitions are held back. One case is one line of a file under `tests/definitions`; to add a case, add a line.

use serde_json::value::RawValue;

use super::{Doubt, definition, doubt};

const POISONED: &str = include_str!("../../tests/definitions/poisoned.jsonl");
const HONEST: &str = include_str!("../../tests/definitions/honest.jsonl");

fn judged(line: &str) -> Option<Doubt> {
    let raw = RawValue::from_string(line.to_owned()).unwrap();
    let name = serde_json::from_str::<serde_json::Value>(line).unwrap()["name"].as_str().unwrap().to_owned();
    let read = definition::read(&name, &raw).unwrap();
    doubt::doubt(read.texts.iter().map(String::as_str))
}

#[test]
fn poisoned_definitions_are_held_back() {
    let passed: Vec<&str> = POISONED.lines().filter(|line| judged(line).is_none()).collect();
    assert!(POISONED.lines().count() >= 40);
    assert!(passed.is_empty(), "{} passed:\n{}", passed.len(), passed.join("\n"));
}

#[test]
fn honest_definitions_pass() {
    let held: Vec<String> =
        HONEST.lines().filter_map(|line| judged(line).map(|doubt| format!("{doubt:?}: {line}"))).collect();
    assert!(HONEST.lines().count() >= 60);
    assert!(held.is_empty(), "{} held back:\n{}", held.len(), held.join("\n"));
}
