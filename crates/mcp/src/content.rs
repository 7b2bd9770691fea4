//! Results of tools.

use serde_json::{Map, Value, json};

/// The result of a tool: content for the model, and the same as data.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult {
    content: Vec<Value>,
    structured: Option<Value>,
    is_error: bool,
}

impl ToolResult {
    /// A text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::content(vec![json!({"type": "text", "text": text.into()})])
    }

    /// Blocks of content as the protocol has them.
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

    /// Data, and another text.
    #[must_use]
    pub fn data_as(data: Value, text: impl Into<String>) -> Self {
        Self { structured: Some(data), ..Self::text(text) }
    }

    /// What went wrong, in words that the model can act on.
    #[must_use]
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text(text) }
    }

    /// Adds data to it.
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
