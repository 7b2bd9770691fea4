//! The tools that the broker offers without starting anything: its own, the embedded mind's, which lists them itself, and
//! the embedded body's. Names and arguments are the interface's; prompts list them.

use embody_prompt::{Audience, Source, Tool, Value};

struct Offer {
    name: &'static str,
    description: &'static str,
    schema: &'static str,
}

/// Every tool on offer, in the order in which prompts list them.
pub(crate) fn on_offer() -> Vec<Value<Tool>> {
    let ours = |group, offers: &[Offer]| -> Vec<(&'static str, Tool)> {
        let tool = |offer: &Offer| Tool {
            name: offer.name.into(),
            description: offer.description.into(),
            schema: offer.schema.into(),
        };
        offers.iter().map(|offer| (group, tool(offer))).collect()
    };
    let mind = embody_mind::server::tools().into_iter().map(|tool| {
        let tool =
            Tool { name: tool.name, description: tool.description, schema: tool.input_schema.to_string() };
        ("mind", tool)
    });
    let all = ours("broker", BROKER).into_iter().chain(mind).chain(ours("body", BODY));
    all.map(|(group, tool)| Value::new(tool, Source::fixed(group), Audience::Public)).collect()
}

const fn offer(name: &'static str, description: &'static str, schema: &'static str) -> Offer {
    Offer { name, description, schema }
}

const NOTHING: &str = r#"{"type":"object","properties":{}}"#;

const BROKER: &[Offer] = &[
    offer("runtime_status", "What is connected, what is degraded, what waits for approval.", NOTHING),
    offer(
        "runtime_bootstrap",
        "Starts the session: call it first; returns the contract.",
        r#"{"type":"object","properties":{"session_id":{"type":"string"}}}"#,
    ),
    offer(
        "body_tool",
        "Calls a body tool by name, also one that is not listed.",
        r#"{"type":"object","properties":{"name":{"type":"string"},"args":{"type":"object"}},"required":["name","args"]}"#,
    ),
    offer(
        "reflect_user_message",
        "Hands something the user said to the mind.",
        r#"{"type":"object","properties":{"text":{"type":"string"},"kind":{"type":"string"}},"required":["text"]}"#,
    ),
];

const BODY: &[Offer] = &[
    offer("whoami", "Who acts here, for whom, on which channels.", NOTHING),
    offer(
        "read_messages",
        "Reads recent messages of a channel.",
        r#"{"type":"object","properties":{"channel":{"type":"string"},"limit":{"type":"integer"}}}"#,
    ),
    offer(
        "send_message",
        "Sends a message that other people will see.",
        r#"{"type":"object","properties":{"channel":{"type":"string"},"to":{"type":"string"},"text":{"type":"string"}},"required":["channel","to","text"]}"#,
    ),
    offer(
        "notify_user",
        "Tells the user something on the channel they used last.",
        r#"{"type":"object","properties":{"text":{"type":"string"},"urgency":{"type":"string"}},"required":["text"]}"#,
    ),
    offer("list_tasks", "Lists tasks and their state.", NOTHING),
    offer(
        "create_task",
        "Creates a task with steps.",
        r#"{"type":"object","properties":{"title":{"type":"string"},"description":{"type":"string"},"steps":{"type":"array","items":{"type":"string"}}},"required":["title"]}"#,
    ),
    offer(
        "update_task",
        "Changes a task's status or steps.",
        r#"{"type":"object","properties":{"id":{"type":"string"},"status":{"type":"string"},"steps":{"type":"array","items":{"type":"object"}}},"required":["id"]}"#,
    ),
    offer(
        "schedule_run",
        "Schedules a later or repeated run of this agent.",
        r#"{"type":"object","properties":{"cron":{"type":"string"},"timezone":{"type":"string"},"text":{"type":"string"}},"required":["cron","text"]}"#,
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schema_is_compact_json() {
        for offer in [BROKER, BODY].into_iter().flatten() {
            let value: serde_json::Value = serde_json::from_str(offer.schema).unwrap();
            assert_eq!(value.to_string().len(), offer.schema.len(), "{}", offer.name);
        }
    }
}
