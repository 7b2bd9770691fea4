//! Google's Gemini API, which Gemini CLI speaks.

use serde_json::{Value, json};

use super::{Answer, Tool, array};

pub(super) fn tools(body: &Value) -> Vec<Tool> {
    let declarations = array(&body["tools"]).iter().flat_map(|tool| array(&tool["functionDeclarations"]));
    declarations.filter_map(|tool| Tool::new(None, tool, "parametersJsonSchema")).collect()
}

pub(super) fn results(body: &Value) -> Vec<String> {
    let parts = array(&body["contents"]).iter().flat_map(|content| array(&content["parts"]));
    parts
        .filter_map(|part| part.get("functionResponse"))
        .map(|response| text(&response["response"]))
        .collect()
}

/// A result is `{output}` or `{error}`.
fn text(response: &Value) -> String {
    let found = ["output", "error"].iter().find_map(|key| response[key].as_str());
    found.map_or_else(|| response.to_string(), str::to_owned)
}

pub(super) fn events(answer: &Answer<'_>) -> String {
    format!("data: {}\n\n", response(answer))
}

pub(super) fn response(answer: &Answer<'_>) -> Value {
    let parts: Vec<Value> = match answer {
        Answer::Text(text) => vec![json!({"text": text})],
        Answer::Calls(calls) => {
            let part = |call: &super::Call<'_>| json!({"functionCall": {"id": call.id, "name": call.tool.name, "args": call.arguments}});
            calls.iter().map(part).collect()
        }
    };
    json!({
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
        "modelVersion": "scripted",
        "responseId": "1",
    })
}
