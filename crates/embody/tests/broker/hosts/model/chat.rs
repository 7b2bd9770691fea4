//! OpenAI's chat completions, which opencode speaks.

use serde_json::{Value, json};

use super::{Answer, Tool, array, plain};

pub(super) fn tools(body: &Value) -> Vec<Tool> {
    array(&body["tools"]).iter().filter_map(|tool| Tool::new(None, &tool["function"], "parameters")).collect()
}

pub(super) fn results(body: &Value) -> Vec<String> {
    let messages = array(&body["messages"]).iter();
    messages.filter(|message| message["role"] == "tool").map(|message| plain(&message["content"])).collect()
}

pub(super) fn events(answer: &Answer<'_>) -> String {
    let (delta, reason) = match answer {
        Answer::Text(text) => (json!({"role": "assistant", "content": text}), "stop"),
        Answer::Calls(calls) => {
            let calls = calls.iter().enumerate().map(|(index, call)| {
                let function = json!({"name": call.tool.name, "arguments": call.arguments.to_string()});
                json!({"index": index, "id": call.id, "type": "function", "function": function})
            });
            (json!({"role": "assistant", "tool_calls": calls.collect::<Vec<_>>()}), "tool_calls")
        }
    };
    let chunk = |delta: &Value, reason: Option<&str>| {
        json!({"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "scripted",
            "choices": [{"index": 0, "delta": delta, "finish_reason": reason}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}})
    };
    format!("data: {}\n\ndata: {}\n\ndata: [DONE]\n\n", chunk(&delta, None), chunk(&json!({}), Some(reason)))
}
