//! JSON text as a tree that keeps the text of every value, its canonical form, and the members of one object. The parser accepts
//! what serde_json accepts, except lone surrogates and texts beyond its limits.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde::ser::{Error as _, Serialize, SerializeMap, Serializer};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::arguments::InvalidArguments;

pub(crate) const DEPTH_MAX: usize = 64;
/// serde_json reads an object with such a key as the value that its text contains, so that programs with and without its
/// `raw_value` feature read different arguments.
const SERDE_JSON_KEY: &str = "$serde_json::private::";
pub(crate) const MEMBERS_MAX: usize = 10_000;
/// The maximum number of values: each needs much more memory than its text.
pub(crate) const VALUES_MAX: usize = 100_000;

pub(crate) struct Node<'a> {
    pub(crate) json: &'a str,
    pub(crate) value: NodeValue<'a>,
}

/// Numbers stay as written: another parser may distinguish numbers that are equal to ours.
pub(crate) enum NodeValue<'a> {
    Plain(&'a RawValue),
    Text(Cow<'a, str>),
    Array(Vec<Node<'a>>),
    Object(Vec<(Cow<'a, str>, Node<'a>)>),
    /// JSON that cannot be read as one of these, only in [`Node::parse_for_display`].
    Unreadable,
}

impl<'a> Node<'a> {
    pub(crate) fn parse(text: &'a str) -> Result<Self, InvalidArguments> {
        Scanner::new(text, true).whole()
    }

    /// Parses any JSON text, without limits on depth and values; `None` if it is not JSON. A value that cannot be read, such
    /// as a lone surrogate, does not hide the values around it.
    pub(crate) fn parse_for_display(text: &'a str) -> Option<Self> {
        Scanner::new(text, false).whole().ok()
    }

    /// JSON text without whitespace and with sorted keys. Rejects duplicate keys.
    pub(crate) fn canonical(&self, context: SchemaContext) -> Result<Box<RawValue>, InvalidArguments> {
        to_raw_value(&Canonical { node: self, context }).map_err(|error| InvalidArguments(error.to_string()))
    }

    pub(crate) fn into_value(self) -> Result<Value, InvalidArguments> {
        Ok(match self.value {
            NodeValue::Plain(plain) => match plain.get() {
                "null" => Value::Null,
                "true" => Value::Bool(true),
                "false" => Value::Bool(false),
                number => serde_json::from_str(number).map_err(unreadable)?,
            },
            NodeValue::Text(text) => Value::String(text.into_owned()),
            NodeValue::Unreadable => return Err(malformed()),
            NodeValue::Array(items) => {
                Value::Array(items.into_iter().map(Self::into_value).collect::<Result<_, _>>()?)
            }
            NodeValue::Object(members) => {
                let members =
                    members.into_iter().map(|(key, value)| Ok((key.into_owned(), value.into_value()?)));
                Value::Object(members.collect::<Result<_, InvalidArguments>>()?)
            }
        })
    }
}

/// The members of `tools/call` parameters, as JSON text, and the parsed `arguments`.
pub(crate) struct ParamsMembers<'a> {
    pub(crate) members: Vec<(Cow<'a, str>, &'a str)>,
    pub(crate) arguments: Option<Result<Node<'a>, InvalidArguments>>,
}

impl<'a> ParamsMembers<'a> {
    /// Parses valid JSON text in one pass; `None` where [`Members`] fails too.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let mut scanner = Scanner::new(text, true);
        let (mut members, mut arguments) = (Vec::new(), None);
        let mut has_next = scanner.open(b'{', b'}').ok()?;
        while has_next {
            if members.len() == MEMBERS_MAX {
                return None;
            }
            let key = scanner.key().ok()?;
            let start = scanner.at;
            if key == "arguments" {
                let parsed = scanner.value(0);
                if parsed.is_err() {
                    scanner.at = start;
                    scanner.skip_value()?;
                }
                arguments = Some(parsed);
            } else {
                scanner.skip_value()?;
            }
            members.push((key, text.get(start..scanner.at)?));
            has_next = scanner.next(b'}').ok()?;
        }
        Some(Self { members, arguments })
    }
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    values: usize,
    is_strict: bool,
}

impl<'a> Scanner<'a> {
    fn new(text: &'a str, is_strict: bool) -> Self {
        Self { text, at: 0, values: 0, is_strict }
    }

