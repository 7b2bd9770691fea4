//! Anthropic's messages API, which Claude Code speaks.

use serde_json::{Value, json};

use super::{Answer, Tool, array, event, plain};

pub(super) fn tools(body: &Value) -> Vec<Tool> {
    array(&body["tools"]).iter().filter_map(|tool| Tool::new(None, tool, "input_schema")).collect()
}

pub(super) fn results(body: &Value) -> Vec<String> {
    let parts = array(&body["messages"]).iter().flat_map(|message| array(&message["content"]));
    parts.filter(|part| part["type"] == "tool_result").map(|part| plain(&part["content"])).collect()
}

/// The whole message, for requests that want no stream.
pub(super) fn message(answer: &Answer<'_>, number: usize) -> Value {
    let (content, reason) = content(answer);
    json!({"id": format!("msg_{number}"), "type": "message", "role": "assistant", "model": "scripted", "content": content,
        "stop_reason": reason, "stop_sequence": null, "usage": {"input_tokens": 1, "output_tokens": 1}})
}

pub(super) fn events(answer: &Answer<'_>, number: usize) -> String {
    let mut start = message(answer, number);
    start["content"] = json!([]);
    start["stop_reason"] = Value::Null;
    let (content, reason) = content(answer);
    let mut events = event("message_start", json!({"message": start}));
    for (index, mut part) in content.into_iter().enumerate() {
        let delta = if part["type"] == "text" {
            json!({"type": "text_delta", "text": part["text"].take()})
        } else {
            json!({"type": "input_json_delta", "partial_json": part["input"].take().to_string()})
        };
        let empty = if part["type"] == "text" { ("text", json!("")) } else { ("input", json!({})) };
        part[empty.0] = empty.1;
        events += &event("content_block_start", json!({"index": index, "content_block": part}));
        events += &event("content_block_delta", json!({"index": index, "delta": delta}));
        events += &event("content_block_stop", json!({"index": index}));
    }
    let delta = json!({"stop_reason": reason, "stop_sequence": null});
    events += &event("message_delta", json!({"delta": delta, "usage": {"output_tokens": 1}}));
    events + &event("message_stop", json!({}))
}

fn content(answer: &Answer<'_>) -> (Vec<Value>, &'static str) {
    match answer {
        Answer::Text(text) => (vec![json!({"type": "text", "text": text})], "end_turn"),
        Answer::Calls(calls) => {
            let calls = calls.iter().map(|call| {
                json!({"type": "tool_use", "id": format!("toolu_{}", call.id), "name": call.tool.name, "input": call.arguments})
            });
            (calls.collect(), "tool_use")
        }
    }
}
