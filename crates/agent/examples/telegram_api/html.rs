//! A parser of Telegram's HTML with the server's tags and error messages. Written from the Bot API documentation,
//! independently of the code that it checks.

use serde_json::{Value, json};

#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    /// The visible text.
    pub text: String,
    /// The entities, with offset and length in UTF-16 units.
    pub entities: Vec<Value>,
}

struct Open {
    tag: String,
    kind: &'static str,
    offset: usize,
    extra: Option<(&'static str, String)>,
    at: usize,
}

/// The length of a text in Telegram's units.
pub fn units(text: &str) -> usize {
    text.encode_utf16().count()
}

/// Parses a text; the error is the server's message.
pub fn parse(html: &str) -> Result<Parsed, String> {
    let mut parsed = Parsed { text: String::new(), entities: Vec::new() };
    let mut open: Vec<Open> = Vec::new();
    let mut at = 0;
    while let Some(c) = html[at..].chars().next() {
        match c {
            '&' => {
                let (shown, length) = entity(&html[at..]);
                parsed.text.push_str(&shown);
                at += length;
            }
            '<' => at = tag(html, at, &mut parsed, &mut open)?,
            c => {
                parsed.text.push(c);
                at += c.len_utf8();
            }
        }
    }
    match open.last() {
        Some(left) => Err(format!(
            "Can't find end tag corresponding to start tag \"{}\" at byte offset {}",
            left.tag, left.at
        )),
        None => Ok(parsed),
    }
}

fn entity(rest: &str) -> (String, usize) {
    for (name, shown) in [("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"), ("&quot;", "\"")] {
        if rest.starts_with(name) {
            return (shown.to_owned(), name.len());
        }
    }
    if let Some(digits) = rest.strip_prefix("&#").and_then(|rest| rest.split(';').next())
        && let Some(c) = digits.parse().ok().and_then(char::from_u32)
    {
        return (c.to_string(), digits.len() + 3);
    }
    ("&".to_owned(), 1)
}

/// Parses a tag at this position and returns where it ends.
fn tag(html: &str, at: usize, parsed: &mut Parsed, open: &mut Vec<Open>) -> Result<usize, String> {
    let length = html[at..].find('>').ok_or(format!("Unclosed start tag at byte offset {at}"))?;
    let inner = &html[at + 1..at + length];
    let offset = units(&parsed.text);
    if let Some(name) = inner.strip_prefix('/') {
        let last = open.pop().ok_or(format!("Unexpected end tag at byte offset {at}"))?;
        if name != last.tag {
            return Err(format!(
                "Unmatched end tag at byte offset {at}, expected \"</{}>\", found \"</{name}>\"",
                last.tag
            ));
        }
        if offset > last.offset {
            let mut entity =
                json!({ "type": last.kind, "offset": last.offset, "length": offset - last.offset });
            if let Some((key, value)) = last.extra {
                entity[key] = value.into();
            }
            parsed.entities.push(entity);
        }
        return Ok(at + length + 1);
    }
    let (name, attributes) = inner.split_once(' ').unwrap_or((inner, ""));
    let kind = match name {
        "b" | "strong" => "bold",
        "i" | "em" => "italic",
        "u" | "ins" => "underline",
        "s" | "strike" | "del" => "strikethrough",
        "code" => "code",
        "pre" => "pre",
        "a" => "text_link",
        "blockquote" => "blockquote",
        _ => return Err(format!("Unsupported start tag \"{name}\" at byte offset {at}")),
    };
    // Stricter than the server, which silently drops invalid nesting.
    for around in open.iter() {
        let is_language = around.kind == "pre" && kind == "code" && around.offset == offset;
        let is_wrong = matches!(around.kind, "code" | "pre") && !is_language
            || kind == around.kind
            || matches!(kind, "code" | "pre") && !matches!(around.kind, "blockquote" | "pre")
            || kind == "blockquote";
        if is_wrong {
            return Err(format!("\"{name}\" may not stand within \"{}\" at byte offset {at}", around.tag));
        }
    }
    let value = |key: &str| attribute(attributes, key);
    let extra = match kind {
        "text_link" => {
            let url =
                value("href").ok_or(format!("Tag \"a\" must have attribute \"href\" at byte offset {at}"))?;
            Some(("url", url))
        }
        "code" => value("class")
            .and_then(|class| class.strip_prefix("language-").map(str::to_owned))
            .map(|language| ("language", language)),
        _ if attributes.is_empty() => None,
        _ => return Err(format!("Unexpected attributes at byte offset {at}")),
    };
    open.push(Open { tag: name.to_owned(), kind, offset, extra, at });
    Ok(at + length + 1)
}

fn attribute(attributes: &str, key: &str) -> Option<String> {
    let value = attributes.strip_prefix(key)?.strip_prefix("=\"")?.strip_suffix('"')?;
    let mut shown = String::new();
    let mut at = 0;
    while let Some(c) = value[at..].chars().next() {
        let (text, length) = if c == '&' { entity(&value[at..]) } else { (c.to_string(), c.len_utf8()) };
        shown.push_str(&text);
        at += length;
    }
    (!value.contains(['"', '<', '>'])).then_some(shown)
}
