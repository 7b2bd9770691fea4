//! Profiles stay small, survive being kept, and keep what is used.

use embody_store::Scope;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Map, Value, json};

use super::*;
use crate::caller::Trust;
use crate::observe::Call;

fn caller(session: &str) -> Caller {
    Caller {
        scope: Scope::new("ann", "assistant").unwrap(),
        writer: "broker".into(),
        trust: Trust::Agent,
        session: Some(session.into()),
        trains: true,
    }
}

fn reading(tool: &str, args: &Value) -> Reading {
    Reading::of(Call { tool_name: tool, args, result: Some(&Value::Null), key: None })
}

fn moment() -> Moment {
    Moment::new(Timestamp::from_second(1_790_000_000).unwrap(), TimeZone::UTC)
}

#[test]
fn ten_thousand_paths_and_values_do_not_grow_a_profile() {
    let hasher = Hasher::new(&caller("s").scope);
    let mut tool = Tool::default();
    for number in 0..200 {
        let paths: Map<String, Value> = (0..50)
            .map(|path| (format!("p{number}.{path}"), json!(format!("a{number}.{path}@x{number}.org"))))
            .collect();
        let values: Vec<String> = (0..50).map(|value| format!("{number}.{value}@d{value}.org")).collect();
        tool.learn(&reading("wide", &json!({"paths": paths, "to": values, "subject": "same"})), &hasher);
    }
    let kept = tool.pack();
    assert!(kept.len() < 24 * 1024, "{}", kept.len());
    assert_eq!(Tool::read(&kept, 0), tool);
}

#[test]
fn what_is_used_often_stays_among_many_that_are_not() {
    let hasher = Hasher::new(&caller("s").scope);
    let mut tool = Tool::default();
    for number in 0..1000 {
        let to = if number % 3 == 0 { "bob".to_owned() } else { format!("p{number}") };
        tool.learn(&reading("t", &json!({ "to": to })), &hasher);
    }
    assert_eq!(tool.values(&reading("t", &json!({"to": "bob"})), &hasher), None);
}

#[test]
fn ten_thousand_tools_and_sessions_do_not_grow_the_order() {
    let hasher = Hasher::new(&caller("s").scope);
    let mut order = Order::read(&[], 0);
    let mut gone = 0;
    for number in 0..10_000 {
        let caller = caller(&format!("session {}", number / 2));
        let args = json!({});
        gone += usize::from(
            order.learn(&reading(&format!("tool {number}"), &args), &caller, &hasher, &moment()).is_some(),
        );
        order.learn(&reading("usual", &args), &caller, &hasher, &moment());
    }
    let kept = order.pack();
    assert!(kept.len() < 10 * 1024, "{}", kept.len());
    assert_eq!(Order::read(&kept, 0), order);
    assert_eq!(gone, 10_000 + 1 - order::MOST_TOOLS);
    assert!(order.doubt(&reading("usual", &json!({})), &caller("new"), &hasher).is_none());
}

#[test]
fn a_profile_that_is_cut_short_or_of_another_version_is_nothing() {
    let hasher = Hasher::new(&caller("s").scope);
    let mut tool = Tool::default();
    tool.learn(&reading("t", &json!({"to": "bob"})), &hasher);
    let kept = tool.pack();
    for cut in 0..kept.len() {
        assert_eq!(Tool::read(&kept[..cut], 0), Tool::default(), "{cut}");
    }
    let newer: Vec<u8> = std::iter::once(2).chain(kept.iter().skip(1).copied()).collect();
    assert_eq!(Tool::read(&newer, 0), Tool::default());
}

#[test]
fn hashes_of_two_scopes_differ() {
    let (one, other) =
        (Hasher::new(&caller("s").scope), Hasher::new(&Scope::new("bob", "assistant").unwrap()));
    assert_ne!(one.value("to", "x"), other.value("to", "x"));
    assert_eq!(one.value("to", " X "), one.value("to", "x"));
    assert_ne!(one.value("to", "x"), one.value("cc", "x"));
}