    fn whole(mut self) -> Result<Node<'a>, InvalidArguments> {
        let node = self.value(0)?;
        if self.peek().is_some() { Err(malformed()) } else { Ok(node) }
    }

    fn value(&mut self, depth: usize) -> Result<Node<'a>, InvalidArguments> {
        self.values += 1;
        if self.is_strict && self.values > VALUES_MAX {
            return Err(InvalidArguments(format!("they have more than {VALUES_MAX} values")));
        }
        if self.is_strict && depth > DEPTH_MAX {
            return Err(InvalidArguments(format!("they are nested deeper than {DEPTH_MAX} levels")));
        }
        self.peek();
        let start = self.at;
        let value = match self.node_value(depth) {
            Err(error) if self.is_strict => return Err(error),
            Err(_) => {
                self.at = start;
                self.skip_value().ok_or_else(malformed)?;
                NodeValue::Unreadable
            }
            Ok(value) => value,
        };
        Ok(Node { json: self.text.get(start..self.at).unwrap_or_default(), value })
    }

    fn node_value(&mut self, depth: usize) -> Result<NodeValue<'a>, InvalidArguments> {
        Ok(match self.peek() {
            Some(b'{') => self.object(depth)?,
            Some(b'[') => {
                let mut items = Vec::new();
                let mut has_next = self.open(b'[', b']')?;
                while has_next {
                    items.push(self.value(depth + 1)?);
                    has_next = self.next(b']')?;
                }
                NodeValue::Array(items)
            }
            Some(b'"') => NodeValue::Text(self.string()?),
            _ => {
                let rest = self.text.get(self.at..).unwrap_or_default();
                let end = rest.find([',', ']', '}', ' ', '\t', '\n', '\r']).unwrap_or(rest.len());
                self.at += end;
                let plain = rest.get(..end).unwrap_or_default();
                NodeValue::Plain(serde_json::from_str(plain).map_err(unreadable)?)
            }
        })
    }

    fn object(&mut self, depth: usize) -> Result<NodeValue<'a>, InvalidArguments> {
        let mut members = Vec::new();
        let mut has_next = self.open(b'{', b'}')?;
        while has_next {
            if members.len() == MEMBERS_MAX {
                return Err(InvalidArguments(format!("an object has more than {MEMBERS_MAX} members")));
            }
            let key = self.key()?;
            if self.is_strict && key.starts_with(SERDE_JSON_KEY) {
                return Err(InvalidArguments(format!("`{}` cannot be a key", in_short(&key))));
            }
            members.push((key, self.value(depth + 1)?));
            has_next = self.next(b'}')?;
        }
        Ok(NodeValue::Object(members))
    }

    /// Consumes the opening bracket, and the closing one if it is next. Returns whether an item follows.
    fn open(&mut self, bracket: u8, closing: u8) -> Result<bool, InvalidArguments> {
        self.expect(bracket)?;
        let is_empty = self.peek() == Some(closing);
        self.at += usize::from(is_empty);
        Ok(!is_empty)
    }

    /// Consumes a comma or the closing bracket. Returns whether another item follows.
    fn next(&mut self, closing: u8) -> Result<bool, InvalidArguments> {
        let is_end = self.peek() == Some(closing);
        self.expect(if is_end { closing } else { b',' })?;
        Ok(!is_end)
    }

    /// Consumes a key and its colon, up to the value.
    fn key(&mut self) -> Result<Cow<'a, str>, InvalidArguments> {
        self.peek();
        let key = self.string()?;
        self.expect(b':')?;
        self.peek();
        Ok(key)
    }

    fn string(&mut self) -> Result<Cow<'a, str>, InvalidArguments> {
        let bytes = self.text.as_bytes();
        let (start, mut has_escapes) = (self.at, false);
        self.expect(b'"')?;
        let mut end = self.at;
        loop {
            match bytes.get(end) {
                Some(b'"') => break,
                Some(b'\\') => (has_escapes, end) = (true, end + 2),
                Some(0x20..) => end += 1,
                Some(_) | None => return Err(malformed()),
            }
        }
        self.at = end + 1;
        if has_escapes {
            let text = self.text.get(start..=end).unwrap_or_default();
            return serde_json::from_str(text).map(Cow::Owned).map_err(unreadable);
        }
        Ok(Cow::Borrowed(self.text.get(start + 1..end).unwrap_or_default()))
    }

    fn skip_value(&mut self) -> Option<()> {
        let mut values =
            serde_json::Deserializer::from_str(self.text.get(self.at..)?).into_iter::<&RawValue>();
        values.next()?.ok()?;
        self.at += values.byte_offset();
        Some(())
    }

    /// Skips whitespace, and returns the next byte without consuming it.
    fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while matches!(bytes.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
        bytes.get(self.at).copied()
    }

    fn expect(&mut self, sign: u8) -> Result<(), InvalidArguments> {
        if self.peek() != Some(sign) {
            return Err(malformed());
        }
        self.at += 1;
        Ok(())
    }
}

struct Canonical<'n> {
    node: &'n Node<'n>,
    context: SchemaContext,
}

