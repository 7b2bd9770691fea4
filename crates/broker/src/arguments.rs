//! A call's arguments: read once, and refused when two readers could read them differently.
//!
//! What the gate judges must be what the server gets. So arguments with a repeated key at any depth, a lone surrogate or
//! more than 64 levels are refused before anybody looks at them, and the digest of an approval is over a canonical form
//! that does not depend on spacing or the order of keys.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

/// Levels of nesting.
const DEEPEST: usize = 64;

/// Arguments that everybody reads alike.
#[derive(Debug, Clone, PartialEq)]
pub struct Arguments {
    value: Value,
    canonical: String,
}

/// Why arguments are refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the arguments are refused: {0}")]
pub struct RefusedArguments(String);

impl Arguments {
    /// Reads them; none are an empty object.
    ///
    /// # Errors
    /// When they are not an object, or could be read in two ways.
    pub fn read(raw: Option<&RawValue>) -> Result<Self, RefusedArguments> {
        let text = raw.map_or("{}", RawValue::get).trim_start();
        if !text.starts_with('{') {
            return Err(RefusedArguments("they are not an object".to_owned()));
        }
        let canonical = canonical(text)?;
        let value = serde_json::from_str(text).map_err(unreadable)?;
        Ok(Self { value, canonical })
    }

    /// The arguments.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The canonical form, as JSON text: what is shown to a person, and what an approval and the audit record are about.
    #[must_use]
    pub fn canonical(&self) -> &str {
        &self.canonical
    }

    /// The digest of these arguments for this tool of this body, with this definition: what an approval is bound to.
    #[must_use]
    pub fn digest(&self, body: &str, tool: &str, pin: &str) -> String {
        let mut hasher = blake3::Hasher::new();
        for part in [body, tool, pin, &self.canonical] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        hasher.finalize().to_hex().to_string()
    }
}

/// Any JSON text in the canonical form.
///
/// # Errors
/// When it could be read in two ways.
pub(crate) fn canonical(text: &str) -> Result<String, RefusedArguments> {
    canonical_in(text, Place::Data)
}

/// The same for a text in this place: in a schema the order of sets does not count.
pub(crate) fn canonical_in(text: &str, place: Place) -> Result<String, RefusedArguments> {
    let mut out = String::with_capacity(text.len());
    write(text, 0, place, &mut out)?;
    Ok(out)
}

/// What a JSON value is, as far as the order of its items counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// A value: order counts.
    Data,
    /// A JSON schema, or a list of them.
    Schema,
    /// An object whose members are schemas, under names of the author's choice.
    Schemas,
    /// A set of schemas.
    SchemaSet,
    /// A set of values.
    Set,
    /// An object whose members are sets of values.
    Sets,
}

impl Place {
    /// Of a member of an object in this place.
    fn member(self, key: &str) -> Self {
        match (self, key) {
            (Self::Schema | Self::SchemaSet, "required" | "enum" | "type") => Self::Set,
            (Self::Schema | Self::SchemaSet, "anyOf" | "oneOf" | "allOf") => Self::SchemaSet,
            (
                Self::Schema | Self::SchemaSet,
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas",
            ) => Self::Schemas,
            (Self::Schema | Self::SchemaSet, "dependentRequired") => Self::Sets,
            (Self::Schema | Self::SchemaSet, "const" | "default" | "examples") => Self::Data,
            (Self::Schema | Self::SchemaSet | Self::Schemas, _) => Self::Schema,
            (Self::Sets, _) => Self::Set,
            (Self::Data | Self::Set, _) => Self::Data,
        }
    }

    /// Of an item of an array in this place.
    fn item(self) -> Self {
        match self {
            Self::Schema | Self::SchemaSet => Self::Schema,
            Self::Data | Self::Set | Self::Schemas | Self::Sets => Self::Data,
        }
    }

    fn is_set(self) -> bool {
        matches!(self, Self::Set | Self::SchemaSet)
    }
}

impl RefusedArguments {
    /// Why, without what was refused.
    pub(crate) fn reason(&self) -> &str {
        &self.0
    }
}

/// Writes a value with its keys in order and without spacing. Numbers stay as they were written: a reader with larger
/// numbers than ours tells apart what we could not.
fn write(text: &str, depth: usize, place: Place, out: &mut String) -> Result<(), RefusedArguments> {
    let text = text.trim_start();
    if depth > DEEPEST {
        return Err(RefusedArguments(format!("they are nested deeper than {DEEPEST} levels")));
    }
    match text.as_bytes().first() {
        Some(b'{') => {
            let Members(mut members) = serde_json::from_str(text).map_err(unreadable)?;
            if depth == 0
                && let Some((one, other)) = look_alike(&members)
            {
                return Err(RefusedArguments(format!(
                    "the keys `{one}` and `{other}` are the same to a reader that does not tell capital letters apart"
                )));
            }
            members.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
            let twice = members.windows(2).find_map(|pair| match pair {
                [(one, _), (other, _)] if one == other => Some(one),
                _ => None,
            });
            if let Some(key) = twice {
                let shown: String = key.chars().take(40).collect();
                return Err(RefusedArguments(format!("the key `{shown}` stands there twice")));
            }
            out.push('{');
            for (number, (key, value)) in members.into_iter().enumerate() {
                if number > 0 {
                    out.push(',');
                }
                push_string(&key, out);
                out.push(':');
                write(value.get(), depth + 1, place.member(&key), out)?;
            }
            out.push('}');
        }
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(text).map_err(unreadable)?;
            let mut written = Vec::with_capacity(items.len());
            for item in items {
                let mut text = String::new();
                write(item.get(), depth + 1, place.item(), &mut text)?;
                written.push(text);
            }
            if place.is_set() {
                written.sort_unstable();
            }
            out.push('[');
            out.push_str(&written.join(","));
            out.push(']');
        }
        Some(b'"') => {
            let string: Text<'_> = serde_json::from_str(text).map_err(unreadable)?;
            push_string(&string.0, out);
        }
        _ => out.push_str(text.trim_end()),
    }
    Ok(())
}

