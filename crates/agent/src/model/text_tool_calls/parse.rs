//! Parses the JSON of a block: one call, several, or a list. Accepts line breaks within strings, other names for the
//! same keys, and arguments as JSON text; otherwise returns an explanation for the model.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::chat::ToolRequest;
use super::super::response_builder::{ARGUMENTS_MAX_BYTES, as_json_object, generate_id};

/// The calls of one block, or why it has none.
pub(super) fn calls(content: &str) -> Result<Vec<ToolRequest>, String> {
    let content = content.trim();
    if content.is_empty() {
        return Err("a `tool_call` block is empty".to_owned());
    }
    parse_calls(content).or_else(|why| match with_escaped_breaks(content) {
        Some(repaired) => parse_calls(&repaired).map_err(|_| why),
        None => Err(why),
    })
}

/// The call in an unmarked block, if it is exactly one.
pub(super) fn exact_call(content: &str) -> Option<ToolRequest> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Exact {
        tool: String,
        arguments: Box<RawValue>,
    }
    let exact: Exact = serde_json::from_str(content).ok()?;
    request(RawCall { tool: exact.tool, arguments: Some(exact.arguments) }).ok()
}

#[derive(Deserialize)]
struct RawCall {
    #[serde(alias = "name")]
    tool: String,
    #[serde(alias = "parameters", alias = "args", alias = "input")]
    arguments: Option<Box<RawValue>>,
}

fn parse_calls(content: &str) -> Result<Vec<ToolRequest>, String> {
    let unreadable = |error: serde_json::Error| {
        format!("the block `{}` is not a call: {}", start(content), start(&error.to_string()))
    };
    let calls: Vec<RawCall> = if content.starts_with('[') {
        serde_json::from_str(content).map_err(unreadable)?
    } else {
        let each = serde_json::Deserializer::from_str(content).into_iter::<RawCall>();
        each.collect::<Result<_, _>>().map_err(unreadable)?
    };
    if calls.is_empty() {
        return Err("a `tool_call` block is empty".to_owned());
    }
    calls.into_iter().map(request).collect()
}

fn request(call: RawCall) -> Result<ToolRequest, String> {
    let name = call.tool;
    let arguments = match call.arguments {
        None => "{}".to_owned(),
        Some(raw) => match raw.get().as_bytes().first() {
            Some(b'{') => raw.get().to_owned(),
            Some(b'n') => "{}".to_owned(),
            Some(b'"') => serde_json::from_str::<String>(raw.get())
                .ok()
                .filter(|text| as_json_object(text).is_some())
                .ok_or_else(|| format!("the `arguments` of `{}` are not a JSON object", start(&name)))?,
            _ => return Err(format!("the `arguments` of `{}` are not a JSON object", start(&name))),
        },
    };
    if name.trim().is_empty() {
        return Err("a `tool_call` block names no tool".to_owned());
    }
    if arguments.len() > ARGUMENTS_MAX_BYTES {
        return Err(format!(
            "the `arguments` of `{}` are longer than {ARGUMENTS_MAX_BYTES} bytes",
            start(&name)
        ));
    }
    Ok(ToolRequest { id: generate_id(), name, arguments })
}

/// Escapes line breaks and tabs within strings, which JSON requires and models forget.
fn with_escaped_breaks(content: &str) -> Option<String> {
    let mut repaired = String::with_capacity(content.len() + 16);
    let (mut is_string, mut is_escaped, mut has_changed) = (false, false, false);
    for c in content.chars() {
        let escape = match c {
            '\n' => "\\n",
            '\r' => "\\r",
            '\t' => "\\t",
            _ => "",
        };
        if is_string && !is_escaped && !escape.is_empty() {
            repaired.push_str(escape);
            has_changed = true;
            continue;
        }
        if c == '"' && !is_escaped {
            is_string = !is_string;
        }
        is_escaped = is_string && c == '\\' && !is_escaped;
        repaired.push(c);
    }
    has_changed.then_some(repaired)
}

fn start(text: &str) -> String {
    let mut start: String = text.chars().take(80).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(80).is_some() {
        start.push('…');
    }
    start
}
