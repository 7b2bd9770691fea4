//! Sentences into rules: what is understood, in short.

use super::rule::parse_rules;
use super::rule::{Object, Rule};

fn shown(rule: &Rule) -> String {
    let object = |object: &Object| match object {
        Object::Words(words) => words.join(" "),
        Object::Address(text) => text.clone(),
        Object::Domain(domain) => format!("@{domain}"),
    };
    let list = |objects: &[Object]| objects.iter().map(object).collect::<Vec<_>>().join(" or ");
    let mut parts = vec![format!("{:?}", rule.kind).to_lowercase()];
    parts.extend(rule.verb.clone());
    for group in &rule.groups {
        parts.push(format!("{} {}", if group.who { "who" } else { "what" }, list(&group.any)));
    }
    if !rule.except.is_empty() {
        parts.push(format!("except {}", list(&rule.except)));
    }
    if rule.to_owner {
        parts.push("to the owner".to_owned());
    }
    if let Some(over) = rule.over {
        parts.push(format!("over {over}"));
    }
    let when = rule.when.describe();
    if !when.is_empty() {
        parts.push(when);
    }
    parts.join(", ")
}

#[test]
fn sentences_are_understood_as_written() {
    // A Monday.
    let said = jiff::civil::date(2026, 11, 16).at(10, 0, 0, 0);
    let mut wrong = Vec::new();
    for line in include_str!("rules.txt").lines().filter(|line| !line.starts_with('#')) {
        let (sentence, expected) = line.split_once(" =>").unwrap();
        let found: Vec<String> = parse_rules(sentence, said).iter().map(shown).collect();
        if found.join(" / ") != expected.trim() {
            wrong.push(format!("{sentence} => {}", found.join(" / ")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

proptest::proptest! {
    /// Whatever stands in a memory, reading it ends, and ends well.
    #[test]
    fn any_text_can_be_read(text in "(never|no|do not|until|3|after|before|,|mail|Bob|only|ask me|[a-z]{1,5}|\\PC| |\\.|\n){0,40}") {
        let said = jiff::civil::date(2026, 11, 16).at(10, 0, 0, 0);
        for sentence in super::words::rule_sentences(&text) {
            proptest::prop_assert!(parse_rules(sentence, said).len() <= 4);
        }
    }
}
