//! What the body's tools return matches the schemas that they list.

use std::fmt::Debug;

use embody_body::server::{BodyServer, definition};
use embody_body::{
    HeardOn, Identity, MessageEntry, Messages, QueuedMessage, ScheduledRun, SkillText, StepEntry, StepState,
    TaskEntry, TaskList, Tool,
};
use embody_mcp::output_schema;
use embody_store::Principal;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::test_runner::TestRunner;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::own_tools::{Client, validate};
use crate::world::World;

fn text() -> impl Strategy<Value = String> {
    ".{0,12}"
}

fn identity() -> impl Strategy<Value = Identity> {
    let heard = (text(), text()).prop_map(|(channel, at)| HeardOn { channel, at });
    (text(), text(), text(), vec(text(), 0..3), vec(text(), 0..3), option::of(heard)).prop_map(
        |(user, agent, channel, channels, reachable_channels, last_heard)| Identity {
            user,
            agent,
            channel,
            channels,
            reachable_channels,
            last_heard,
        },
    )
}

fn messages() -> impl Strategy<Value = Messages> {
    let message = (text(), text(), text(), text(), text(), any::<bool>()).prop_map(
        |(channel, conversation, role, at, text, is_cut)| MessageEntry {
            channel,
            conversation,
            role,
            at,
            text,
            is_cut,
        },
    );
    (text(), vec(message, 0..3)).prop_map(|(about, messages)| Messages { about, messages })
}

fn task() -> impl Strategy<Value = TaskEntry> {
    let state = prop_oneof![Just(StepState::Open), Just(StepState::Current), Just(StepState::Done)];
    let step = (text(), state).prop_map(|(text, state)| StepEntry { text, state });
    let texts = (text(), text(), text(), text(), text(), text());
    (texts, vec(step, 0..4), any::<i64>()).prop_map(
        |((id, title, description, status, agent, changed_at), steps, version)| TaskEntry {
            id,
            title,
            description,
            status,
            steps,
            agent,
            version,
            changed_at,
        },
    )
}

fn tasks() -> impl Strategy<Value = TaskList> {
    (vec(task(), 0..3), option::of(text())).prop_map(|(tasks, next_after)| TaskList { tasks, next_after })
}

fn queued() -> impl Strategy<Value = QueuedMessage> {
    (text(), text(), text()).prop_map(|(id, channel, state)| QueuedMessage { id, channel, state })
}

fn scheduled() -> impl Strategy<Value = ScheduledRun> {
    (text(), text(), text(), text(), text(), option::of(text())).prop_map(
        |(id, cron, timezone, next_at, status, reason)| ScheduledRun {
            id,
            cron,
            timezone,
            next_at,
            status,
            reason,
        },
    )
}

/// Validates many results of a tool against the schema that it lists; one that lists none is held to the schema it would.
fn skill() -> impl Strategy<Value = SkillText> {
    (text(), text(), any::<bool>()).prop_map(|(name, text, is_cut)| SkillText { name, text, is_cut })
}

fn matches<R>(tool: Tool, results: impl Strategy<Value = R>)
where
    R: Debug + Serialize + JsonSchema,
{
    let listed = definition(tool);
    let schema = listed.output_schema.unwrap_or_else(output_schema::<R>);
    let checked = TestRunner::default().run(&results, |result| {
        let data = serde_json::to_value(result).unwrap();
        validate(&schema, &data).map_err(proptest::test_runner::TestCaseError::fail)
    });
    checked.unwrap_or_else(|why| panic!("{}: {why}", tool.name()));
}

#[test]
fn every_possible_result_matches_the_schema_of_its_tool() {
    for tool in Tool::ALL {
        match tool {
            Tool::Whoami => matches(tool, identity()),
            Tool::ReadMessages => matches(tool, messages()),
            Tool::SendMessage | Tool::NotifyUser => matches(tool, queued()),
            Tool::ListTasks => matches(tool, tasks()),
            Tool::CreateTask | Tool::UpdateTask => matches(tool, task()),
            Tool::ScheduleRun => matches(tool, scheduled()),
            Tool::ReadSkill => matches(tool, skill()),
        }
    }
}

#[test]
fn the_tools_that_read_have_an_output_schema() {
    for tool in Tool::ALL {
        let listed = definition(tool);
        assert_eq!(listed.output_schema.is_some(), tool.is_read_only(), "{}", tool.name());
    }
}

#[test]
fn no_schema_has_a_format_that_json_schema_does_not_know() {
    let listed = json!(Tool::ALL.map(definition)).to_string();
    assert!(!listed.contains("\"format\""), "{listed}");
}

#[tokio::test]
async fn what_every_tool_returns_matches_its_schema() {
    let world = World::new().await;
    let config = World::config(&["telegram"]);
    let server = BodyServer::new(world.store.clone(), "assistant".to_owned(), config);
    world.says("ann", "telegram", "11", "user", "hello").await;
    world.says("ann", "telegram", "11", "assistant", &"long ".repeat(2000)).await;
    let principal = Principal::host("ann", "assistant").unwrap();
    let mut client = Client::start(server.service(), principal).await;
    let calls = [
        (Tool::Whoami, json!({})),
        (Tool::ListTasks, json!({})),
        (Tool::ReadSkill, json!({"name": "tea"})),
        (Tool::ReadSkill, json!({"name": "long"})),
        (Tool::CreateTask, json!({"title": "rest"})),
        (Tool::CreateTask, json!({"title": "rest", "description": "a day", "steps": ["sleep"]})),
        (Tool::UpdateTask, json!({"id": "1", "steps": [{"text": "sleep", "state": "current"}]})),
        (Tool::ListTasks, json!({"limit": 1})),
        (Tool::ReadMessages, json!({})),
        (Tool::SendMessage, json!({"channel": "telegram", "to": "5", "text": "hi"})),
        (Tool::NotifyUser, json!({"text": "hi", "urgency": "high"})),
        (Tool::ScheduleRun, json!({"cron": "@daily", "text": "look"})),
    ];
    for tool in Tool::ALL {
        assert!(calls.iter().any(|(called, _)| *called == tool), "{} is not called", tool.name());
    }
    for (tool, arguments) in calls {
        let result = client.call(tool.name(), arguments).await;
        assert_eq!(result["isError"], false, "{}: {result}", tool.name());
        let text = result["content"][0]["text"].as_str().unwrap();
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), result["structuredContent"]);
        let refused = client.call(tool.name(), json!({"no": "such argument"})).await;
        assert_eq!((&refused["isError"], refused.get("structuredContent")), (&json!(true), None));
    }
}
