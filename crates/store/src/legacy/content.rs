//! What an old JSON `content` says as text, and JSON without its spaces. Pure.

use serde_json::value::RawValue;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    Nothing,
    /// Value of a JSON string.
    Text(String),
    /// Any other JSON, compact; keys and numbers as written.
    Json(String),
    /// A JSON string with half a surrogate pair, which no text can hold: the JSON itself.
    Halved(String),
    /// Not JSON.
    Bare(String),
}

pub(super) fn meaning(text: &str) -> Meaning {
    let Ok(raw) = serde_json::from_str::<&RawValue>(text) else {
        return if text.is_empty() { Meaning::Nothing } else { Meaning::Bare(text.to_owned()) };
    };
    match raw.get() {
        json if json.starts_with('"') => match serde_json::from_str::<String>(json) {
            Ok(value) if value.is_empty() => Meaning::Nothing,
            Ok(value) => Meaning::Text(value),
            Err(_) => Meaning::Halved(json.to_owned()),
        },
        json => Meaning::Json(rewritten(json, Rewrite::Compact)),
    }
}

/// An agent's identity as a JSON object that both databases hold and the store can read: what is no object becomes its
/// description, NUL escapes become U+FFFD. What had to be changed is told.
pub(super) fn identity(text: &str) -> (Option<String>, Option<&'static str>) {
    let said = match meaning(text) {
        Meaning::Nothing => return (None, Some("the identity was empty, and is left out")),
        Meaning::Json(json) if json == "null" => return (None, None),
        Meaning::Json(json) if json.starts_with('{') => {
            let clean = rewritten(text, Rewrite::Nuls);
            match serde_json::from_str::<serde_json::Value>(&clean) {
                Ok(_) => {
                    let changed = clean != text;
                    return (Some(clean), changed.then_some("NUL characters of the identity became U+FFFD"));
                }
                // Numbers out of range, half a surrogate pair, or too deep.
                Err(_) => json,
            }
        }
        Meaning::Text(said) | Meaning::Json(said) | Meaning::Halved(said) | Meaning::Bare(said) => said,
    };
    let object = serde_json::json!({ "description": said.replace('\0', "\u{fffd}") });
    (Some(object.to_string()), Some("the identity was no JSON object, and became the description in one"))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Rewrite {
    Compact,
    Nuls,
}

/// Valid JSON, rewritten without reading its values: numbers keep their digits, objects the order of their keys.
fn rewritten(json: &str, rewrite: Rewrite) -> String {
    let mut out = String::with_capacity(json.len());
    let mut chars = json.chars();
    let mut in_string = false;
    while let Some(c) = chars.next() {
        match c {
            '"' => in_string = !in_string,
            '\\' if in_string => {
                if rewrite == Rewrite::Nuls && chars.as_str().starts_with("u0000") {
                    out.push_str("\\ufffd");
                    chars.by_ref().take(5).for_each(drop);
                    continue;
                }
                out.push(c);
                out.extend(chars.next());
                continue;
            }
            ' ' | '\t' | '\n' | '\r' if !in_string && rewrite == Rewrite::Compact => continue,
            _ => {}
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: S-03
    #[test]
    fn content_becomes_text() {
        let text = |text: &str| Meaning::Text(text.to_owned());
        let json = |text: &str| Meaning::Json(text.to_owned());
        for (stored, meant) in [
            ("", Meaning::Nothing),
            (" null ", json("null")),
            ("\"\"", Meaning::Nothing),
            ("\"be brief\"", text("be brief")),
            (r#""a\n\"b\" \u00e9 \ud83d\ude00 \u0000""#, text("a\n\"b\" é 😀 \0")),
            ("\"null\"", text("null")),
            (" 5 ", json("5")),
            ("1e400", json("1e400")),
            ("123456789012345678901234567890.10", json("123456789012345678901234567890.10")),
            ("false", json("false")),
            (
                "{ \"z\" : [ 1 , {\"a\": \" x  y \\\" \"} ],\n\t\"a\": null, \"z\": {} }",
                json(r#"{"z":[1,{"a":" x  y \" "}],"a":null,"z":{}}"#),
            ),
            (r#""\ud800 half""#, Meaning::Halved(r#""\ud800 half""#.to_owned())),
            ("be brief", Meaning::Bare("be brief".to_owned())),
            ("{not json}", Meaning::Bare("{not json}".to_owned())),
            ("\"open", Meaning::Bare("\"open".to_owned())),
            ("  ", Meaning::Bare("  ".to_owned())),
        ] {
            assert_eq!(meaning(stored), meant, "{stored:?}");
        }
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(meaning(&deep), Meaning::Json(deep.clone()));
    }

    #[test]
    fn identities_are_objects_afterwards() {
        let object = r#"{"name": "Ada", "name": 1}"#;
        assert_eq!(identity(object), (Some(object.into()), None));
        assert_eq!(identity(" null "), (None, None));
        for (text, json) in [
            ("Ada", r#"{"description":"Ada"}"#),
            (r#""a \"b\" \u0000""#, "{\"description\":\"a \\\"b\\\" \u{fffd}\"}"),
            ("[1e999, 2]", r#"{"description":"[1e999,2]"}"#),
            (r#"{"a": 1e999}"#, r#"{"description":"{\"a\":1e999}"}"#),
            ("true", r#"{"description":"true"}"#),
            (r#"{"a": "\u0000 \\u0000"}"#, r#"{"a": "\ufffd \\u0000"}"#),
        ] {
            let (identity, note) = identity(text);
            assert_eq!(identity.as_deref(), Some(json));
            assert!(note.is_some(), "{text}");
        }
        for empty in ["", "\"\""] {
            assert_eq!(identity(empty), (None, Some("the identity was empty, and is left out")));
        }
    }
}
