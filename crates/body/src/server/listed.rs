//! What the server lists: tools with their schemas and what they do to the world.

use std::sync::LazyLock;

use embody_mcp::{Annotations, Failure, Tool as Definition, one_page, schemas};
use serde_json::{Map, Value, json};

use crate::{
    CreateTask, Identity, ListTasks, Messages, NotifyUser, Queued, ReadMessages, ScheduleRun, ScheduledRun,
    SendMessage, TaskEntry, TaskList, Tool, UpdateTask, Whoami,
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
        Tool::Whoami => schemas::<Whoami, Identity>(),
        Tool::ReadMessages => schemas::<ReadMessages, Messages>(),
        Tool::SendMessage => schemas::<SendMessage, Queued>(),
        Tool::NotifyUser => schemas::<NotifyUser, Queued>(),
        Tool::ListTasks => schemas::<ListTasks, TaskList>(),
        Tool::CreateTask => schemas::<CreateTask, TaskEntry>(),
        Tool::UpdateTask => schemas::<UpdateTask, TaskEntry>(),
        Tool::ScheduleRun => schemas::<ScheduleRun, ScheduledRun>(),
    };
    Definition {
        name: tool.name().to_owned(),
        title: Some(tool.title().to_owned()),
        description: tool.description().to_owned(),
        input_schema,
        output_schema: Some(output_schema),
        annotations: Some(Annotations {
            read_only_hint: tool.is_read_only(),
            destructive_hint: false,
            idempotent_hint: tool.is_read_only() || tool == Tool::UpdateTask,
            open_world_hint: tool.is_open_world(),
        }),
    }
}
