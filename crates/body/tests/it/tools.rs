//! What hosts see of the tools.

use embody_body::server::tools;
use serde_json::Value;

/// With a channel, every tool can work.
fn all_tools() -> Vec<embody_mcp::Tool> {
    tools(&["telegram".to_owned()])
}

#[test]
fn a_tool_that_cannot_work_is_not_offered() {
    let names =
        |channels: &[String]| -> Vec<String> { tools(channels).into_iter().map(|tool| tool.name).collect() };
    let all = names(&["telegram".to_owned()]);
    let without: Vec<String> = all.iter().filter(|name| *name != "send_message").cloned().collect();
    assert_eq!((names(&[]), all.len()), (without, 9));
}

#[test]
fn every_tool_has_annotations() {
    let classes: Vec<(String, bool, bool)> = all_tools()
        .into_iter()
        .map(|tool| {
            let hints = tool.annotations.unwrap();
            assert!(!hints.destructive_hint, "{}", tool.name);
            (tool.name, hints.read_only_hint, hints.open_world_hint)
        })
        .collect();
    let expected = [
        ("whoami", true, false),
        ("read_messages", true, false),
        ("send_message", false, true),
        ("notify_user", false, false),
        ("list_tasks", true, false),
        ("create_task", false, false),
        ("update_task", false, false),
        ("schedule_run", false, false),
        ("read_skill", true, false),
    ];
    assert_eq!(classes, expected.map(|(name, reads, reaches)| (name.to_owned(), reads, reaches)));
}

#[test]
fn schemas_are_whole_and_lean() {
    for tool in all_tools() {
        let schema = &tool.input_schema;
        assert_eq!(
            (&schema["type"], &schema["additionalProperties"]),
            (&"object".into(), &Value::Bool(false))
        );
        let text = schema.to_string();
        for word in ["$ref", "$defs", "\"null\"", "\"default\":null"] {
            assert!(!text.contains(word), "{}: {text}", tool.name);
        }
        if let Some(output) = tool.output_schema {
            assert_eq!(output["type"], "object", "{}", tool.name);
        }
    }
    let of = |name: &str| all_tools().into_iter().find(|tool| tool.name == name).unwrap().input_schema;
    assert_eq!(of("send_message")["required"], serde_json::json!(["channel", "to", "text"]));
    assert_eq!(of("schedule_run")["required"], serde_json::json!(["text"]));
}
