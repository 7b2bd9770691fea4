//! The part of a call's arguments that may be stored: secrets are redacted first, then long values are truncated and
//! hashed.
//!
//! The order matters: half a secret no longer looks like one.

use embody_text::secrets::names_secret;
use serde::Serialize;
use serde_json::{Map, Value};

use super::scrub::{REDACTED, scrub};

const EXCERPT_LIMIT: usize = 8 * 1024;
/// A longer string is stored as its beginning and its digest.
const STRING_LIMIT: usize = 512;
const STRING_BEGINNING: usize = 256;
const MEMBERS_LIMIT: usize = 64;
/// Of nested lists, objects and JSON in strings.
const DEPTH_LIMIT: usize = 32;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RedactedArguments {
    #[serde(rename = "args_digest")]
    digest: String,
    #[serde(rename = "args_excerpt")]
    excerpt: Value,
}

impl RedactedArguments {
    /// Of arguments in their canonical form; the digest is over exactly this text.
    pub fn of(canonical: &str) -> Self {
        let value = serde_json::from_str(canonical).unwrap_or_else(|_| Value::from(canonical));
        Self::of_parsed(canonical, value)
    }

    /// The same for a canonical form that was parsed already.
    pub fn of_parsed(canonical: &str, value: Value) -> Self {
        let digest = Self::digest_of(canonical);
        let clean = redacted(value, 0);
        // So few bytes need no truncation.
        if canonical.len() <= MEMBERS_LIMIT {
            return Self { digest, excerpt: clean };
        }
        let excerpt = shortened(clean);
        let text = excerpt.to_string();
        let excerpt =
            if text.len() > EXCERPT_LIMIT { Value::from(clipped(&text, EXCERPT_LIMIT / 2)) } else { excerpt };
        Self { digest, excerpt }
    }

    /// BLAKE3 of canonical arguments, in hexadecimal.
    pub(crate) fn digest_of(canonical: &str) -> String {
        blake3::hash(canonical.as_bytes()).to_hex().to_string()
    }

    pub fn digest(&self) -> &str {
        &self.digest
    }

    pub fn excerpt(&self) -> &Value {
        &self.excerpt
    }
}

/// A text without secrets.
pub(super) fn scrubbed(text: &str) -> String {
    in_string(text, 0)
}

/// A text without secrets that takes at most `limit` bytes as JSON.
pub(super) fn redact_text(text: &str, limit: usize) -> String {
    clipped(&scrubbed(text), limit)
}

fn redacted(value: Value, depth: usize) -> Value {
    match value {
        Value::Array(_) | Value::Object(_) if depth >= DEPTH_LIMIT => Value::from("[too deep]"),
        Value::Array(items) => Value::Array(in_list(items, depth)),
        Value::Object(members) => Value::Object(in_object(members, depth)),
        Value::String(text) => Value::from(in_string(&text, depth)),
        other => other,
    }
}

/// `["--password", "x"]` and `["Authorization", "x"]` name the secret one place before it.
fn in_list(items: Vec<Value>, depth: usize) -> Vec<Value> {
    let pair = items.len() == 2;
    let mut after_name = false;
    items
        .into_iter()
        .map(|item| {
            let hidden = after_name && is_secret_under("", &item);
            after_name = item.as_str().is_some_and(|text| {
                (pair || text.starts_with('-')) && !text.contains('=') && names_secret(text)
            });
            if hidden { Value::from(REDACTED) } else { redacted(item, depth + 1) }
        })
        .collect()
}

/// `{"password": "x"}`, and `{"name": "Authorization", "value": "x"}`.
fn in_object(members: Map<String, Value>, depth: usize) -> Map<String, Value> {
    let entitled = ["name", "key", "header", "field", "variable", "id"]
        .iter()
        .any(|title| members.get(*title).and_then(Value::as_str).is_some_and(names_secret));
    members
        .into_iter()
        .map(|(name, value)| {
            let named = names_secret(&name)
                || entitled && matches!(name.as_str(), "value" | "values" | "content" | "default" | "data");
            let value = if named && is_secret_under(&name, &value) {
                Value::from(REDACTED)
            } else {
                redacted(value, depth + 1)
            };
            (scrub(&name), value)
        })
        .collect()
}

/// Under a name of secrets every value is one, except booleans, null, and counts of tokens.
fn is_secret_under(name: &str, value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) => false,
        Value::Number(_) => {
            let name = name.to_ascii_lowercase();
            !name.contains("tokens") && !name.contains("count")
        }
        _ => true,
    }
}

fn in_string(text: &str, depth: usize) -> String {
    if depth < DEPTH_LIMIT
        && text.trim_start().starts_with(['{', '['])
        && let Ok(inner) = serde_json::from_str::<Value>(text)
    {
        let clean = redacted(inner.clone(), depth + 1);
        if clean != inner {
            return clean.to_string();
        }
    }
    scrub(text)
}

fn shortened(value: Value) -> Value {
    match value {
        Value::String(text) => Value::from(summary(text)),
        Value::Array(items) => {
            let more = items.len().saturating_sub(MEMBERS_LIMIT);
            let mut kept: Vec<Value> = items.into_iter().take(MEMBERS_LIMIT).map(shortened).collect();
            if more > 0 {
                kept.push(Value::from(format!("… {more} more")));
            }
            Value::Array(kept)
        }
        Value::Object(members) => {
            let more = members.len().saturating_sub(MEMBERS_LIMIT);
            let mut kept: Map<String, Value> = members
                .into_iter()
                .take(MEMBERS_LIMIT)
                .map(|(name, value)| (summary(name), shortened(value)))
                .collect();
            if more > 0 {
                kept.insert("…".to_owned(), Value::from(format!("{more} more")));
            }
            Value::Object(kept)
        }
        other => other,
    }
}

/// The beginning of a long string, its length and its digest, which is over the redacted text, so that secrets cannot
/// be tried against it.
fn summary(text: String) -> String {
    if text.len() <= STRING_LIMIT {
        return text;
    }
    let beginning: String = text.chars().take(STRING_BEGINNING).collect();
    let digest = blake3::hash(text.as_bytes()).to_hex();
    format!("{beginning}… [{} bytes, blake3 {digest}]", text.len())
}

fn clipped(text: &str, limit: usize) -> String {
    let mut room = limit;
    let mut kept = String::new();
    for letter in text.chars() {
        let size = match letter {
            '"' | '\\' | '\n' | '\r' | '\t' => 2,
            control if u32::from(control) < 0x20 => 6,
            letter => letter.len_utf8(),
        };
        if size > room {
            kept.push('…');
            break;
        }
        room -= size;
        kept.push(letter);
    }
    kept
}
