//! The tools that the broker offers without starting anything: its own, the embedded mind's and the embedded body's.
//! Names and arguments are the interface's; prompts list them.

use embody_prompt::{Audience, Source, Tool, Value};

struct Offer {
    name: &'static str,
    description: &'static str,
    schema: &'static str,
}

/// Every tool on offer, in the order in which prompts list them.
pub(crate) fn on_offer() -> Vec<Value<Tool>> {
    let groups = [("broker", BROKER), ("mind", MIND), ("body", BODY)];
    let tools = groups.into_iter().flat_map(|(group, offers)| offers.iter().map(move |offer| (group, offer)));
    tools
        .map(|(group, offer)| {
            let tool = Tool {
                name: offer.name.into(),
                description: offer.description.into(),
                schema: offer.schema.into(),
            };
            Value::new(tool, Source::fixed(group), Audience::Public)
        })
        .collect()
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

const MIND: &[Offer] = &[
    offer(
        "bootstrap_session",
        "The mind's opening packet: contract, context, memory counts.",
        r#"{"type":"object","properties":{"session_id":{"type":"string"}}}"#,
    ),
    offer(
        "read_memory",
        "Finds memories; an empty query lists the newest.",
        r#"{"type":"object","properties":{"query":{"type":"string"},"limit":{"type":"integer"},"kind":{"type":"string"},"since":{"type":"string"}},"required":["query"]}"#,
    ),
    offer(
        "save_memory",
        "Keeps one fact for later sessions.",
        r#"{"type":"object","properties":{"text":{"type":"string"},"kind":{"type":"string"},"tags":{"type":"array","items":{"type":"string"}},"actor":{"type":"string"},"session":{"type":"string"},"source":{"type":"string"},"occurred_at":{"type":"string"}},"required":["text"]}"#,
    ),
    offer(
        "forget_memory",
        "Takes a memory out of search.",
        r#"{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]}"#,
    ),
    offer(
        "recall",
        "Finds memories near a thought.",
        r#"{"type":"object","properties":{"query":{"type":"string"},"k":{"type":"integer"},"facet":{"type":"string"}},"required":["query"]}"#,
    ),
    offer(
        "update_instructions",
        "Replaces the user's standing instructions: pass the whole new text.",
        r#"{"type":"object","properties":{"instructions":{"type":"string"},"expected_version":{"type":"integer"}},"required":["instructions"]}"#,
    ),
    offer(
        "observe",
        "Tells the mind about a tool call; returns what to beware of.",
        r#"{"type":"object","properties":{"tool_name":{"type":"string"},"args":{"type":"object"},"result":{"type":"object"}},"required":["tool_name","args"]}"#,
    ),
    offer(
        "reflect",
        "Notes an observation and what it relates to.",
        r#"{"type":"object","properties":{"observation":{"type":"string"},"kind":{"type":"string"}},"required":["observation"]}"#,
    ),
    offer("context", "Open commitments, recent events, standing instructions.", NOTHING),
    offer("list_memory_files", "How many memories there are of each kind.", NOTHING),
    offer("get_system_prompt", "The persona text.", NOTHING),
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
        for offer in [BROKER, MIND, BODY].into_iter().flatten() {
            let value: serde_json::Value = serde_json::from_str(offer.schema).unwrap();
            assert_eq!(value.to_string().len(), offer.schema.len(), "{}", offer.name);
        }
    }
}
