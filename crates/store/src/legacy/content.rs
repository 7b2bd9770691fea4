//! What an old JSON `content` says as text, and JSON without its spaces. Pure.

use serde_json::value::RawValue;

/// What a stored text means.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// An empty text.
    Nothing,
    /// A JSON string's value.
    Text(String),
    /// Any other JSON, as compact as it can be; keys and numbers as they were written.
    Json(String),
    /// A JSON string with half a surrogate pair, which no text can hold: the JSON itself.
    Halved(String),
    /// Not JSON: as it is.
    Bare(String),
}

/// Reads a stored text.
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

/// An agent's identity as JSON that both databases hold and the store can read: any other text becomes a JSON string, NUL
/// escapes become U+FFFD. Whether it had to be changed is told.
pub(super) fn identity(text: &str) -> (Option<String>, bool) {
    match serde_json::from_str::<&RawValue>(text) {
        Ok(raw) if raw.get() == "null" => (None, false),
        Ok(_) => {
            let json = rewritten(text, Rewrite::Nuls);
            match serde_json::from_str::<serde_json::Value>(&json) {
                Ok(_) => {
                    let changed = json != text;
                    (Some(json), changed)
                }
                // Numbers out of range, half a surrogate pair, or too deep.
                Err(_) => (Some(serde_json::Value::from(text).to_string()), true),
            }
        }
        Err(_) => (Some(serde_json::Value::from(text).to_string()), true),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Rewrite {
    /// Drops the space outside of strings.
    Compact,
    /// Replaces escaped NUL characters.
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
    fn identities_are_json_afterwards() {
        assert_eq!(identity("null"), (None, false));
        assert_eq!(identity(r#"{"name": "Ada"}"#), (Some(r#"{"name": "Ada"}"#.into()), false));
        assert_eq!(identity("Ada"), (Some("\"Ada\"".into()), true));
        assert_eq!(identity("[1e999]"), (Some("\"[1e999]\"".into()), true));
        assert_eq!(identity(r#"["\u0000 \\u0000"]"#), (Some(r#"["\ufffd \\u0000"]"#.into()), true));
    }
}
