//! Definitions of tools.

use serde::Serialize;
use serde_json::{Map, Value, json};

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Tool {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    pub description: String,
    /// The schema of its arguments: an object.
    pub input_schema: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Annotations {
    pub read_only_hint: bool,
    pub destructive_hint: bool,
    /// Calling it twice does no more than calling it once.
    pub idempotent_hint: bool,
    pub open_world_hint: bool,
}

/// The result of a tool: content for the model, and the same as data.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult {
    content: Vec<Value>,
    structured: Option<Value>,
    is_error: bool,
}

impl ToolResult {
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::content(vec![json!({"type": "text", "text": text.into()})])
    }

    #[must_use]
    pub fn content(content: Vec<Value>) -> Self {
        Self { content, structured: None, is_error: false }
    }

    /// Data, and as text the same data as JSON, for hosts that show nothing else.
    #[must_use]
    pub fn data(data: Value) -> Self {
        let text = data.to_string();
        Self { structured: Some(data), ..Self::text(text) }
    }

    #[must_use]
    pub fn data_as(data: Value, text: impl Into<String>) -> Self {
        Self { structured: Some(data), ..Self::text(text) }
    }

    /// An error that the model can act on.
    #[must_use]
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text(text) }
    }

    #[must_use]
    pub fn with(self, data: Value) -> Self {
        Self { structured: Some(data), ..self }
    }
}

impl From<ToolResult> for Map<String, Value> {
    fn from(result: ToolResult) -> Self {
        let mut members = Self::new();
        members.insert("content".into(), result.content.into());
        if let Some(structured) = result.structured {
            members.insert("structuredContent".into(), structured);
        }
        // Said also when it is not one: some hosts take an absent field for a failure of their own.
        members.insert("isError".into(), result.is_error.into());
        members
    }
}
