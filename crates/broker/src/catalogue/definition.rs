//! One tool's definition: its hash, its annotations, and renaming. Owns what counts as the same definition; rejects one that
//! two parsers could read differently.
//!
//! The hash covers what a model or the gate uses: name, title, description, schemas and annotations, in a canonical form that
//! ignores the order of keys and, in schemas, of sets (`required`, `enum`, `anyOf`, …). Icons and `_meta` may change freely.

use embody_wire::splice;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::definition_scan::Part;
use crate::arguments::{canonical, canonical_in};
use crate::json::{Members, SchemaContext};
use crate::policy::{Annotations, Kind};

const DEFINITION_BYTES: usize = 256 * 1024;
const NAME_BYTES: usize = 200;

#[derive(Debug)]
pub(super) struct Definition {
    pub(super) hash: String,
    pub(super) annotations: Annotations,
    pub(super) texts: Vec<(Part, String)>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Parts<'a> {
    #[serde(borrow)]
    name: &'a RawValue,
    #[serde(borrow, default)]
    title: Option<&'a RawValue>,
    #[serde(borrow, default)]
    description: Option<&'a RawValue>,
    #[serde(borrow, default)]
    input_schema: Option<&'a RawValue>,
    #[serde(borrow, default)]
    output_schema: Option<&'a RawValue>,
    #[serde(borrow, default)]
    annotations: Option<&'a RawValue>,
}

impl<'a> Parts<'a> {
    fn all(&self) -> [(Part, SchemaContext, Option<&'a RawValue>); 6] {
        [
            (Part::Name, SchemaContext::Data, Some(self.name)),
            (Part::Title, SchemaContext::Data, self.title),
            (Part::Description, SchemaContext::Data, self.description),
            (Part::InputSchema, SchemaContext::Schema, self.input_schema),
            (Part::OutputSchema, SchemaContext::Schema, self.output_schema),
            (Part::Annotations, SchemaContext::Data, self.annotations),
        ]
    }
}

/// The texts of a definition that a model reads before it calls the tool, unchanged.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Texts<'a> {
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    title: Option<&'a RawValue>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    description: Option<&'a RawValue>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    input_schema: Option<&'a RawValue>,
}

impl<'a> Texts<'a> {
    pub(crate) fn of(definition: &'a RawValue) -> Self {
        serde_json::from_str(definition.get()).unwrap_or_default()
    }

    pub(crate) fn declared_arguments(&self) -> Vec<String> {
        #[derive(Deserialize)]
        struct Schema<'a> {
            #[serde(borrow)]
            properties: Members<'a>,
        }
        let schema =
            self.input_schema.and_then(|schema| serde_json::from_str::<Schema<'_>>(schema.get()).ok());
        let properties = schema.map(|schema| schema.properties.0).unwrap_or_default();
        properties.into_iter().map(|(key, _)| key).collect()
    }

    pub(crate) fn len(&self) -> usize {
        let parts = [self.title, self.description, self.input_schema];
        parts.into_iter().flatten().map(|part| part.get().len()).sum()
    }
}

/// `None` if the name is not usable, or the definition is too long or can be read in two ways.
pub(super) fn read(name: &str, definition: &RawValue) -> Option<Definition> {
    let is_reserved = name == crate::session::instructions::PIN || Kind::of(name).is_some();
    if is_reserved
        || name.trim().is_empty()
        || name.len() > NAME_BYTES
        || name.chars().any(char::is_control)
        || definition.get().len() > DEFINITION_BYTES
    {
        return None;
    }
    // Check the whole definition: two parsers could choose different values of a duplicate member.
    canonical(definition.get()).ok()?;
    let parts = parts(definition)?;
    if serde_json::from_str::<String>(parts.name.get()).ok()? != name {
        return None;
    }
    let mut hasher = blake3::Hasher::new();
    let mut texts = Vec::new();
    for (part, position, raw) in parts.all() {
        let text = raw.map(|raw| canonical_in(raw.get(), position)).transpose().ok()?;
        // Distinguish absent from empty.
        let length = text.as_ref().map_or(u64::MAX, |text| text.len() as u64);
        hasher.update(&length.to_le_bytes());
        hasher.update(text.as_deref().unwrap_or_default().as_bytes());
        if let Some(raw) = raw {
            collect(&serde_json::from_str(raw.get()).ok()?, part, &mut texts);
        }
    }
    Some(Definition {
        hash: hasher.finalize().to_hex().to_string(),
        annotations: hints(parts.annotations),
        texts,
    })
}

