//! What the server lists: tools with their schemas, templates, the prompt.

use std::sync::LazyLock;

use embody_mcp::{Annotations, Failure, Tool as Definition, one_page, schemas};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::{
    BootstrapPacket, BootstrapSession, Context, ForgetMemory, ForgottenMemory, GetContext, GetSystemPrompt,
    ListMemoryFiles, Memories, MemoryFiles, Observation, Observe, ReadMemory, Recall, Reflect, Reflection,
    SaveMemory, SavedMemory, Tool, UpdateInstructions, UpdatedInstructions,
};

/// The name of the one prompt.
pub(super) const PROMPT: &str = "get_system_prompt";

/// The persona text.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SystemPrompt {
    /// Who the agent is and how it speaks.
    pub(super) text: String,
}

type Listed = Result<Map<String, Value>, Failure>;

/// The mind's tools as hosts see them.
#[must_use]
pub fn tools() -> Vec<Definition> {
    // Making the schemas takes longer than most calls.
    static TOOLS: LazyLock<Vec<Definition>> =
        LazyLock::new(|| Tool::ALL.into_iter().map(definition).collect());
    TOOLS.clone()
}

/// All tools, on one page.
pub(super) fn tool_page(cursor: Option<String>) -> Listed {
    // Every session of a broker asks for it.
    static PAGE: LazyLock<Value> = LazyLock::new(|| json!(tools()));
    one_page(cursor, "tools", PAGE.clone())
}

/// The template of a memory's address.
pub(super) fn templates(cursor: Option<String>) -> Listed {
    let template = json!({
        "uriTemplate": "memory://{id}",
        "name": "memory",
        "title": "A memory",
        "description": "One memory by its id, framed as data.",
        "mimeType": "text/plain",
    });
    one_page(cursor, "resourceTemplates", json!([template]))
}

/// The one prompt.
pub(super) fn prompts(cursor: Option<String>) -> Listed {
    let prompt = json!({
        "name": PROMPT,
        "title": "Who you are",
        "description": Tool::GetSystemPrompt.description(),
    });
    one_page(cursor, "prompts", json!([prompt]))
}

/// The prompt's text.
pub(super) fn prompt(text: String) -> Listed {
    let message = json!({"role": "user", "content": {"type": "text", "text": text}});
    let mut result = Map::new();
    result.insert("description".into(), Tool::GetSystemPrompt.description().into());
    result.insert("messages".into(), json!([message]));
    Ok(result)
}

fn definition(tool: Tool) -> Definition {
    let (input_schema, output_schema) = schemas_of(tool);
    Definition {
        name: tool.name().to_owned(),
        title: Some(tool.title().to_owned()),
        description: tool.description().to_owned(),
        input_schema,
        output_schema: Some(output_schema),
        annotations: Some(Annotations {
            read_only_hint: tool.is_read_only(),
            destructive_hint: tool.is_destructive(),
            idempotent_hint: tool.is_read_only()
                || matches!(tool, Tool::ForgetMemory | Tool::UpdateInstructions),
            open_world_hint: false,
        }),
    }
}

fn schemas_of(tool: Tool) -> (Value, Value) {
    match tool {
        Tool::BootstrapSession => schemas::<BootstrapSession, BootstrapPacket>(),
        Tool::SaveMemory => schemas::<SaveMemory, SavedMemory>(),
        Tool::ReadMemory => schemas::<ReadMemory, Memories>(),
        Tool::ForgetMemory => schemas::<ForgetMemory, ForgottenMemory>(),
        Tool::Recall => schemas::<Recall, Memories>(),
        Tool::UpdateInstructions => or_refused(schemas::<UpdateInstructions, UpdatedInstructions>()),
        Tool::Observe => schemas::<Observe, Observation>(),
        Tool::Reflect => schemas::<Reflect, Reflection>(),
        Tool::Context => schemas::<GetContext, Context>(),
        Tool::ListMemoryFiles => schemas::<ListMemoryFiles, MemoryFiles>(),
        Tool::GetSystemPrompt => or_refused(schemas::<GetSystemPrompt, SystemPrompt>()),
    }
}

/// The result may instead say why there is none. Some hosts hold also that against the schema.
fn or_refused((input, mut output): (Value, Value)) -> (Value, Value) {
    if let Some(members) = output.as_object_mut() {
        members.remove("required");
    }
    (input, output)
}
