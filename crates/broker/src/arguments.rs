//! A call's arguments: parsed once, and rejected when two parsers could read them differently.
//!
//! The gate must decide about what the server receives. Arguments with a duplicate key at any depth, a lone surrogate or more
//! than 64 levels are therefore rejected, and an approval is bound to a canonical form that does not depend on spacing or the
//! order of keys. Time and memory are linear in the text, and the number of values is bounded.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use embody_store::audit::RedactedArguments;
use embody_wire::off_runtime;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::json::{Node, NodeValue, SchemaContext, in_short, unreadable};

/// The key for the extra members of a call where arguments are shown and recorded.
const BESIDE: &str = "(beside the arguments)";
const FEW_MEMBERS: usize = 8;
pub const ARGUMENTS_MAX_BYTES: usize = 4 * 1024 * 1024;

#[derive(Debug, Clone)]
pub struct Arguments {
    value: Value,
    canonical: Box<RawValue>,
    /// The members that the server receives beside the arguments.
    extra: Option<Value>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid arguments: {0}")]
pub struct InvalidArguments(pub(crate) String);

impl Arguments {
    /// At most [`ARGUMENTS_MAX_BYTES`]; `None` is an empty object.
    pub fn read(raw: Option<&RawValue>) -> Result<Self, InvalidArguments> {
        Self::read_within(raw, ARGUMENTS_MAX_BYTES)
    }

    /// Parses large arguments with `block_in_place`, so that they do not block the runtime.
    pub(crate) fn read_within(raw: Option<&RawValue>, max_bytes: usize) -> Result<Self, InvalidArguments> {
        let text = raw.map_or("{}", RawValue::get);
        check_object(text)?;
        check_length(text.len(), max_bytes)?;
        off_runtime(text.len(), || Self::from_node(Node::parse(text)?))
    }

    /// From the parsed JSON text of an object.
    pub(crate) fn from_node(node: Node<'_>) -> Result<Self, InvalidArguments> {
        let canonical = canonical_form(&node, SchemaContext::Data)?;
        let value = node.into_value()?;
        if value.get(BESIDE).is_some() {
            return Err(InvalidArguments(format!("`{BESIDE}` cannot be the name of an argument")));
        }
        Ok(Self { value, canonical, extra: None })
    }

    /// Parses the stored canonical form, with the extra members of the call.
    pub fn read_stored(text: &str) -> Result<Self, InvalidArguments> {
        let mut value: Value = serde_json::from_str(text).map_err(unreadable)?;
        let members = value.as_object_mut();
        let members = members.ok_or_else(|| InvalidArguments("they are not an object".to_owned()))?;
        let extra = members.remove(BESIDE);
        let canonical = RawValue::from_string(text.to_owned()).map_err(unreadable)?;
        Ok(Self { value, canonical, extra })
    }

    /// Adds the extra members of a call, as JSON text, to the canonical form.
    pub(crate) fn beside(self, text: &str, max_bytes: usize) -> Result<Self, InvalidArguments> {
        if text.len() > max_bytes {
            return Err(InvalidArguments(format!(
                "the other members of the parameters are longer than {max_bytes} bytes"
            )));
        }
        let beside = off_runtime(text.len(), || canonical(text))?;
        let arguments = self.canonical();
        let open = arguments.strip_suffix('}').unwrap_or(arguments);
        let comma = if open == "{" { "" } else { "," };
        let canonical = format!("{open}{comma}\"{BESIDE}\":{beside}}}");
        let canonical = RawValue::from_string(canonical).map_err(unreadable)?;
        // Extra members that cannot be read would be unknown to the rules.
        let extra = Some(serde_json::from_str(&beside).map_err(unreadable)?);
        Ok(Self { canonical, extra, ..self })
    }

    /// Whether the server receives members beside the arguments that the protocol does not define.
    pub fn has_extra(&self) -> bool {
        self.extra.as_ref().is_some_and(is_undefined)
    }

    pub fn value(&self) -> &Value {
        &self.value
    }

    /// JSON text: shown to the owner, and bound to the approval and the audit record.
    pub fn canonical(&self) -> &str {
        self.canonical.get()
    }

    pub(crate) fn raw(&self) -> &RawValue {
        &self.canonical
    }

