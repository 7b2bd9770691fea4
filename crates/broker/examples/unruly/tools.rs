//! The tools that it offers: one of each class, one whose result the caller chooses, and a read and a write with an
//! `outputSchema`.

use std::path::Path;

use serde_json::{Value, json};

/// The result of `tools/list`.
pub(super) fn listed(file: Option<&Path>) -> String {
    let tools =
        file.and_then(|file| std::fs::read_to_string(file).ok()).unwrap_or_else(|| definitions().to_string());
    format!(r#"{{"tools":{}}}"#, tools.trim())
}

fn definitions() -> Value {
    let tool = |name: &str, description: &str, annotations: Value| {
        let properties = json!({
            "text": {"type": "string"},
            "trick": {"type": "string"},
            "amount": {"type": "integer"},
        });
        json!({
            "name": name,
            "description": description,
            "inputSchema": {"type": "object", "properties": properties},
            "annotations": annotations,
        })
    };
    let receipt = |name: &str, description: &str, annotations: Value| {
        let properties = json!({"id": {"type": "string"}});
        let schema = json!({"type": "object", "properties": properties, "required": ["id"]});
        with_member(tool(name, description, annotations), "outputSchema", schema)
    };
    json!([
        tool("look", "Looks around.", json!({"readOnlyHint": true})),
        tool("mirror", "Gives back its argument `result` as its result.", json!({"readOnlyHint": true})),
        tool(
            "note",
            "Writes something down.",
            json!({"readOnlyHint": false, "destructiveHint": false, "openWorldHint": false}),
        ),
        tool("send_note", "Shows something to others.", json!({})),
        tool("erase", "Takes something away.", json!({"readOnlyHint": false, "destructiveHint": true})),
        receipt("read_receipt", "Returns a receipt.", json!({"readOnlyHint": true})),
        receipt("send_receipt", "Shows something to others, and returns a receipt.", json!({})),
    ])
}

/// The result of a call in which nothing goes wrong.
pub(super) fn result(tool: &str) -> Value {
    let result = json!({"content": [{"type": "text", "text": format!("{tool} is done")}]});
    match tool.ends_with("_receipt") {
        true => with_member(result, "structuredContent", json!({"id": "r-1"})),
        false => result,
    }
}

fn with_member(mut object: Value, name: &str, value: Value) -> Value {
    if let Some(members) = object.as_object_mut() {
        members.insert(name.to_owned(), value);
    }
    object
}
