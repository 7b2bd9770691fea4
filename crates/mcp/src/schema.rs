//! JSON Schemas of tools, generated from the types of their arguments and results.
//!
//! An input schema describes what serde accepts, an output schema what serde writes: a member that is sometimes left out
//! (`skip_serializing_if`) is not `required` in it. Clients reject a result that lacks a required member.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use serde_json::{Map, Value};

#[must_use]
pub fn input_schema<A: JsonSchema>() -> Value {
    let mut schema = generate::<A>(SchemaSettings::default().for_deserialize());
    if let Some(members) = schema.as_object_mut() {
        // Some model providers reject an object without it.
        let properties = members.entry("properties").or_insert_with(|| Map::new().into()).as_object_mut();
        properties.into_iter().flat_map(Map::values_mut).for_each(remove_null);
    }
    schema
}

#[must_use]
pub fn output_schema<R: JsonSchema>() -> Value {
    generate::<R>(SchemaSettings::default().for_serialize())
}

/// A schema without the parts that a model does not need: hosts send every token of it in each request.
fn generate<T: JsonSchema>(settings: SchemaSettings) -> Value {
    let settings = settings
        .with_transform(RecursiveTransform(remove_number_format))
        .with_transform(RecursiveTransform(shorten_enum));
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    if let Some(members) = schema.as_object_mut() {
        members.retain(|name, _| !matches!(&**name, "$schema" | "title" | "description"));
    }
    schema
}

/// Removes the formats of Rust's number types (`uint64`, `double`), which JSON Schema does not define: strict validators
/// reject or warn about them.
fn remove_number_format(schema: &mut schemars::Schema) {
    let has = |name: &str| match schema.get("type") {
        Some(Value::String(kind)) => kind == name,
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == name),
        _ => false,
    };
    if has("integer") || has("number") {
        schema.remove("format");
    }
}

/// Writes a choice of names (`oneOf` with a `const` each) as one `enum`.
fn shorten_enum(schema: &mut schemars::Schema) {
    let name = |choice: &Value| choice.get("const").filter(|name| name.is_string()).cloned();
    let names = schema.get("oneOf").and_then(Value::as_array).map(|all| all.iter().map(name).collect());
    if let Some(Some::<Vec<Value>>(names)) = names {
        schema.remove("oneOf");
        schema.insert("type".into(), "string".into());
        schema.insert("enum".into(), names.into());
    }
}

/// An optional argument is not also declared as nullable. `null` is accepted all the same.
fn remove_null(property: &mut Value) {
    let Some(members) = property.as_object_mut() else { return };
    members.retain(|name, value| !(name == "default" && value.is_null()));
    let kinds = members.get("type").and_then(Value::as_array).cloned().unwrap_or_default();
    if let [kind, Value::String(null)] = kinds.as_slice()
        && null == "null"
    {
        members.insert("type".into(), kind.clone());
    }
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};
    use serde_json::json;

    use super::*;

    #[derive(Deserialize, Serialize, JsonSchema)]
    struct Sample {
        name: String,
        #[serde(default)]
        limit: Option<u32>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        counts: Vec<u64>,
        share: f64,
        zone: Option<String>,
    }

    /// How far it is.
    #[derive(Deserialize, Serialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    enum State {
        /// Not yet.
        Open,
        /// All of it.
        Done,
    }

    #[derive(Deserialize, Serialize, JsonSchema)]
    #[serde(tag = "kind")]
    enum Tagged {
        One,
        Two { n: u8 },
    }

    #[test]
    fn an_output_schema_requires_what_is_always_written() {
        let required = &output_schema::<Sample>()["required"];
        assert_eq!(*required, json!(["name", "limit", "share", "zone"]));
        assert_eq!(input_schema::<Sample>()["required"], json!(["name", "share"]));
    }

    #[test]
    fn an_input_schema_always_has_properties() {
        #[derive(Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        struct Nothing {}
        let expected = json!({"type": "object", "properties": {}, "additionalProperties": false});
        assert_eq!(input_schema::<Nothing>(), expected);
    }

    #[test]
    fn a_choice_of_names_is_an_enum() {
        assert_eq!(output_schema::<State>(), json!({"type": "string", "enum": ["open", "done"]}));
        assert!(output_schema::<Tagged>()["oneOf"].is_array());
    }

    #[test]
    fn no_schema_has_the_format_of_a_rust_number() {
        for schema in [input_schema::<Sample>(), output_schema::<Sample>()] {
            assert!(!schema.to_string().contains("format"), "{schema}");
        }
    }
}
