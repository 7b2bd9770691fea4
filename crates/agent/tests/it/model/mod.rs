//! The model client against a scripted server, and against failing servers.

mod answers;
mod faults;
mod refusals;
mod scripted;

use std::time::Duration;

use embody_agent::event::TurnEvent;
use embody_agent::model::{
    ChatMessage, ChatModel, ChatRequest, ChatResponse, KeySource, ModelError, ModelSettings, ModelTimes,
    Provider, ToolSpec,
};
use embody_wire::{Proxies, Secret, Url};
use serde_json::value::RawValue;

const KEY: &str = "sk-verysecret";

fn settings(provider: Provider, url: &str) -> ModelSettings {
    let base_url = match provider {
        Provider::OpenAi => format!("{url}/v1"),
        Provider::Anthropic => url.to_owned(),
    };
    ModelSettings {
        provider,
        base_url: Url::parse(&base_url).unwrap(),
        model: "m-1".to_owned(),
        api_key: Some(Secret::new(KEY)),
        key_source: KeySource::Variable("MY_KEY".to_owned()),
        native_tools: true,
        max_output_tokens: 1000,
        times: ModelTimes { retrying: Duration::from_secs(5), ..ModelTimes::default() },
        proxies: Proxies::default(),
        failures: embody_agent::model::FailureLog::Debug,
    }
}

fn user(text: &str) -> ChatMessage {
    ChatMessage::User { text: text.to_owned() }
}

fn tool(name: &str) -> ToolSpec {
    let schema = r#"{ "type": "object",  "properties": {"b": {}, "a": {}} }"#;
    ToolSpec {
        name: name.to_owned(),
        description: format!("Does {name}."),
        schema: RawValue::from_string(schema.to_owned()).unwrap(),
    }
}

/// Sends a request and returns the deltas and the response.
async fn request(
    settings: ModelSettings,
    messages: &[ChatMessage],
    tools: &[ToolSpec],
) -> (Result<ChatResponse, ModelError>, Vec<TurnEvent>) {
    let model = ChatModel::new(settings).unwrap();
    let mut told = Vec::new();
    let request = ChatRequest { system: "Be. <ü>\nNow: 12:00", stable_len: 8, messages, tools };
    let answer = model.complete(request, &mut |delta| told.push(delta)).await;
    (answer, told)
}

fn text_of(told: &[TurnEvent]) -> String {
    told.iter()
        .filter_map(|delta| if let TurnEvent::Text(text) = delta { Some(text.as_str()) } else { None })
        .collect()
}
