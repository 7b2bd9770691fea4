//! A call's arguments: parsed once, and rejected when two parsers could read them differently.
//!
//! The gate must decide about what the server receives. Arguments with a duplicate key at any depth, a lone surrogate or more
//! than 64 levels are therefore rejected, and an approval is bound to a canonical form that does not depend on spacing or the
//! order of keys. Time and memory are linear in the text, and the number of values is bounded.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use embody_wire::off_runtime;

/// The key for the extra members of a call where arguments are shown and recorded.
const BESIDE: &str = "(beside the arguments)";
const DEPTH_MAX: usize = 64;
const FEW_MEMBERS: usize = 8;
/// serde_json reads an object with such a key as the value that its text contains, so that programs with and without its
/// `raw_value` feature read different arguments.
const SERDE_JSON_KEY: &str = "$serde_json::private::";
const MEMBERS_MAX: usize = 10_000;
/// The maximum number of values: each needs much more memory than its text.
const VALUES_MAX: usize = 100_000;
pub const ARGUMENTS_MAX_BYTES: usize = 4 * 1024 * 1024;

#[derive(Debug, Clone)]
pub struct Arguments {
    value: Value,
    canonical: Box<RawValue>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the arguments are refused: {0}")]
pub struct InvalidArguments(String);

impl Arguments {
    /// At most [`ARGUMENTS_MAX_BYTES`]; `None` is an empty object.
    pub fn read(raw: Option<&RawValue>) -> Result<Self, InvalidArguments> {
        Self::read_within(raw, ARGUMENTS_MAX_BYTES)
    }

    /// Parses large arguments with `block_in_place`, so that they do not block the runtime.
    pub(crate) fn read_within(raw: Option<&RawValue>, max_bytes: usize) -> Result<Self, InvalidArguments> {
        let text = raw.map_or("{}", RawValue::get).trim_start();
        if !text.starts_with('{') {
            return Err(InvalidArguments("they are not an object".to_owned()));
        }
        if text.len() > max_bytes {
            return Err(InvalidArguments(format!("they are longer than {max_bytes} bytes")));
        }
        off_runtime(text.len(), || {
            // A raw value is valid JSON, so one scan returns both forms.
            let (canonical, node) = scan(text, SchemaContext::Data)?;
            let value = node.into_value()?;
            if value.get(BESIDE).is_some() {
                return Err(InvalidArguments(format!("`{BESIDE}` cannot be the name of an argument")));
            }
            Ok(Self { value, canonical: RawValue::from_string(canonical).map_err(unreadable)? })
        })
    }

    /// Parses the stored canonical form, with the extra members of the call.
    pub fn read_stored(text: &str) -> Result<Self, InvalidArguments> {
        let mut value: Value = serde_json::from_str(text).map_err(unreadable)?;
        let members = value.as_object_mut();
        let members = members.ok_or_else(|| InvalidArguments("they are not an object".to_owned()))?;
        members.remove(BESIDE);
        Ok(Self { value, canonical: RawValue::from_string(text.to_owned()).map_err(unreadable)? })
    }

