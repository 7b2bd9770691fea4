//! Schemas of tools, from the types that their functions take and give.

use schemars::{JsonSchema, schema_for};
use serde_json::{Map, Value};

/// The schemas of a tool's arguments and of its result.
#[must_use]
pub fn schemas<A: JsonSchema, R: JsonSchema>() -> (Value, Value) {
    let mut input = lean(schema_for!(A).to_value());
    let properties = input.get_mut("properties").and_then(Value::as_object_mut);
    properties.into_iter().flat_map(Map::values_mut).for_each(may_be_left_out);
    (input, lean(schema_for!(R).to_value()))
}

/// A schema without what says nothing to a model: models pay for every token of it.
fn lean(mut schema: Value) -> Value {
    if let Some(members) = schema.as_object_mut() {
        members.retain(|name, _| !matches!(&**name, "$schema" | "title" | "description"));
    }
    schema
}

/// An argument that may be left out need not also be null. Hosts that send null are understood all the same.
fn may_be_left_out(property: &mut Value) {
    let Some(members) = property.as_object_mut() else { return };
    members.retain(|name, value| !(name == "default" && value.is_null()));
    let kinds = members.get("type").and_then(Value::as_array).cloned().unwrap_or_default();
    if let [kind, Value::String(null)] = kinds.as_slice()
        && null == "null"
    {
        members.insert("type".into(), kind.clone());
    }
}
