//! OpenAI's responses API, which Codex speaks.

use serde_json::{Value, json};

use super::{Answer, Namespace, Tool, array, event, plain};

pub(super) fn tools(body: &Value) -> Vec<Tool> {
    let mut tools = Vec::new();
    for tool in array(&body["tools"]) {
        if tool["type"] == "namespace" {
            let text = |key: &str| tool[key].as_str().unwrap_or_default().to_owned();
            let namespace = Namespace { name: text("name"), description: text("description") };
            let members = array(&tool["tools"]).iter();
            tools.extend(members.filter_map(|member| Tool::new(Some(&namespace), member, "parameters")));
        } else {
            tools.extend(Tool::new(None, tool, "parameters"));
        }
    }
    tools
}

pub(super) fn results(body: &Value) -> Vec<String> {
    let items = array(&body["input"]).iter();
    items.filter(|item| item["type"] == "function_call_output").map(|item| plain(&item["output"])).collect()
}

pub(super) fn events(answer: &Answer<'_>, number: usize) -> String {
    let items: Vec<Value> = match answer {
        Answer::Text(text) => {
            let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
            vec![json!({"type": "message", "id": format!("msg_{number}"), "role": "assistant",
                "status": "completed", "content": content})]
        }
        Answer::Calls(calls) => calls
            .iter()
            .map(|call| {
                let mut item = json!({"type": "function_call", "id": format!("fc_{}", call.id), "call_id": call.id,
                    "name": call.tool.name, "arguments": call.arguments.to_string(), "status": "completed"});
                if let Some(namespace) = &call.tool.namespace {
                    item["namespace"] = json!(namespace.name);
                }
                item
            })
            .collect(),
    };
    let usage = json!({"input_tokens": 1, "output_tokens": 1, "total_tokens": 2});
    let response = |status: &str, output: &[Value]| json!({"response": {"id": "1", "object": "response", "status": status, "output": output, "usage": usage}});
    let mut events = event("response.created", response("in_progress", &[]));
    for (index, item) in items.iter().enumerate() {
        events += &event("response.output_item.done", json!({"output_index": index, "item": item}));
    }
    events + &event("response.completed", response("completed", &items))
}
