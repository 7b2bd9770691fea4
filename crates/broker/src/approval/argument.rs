//! The exact arguments, made visible: every key, every value, every digit. Strings stand in quotation marks, so that
//! nothing in them can pass for another argument; a line that goes on starts with a bar, so that it cannot pass for a line
//! of the approval.

use serde_json::value::RawValue;

use crate::arguments::Members;
use crate::visible;

/// One value of the arguments, a level deep. Numbers stay as they were written.
pub(super) enum Part<'a> {
    Object(Vec<(String, &'a RawValue)>),
    Array(Vec<&'a RawValue>),
    Text(String),
    /// A number, `true`, `false` or `null`.
    Plain(&'a str),
}

impl<'a> Part<'a> {
    /// Reads JSON text; `None` if it is none.
    pub(super) fn read(text: &'a str) -> Option<Self> {
        let text = text.trim();
        Some(match text.as_bytes().first()? {
            b'{' => Self::Object(serde_json::from_str::<Members<'a>>(text).ok()?.0),
            b'[' => Self::Array(serde_json::from_str(text).ok()?),
            b'"' => Self::Text(serde_json::from_str(text).ok()?),
            _ => Self::Plain(serde_json::from_str::<&RawValue>(text).ok()?.get()),
        })
    }
}

/// Any JSON text, made visible: a line for each value, members in the order of their keys.
#[must_use]
pub fn shown(text: &str) -> String {
    let mut out = String::new();
    show(text, "", &mut out);
    out
}

/// Writes JSON text with a line for each value, each line indented by `indent` and two spaces per level. What cannot be
/// read is shown as a string.
pub(super) fn show(text: &str, indent: &str, out: &mut String) {
    let inner = format!("{indent}  ");
    match Part::read(text) {
        Some(Part::Object(mut members)) if !members.is_empty() => {
            members.sort_by(|(one, _), (other, _)| one.cmp(other));
            out.push('{');
            for (number, (key, value)) in members.into_iter().enumerate() {
                start(number, &inner, out);
                quote(&key, &inner, out);
                out.push_str(": ");
                show(value.get(), &inner, out);
            }
            end('}', indent, out);
        }
        Some(Part::Array(items)) if !items.is_empty() => {
            out.push('[');
            for (number, item) in items.into_iter().enumerate() {
                start(number, &inner, out);
                show(item.get(), &inner, out);
            }
            end(']', indent, out);
        }
        Some(Part::Object(_)) => out.push_str("{}"),
        Some(Part::Array(_)) => out.push_str("[]"),
        Some(Part::Text(string)) => quote(&string, indent, out),
        Some(Part::Plain(plain)) => out.push_str(&visible::line(plain)),
        None => quote(text, indent, out),
    }
}

/// The members of an object with a line for each value, each line indented by `indent`; anything else as [`show`] does.
pub(super) fn show_members(text: &str, indent: &str, out: &mut String) {
    match Part::read(text) {
        Some(Part::Object(mut members)) if !members.is_empty() => {
            members.sort_by(|(one, _), (other, _)| one.cmp(other));
            for (number, (key, value)) in members.into_iter().enumerate() {
                out.push_str(if number > 0 { "\n" } else { "" });
                out.push_str(indent);
                quote(&key, indent, out);
                out.push_str(": ");
                show(value.get(), indent, out);
            }
        }
        _ => {
            out.push_str(indent);
            show(text, indent, out);
        }
    }
}

/// A string in quotation marks, in one line.
pub(super) fn quoted(string: &str) -> String {
    format!("\"{}\"", visible::line(&escaped(string)))
}

/// A string in quotation marks, over as many lines as it has.
fn quote(string: &str, indent: &str, out: &mut String) {
    out.push('"');
    out.push_str(&visible::lines(&escaped(string), &format!("{indent}│ ")));
    out.push('"');
}

/// What would end the string, or look as if it did.
fn escaped(string: &str) -> String {
    string.replace('\\', "\\\\").replace('"', "\\\"")
}

fn start(number: usize, indent: &str, out: &mut String) {
    out.push_str(if number > 0 { ",\n" } else { "\n" });
    out.push_str(indent);
}

fn end(bracket: char, indent: &str, out: &mut String) {
    out.push('\n');
    out.push_str(indent);
    out.push(bracket);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_shown_as_they_are() {
        for (text, seen) in [
            ("{}", "{}"),
            (r#"{"a":[],"b":{}}"#, "{\n  \"a\": [],\n  \"b\": {}\n}"),
            (
                r#"{"n":12345678901234567890123,"x":1.50,"y":1e400}"#,
                "{\n  \"n\": 12345678901234567890123,\n  \"x\": 1.50,\n  \"y\": 1e400\n}",
            ),
            (
                r#"{"a":[true,null,{"b":"c"}]}"#,
                "{\n  \"a\": [\n    true,\n    null,\n    {\n      \"b\": \"c\"\n    }\n  ]\n}",
            ),
            (r#"{"a":"one\ntwo"}"#, "{\n  \"a\": \"one⏎\n  │ two\"\n}"),
            (r#"{"a":"x\", \"bcc\": \"eve\\"}"#, "{\n  \"a\": \"x\\\", \\\"bcc\\\": \\\"eve\\\\\"\n}"),
            (r#"{"a\nb":"\u202e"}"#, "{\n  \"a⏎\n  │ b\": \"⟨U+202E⟩\"\n}"),
            (
                r#"{"b":1,"a":{"d":1,"c":2}}"#,
                "{\n  \"a\": {\n    \"c\": 2,\n    \"d\": 1\n  },\n  \"b\": 1\n}",
            ),
            ("not\njson", "\"not⏎\n│ json\""),
        ] {
            assert_eq!(shown(text), seen, "{text}");
        }
    }
}
