//! Parses the JSON arguments of a tool into its typed arguments, and describes what is wrong with them.

use schemars::{JsonSchema, schema_for};
use serde::de::DeserializeOwned;
use serde_json::{Map, Number, Value};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid arguments of `{tool}`: {problem}")]
pub struct ArgumentsError {
    pub tool: &'static str,
    pub problem: String,
}

/// Parses a tool's arguments. Reports all unknown and missing arguments and wrong types by name, at once.
pub fn read_arguments<T>(tool: &'static str, given: &Value) -> Result<T, ArgumentsError>
where
    T: DeserializeOwned + JsonSchema,
{
    let refused = |problem: String| ArgumentsError { tool, problem };
    let nothing = Map::new();
    let given = match given {
        Value::Null => &nothing,
        Value::Object(given) => given,
        other => return Err(refused(format!("the arguments are {}, not an object", name_of(other)))),
    };
    // JSON knows one kind of number: some hosts write 10 as 10.0.
    let given: Map<String, Value> = given.iter().map(|(key, value)| (key.clone(), whole(value))).collect();
    let schema = || schema_for!(T).to_value();
    serde_json::from_value(Value::Object(given.clone())).map_err(|error| {
        let problems = problems(&given, &schema());
        refused(if problems.is_empty() { error.to_string() } else { problems.join("; ") })
    })
}

fn whole(value: &Value) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value.as_f64().filter(|number| value.is_f64() && number.fract() == 0.0 && number.abs() < EXACT) {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "it is whole and within the range where both agree"
        )]
        Some(number) => Value::Number(Number::from(number as i64)),
        None => value.clone(),
    }
}

/// Everything that the schema forbids about the arguments.
fn problems(given: &Map<String, Value>, schema: &Value) -> Vec<String> {
    let none = Map::new();
    let known = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
    let mut problems = Vec::new();
    let unknown: Vec<String> = given
        .keys()
        .filter(|key| !known.contains_key(*key))
        .map(|key| format!("`{}`", short_name(key)))
        .collect();
    if !unknown.is_empty() {
        let known: Vec<String> = known.keys().map(|key| format!("`{key}`")).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        problems.push(format!("unknown argument {}; the arguments are {known}", unknown.join(", ")));
    }
    for key in
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    {
        if !given.contains_key(key) {
            problems.push(format!("`{key}` is missing"));
        }
    }
    for (key, value) in given {
        let types = known.get(key).map(types).unwrap_or_default();
        if !types.is_empty() && !types.iter().any(|name| is_of(value, name)) {
            let expected: Vec<&str> =
                types.iter().copied().filter(|name| *name != "null").map(with_article).collect();
            problems.push(format!("`{key}` is {}; it must be {}", name_of(value), expected.join(" or ")));
        } else if value.as_i64().is_some_and(|number| number < minimum(known.get(key))) {
            problems.push(format!("`{key}` is `{value}`; the minimum is {}", minimum(known.get(key))));
        }
    }
    problems
}

fn types(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(name)) => vec![name.as_str()],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn minimum(schema: Option<&Value>) -> i64 {
    schema.and_then(|schema| schema.get("minimum")).and_then(Value::as_i64).unwrap_or(i64::MIN)
}

fn is_of(value: &Value, name: &str) -> bool {
    match name {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        _ => true,
    }
}

fn name_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

fn with_article(name: &str) -> &'static str {
    match name {
        "string" => "a string",
        "integer" => "a whole number",
        "number" => "a number",
        "boolean" => "a boolean",
        "array" => "an array",
        "object" => "an object",
        _ => "something else",
    }
}

/// An untrusted name, shortened for a message.
fn short_name(name: &str) -> String {
    let mut shown: String = name.chars().take(40).collect::<String>().escape_debug().to_string();
    if name.chars().nth(40).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use schemars::JsonSchema;
    use serde::Deserialize;
    use serde_json::json;

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Sample {
        text: String,
        #[serde(default)]
        limit: Option<u32>,
        #[serde(default)]
        tags: Vec<String>,
    }

    fn refusal(given: Value) -> String {
        read_arguments::<Sample>("sample", &given).unwrap_err().to_string()
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert_eq!(
            refusal(json!({ "text": "a", "txet": 1, "x": 2 })),
            "invalid arguments of `sample`: unknown argument `txet`, `x`; the arguments are `limit`, `tags`, `text`"
        );
        assert_eq!(refusal(json!({})), "invalid arguments of `sample`: `text` is missing");
        assert_eq!(refusal(Value::Null), "invalid arguments of `sample`: `text` is missing");
        assert!(refusal(json!({ "text": 3 })).ends_with("`text` is a number; it must be a string"));
        assert!(
            refusal(json!({ "text": "a", "limit": "3" }))
                .ends_with("`limit` is a string; it must be a whole number")
        );
        assert!(
            refusal(json!({ "text": "a", "limit": 2.5 }))
                .ends_with("`limit` is a number; it must be a whole number")
        );
        assert!(refusal(json!({ "text": "a", "limit": -1 })).ends_with("`limit` is `-1`; the minimum is 0"));
        assert!(refusal(json!([])).ends_with("the arguments are an array, not an object"));
        assert!(
            refusal(json!({ "text": "a", "tags": [1] })).contains("string"),
            "{}",
            refusal(json!({ "text": "a", "tags": [1] }))
        );
    }

    #[test]
    fn whole_numbers_and_null_are_understood() {
        let sample: Sample = read_arguments("sample", &json!({ "text": "a", "limit": 7.0 })).unwrap();
        assert_eq!((sample.text.as_str(), sample.limit, sample.tags.len()), ("a", Some(7), 0));
        let sample: Sample = read_arguments("sample", &json!({ "text": "a", "limit": null })).unwrap();
        assert_eq!(sample.limit, None);
    }
}
