//! Renders a conversation with its calls and results as text, for a model without native tool support.

use super::super::chat::ChatMessage;
use super::super::conversation::{Step, steps};
use super::super::response_builder::as_json_object;

/// The same conversation as text only. A result is fenced so that its text cannot close the fence.
pub(in super::super) fn as_plain_text(messages: &[ChatMessage]) -> Vec<ChatMessage> {
    let mut rendered = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    for step in steps(messages) {
        let message = match step {
            Step::User(texts) => ChatMessage::User { text: texts.join("\n\n") },
            Step::Assistant { texts, calls } => {
                names = calls.iter().map(|call| call.name.as_str()).collect();
                let blocks = calls.iter().map(|call| block(&call.name, &call.arguments));
                let parts: Vec<String> = texts.into_iter().map(str::to_owned).chain(blocks).collect();
                ChatMessage::Assistant { text: parts.join("\n\n"), calls: Vec::new() }
            }
            Step::Results(results) => {
                let parts = results.iter().zip(&names).map(|(result, name)| {
                    let mark = if result.is_error { "tool_error" } else { "tool_result" };
                    fenced(&format!("{mark} {name}"), result.text)
                });
                ChatMessage::User { text: parts.collect::<Vec<_>>().join("\n\n") }
            }
        };
        rendered.push(message);
    }
    rendered
}

fn block(name: &str, arguments: &str) -> String {
    let name = serde_json::Value::from(name);
    let arguments = as_json_object(arguments).map_or("{}", |raw| raw.get());
    format!("```tool_call\n{{\"tool\": {name}, \"arguments\": {arguments}}}\n```")
}

fn fenced(mark: &str, text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{}\n{text}\n{fence}", mark.replace(['\n', '`'], " "))
}