    /// What the audit record may contain of the canonical form.
    pub(crate) fn redacted(&self) -> RedactedArguments {
        let mut value = self.value.clone();
        if let (Some(members), Some(extra)) = (value.as_object_mut(), &self.extra) {
            members.insert(BESIDE.to_owned(), extra.clone());
        }
        RedactedArguments::of_parsed(self.canonical(), value)
    }
}

/// Whether the extra members include one that is not `task`.
fn is_undefined(extra: &Value) -> bool {
    extra.as_object().is_none_or(|members| members.keys().any(|key| key != "task"))
}

pub(crate) fn check_object(text: &str) -> Result<(), InvalidArguments> {
    if text.starts_with('{') { Ok(()) } else { Err(InvalidArguments("they are not an object".to_owned())) }
}

pub(crate) fn check_length(bytes: usize, max_bytes: usize) -> Result<(), InvalidArguments> {
    if bytes <= max_bytes {
        return Ok(());
    }
    Err(InvalidArguments(format!("they are longer than {max_bytes} bytes")))
}

pub(crate) fn canonical(text: &str) -> Result<String, InvalidArguments> {
    canonical_in(text, SchemaContext::Data)
}

/// In a schema the order of sets does not count.
pub(crate) fn canonical_in(text: &str, context: SchemaContext) -> Result<String, InvalidArguments> {
    let canonical: Box<str> = canonical_form(&Node::parse(text)?, context)?.into();
    Ok(canonical.into_string())
}

fn canonical_form(node: &Node<'_>, context: SchemaContext) -> Result<Box<RawValue>, InvalidArguments> {
    if let NodeValue::Object(members) = &node.value
        && let Some((one, other)) = look_alike(members)
    {
        return Err(InvalidArguments(format!("the keys `{one}` and `{other}` differ only in letter case")));
    }
    node.canonical(context)
}

/// Two keys that differ only in case: some parsers treat them as equal.
fn look_alike(members: &[(Cow<'_, str>, Node<'_>)]) -> Option<(String, String)> {
    // Most objects have few members: pairwise comparison is cheaper than a table.
    if members.len() <= FEW_MEMBERS {
        return members.iter().enumerate().find_map(|(index, (key, _))| {
            let mut earlier = members.iter().take(index).map(|(key, _)| key);
            let other = earlier.find(|other| *other != key && is_alike(other, key))?;
            Some((in_short(other), in_short(key)))
        });
    }
    let mut seen: HashMap<String, &str> = HashMap::with_capacity(members.len());
    for (key, _) in members {
        match seen.entry(fold(key)) {
            Entry::Occupied(other) if *other.get() != key => {
                return Some((in_short(other.get()), in_short(key)));
            }
            Entry::Occupied(_) => {}
            Entry::Vacant(slot) => {
                slot.insert(key);
            }
        }
    }
    None
}

fn is_alike(one: &str, other: &str) -> bool {
    if one.is_ascii() && other.is_ascii() {
        one.eq_ignore_ascii_case(other)
    } else {
        fold(one) == fold(other)
    }
}

/// Folds the case of a key, as such parsers do.
pub(crate) fn fold(key: &str) -> String {
    if key.is_ascii() {
        return key.to_ascii_lowercase();
    }
    // Lower case first: the capital sharp s has no upper case that the small one has too.
    let lower = key.chars().flat_map(char::to_lowercase);
    lower.flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::{DEPTH_MAX, MEMBERS_MAX, VALUES_MAX};

    fn read(text: &str) -> Result<Arguments, InvalidArguments> {
        Arguments::read(Some(&RawValue::from_string(text.to_owned()).unwrap()))
    }

    #[test]
    fn keys_that_some_readers_take_for_each_other_are_refused() {
        for text in [
            r#"{"to":"a","TO":"b"}"#,
            r#"{"task":1,"ta\u017fk":2}"#,
            r#"{"K":1,"\u212a":2}"#,
            r#"{"\u00df":1,"\u1e9e":2}"#,
        ] {
            assert!(read(text).is_err(), "{text}");
        }
        // Nested objects are data.
        assert!(read(r#"{"env":{"path":"a","PATH":"b"}}"#).is_ok());
    }

    #[test]
    fn keys_that_serde_json_gives_a_meaning_are_refused_everywhere() {
        for text in [
            r#"{"$serde_json::private::RawValue":"{\"title\":\"forbidden\"}"}"#,
            r#"{"title":{"$serde_json::private::RawValue":"\"forbidden\""}}"#,
            r#"{"title":[{"\u0024serde_json::private::RawValue":"not json"}]}"#,
            r#"{"n":{"$serde_json::private::Number":"1"}}"#,
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains("cannot be a key"), "{text}: {error}");
            assert!(read("{}").unwrap().beside(text, 1000).is_err(), "{text}");
        }
    }

    #[test]
    fn the_same_two_keys_are_named_in_small_and_large_objects() {
        for others in [0, FEW_MEMBERS] {
            let others: String = (0..others).map(|number| format!(",\"k{number}\":0")).collect();
            let error =
                read(&format!("{{\"a\":0,\"b\":0,\"B\":0,\"A\":0{others}}}")).unwrap_err().to_string();
            assert!(error.contains("the keys `b` and `B` differ only in letter case"), "{error}");
        }
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_refused() {
        for (text, why) in [
            (r#"{"to":"a","to":"b"}"#, "duplicate key `to`"),
            (r#"{"to":"a","\u0074o":"b"}"#, "duplicate key `to`"),
            (r#"{"x":[{"a":1,"a":1}]}"#, "duplicate key `a`"),
            ("[]", "they are not an object"),
            ("7", "they are not an object"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert_eq!(error, format!("invalid arguments: {why}"), "{text}");
        }
        assert!(read(r#"{"x":"\ud800"}"#).is_err());
        let deep = |levels: usize| format!("{{\"x\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
        assert!(read(&deep(DEPTH_MAX)).is_ok());
        assert!(read(&deep(DEPTH_MAX + 1)).unwrap_err().to_string().contains("deeper than 64"));
    }

    #[test]
    fn reading_takes_time_in_proportion_to_the_text() {
        let text = |count: usize| {
            let members: Vec<String> = (0..count).map(|at| format!("\"k{at}\":0")).collect();
            format!("{{{}}}", members.join(","))
        };
        assert!(read(&text(MEMBERS_MAX)).is_ok());
        let began = std::time::Instant::now();
        let error = read(&text(350_000)).unwrap_err().to_string();
        assert_eq!(error, "invalid arguments: an object has more than 10000 members");
        let items = |count: usize| format!("{{\"x\":[{}]}}", vec!["1"; count].join(","));
        assert!(read(&items(VALUES_MAX - 2)).is_ok());
        let error = read(&items(VALUES_MAX)).unwrap_err().to_string();
        assert_eq!(error, "invalid arguments: they have more than 100000 values");
        let wide = format!("{{\"x\":\"{}\"}}", "\\n".repeat(ARGUMENTS_MAX_BYTES / 2 - 8));
        assert!(read(&wide).is_ok());
        // Regression: every level was parsed again for each level above it.
        let deep = format!("{{\"x\":{}\"{}\"{}}}", "[".repeat(63), "y".repeat(4_000_000), "]".repeat(63));
        assert!(read(&deep).is_ok());
        let long = format!("{{\"x\":\"{}\"}}", "y".repeat(ARGUMENTS_MAX_BYTES));
        let error = read(&long).unwrap_err().to_string();
        assert_eq!(error, "invalid arguments: they are longer than 4194304 bytes");
        // The old code took minutes.
        assert!(began.elapsed() < std::time::Duration::from_secs(20), "{:?}", began.elapsed());
    }

    #[test]
    fn the_canonical_form_does_not_depend_on_spacing() {
        let spaced = " {\r\n\t\"b\" : [ ] , \"a\" : [ 1 , { } , \"x\\\\\\\"\" , null ] , \"\" : -1.5e+3 } ";
        assert_eq!(read(spaced).unwrap().canonical(), r#"{"":-1.5e+3,"a":[1,{},"x\\\"",null],"b":[]}"#);
        assert!(canonical("{\"a\":}").is_err() && canonical("").is_err() && canonical("{} x").is_err());
    }

    #[test]
    fn only_members_that_the_protocol_does_not_define_are_extra() {
        for (text, has_extra) in [(r#"{"task":{"ttl":1}}"#, false), (r#"{"bcc":"eve@b.example"}"#, true)] {
            let call = read(r#"{"to":"a"}"#).unwrap().beside(text, 100).unwrap();
            assert_eq!(call.has_extra(), has_extra, "{text}");
            assert_eq!(Arguments::read_stored(call.canonical()).unwrap().has_extra(), has_extra, "{text}");
        }
    }

    #[test]
    fn what_stands_beside_the_arguments_is_shown_and_counts() {
        let plain = read(r#"{"a":1}"#).unwrap();
        let with = |text: &str| plain.clone().beside(text, 100).unwrap();
        assert_eq!(
            with(r#"{ "task":{}, "_meta":{"b":1.0} }"#).canonical(),
            r#"{"a":1,"(beside the arguments)":{"_meta":{"b":1.0},"task":{}}}"#
        );
        assert_eq!(with(r#"{"x":1}"#).value(), plain.value());
        assert_ne!(with(r#"{"x":1}"#).canonical(), plain.canonical());
        assert_eq!(
            read("{}").unwrap().beside("{}", 100).unwrap().canonical(),
            r#"{"(beside the arguments)":{}}"#
        );
        // An argument cannot imitate the extra members, which must be unambiguous too.
        assert!(read(r#"{"(beside the arguments)":{"x":1}}"#).is_err());
        assert!(plain.clone().beside(r#"{"x":1,"x":2}"#, 100).is_err());
        assert!(plain.clone().beside(r#"{"x":1}"#, 6).is_err(), "it is bounded as arguments are");
        let stored = Arguments::read_stored(with(r#"{"x":1}"#).canonical()).unwrap();
        assert_eq!((stored.value(), stored.canonical()), (plain.value(), with(r#"{"x":1}"#).canonical()));
        let error =
            plain.clone().beside(r#"{"bcc":"eve@b.example","x":1e999}"#, 100).unwrap_err().to_string();
        assert_eq!(error, "invalid arguments: number out of range");
    }

    #[test]
    fn what_is_recorded_is_the_canonical_form() {
        let text = r#"{"n":12345678901234567890123, "b":[1.0,"\u00e9"],"password":"x","a":null}"#;
        for extra in [None, Some(r#"{"token":"y","task":{}}"#)] {
            let call = read(text).unwrap();
            let call = extra.map_or_else(|| call.clone(), |extra| call.clone().beside(extra, 100).unwrap());
            assert_eq!(call.redacted(), RedactedArguments::of(call.canonical()), "{extra:?}");
        }
    }

    #[test]
    fn the_canonical_form_is_of_the_meaning_and_of_everything_that_matters() {
        let one = read(r#"{ "b" : [1, 2.50, {"y":null,"x":"é"}], "a":true }"#).unwrap();
        let same = read(r#"{"a":true,"b":[1,2.50,{"x":"\u00e9","y":null}]}"#).unwrap();
        assert_eq!(one.canonical(), r#"{"a":true,"b":[1,2.50,{"x":"é","y":null}]}"#);
        assert_eq!(read(" { } ").unwrap().canonical(), "{}");
        assert_eq!((one.value(), one.canonical()), (same.value(), same.canonical()));
        let other = read(r#"{"a":true,"b":[1,2.5,{"x":"e","y":null}]}"#).unwrap();
        assert_ne!(one.canonical(), other.canonical());
        let large = |last: char| read(&format!(r#"{{"n":1234567890123456789012{last}}}"#)).unwrap();
        assert_ne!(large('3').canonical(), large('4').canonical());
        assert_eq!(Arguments::read(None).unwrap().canonical(), "{}");
    }

    #[test]
    fn the_value_is_the_one_that_serde_reads() {
        for text in [
            "{}",
            r#"{"b":[1,-0,0.1,1e3,12345678901234567890123,true,false,null],"a":{"x":"\u00e9\n\"","":[{}]}}"#,
        ] {
            assert_eq!(*read(text).unwrap().value(), serde_json::from_str::<Value>(text).unwrap(), "{text}");
        }
        assert_eq!(read(r#"{"n":1e999}"#).unwrap_err().to_string(), "invalid arguments: number out of range");
    }
}