impl Serialize for Canonical<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let item = |node| Canonical { node, context: self.context.item() };
        match &self.node.value {
            NodeValue::Plain(plain) => plain.serialize(serializer),
            NodeValue::Text(text) => serializer.serialize_str(text),
            NodeValue::Unreadable => Err(S::Error::custom(malformed().0)),
            NodeValue::Array(items) if self.context.is_set() => {
                let mut items: Vec<Box<RawValue>> = items
                    .iter()
                    .map(|node| to_raw_value(&item(node)))
                    .collect::<Result<_, _>>()
                    .map_err(S::Error::custom)?;
                items.sort_unstable_by(|one, other| one.get().cmp(other.get()));
                serializer.collect_seq(items)
            }
            NodeValue::Array(items) => serializer.collect_seq(items.iter().map(item)),
            NodeValue::Object(members) => {
                let mut members: Vec<&(Cow<'_, str>, Node<'_>)> = members.iter().collect();
                members.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
                let twice = members.windows(2).find_map(|pair| match pair {
                    [(one, _), (other, _)] if one == other => Some(one),
                    _ => None,
                });
                if let Some(key) = twice {
                    let key = in_short(key);
                    return Err(S::Error::custom(format_args!("duplicate key `{key}`")));
                }
                let mut map = serializer.serialize_map(Some(members.len()))?;
                for (key, node) in members {
                    map.serialize_entry(key, &Canonical { node, context: self.context.member(key) })?;
                }
                map.end()
            }
        }
    }
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

pub(crate) fn in_short(key: &str) -> String {
    key.chars().take(40).collect()
}

fn malformed() -> InvalidArguments {
    InvalidArguments("they are not JSON".to_owned())
}

pub(crate) fn unreadable(error: serde_json::Error) -> InvalidArguments {
    let text = error.to_string();
    // The position is relative to a part of the arguments and would mislead.
    InvalidArguments(text.split(" at line ").next().unwrap_or(&text).to_owned())
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
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_accepts_what_serde_json_accepts(text in r#"(\[|\]|\{|\}|,|:|"a"|"a":1|1|-|1\.5|tru|true| |"\\n"|"|\x01){0,9}"#) {
            let is_json = serde_json::from_str::<&RawValue>(&text).is_ok();
            prop_assert_eq!(Node::parse(&text).is_ok(), is_json, "{}", text);
        }

        #[test]
        fn every_node_keeps_its_text(text in r#" ?\{"a" ?: ?(1\.50|\[ ?true ?, ?"x\\n"\]|\{ ?\}) ?(, ?"b":null)? ?\} ?"#) {
            let node = Node::parse(&text).unwrap();
            prop_assert_eq!(node.json, text.trim());
            let NodeValue::Object(members) = node.value else { panic!("{text}") };
            let Members(expected) = serde_json::from_str(&text).unwrap();
            let found: Vec<(&str, &str)> = members.iter().map(|(key, node)| (&**key, node.json)).collect();
            let expected: Vec<(&str, &str)> = expected.iter().map(|(key, raw)| (&**key, raw.get())).collect();
            prop_assert_eq!(&found, &expected);
            let params = ParamsMembers::parse(&text).unwrap();
            let found: Vec<(&str, &str)> = params.members.iter().map(|(key, json)| (&**key, *json)).collect();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn one_unreadable_value_does_not_hide_the_others_from_display() {
        let text = r#"{"a":["\ud800",1],"b":{"\ud800":1},"c":"x"}"#;
        assert!(Node::parse(text).is_err());
        let Some(NodeValue::Object(members)) = Node::parse_for_display(text).map(|node| node.value) else {
            panic!("it is an object")
        };
        let [(_, a), (_, b), (_, c)] = &*members else { panic!("{}", members.len()) };
        assert!(
            matches!(&a.value, NodeValue::Array(items) if matches!(items[0].value, NodeValue::Unreadable))
        );
        assert!(matches!(b.value, NodeValue::Unreadable) && matches!(c.value, NodeValue::Text(_)));
        let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
        assert!(Node::parse(&deep).is_err() && Node::parse_for_display(&deep).is_some());
        assert!(Node::parse_for_display("not json").is_none() && Node::parse_for_display("[1,]").is_none());
    }

    #[test]
    fn members_after_wrong_arguments_are_found() {
        let text = r#"{"arguments":{"x":"\ud800", "y":[{}]} , "name":"a"}"#;
        let params = ParamsMembers::parse(text).unwrap();
        assert!(params.arguments.is_some_and(|arguments| arguments.is_err()));
        let found: Vec<(&str, &str)> = params.members.iter().map(|(key, json)| (&**key, *json)).collect();
        assert_eq!(found, [("arguments", r#"{"x":"\ud800", "y":[{}]}"#), ("name", r#""a""#)]);
    }
}
