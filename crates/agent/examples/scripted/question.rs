//! Reads a request in either format: the system prompt, the last user message, the tool results since.

use serde_json::Value;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    OpenAi,
    Anthropic,
}

#[derive(Default)]
pub(crate) struct Question {
    pub(crate) system: String,
    pub(crate) user: String,
    /// The texts of the tool results since the last user message.
    pub(crate) results: Vec<String>,
    pub(crate) tools: Vec<String>,
}

impl Question {
    pub(crate) fn read(format: Format, body: &Value) -> Self {
        let mut question = Self::default();
        if format == Format::Anthropic {
            question.system = text(&body["system"]);
        }
        for message in body["messages"].as_array().into_iter().flatten() {
            let content = &message["content"];
            match message["role"].as_str().unwrap_or_default() {
                "system" | "developer" => question.system.push_str(&text(content)),
                "tool" => question.results.push(text(content)),
                "user" => question.hear(content),
                _ => {}
            }
        }
        let tools = body["tools"].as_array().into_iter().flatten();
        question.tools = tools
            .filter_map(|tool| tool["name"].as_str().or(tool["function"]["name"].as_str()).map(str::to_owned))
            .collect();
        question
    }

    fn hear(&mut self, content: &Value) {
        let parts: Vec<&Value> = match content {
            Value::Array(parts) => parts.iter().collect(),
            other => vec![other],
        };
        let (results, words): (Vec<&Value>, Vec<&Value>) =
            parts.into_iter().partition(|part| part["type"] == "tool_result");
        self.results.extend(results.iter().map(|result| text(&result["content"])));
        let words: String = words.into_iter().map(text).collect();
        if words.is_empty() {
            return;
        }
        // Without native tools, results come in marked fences.
        if let Some(results) = fenced_results(&words) {
            self.results.extend(results);
        } else {
            self.user = words;
            self.results.clear();
        }
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(text).collect(),
        other => other["text"].as_str().unwrap_or_default().to_owned(),
    }
}

fn fenced_results(words: &str) -> Option<Vec<String>> {
    let mut results = Vec::new();
    let mut lines = words.lines();
    while let Some(line) = lines.find(|line| !line.trim().is_empty()) {
        let mark = line.trim_start_matches('`');
        let fence = line.strip_suffix(mark)?;
        if fence.len() < 3 || !(mark.starts_with("tool_result") || mark.starts_with("tool_error")) {
            return None;
        }
        let result: Vec<&str> = lines.by_ref().take_while(|line| *line != fence).collect();
        results.push(result.join("\n"));
    }
    Some(results)
}
