//! Validates values against the part of JSON Schema that our own tools use.

use serde_json::{Map, Value, json};

/// Says where a value does not match a schema. A keyword that is not known here is an error, so that nothing goes unchecked.
pub(crate) fn validate(schema: &Value, value: &Value) -> Result<(), String> {
    check(schema, schema, value, "$")
}

fn check(root: &Value, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    let keywords = match schema {
        Value::Bool(true) => return Ok(()),
        Value::Bool(false) => return Err(format!("{at}: nothing may be here: {value}")),
        Value::Object(keywords) => keywords,
        other => return Err(format!("{at}: `{other}` is not a schema")),
    };
    for (keyword, expected) in keywords {
        check_keyword(root, keywords, (keyword, expected), value, at)?;
    }
    Ok(())
}

fn check_keyword(
    root: &Value,
    keywords: &Map<String, Value>,
    (keyword, expected): (&str, &Value),
    value: &Value,
    at: &str,
) -> Result<(), String> {
    let fail = |why: String| Err(format!("{at}: {why}: {value}"));
    let matching = || match expected.as_array() {
        Some(all) => Ok(all.iter().filter(|one| check(root, one, value, at).is_ok()).count()),
        None => Err(format!("{at}: `{keyword}` is not a list")),
    };
    match keyword {
        "$defs" | "description" | "default" => Ok(()),
        "$ref" => match expected.as_str().and_then(|path| root.pointer(path.strip_prefix('#')?)) {
            Some(schema) => check(root, schema, value, at),
            None => fail(format!("`{expected}` does not resolve")),
        },
        "type" => {
            let kinds = expected.as_array().map_or(std::slice::from_ref(expected), Vec::as_slice);
            let is_one = kinds.iter().filter_map(Value::as_str).any(|kind| is_of_type(value, kind));
            if is_one { Ok(()) } else { fail(format!("not of type {expected}")) }
        }
        "const" if expected == value => Ok(()),
        "enum" if expected.as_array().is_some_and(|all| all.contains(value)) => Ok(()),
        "const" | "enum" => fail(format!("not {expected}")),
        "oneOf" if matching()? == 1 => Ok(()),
        "anyOf" if matching()? > 0 => Ok(()),
        "oneOf" | "anyOf" => fail(format!("matches {} of `{keyword}`", matching()?)),
        "minimum" if value.as_f64().is_none_or(|number| Some(number) >= expected.as_f64()) => Ok(()),
        "maximum" if value.as_f64().is_none_or(|number| Some(number) <= expected.as_f64()) => Ok(()),
        "minimum" | "maximum" => fail(format!("{keyword} is {expected}")),
        "required" => {
            let names = expected.as_array().into_iter().flatten().filter_map(Value::as_str);
            match names.into_iter().find(|name| value.is_object() && value.get(name).is_none()) {
                Some(name) => fail(format!("`{name}` is missing")),
                None => Ok(()),
            }
        }
        "properties" => {
            let known = expected.as_object().into_iter().flatten();
            known
                .filter_map(|(name, schema)| Some((name, schema, value.get(name)?)))
                .try_for_each(|(name, schema, member)| check(root, schema, member, &format!("{at}.{name}")))
        }
        "additionalProperties" => {
            let known = keywords.get("properties").and_then(Value::as_object);
            let members = value.as_object().into_iter().flatten();
            members
                .filter(|(name, _)| !known.is_some_and(|known| known.contains_key(*name)))
                .try_for_each(|(name, member)| check(root, expected, member, &format!("{at}.{name}")))
        }
        "items" => {
            let items = value.as_array().into_iter().flatten().enumerate();
            items
                .into_iter()
                .try_for_each(|(place, item)| check(root, expected, item, &format!("{at}[{place}]")))
        }
        other => fail(format!("the keyword `{other}` is not known here")),
    }
}

fn is_of_type(value: &Value, kind: &str) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}

#[test]
fn the_validator_finds_what_does_not_match() {
    let schema = json!({
        "type": "object",
        "properties": {"n": {"type": ["integer", "null"], "minimum": 0}, "list": {"items": {"$ref": "#/$defs/Item"}}},
        "required": ["n"],
        "additionalProperties": false,
        "$defs": {"Item": {"oneOf": [{"const": "a"}, {"type": "object", "properties": {"k": {"enum": ["x"]}}}]}},
    });
    for good in [json!({"n": 1}), json!({"n": null, "list": []}), json!({"n": 0, "list": ["a", {"k": "x"}]})]
    {
        assert_eq!(validate(&schema, &good), Ok(()));
    }
    for (bad, word) in [
        (json!([]), "type"),
        (json!({}), "`n` is missing"),
        (json!({"n": -1}), "minimum"),
        (json!({"n": "1"}), "$.n"),
        (json!({"n": 1, "x": 1}), "$.x"),
        (json!({"n": 1, "list": ["b"]}), "$.list[0]"),
        (json!({"n": 1, "list": [{"k": "y"}]}), "oneOf"),
    ] {
        let why = validate(&schema, &bad).unwrap_err();
        assert!(why.contains(word), "{bad}: {why}");
    }
    assert!(validate(&json!({"format": "uint64"}), &json!(1)).is_err());
}
