//! What the server lists: tools with their schemas, templates, the prompt.

use std::sync::LazyLock;

use embody_mcp::{Annotations, Failure, Tool as Definition};
use schemars::{JsonSchema, schema_for};
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
    one_page(cursor, "tools", json!(tools()))
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

fn one_page(cursor: Option<String>, name: &str, list: Value) -> Listed {
    if let Some(cursor) = cursor {
        return Err(Failure::Invalid(format!(
            "there is no page `{}`",
            cursor.chars().take(64).collect::<String>()
        )));
    }
    let mut result = Map::new();
    result.insert(name.to_owned(), list);
    Ok(result)
}

fn definition(tool: Tool) -> Definition {
    let (input_schema, output_schema) = schemas(tool);
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

fn schemas(tool: Tool) -> (Value, Value) {
    match tool {
        Tool::BootstrapSession => of::<BootstrapSession, BootstrapPacket>(),
        Tool::SaveMemory => of::<SaveMemory, SavedMemory>(),
        Tool::ReadMemory => of::<ReadMemory, Memories>(),
        Tool::ForgetMemory => of::<ForgetMemory, ForgottenMemory>(),
        Tool::Recall => of::<Recall, Memories>(),
        Tool::UpdateInstructions => or_refused(of::<UpdateInstructions, UpdatedInstructions>()),
        Tool::Observe => of::<Observe, Observation>(),
        Tool::Reflect => of::<Reflect, Reflection>(),
        Tool::Context => of::<GetContext, Context>(),
        Tool::ListMemoryFiles => of::<ListMemoryFiles, MemoryFiles>(),
        Tool::GetSystemPrompt => or_refused(of::<GetSystemPrompt, SystemPrompt>()),
    }
}

fn of<A: JsonSchema, R: JsonSchema>() -> (Value, Value) {
    let mut input = lean(schema_for!(A).to_value());
    let properties = input.get_mut("properties").and_then(Value::as_object_mut);
    properties.into_iter().flat_map(Map::values_mut).for_each(may_be_left_out);
    (input, lean(schema_for!(R).to_value()))
}

/// The result may instead say why there is none. Some hosts hold also that against the schema.
fn or_refused((input, mut output): (Value, Value)) -> (Value, Value) {
    if let Some(members) = output.as_object_mut() {
        members.remove("required");
    }
    (input, output)
}

/// A schema without what says nothing to a model: models pay for every token of it.
fn lean(mut schema: Value) -> Value {
    if let Some(members) = schema.as_object_mut() {
        members.retain(|name, _| !matches!(&**name, "$schema" | "title" | "description"));
    }
    schema
}

/// An argument that may be left out need not also be null. Hosts that send null are understood all the same.
fn may_be_left_out(property: &mut Value) {
    let Some(members) = property.as_object_mut() else { return };
    members.retain(|name, value| !(name == "default" && value.is_null()));
    let kinds = members.get("type").and_then(Value::as_array).cloned().unwrap_or_default();
    if let [kind, Value::String(null)] = kinds.as_slice()
        && null == "null"
    {
        members.insert("type".into(), kind.clone());
    }
}