/// The hash of a stored definition by the current rules.
pub(super) fn hash(name: &str, definition: &str) -> Option<String> {
    let definition = RawValue::from_string(definition.to_owned()).ok()?;
    Some(read(name, &definition)?.hash)
}

/// The annotations of a definition; invalid ones count as missing.
pub(super) fn annotations(definition: &RawValue) -> Annotations {
    parts(definition).map_or_else(Annotations::default, |parts| hints(parts.annotations))
}

pub(super) fn renamed(definition: &RawValue, name: &str) -> Option<Box<RawValue>> {
    let part = parts(definition)?.name;
    if serde_json::from_str::<String>(part.get()).ok()? == name {
        return Some(definition.to_owned());
    }
    splice::replace_raw(definition, part, &Value::from(name).to_string())
}

fn parts(definition: &RawValue) -> Option<Parts<'_>> {
    serde_json::from_str(definition.get()).ok()
}

fn hints(raw: Option<&RawValue>) -> Annotations {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
}

fn collect(value: &Value, part: Part, texts: &mut Vec<(Part, String)>) {
    match value {
        Value::String(text) => texts.push((part, text.clone())),
        Value::Array(items) => items.iter().for_each(|item| collect(item, part, texts)),
        Value::Object(members) => {
            for (key, value) in members {
                texts.push((part, key.clone()));
                collect(value, part, texts);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    fn hash(text: &str) -> String {
        super::hash("t", text).unwrap()
    }

    #[test]
    fn the_hash_is_of_what_matters_and_of_nothing_else() {
        let base = r#"{"name":"t","description":"d","inputSchema":{"type":"object","properties":{"a":{"type":"string"}}}}"#;
        for same in [
            r#"{ "inputSchema" : {"properties":{"a":{"type":"string"}},"type":"object"}, "description":"\u0064", "name":"t" }"#,
            r#"{"name":"t","description":"d","inputSchema":{"type":"object","properties":{"a":{"type":"string"}}},"_meta":{"x":1},"icons":[]}"#,
        ] {
            assert_eq!(hash(base), hash(same), "{same}");
        }
        for other in [
            r#"{"name":"t","description":"e","inputSchema":{"type":"object","properties":{"a":{"type":"string"}}}}"#,
            r#"{"name":"t","inputSchema":{"type":"object","properties":{"a":{"type":"string"}}}}"#,
            r#"{"name":"t","title":"d","inputSchema":{"type":"object","properties":{"a":{"type":"string"}}}}"#,
            r#"{"name":"t","description":"d","inputSchema":{"type":"object","properties":{"b":{"type":"string"}}}}"#,
            r#"{"name":"t","description":"d","outputSchema":{"type":"object","properties":{"a":{"type":"string"}}}}"#,
            r#"{"name":"t","description":"d","inputSchema":{"type":"object","properties":{"a":{"type":"string"}}},"annotations":{"readOnlyHint":true}}"#,
        ] {
            assert_ne!(hash(base), hash(other), "{other}");
        }
        assert_ne!(hash(r#"{"name":"t","title":""}"#), hash(r#"{"name":"t","description":""}"#));
    }

    #[test]
    fn the_order_of_sets_in_schemas_does_not_matter() {
        let schema =
            |text: &str| hash(&format!(r#"{{"name":"t","inputSchema":{text},"outputSchema":{text}}}"#));
        for (one, other) in [
            (r#"{"required":["a","b"]}"#, r#"{"required":["b","a"]}"#),
            (r#"{"type":["string","null"]}"#, r#"{"type":["null","string"]}"#),
            (r#"{"enum":["b",1,null]}"#, r#"{"enum":[null,1,"b"]}"#),
            (
                r#"{"properties":{"x":{"anyOf":[{"type":"string"},{"enum":["p","q"]}]}}}"#,
                r#"{"properties":{"x":{"anyOf":[{"enum":["q","p"]},{"type":"string"}]}}}"#,
            ),
            (
                r#"{"$defs":{"e":{"oneOf":[{"const":1},{"const":2}]}}}"#,
                r#"{"$defs":{"e":{"oneOf":[{"const":2},{"const":1}]}}}"#,
            ),
            (r#"{"items":{"allOf":[{"a":1},{"b":2}]}}"#, r#"{"items":{"allOf":[{"b":2},{"a":1}]}}"#),
            (r#"{"dependentRequired":{"a":["b","c"]}}"#, r#"{"dependentRequired":{"a":["c","b"]}}"#),
            // An argument may have the name of a keyword.
            (
                r#"{"properties":{"default":{"enum":["a","b"]}}}"#,
                r#"{"properties":{"default":{"enum":["b","a"]}}}"#,
            ),
        ] {
            assert_eq!(schema(one), schema(other), "{one}");
        }
        for (one, other) in [
            (r#"{"required":["a","b"]}"#, r#"{"required":["a"]}"#),
            (r#"{"enum":["a","b"]}"#, r#"{"enum":["a","b","b"]}"#),
            (r#"{"prefixItems":[{"a":1},{"b":2}]}"#, r#"{"prefixItems":[{"b":2},{"a":1}]}"#),
            // Values are data, whatever the names of their members.
            (r#"{"default":{"enum":["a","b"]}}"#, r#"{"default":{"enum":["b","a"]}}"#),
            (r#"{"examples":[["a","b"]]}"#, r#"{"examples":[["b","a"]]}"#),
            (r#"{"enum":[{"required":["a","b"]}]}"#, r#"{"enum":[{"required":["b","a"]}]}"#),
        ] {
            assert_ne!(schema(one), schema(other), "{one}");
        }
        let annotated = |order: &str| hash(&format!(r#"{{"name":"t","annotations":{{"enum":{order}}}}}"#));
        assert_ne!(annotated("[1,2]"), annotated("[2,1]"));
    }

    #[test]
    fn what_can_be_read_in_two_ways_is_refused() {
        for text in [
            r#"{"name":"t","name":"u"}"#,
            r#"{"name":"t","description":"a","description":"b"}"#,
            r#"{"name":"t","inputSchema":{"properties":{"a":1,"a":2}}}"#,
            r#"{"name":"t","_meta":{"a":1,"a":2}}"#,
            r#"{"name":"u"}"#,
            r#"{"name":7}"#,
            r#"{"description":"x"}"#,
            "[]",
            r#""t""#,
        ] {
            assert!(read("t", &raw(text)).is_none(), "{text}");
        }
        for name in ["", " ", "a\nb", "\u{7f}", &"x".repeat(201)] {
            let text = serde_json::json!({"name": name}).to_string();
            assert!(read(name, &raw(&text)).is_none(), "{name}");
        }
        let long = format!(r#"{{"name":"t","description":"{}"}}"#, "x".repeat(DEFINITION_BYTES));
        assert!(read("t", &raw(&long)).is_none());
        let deep = format!(r#"{{"name":"t","inputSchema":{}{}}}"#, "[".repeat(99), "]".repeat(99));
        assert!(read("t", &raw(&deep)).is_none());
    }

    #[test]
    fn only_the_name_changes() {
        let text = r#"{ "x":1.0, "inputSchema":{"name":"t"}, "name" : "t\u0041" , "n":12345678901234567890123,"name2":"t"}"#;
        let renamed_to = renamed(&raw(text), "b__\"q\"").unwrap();
        assert_eq!(renamed_to.get(), text.replace(r#""t\u0041""#, r#""b__\"q\"""#));
        assert_eq!(renamed(&raw(text), "tA").unwrap().get(), text, "the same name stays as it is written");
    }

    #[test]
    fn hints_that_cannot_be_read_say_nothing() {
        let read_only = annotations(&raw(r#"{"name":"t","annotations":{"readOnlyHint":true,"x":[]}}"#));
        assert_eq!(read_only.read_only_hint, Some(true));
        for text in
            [r#"{"name":"t","annotations":{"readOnlyHint":"yes"}}"#, r#"{"name":"t","annotations":7}"#]
        {
            assert_eq!(annotations(&raw(text)), Annotations::default(), "{text}");
        }
    }
}
