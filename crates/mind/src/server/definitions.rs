//! What the server lists: tools with their schemas, templates, the prompt.
//!
//! A tool has an `outputSchema` if programs use what it returns: the reads, and `observe`, whose answer a broker acts on. What
//! the other writes return is a short receipt that the model reads. Errors of tools with a schema have no structured content:
//! clients hold that against the schema too.

use std::sync::LazyLock;

use embody_mcp::{Annotations, Tool as Definition, input_schema, output_schema, single_page};
use serde_json::{Map, Value, json};

use super::RpcResult;
use crate::{
    BootstrapPacket, BootstrapSession, Context, ForgetMemory, GetContext, GetSystemPrompt, ListMemoryFiles,
    Memories, MemoryFiles, Observation, Observe, ReadMemory, Recall, Reflect, SaveMemory, Tool,
    UpdateInstructions,
};

pub(super) const PROMPT: &str = "get_system_prompt";

#[must_use]
pub fn tools() -> Vec<Definition> {
    // Making the schemas takes longer than most calls.
    static TOOLS: LazyLock<Vec<Definition>> =
        LazyLock::new(|| Tool::ALL.into_iter().map(definition).collect());
    TOOLS.clone()
}

pub(super) fn tool_page(cursor: Option<String>) -> RpcResult {
    // Every session of a broker asks for it.
    static PAGE: LazyLock<Value> = LazyLock::new(|| json!(tools()));
    single_page(cursor, "tools", PAGE.clone())
}

pub(super) fn templates(cursor: Option<String>) -> RpcResult {
    let template = json!({
        "uriTemplate": "memory://{id}",
        "name": "memory",
        "title": "A memory",
        "description": "One memory by its id, framed as data.",
        "mimeType": "text/plain",
    });
    single_page(cursor, "resourceTemplates", json!([template]))
}

pub(super) fn prompts(cursor: Option<String>) -> RpcResult {
    let prompt = json!({
        "name": PROMPT,
        "title": "Who you are",
        "description": Tool::GetSystemPrompt.description(),
    });
    single_page(cursor, "prompts", json!([prompt]))
}

pub(super) fn prompt(text: String) -> RpcResult {
    let message = json!({"role": "user", "content": {"type": "text", "text": text}});
    let mut result = Map::new();
    result.insert("description".into(), Tool::GetSystemPrompt.description().into());
    result.insert("messages".into(), json!([message]));
    Ok(result)
}

fn definition(tool: Tool) -> Definition {
    let (input_schema, output_schema) = schemas(tool);
    Definition {
        name: tool.name().to_owned(),
        title: Some(tool.title().to_owned()),
        description: tool.description().to_owned(),
        input_schema,
        output_schema,
        annotations: Some(Annotations {
            read_only_hint: tool.is_read_only(),
            destructive_hint: tool.is_destructive(),
            idempotent_hint: tool.is_read_only()
                || matches!(tool, Tool::ForgetMemory | Tool::UpdateInstructions),
            open_world_hint: false,
        }),
    }
}

fn schemas(tool: Tool) -> (Value, Option<Value>) {
    match tool {
        Tool::BootstrapSession => {
            (input_schema::<BootstrapSession>(), Some(output_schema::<BootstrapPacket>()))
        }
        Tool::SaveMemory => (input_schema::<SaveMemory>(), None),
        Tool::ReadMemory => (input_schema::<ReadMemory>(), Some(output_schema::<Memories>())),
        Tool::ForgetMemory => (input_schema::<ForgetMemory>(), None),
        Tool::Recall => (input_schema::<Recall>(), Some(output_schema::<Memories>())),
        Tool::UpdateInstructions => (input_schema::<UpdateInstructions>(), None),
        Tool::Observe => (input_schema::<Observe>(), Some(output_schema::<Observation>())),
        Tool::Reflect => (input_schema::<Reflect>(), None),
        Tool::Context => (input_schema::<GetContext>(), Some(output_schema::<Context>())),
        Tool::ListMemoryFiles => (input_schema::<ListMemoryFiles>(), Some(output_schema::<MemoryFiles>())),
        // A text.
        Tool::GetSystemPrompt => (input_schema::<GetSystemPrompt>(), None),
    }
}