/// A string, which most often stands in the text as it is.
#[derive(serde::Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

fn push_string(text: &str, out: &mut String) {
    if text.bytes().any(|byte| byte < 0x20 || matches!(byte, b'"' | b'\\')) {
        out.push_str(&Value::from(text).to_string());
    } else {
        out.push('"');
        out.push_str(text);
        out.push('"');
    }
}

fn unreadable(error: serde_json::Error) -> RefusedArguments {
    let text = error.to_string();
    // The place is one in a part of the arguments, which nobody else counts from.
    RefusedArguments(text.split(" at line ").next().unwrap_or(&text).to_owned())
}

/// Two keys that differ in capital letters only: some readers take one for the other.
fn look_alike(members: &[(String, &RawValue)]) -> Option<(String, String)> {
    let mut seen: Vec<(String, &str)> = Vec::with_capacity(members.len());
    for (key, _) in members {
        let folded = fold(key);
        let other = seen.iter().find(|(known, name)| *known == folded && name != key);
        if let Some((_, other)) = other {
            return Some(((*other).chars().take(40).collect(), key.chars().take(40).collect()));
        }
        seen.push((folded, key));
    }
    None
}

/// A key without the difference between capital and small letters, as such readers see it.
pub(crate) fn fold(key: &str) -> String {
    if key.is_ascii() {
        return key.to_ascii_lowercase();
    }
    key.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect()
}

/// The members of an object in their order, also those that stand there twice.
pub(crate) struct Members<'a>(pub(crate) Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = Vec<(String, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(All).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Arguments, RefusedArguments> {
        Arguments::read(Some(&RawValue::from_string(text.to_owned()).unwrap()))
    }

    #[test]
    fn keys_that_some_readers_take_for_each_other_are_refused() {
        for text in [r#"{"to":"a","TO":"b"}"#, r#"{"task":1,"ta\u017fk":2}"#, r#"{"K":1,"\u212a":2}"#] {
            assert!(read(text).is_err(), "{text}");
        }
        // What lies deeper is data.
        assert!(read(r#"{"env":{"path":"a","PATH":"b"}}"#).is_ok());
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_refused() {
        for (text, why) in [
            (r#"{"to":"a","to":"b"}"#, "the key `to` stands there twice"),
            (r#"{"to":"a","\u0074o":"b"}"#, "the key `to` stands there twice"),
            (r#"{"x":[{"a":1,"a":1}]}"#, "the key `a` stands there twice"),
            ("[]", "they are not an object"),
            ("7", "they are not an object"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert_eq!(error, format!("the arguments are refused: {why}"), "{text}");
        }
        assert!(read(r#"{"x":"\ud800"}"#).is_err());
        let deep = |levels: usize| format!("{{\"x\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
        assert!(read(&deep(DEEPEST)).is_ok());
        assert!(read(&deep(DEEPEST + 1)).unwrap_err().to_string().contains("deeper than 64"));
    }

    #[test]
    fn the_digest_is_of_the_meaning_and_of_everything_that_matters() {
        let one = read(r#"{ "b" : [1, 2.50, {"y":null,"x":"é"}], "a":true }"#).unwrap();
        let same = read(r#"{"a":true,"b":[1,2.50,{"x":"\u00e9","y":null}]}"#).unwrap();
        assert_eq!(one.canonical(), r#"{"a":true,"b":[1,2.50,{"x":"é","y":null}]}"#);
        assert_eq!(read(" { } ").unwrap().canonical(), "{}");
        let digest = one.digest("mail", "send", "p1");
        assert_eq!(digest, same.digest("mail", "send", "p1"));
        let others = [
            one.digest("mail", "send", "p2"),
            one.digest("mai", "lsend", "p1"),
            one.digest("mail2", "send", "p1"),
            read(r#"{"a":true,"b":[1,2.5,{"x":"e","y":null}]}"#).unwrap().digest("mail", "send", "p1"),
            read("{}").unwrap().digest("mail", "send", "p1"),
        ];
        let large = |last: char| read(&format!(r#"{{"n":1234567890123456789012{last}}}"#)).unwrap();
        assert_ne!(large('3').digest("m", "t", "p"), large('4').digest("m", "t", "p"));
        assert!(others.iter().all(|other| *other != digest));
        assert_eq!(Arguments::read(None).unwrap(), read("{}").unwrap());
    }
}
