//! The exact arguments, made visible: every key, every value, every digit. Strings are quoted and continued lines start with
//! a bar, so that nothing can pass for another argument or a line of the approval. In recipients and addresses, look-alike
//! letters are shown as codes.

use embody_text::look_alike;
use serde_json::value::RawValue;

use super::audience;
use crate::arguments::Members;
use crate::visible;

/// One value of the arguments, one level deep. Numbers stay as written.
pub(super) enum Part<'a> {
    Object(Vec<(String, &'a RawValue)>),
    Array(Vec<&'a RawValue>),
    Text(String),
    /// A number, `true`, `false` or `null`.
    Plain(&'a str),
}

impl<'a> Part<'a> {
    /// Parses JSON text; `None` if it is invalid.
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

/// Any JSON text, made visible: one line per value, members sorted by key.
#[must_use]
pub fn shown(text: &str) -> String {
    let mut out = String::new();
    show(text, "", false, &mut out);
    out
}

/// Writes JSON text with one line per value, indented by `indent` and two spaces per level. Invalid JSON is shown as a
/// string.
pub(super) fn show(text: &str, indent: &str, is_recipient: bool, out: &mut String) {
    let inner = format!("{indent}  ");
    match Part::read(text) {
        Some(Part::Object(mut members)) if !members.is_empty() => {
            members.sort_by(|(one, _), (other, _)| one.cmp(other));
            out.push('{');
            for (number, (key, value)) in members.into_iter().enumerate() {
                start(number, &inner, out);
                quote(&key, &inner, false, out);
                out.push_str(": ");
                show(value.get(), &inner, is_recipient || audience::is_known(&key), out);
            }
            end('}', indent, out);
        }
        Some(Part::Array(items)) if !items.is_empty() => {
            out.push('[');
            for (number, item) in items.into_iter().enumerate() {
                start(number, &inner, out);
                show(item.get(), &inner, is_recipient, out);
            }
            end(']', indent, out);
        }
        Some(Part::Object(_)) => out.push_str("{}"),
        Some(Part::Array(_)) => out.push_str("[]"),
        Some(Part::Text(string)) => quote(&string, indent, is_recipient, out),
        Some(Part::Plain(plain)) => out.push_str(&visible::line(plain)),
        None => quote(text, indent, is_recipient, out),
    }
}

/// The members of an object with one line per value, indented by `indent`; anything else as [`show`] does.
pub(super) fn show_members(text: &str, indent: &str, out: &mut String) {
    match Part::read(text) {
        Some(Part::Object(mut members)) if !members.is_empty() => {
            members.sort_by(|(one, _), (other, _)| one.cmp(other));
            for (number, (key, value)) in members.into_iter().enumerate() {
                out.push_str(if number > 0 { "\n" } else { "" });
                out.push_str(indent);
                quote(&key, indent, false, out);
                out.push_str(": ");
                show(value.get(), indent, audience::is_known(&key), out);
            }
        }
        _ => {
            out.push_str(indent);
            show(text, indent, false, out);
        }
    }
}

/// A string in quotation marks, on one line.
pub(super) fn quoted(string: &str) -> String {
    format!("\"{}\"", visible::line(&escaped(string)))
}

/// The same for a recipient or an address.
pub(super) fn quoted_recipient(string: &str) -> String {
    let shown = with_codes(string, true, |piece| visible::line(&escaped(piece)).into_owned());
    format!("\"{shown}\"")
}

/// A string in quotation marks, over as many lines as it has.
fn quote(string: &str, indent: &str, is_recipient: bool, out: &mut String) {
    let lead = format!("{indent}│ ");
    out.push('"');
    out.push_str(&with_codes(string, is_recipient, |piece| visible::lines(&escaped(piece), &lead)));
    out.push('"');
}

/// Applies `show` to the pieces of a string, with look-alike letters as codes between them.
fn with_codes(string: &str, is_recipient: bool, show: impl Fn(&str) -> String) -> String {
    let mut out = String::new();
    let mut start = 0;
    for (at, c) in posing_letters(string, is_recipient) {
        out.push_str(&show(string.get(start..at).unwrap_or_default()));
        visible::push_code(c, &mut out);
        start = at + c.len_utf8();
    }
    out + &show(string.get(start..).unwrap_or_default())
}

/// Letters that look like Latin ones in a recipient or an address-like word, with their offsets.
fn posing_letters(string: &str, is_recipient: bool) -> Vec<(usize, char)> {
    if string.is_ascii() {
        return Vec::new();
    }
    if is_recipient {
        return look_alike::in_address(string);
    }
    let mut found = Vec::new();
    let mut start = 0;
    for word in string.split_inclusive(char::is_whitespace) {
        if word.contains('@') || word.contains("://") || word.starts_with("www.") {
            found.extend(look_alike::in_address(word).into_iter().map(|(at, c)| (start + at, c)));
        }
        start += word.len();
    }
    found
}

/// Escapes what would end the string, or look as if it did.
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

    // spec: N-10
    #[test]
    fn letters_that_pass_for_others_in_a_recipient_are_shown_as_their_codes() {
        for (text, seen) in [
            (r#"{"to":"bоb@example.com"}"#, "{\n  \"to\": \"b⟨U+043E⟩b@example.com\"\n}"),
            (r#"{"cc":["аnn"]}"#, "{\n  \"cc\": [\n    \"⟨U+0430⟩nn\"\n  ]\n}"),
            (r#"{"text":"to bоb@x.org, Hоla"}"#, "{\n  \"text\": \"to b⟨U+043E⟩b@x.org, Hоla\"\n}"),
            (
                r#"{"to":"Иван","text":"Привет, мир"}"#,
                "{\n  \"text\": \"Привет, мир\",\n  \"to\": \"Иван\"\n}",
            ),
        ] {
            assert_eq!(shown(text), seen, "{text}");
        }
    }

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
