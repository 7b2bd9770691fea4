//! Builds the request body.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;

use super::super::chat::{ChatRequest, ToolRequest};
use super::super::conversation::{Step, steps};
use super::super::errors::ModelError;
use super::super::names::Names;
use super::super::response_builder::as_json_object;
use super::super::settings::ModelSettings;

/// The longest tool description that OpenAI itself accepts.
const DESCRIPTION_MAX_CHARS: usize = 1024;

pub(in super::super) fn body(
    settings: &ModelSettings,
    request: &ChatRequest<'_>,
    names: &Names,
) -> Result<Vec<u8>, ModelError> {
    let mut messages = Vec::new();
    if !request.system.is_empty() {
        messages.push(Message::System { content: request.system });
    }
    for step in steps(request.messages) {
        match step {
            Step::User(texts) => messages.push(Message::User { content: joined(&texts) }),
            Step::Assistant { texts, calls } => messages.push(Message::Assistant {
                content: (!texts.is_empty()).then(|| joined(&texts)),
                tool_calls: calls.into_iter().map(|call| ToolCall::new(call, names)).collect(),
            }),
            Step::Results(results) => messages.extend(
                results
                    .into_iter()
                    .map(|result| Message::Tool { tool_call_id: result.call_id, content: result.text }),
            ),
        }
    }
    let is_own = is_own(settings);
    let tools = request.tools.iter().map(|tool| {
        let name = names.wire(&tool.name);
        let description =
            if is_own { cut(&tool.description) } else { Cow::Borrowed(tool.description.as_str()) };
        Tool { kind: "function", function: Function { name, description, parameters: &tool.schema } }
    });
    let limit = Some(settings.max_output_tokens);
    let body = Body {
        model: &settings.model,
        messages,
        stream: true,
        stream_options: StreamOptions { include_usage: true },
        max_tokens: limit.filter(|_| !is_own),
        max_completion_tokens: limit.filter(|_| is_own),
        tools: tools.collect(),
    };
    serde_json::to_vec(&body).map_err(|error| ModelError::Settings { why: error.to_string() })
}

/// Whether this is OpenAI itself: only it rejects the old name of the output limit, which most others use, and long
/// descriptions.
fn is_own(settings: &ModelSettings) -> bool {
    let host = settings.base_url.host_str().unwrap_or_default();
    [".openai.com", ".openai.azure.com"].iter().any(|own| host.ends_with(own))
}

pub(super) fn cut(description: &str) -> Cow<'_, str> {
    match description.char_indices().nth(DESCRIPTION_MAX_CHARS - 1) {
        Some((end, last)) if end + last.len_utf8() < description.len() => {
            Cow::Owned(description.chars().take(DESCRIPTION_MAX_CHARS - 1).chain(['…']).collect())
        }
        _ => Cow::Borrowed(description),
    }
}

fn joined<'a>(texts: &[&'a str]) -> Cow<'a, str> {
    match texts {
        [text] => Cow::Borrowed(text),
        texts => Cow::Owned(texts.join("\n\n")),
    }
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<Message<'a>>,
    stream: bool,
    stream_options: StreamOptions,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum Message<'a> {
    System {
        content: &'a str,
    },
    User {
        content: Cow<'a, str>,
    },
    Assistant {
        // `null` instead of absent: older servers require the key, others drop the calls next to a string.
        content: Option<Cow<'a, str>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ToolCall<'a>>,
    },
    Tool {
        tool_call_id: &'a str,
        content: &'a str,
    },
}

#[derive(Serialize)]
struct ToolCall<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    function: FunctionCall<'a>,
}

#[derive(Serialize)]
struct FunctionCall<'a> {
    name: Cow<'a, str>,
    arguments: &'a str,
}

impl<'a> ToolCall<'a> {
    fn new(call: &'a ToolRequest, names: &'a Names) -> Self {
        // Servers parse the arguments of old messages again, and reject the request if they are invalid.
        let arguments = if as_json_object(&call.arguments).is_some() { &call.arguments } else { "{}" };
        Self {
            id: &call.id,
            kind: "function",
            function: FunctionCall { name: names.wire(&call.name), arguments },
        }
    }
}

#[derive(Serialize)]
struct Tool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: Cow<'a, str>,
    description: Cow<'a, str>,
    parameters: &'a RawValue,
}
