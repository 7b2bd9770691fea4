//! What the server lists: tools with their schemas and annotations.
//!
//! Only tools that read have an `outputSchema`: their results are lists and records that a client's program may go through.
//! What a write returns is a short receipt that the model reads; it is structured too, but no client needs its schema.

use std::sync::LazyLock;

use embody_mcp::{Annotations, Failure, Tool as Definition, input_schema, one_page, output_schema};
use serde_json::{Map, Value, json};

use crate::{
    CreateTask, Identity, ListTasks, Messages, NotifyUser, ReadMessages, ScheduleRun, SendMessage, TaskList,
    Tool, UpdateTask, Whoami,
};

/// The body's tools as hosts see them.
#[must_use]
pub fn tools() -> Vec<Definition> {
    static TOOLS: LazyLock<Vec<Definition>> =
        LazyLock::new(|| Tool::ALL.into_iter().map(definition).collect());
    TOOLS.clone()
}

/// All tools, on one page.
pub(super) fn tool_page(cursor: Option<String>) -> Result<Map<String, Value>, Failure> {
    // Every session of a broker asks for it.
    static PAGE: LazyLock<Value> = LazyLock::new(|| json!(tools()));
    one_page(cursor, "tools", PAGE.clone())
}

fn definition(tool: Tool) -> Definition {
    let (input_schema, output_schema) = match tool {
        Tool::Whoami => (input_schema::<Whoami>(), Some(output_schema::<Identity>())),
        Tool::ReadMessages => (input_schema::<ReadMessages>(), Some(output_schema::<Messages>())),
        Tool::SendMessage => (input_schema::<SendMessage>(), None),
        Tool::NotifyUser => (input_schema::<NotifyUser>(), None),
        Tool::ListTasks => (input_schema::<ListTasks>(), Some(output_schema::<TaskList>())),
        Tool::CreateTask => (input_schema::<CreateTask>(), None),
        Tool::UpdateTask => (input_schema::<UpdateTask>(), None),
        Tool::ScheduleRun => (input_schema::<ScheduleRun>(), None),
    };
    Definition {
        name: tool.name().to_owned(),
        title: Some(tool.title().to_owned()),
        description: tool.description().to_owned(),
        input_schema,
        output_schema,
        annotations: Some(Annotations {
            read_only_hint: tool.is_read_only(),
            destructive_hint: false,
            idempotent_hint: tool.is_read_only() || tool == Tool::UpdateTask,
            open_world_hint: tool.is_open_world(),
        }),
    }
}
