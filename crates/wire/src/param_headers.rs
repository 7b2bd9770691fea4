//! Arguments that headers mirror in the stateless era, marked with `x-mcp-header` in a tool's schema. Pure.

use serde_json::Value;

/// The headers for these arguments: names without the prefix, and values.
#[must_use]
pub fn headers(schema: &Value, arguments: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    collect(schema, arguments, &mut found);
    found
}

fn collect(schema: &Value, arguments: &Value, found: &mut Vec<(String, String)>) {
    for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let Some(value) = arguments.get(name) else { continue };
        let header = property.get("x-mcp-header").and_then(Value::as_str);
        let text = match value {
            Value::String(text) => Some(text.clone()),
            Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        };
        found.extend(header.map(str::to_owned).zip(text));
        collect(property, value, found);
    }
}

/// A description of the first argument that differs from its header, if any.
#[must_use]
pub fn mismatch(schema: &Value, arguments: &Value, headers: &[(String, String)]) -> Option<String> {
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
        // Large integers that differ would compare equal as floating-point numbers.
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

    fn schema() -> Value {
        json!({"properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "inner": {"properties": {"count": {"type": "integer", "x-mcp-header": "Count"}}},
        }})
    }

    #[test]
    fn a_header_must_say_what_the_argument_says() {
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let check = |arguments: Value, headers: &[(String, String)]| {
            mismatch(&schema(), &arguments, headers).is_none()
        };
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

    #[test]
    fn headers_say_what_the_arguments_say() {
        for arguments in [
            json!({"region": "eu", "inner": {"count": 42}}),
            json!({"region": null, "inner": {}}),
            json!({"inner": {"count": 9_007_199_254_740_993_i64}}),
            json!({}),
        ] {
            let headers = headers(&schema(), &arguments);
            assert_eq!(mismatch(&schema(), &arguments, &headers), None, "{headers:?}");
        }
    }
}
