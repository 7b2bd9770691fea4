//! A tool's call: arguments in, the tool's own function, a result for programs and the same as text.

use embody_mcp::{Failure, ToolCall, ToolResult, read_arguments};
use embody_prompt::escaped_json;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::{Body, Caller, Error, Tool};

/// Calls a tool. What goes wrong inside it is a result that the model can read; only a tool that does not exist is a
/// protocol error.
pub(super) async fn call(
    body: &Body,
    caller: &Caller,
    call: ToolCall,
) -> Result<Map<String, Value>, Failure> {
    let Some(tool) = Tool::from_name(&call.name) else {
        let name: String = call.name.chars().take(64).collect();
        return Err(Failure::Invalid(format!("there is no tool `{name}`")));
    };
    let given = Value::Object(call.arguments);
    macro_rules! run {
        ($method:ident) => {
            match read_arguments(tool.name(), &given) {
                Ok(args) => body.$method(caller, args).await.map(|done| result(&done)),
                Err(error) => Err(error.into()),
            }
        };
    }
    let called = match tool {
        Tool::Whoami => run!(whoami),
        Tool::ReadMessages => run!(read_messages),
        Tool::SendMessage => run!(send_message),
        Tool::NotifyUser => run!(notify_user),
        Tool::ListTasks => run!(list_tasks),
        Tool::CreateTask => run!(create_task),
        Tool::UpdateTask => run!(update_task),
        Tool::ScheduleRun => run!(schedule_run),
    };
    Ok(called.unwrap_or_else(|error| refused(&error)).into())
}

/// A result as data, and as JSON text in which nothing can pass for a tag.
fn result(done: &impl Serialize) -> ToolResult {
    match serde_json::to_value(done) {
        Ok(data) => {
            let text = escaped_json(&data.to_string());
            ToolResult::data_as(data, text)
        }
        Err(_) => ToolResult::error("the result cannot be written"),
    }
}

fn refused(error: &Error) -> ToolResult {
    let mut text = error.to_string();
    if let Some(advice) = error.advice() {
        text.push_str("; ");
        text.push_str(advice);
    }
    ToolResult::error(text)
}
