//! Profiles stay small, survive being kept, and keep what is used.

use embody_store::Scope;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Map, Value, json};

use super::*;
use crate::Trust;
use crate::observe::ObservedCall;

fn caller(session: &str) -> Caller {
    Caller {
        scope: Scope::new("ann", "assistant").unwrap(),
        writer: "broker".into(),
        trust: Trust::Agent,
        session: Some(session.into()),
        trains: true,
    }
}

fn features(tool: &str, args: &Value) -> CallFeatures {
    CallFeatures::of(ObservedCall { tool_name: tool, args, result: Some(&Value::Null), key: None })
}

fn now() -> ZonedNow {
    ZonedNow::new(Timestamp::from_second(1_790_000_000).unwrap(), TimeZone::UTC)
}

#[test]
fn ten_thousand_paths_and_values_do_not_grow_a_profile() {
    let hasher = Hasher::new(&caller("s").scope);
    let mut tool = ToolProfile::default();
    for number in 0..200 {
        let paths: Map<String, Value> = (0..50)
            .map(|path| (format!("p{number}.{path}"), json!(format!("a{number}.{path}@x{number}.org"))))
            .collect();
        let values: Vec<String> = (0..50).map(|value| format!("{number}.{value}@d{value}.org")).collect();
        tool.learn(&features("wide", &json!({"paths": paths, "to": values, "subject": "same"})), &hasher);
    }
    let kept = tool.encode();
    assert!(kept.len() < 24 * 1024, "{}", kept.len());
    assert_eq!(ToolProfile::read(&kept, 0), tool);
}

#[test]
fn what_is_used_often_stays_among_many_that_are_not() {
    let hasher = Hasher::new(&caller("s").scope);
    let mut tool = ToolProfile::default();
    for number in 0..1000 {
        let to = if number % 3 == 0 { "bob".to_owned() } else { format!("p{number}") };
        tool.learn(&features("t", &json!({ "to": to })), &hasher);
    }
    assert_eq!(tool.values(&features("t", &json!({"to": "bob"})), &hasher), None);
}

#[test]
fn ten_thousand_tools_and_sessions_do_not_grow_the_order() {
    let hasher = Hasher::new(&caller("s").scope);
    let mut sequence = SequenceProfile::read(&[], 0);
    let mut gone = 0;
    for number in 0..10_000 {
        let caller = caller(&format!("session {}", number / 2));
        let args = json!({});
        gone += usize::from(
            sequence.learn(&features(&format!("tool {number}"), &args), &caller, &hasher, &now()).is_some(),
        );
        sequence.learn(&features("usual", &args), &caller, &hasher, &now());
    }
    let kept = sequence.encode();
    assert!(kept.len() < 10 * 1024, "{}", kept.len());
    assert_eq!(SequenceProfile::read(&kept, 0), sequence);
    assert_eq!(gone, 10_000 + 1 - sequence::MAX_TOOLS);
    assert!(sequence.signal(&features("usual", &json!({})), &caller("new"), &hasher).is_none());
}

#[test]
fn a_profile_that_is_cut_short_or_of_another_version_is_nothing() {
    let hasher = Hasher::new(&caller("s").scope);
    let mut tool = ToolProfile::default();
    tool.learn(&features("t", &json!({"to": "bob"})), &hasher);
    let kept = tool.encode();
    for cut in 0..kept.len() {
        assert_eq!(ToolProfile::read(&kept[..cut], 0), ToolProfile::default(), "{cut}");
    }
    let newer: Vec<u8> = std::iter::once(2).chain(kept.iter().skip(1).copied()).collect();
    assert_eq!(ToolProfile::read(&newer, 0), ToolProfile::default());
}

#[test]
fn hashes_of_two_scopes_differ() {
    let (one, other) =
        (Hasher::new(&caller("s").scope), Hasher::new(&Scope::new("bob", "assistant").unwrap()));
    assert_ne!(one.value("to", "x"), other.value("to", "x"));
    assert_eq!(one.value("to", " X "), one.value("to", "x"));
    assert_ne!(one.value("to", "x"), one.value("cc", "x"));
}

#[test]
fn the_last_keys_are_known() {
    let mut seen = SeenKeys::default();
    let more = u64::try_from(MAX_KEYS).unwrap() + 10;
    assert!((0..more).all(|key| seen.insert(key)));
    let mut again = SeenKeys::read(&seen.encode());
    assert_eq!(again, seen);
    assert!((10..more).all(|key| !again.insert(key)));
    assert!(again.insert(9));
    assert_eq!(SeenKeys::read(b"what is this"), SeenKeys::default());
}
