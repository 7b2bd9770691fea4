//! Definitions of tools, and the headers that mirror their parameters.

use serde::Serialize;
use serde_json::Value;

/// A tool as a server lists it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// Its name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it does and when to call it.
    pub description: String,
    /// The schema of its arguments: an object.
    pub input_schema: Value,
    /// The schema of its structured result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// What calling it means.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
}

/// What calling a tool means for the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Annotations {
    /// It changes nothing.
    pub read_only_hint: bool,
    /// It may destroy something.
    pub destructive_hint: bool,
    /// Calling it twice does no more than calling it once.
    pub idempotent_hint: bool,
    /// It reaches out to others.
    pub open_world_hint: bool,
}

/// The first parameter whose header does not say what the arguments say, if there is one.
pub(crate) fn mismatch(schema: &Value, arguments: &Value, headers: &[(String, String)]) -> Option<String> {
    let properties = schema.get("properties")?.as_object()?;
    for (name, property) in properties {
        let value = arguments.get(name);
        if let Some(header) = property.get("x-mcp-header").and_then(Value::as_str) {
            let stated = headers.iter().find(|(stated, _)| stated.eq_ignore_ascii_case(header));
            let fits = match (value.filter(|value| !value.is_null()), stated) {
                (None, None) => true,
                (Some(value), Some((_, stated))) => is_same(value, stated),
                _ => false,
            };
            if !fits {
                return Some(format!("the header `Mcp-Param-{header}` does not match the argument `{name}`"));
            }
        }
        let nested = value.unwrap_or(&Value::Null);
        if let Some(found) = mismatch(property, nested, headers) {
            return Some(found);
        }
    }
    None
}

fn is_same(value: &Value, stated: &str) -> bool {
    match value {
        Value::String(text) => text == stated,
        Value::Bool(truth) => stated == if *truth { "true" } else { "false" },
        // As fractions, large whole numbers that differ would look the same.
        Value::Number(number) if number.is_i64() && stated.parse::<i64>().is_ok() => {
            stated.parse().ok() == number.as_i64()
        }
        Value::Number(number) => stated.parse::<f64>().ok() == number.as_f64(),
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_header_must_say_what_the_argument_says() {
        let schema = json!({"properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "inner": {"properties": {"count": {"type": "integer", "x-mcp-header": "Count"}}},
        }});
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let check =
            |arguments: Value, headers: &[(String, String)]| mismatch(&schema, &arguments, headers).is_none();
        assert!(check(json!({"region": "eu"}), &[header("region", "eu")]));
        assert!(check(json!({}), &[]));
        assert!(check(json!({"inner": {"count": 42}}), &[header("count", "42.0")]));
        let large = json!({"inner": {"count": 9_007_199_254_740_993_i64}});
        assert!(check(large.clone(), &[header("count", "9007199254740993")]));
        assert!(!check(large, &[header("count", "9007199254740992")]));
        assert!(!check(json!({"region": "eu"}), &[]));
        assert!(!check(json!({"region": "eu"}), &[header("region", "us")]));
        assert!(!check(json!({}), &[header("region", "eu")]));
        assert!(!check(json!({"inner": {"count": 42}}), &[header("count", "43")]));
    }
}