    /// Adds the extra members of a call, as JSON text, to the canonical form.
    pub(crate) fn beside(self, text: &str, max_bytes: usize) -> Result<Self, InvalidArguments> {
        if text.len() > max_bytes {
            return Err(InvalidArguments(format!(
                "what stands beside them is longer than {max_bytes} bytes"
            )));
        }
        let beside = off_runtime(text.len(), || canonical(text))?;
        let arguments = self.canonical();
        let open = arguments.strip_suffix('}').unwrap_or(arguments);
        let comma = if open == "{" { "" } else { "," };
        let canonical = format!("{open}{comma}\"{BESIDE}\":{beside}}}");
        Ok(Self { canonical: RawValue::from_string(canonical).map_err(unreadable)?, ..self })
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
}

pub(crate) fn canonical(text: &str) -> Result<String, InvalidArguments> {
    canonical_in(text, SchemaContext::Data)
}

/// In a schema the order of sets does not count.
pub(crate) fn canonical_in(text: &str, place: SchemaContext) -> Result<String, InvalidArguments> {
    // The scanner relies on valid JSON.
    let text = serde_json::from_str::<&RawValue>(text).map_err(unreadable)?.get();
    scan(text, place).map(|(canonical, _)| canonical)
}

fn scan(text: &str, place: SchemaContext) -> Result<(String, Node<'_>), InvalidArguments> {
    let mut scanner = Scanner { text, at: 0, values: 0 };
    let mut node = scanner.value(0)?;
    if let Node::Object(members) = &node
        && let Some((one, other)) = look_alike(members)
    {
        return Err(InvalidArguments(format!(
            "the keys `{one}` and `{other}` are the same to a reader that does not tell capital letters apart"
        )));
    }
    let mut out = String::with_capacity(text.len());
    node.write(place, &mut out)?;
    Ok((out, node))
}

/// The context of a JSON value: whether the order of its items counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SchemaContext {
    Data,
    Schema,
    /// An object whose members are schemas, under arbitrary names.
    Schemas,
    SchemaSet,
    Set,
    Sets,
}

impl SchemaContext {
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

/// Numbers stay as written: another parser may distinguish numbers that are equal to ours.
enum Node<'a> {
    Plain(&'a str),
    Text(Cow<'a, str>),
    Array(Vec<Node<'a>>),
    Object(Vec<(Cow<'a, str>, Node<'a>)>),
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    values: usize,
}

impl<'a> Scanner<'a> {
    fn value(&mut self, depth: usize) -> Result<Node<'a>, InvalidArguments> {
        self.values += 1;
        if self.values > VALUES_MAX {
            return Err(InvalidArguments(format!("they have more than {VALUES_MAX} values")));
        }
        if depth > DEPTH_MAX {
            return Err(InvalidArguments(format!("they are nested deeper than {DEPTH_MAX} levels")));
        }
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => {
                self.at += 1;
                let mut items = Vec::new();
                while self.peek() != Some(b']') {
                    items.push(self.value(depth + 1)?);
                    self.skip(b',')?;
                }
                self.at += 1;
                Ok(Node::Array(items))
            }
            Some(b'"') => self.string().map(Node::Text),
            _ => {
                let rest = self.text.get(self.at..).unwrap_or_default();
                let end = rest.find([',', ']', '}', ' ', '\t', '\n', '\r']).unwrap_or(rest.len());
                self.at += end;
                Ok(Node::Plain(rest.get(..end).unwrap_or_default()))
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Node<'a>, InvalidArguments> {
        self.at += 1;
        let mut members = Vec::new();
        while self.peek() != Some(b'}') {
            if members.len() == MEMBERS_MAX {
                return Err(InvalidArguments(format!("an object has more than {MEMBERS_MAX} members")));
            }
            let key = self.string()?;
            if key.starts_with(SERDE_JSON_KEY) {
                return Err(InvalidArguments(format!("`{}` cannot be a key", in_short(&key))));
            }
            self.skip(b':')?;
            members.push((key, self.value(depth + 1)?));
            self.skip(b',')?;
        }
        self.at += 1;
        Ok(Node::Object(members))
    }

    fn string(&mut self) -> Result<Cow<'a, str>, InvalidArguments> {
        let bytes = self.text.as_bytes();
        let (start, mut has_escapes) = (self.at, false);
        let mut end = start + 1;
        loop {
            match bytes.get(end) {
                Some(b'"') => break,
                Some(b'\\') => (has_escapes, end) = (true, end + 2),
                Some(_) => end += 1,
                None => return Err(InvalidArguments("a string has no end".to_owned())),
            }
        }
        self.at = end + 1;
        if has_escapes {
            let text = self.text.get(start..=end).unwrap_or_default();
            return serde_json::from_str(text).map(Cow::Owned).map_err(unreadable);
        }
        Ok(Cow::Borrowed(self.text.get(start + 1..end).unwrap_or_default()))
    }

    fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while matches!(bytes.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
        bytes.get(self.at).copied()
    }

    /// Consumes this byte if it is next; does nothing at the end of the text.
    fn skip(&mut self, sign: u8) -> Result<(), InvalidArguments> {
        match self.peek() {
            Some(next) if next == sign => self.at += 1,
            Some(_) => {}
            None => return Err(InvalidArguments("they end too early".to_owned())),
        }
        // Skip whitespace before the next key or value.
        self.peek();
        Ok(())
    }
}

impl Node<'_> {
    fn into_value(self) -> Result<Value, InvalidArguments> {
        Ok(match self {
            Self::Plain("null") => Value::Null,
            Self::Plain("true") => Value::Bool(true),
            Self::Plain("false") => Value::Bool(false),
            Self::Plain(number) => serde_json::from_str(number).map_err(unreadable)?,
            Self::Text(text) => Value::String(text.into_owned()),
            Self::Array(items) => {
                Value::Array(items.into_iter().map(Self::into_value).collect::<Result<_, _>>()?)
            }
            Self::Object(members) => {
                let members =
                    members.into_iter().map(|(key, value)| Ok((key.into_owned(), value.into_value()?)));
                Value::Object(members.collect::<Result<_, InvalidArguments>>()?)
            }
        })
    }

    /// Writes the value without whitespace and with sorted keys.
    fn write(&mut self, place: SchemaContext, out: &mut String) -> Result<(), InvalidArguments> {
        match self {
            Self::Plain(text) => out.push_str(text),
            Self::Text(text) => push_string(text, out),
            Self::Array(items) if place.is_set() => {
                let mut written = Vec::with_capacity(items.len());
                for item in items {
                    let mut text = String::new();
                    item.write(place.item(), &mut text)?;
                    written.push(text);
                }
                written.sort_unstable();
                out.push('[');
                out.push_str(&written.join(","));
                out.push(']');
            }
            Self::Array(items) => {
                out.push('[');
                for (number, item) in items.iter_mut().enumerate() {
                    if number > 0 {
                        out.push(',');
                    }
                    item.write(place.item(), out)?;
                }
                out.push(']');
            }
            Self::Object(members) => {
                members.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
                let twice = members.windows(2).find_map(|pair| match pair {
                    [(one, _), (other, _)] if one == other => Some(one),
                    _ => None,
                });
                if let Some(key) = twice {
                    return Err(InvalidArguments(format!("the key `{}` stands there twice", in_short(key))));
                }
                out.push('{');
                for (number, (key, value)) in members.iter_mut().enumerate() {
                    if number > 0 {
                        out.push(',');
                    }
                    push_string(key, out);
                    out.push(':');
                    value.write(place.member(key), out)?;
                }
                out.push('}');
            }
        }
        Ok(())
    }
}

fn in_short(key: &str) -> String {
    key.chars().take(40).collect()
}

fn push_string(text: &str, out: &mut String) {
    if text.bytes().any(|byte| byte < 0x20 || matches!(byte, b'"' | b'\\')) {
        out.push_str(&Value::from(text).to_string());
    } else {
        out.push('"');
        out.push_str(text);
        out.push('"');
    }
}

fn unreadable(error: serde_json::Error) -> InvalidArguments {
    let text = error.to_string();
    // The position is relative to a part of the arguments and would mislead.
    InvalidArguments(text.split(" at line ").next().unwrap_or(&text).to_owned())
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
            Entry::Vacant(place) => {
                place.insert(key);
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

/// The members of an object in order, including duplicates; at most [`MEMBERS_MAX`].
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
                    if members.len() == MEMBERS_MAX {
                        return Err(A::Error::custom(format_args!("more than {MEMBERS_MAX} members")));
                    }
                    members.push(member);
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(All).map(Self)
    }
}

#[cfg(test)]
mod tests;
