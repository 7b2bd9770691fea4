//! Tests a model with one real, small request, and finds model servers on the usual ports of this machine. What a test found out
//! becomes keys of `[model]`.

use std::time::{Duration, Instant};

use embody_agent::model::{
    ChatMessage, ChatModel, ChatRequest, FailureLog, ModelError, ModelTimes, ToolSpec, Usage,
};
use embody_text::{truncate, without_control};
use futures_util::future::join_all;
use reqwest::{Client, redirect};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::app;
use crate::config::Config;
use crate::config::edit::NewValue;
use crate::config::settings::Model;
use crate::config::tree::Origin;
use crate::error::CliError;
use crate::model_key::ModelKey;

const LIMIT: Duration = Duration::from_secs(60);
/// A person waits for a test: one attempt, and no longer than a model needs that is loaded first.
const TIMES: ModelTimes = ModelTimes {
    connect: Duration::from_secs(5),
    first_byte: LIMIT,
    idle: LIMIT,
    total: LIMIT,
    retrying: Duration::ZERO,
    attempts: Some(1),
};
/// Enough for a model that reasons before it answers.
const OUTPUT_TOKENS: u32 = 512;
const SYSTEM: &str = "This is a test of the connection. Answer with one word.";
const USER: &str = "Reply with the word ok.";
const REPLY_CHARS: usize = 80;

/// A model that answered.
#[derive(Debug)]
pub(crate) struct TestedModel {
    pub(crate) took: Duration,
    pub(crate) usage: Usage,
    /// The beginning of its answer.
    pub(crate) reply: String,
    /// Whether it takes tools in its own format; not tried if the configuration of this model says that it does not.
    pub(crate) native_tools: bool,
}

impl TestedModel {
    pub(crate) fn json(&self) -> Value {
        json!({
            "took_ms": u64::try_from(self.took.as_millis()).unwrap_or(u64::MAX),
            "usage": self.usage,
            "reply": self.reply,
            "native_tools": self.native_tools,
        })
    }

    /// The key that must change if it is `configured` otherwise. It is removed for the default.
    pub(crate) fn native_tools_change(&self, configured: &Model) -> Option<NewValue<'static>> {
        let value = (!self.native_tools).then(|| false.into());
        (self.native_tools != configured.native_tools).then_some(("native_tools", value))
    }
}

/// Says which variable wins over the model in the file, if one does.
pub(crate) fn env_override(config: &Config) -> Option<String> {
    const KEYS: [&str; 5] =
        ["model.provider", "model.base_url", "model.model", "model.api_key_env", "model.api_key_file"];
    KEYS.into_iter().find_map(|key| match config.origin(key) {
        Origin::Env { name } => {
            Some(format!("the environment variable {name} sets `{key}` and wins over the file: unset it"))
        }
        _ => None,
    })
}

/// Sends the configured model a request with a tool. A model without tools gets another one without. What is known about the model
/// that is configured `before` says nothing about another one.
pub(crate) async fn test(config: &Config, key: ModelKey, before: &Model) -> Result<TestedModel, CliError> {
    let id = |model: &Model| (model.provider, model.base_url.to_string(), model.model.clone());
    let native_tools = config.model.native_tools || id(&config.model) != id(before);
    match send(config, key.clone(), native_tools).await? {
        Err(error) if native_tools && is_about_tools(&error) => {
            // Without tools it may answer; otherwise the first error says more.
            send(config, key, false).await?.map_err(|_| error.into())
        }
        tested => Ok(tested?),
    }
}

async fn send(
    config: &Config,
    key: ModelKey,
    native_tools: bool,
) -> Result<Result<TestedModel, ModelError>, CliError> {
    let times = ModelTimes { attempts: Some(1), ..app::model_times(&config.model, TIMES) };
    let mut settings = app::model_settings(config, key, times, FailureLog::Debug)?;
    settings.native_tools = native_tools;
    settings.max_output_tokens = settings.max_output_tokens.min(OUTPUT_TOKENS);
    let model = match ChatModel::new(settings) {
        Ok(model) => model,
        Err(error) => return Ok(Err(error)),
    };
    let messages = [ChatMessage::User { text: USER.to_owned() }];
    let tools: Vec<ToolSpec> = tool().into_iter().collect();
    let request = ChatRequest { system: SYSTEM, stable_len: 0, messages: &messages, tools: &tools };
    let started = Instant::now();
    Ok(model.complete(request, &mut |_| {}).await.map(|answer| TestedModel {
        took: started.elapsed(),
        usage: answer.usage,
        reply: truncate(&without_control(answer.text.trim(), REPLY_CHARS + 1), REPLY_CHARS),
        native_tools,
    }))
}

fn tool() -> Option<ToolSpec> {
    Some(ToolSpec {
        name: "no_operation".to_owned(),
        description: "Does nothing. Do not call it.".to_owned(),
        schema: RawValue::from_string(r#"{"type":"object","properties":{}}"#.to_owned()).ok()?,
    })
}

/// Servers reject tools in words of their own: "does not support tools", "tools param requires --jinja".
fn is_about_tools(error: &ModelError) -> bool {
    let (ModelError::Refused { message: text, .. } | ModelError::Unavailable { why: text, .. }) = error
    else {
        return false;
    };
    text.to_lowercase().contains("tool")
}

/// Ports of model servers, and the program that usually uses each. `EMBODY_MODEL_PORTS` replaces them (see docs/models.md).
const PORTS: [(u16, &str); 4] = [(11434, "Ollama"), (8080, "llama.cpp"), (1234, "LM Studio"), (8000, "vLLM")];
const PORTS_VARIABLE: &str = "EMBODY_MODEL_PORTS";
const DISCOVERY_LIMIT: Duration = Duration::from_secs(2);
const MAX_LIST_BYTES: usize = 1024 * 1024;
const MAX_MODELS: usize = 50;
const NAME_CHARS: usize = 200;

/// A server on this machine that lists its models.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FoundServer {
    /// The program that usually has this port.
    pub(crate) name: &'static str,
    pub(crate) base_url: String,
    /// Those that can chat come first.
    pub(crate) models: Vec<String>,
}

impl FoundServer {
    pub(crate) fn json(&self) -> Value {
        json!({ "server": self.name, "base_url": self.base_url, "models": self.models })
    }
}

/// Asks all ports at once. What does not answer with a list of models in time is left out.
pub(crate) async fn discover() -> Vec<FoundServer> {
    // A redirect could lead away from this machine.
    let client = Client::builder()
        .no_proxy()
        .redirect(redirect::Policy::none())
        .timeout(DISCOVERY_LIMIT)
        .tls_certs_only([])
        .build();
    let Ok(client) = client else { return Vec::new() };
    let servers = join_all(ports().into_iter().map(|(port, name)| find(&client, port, name))).await;
    servers.into_iter().flatten().collect()
}

fn ports() -> Vec<(u16, &'static str)> {
    let Some(given) = std::env::var_os(PORTS_VARIABLE) else { return PORTS.to_vec() };
    let given = given.to_string_lossy().into_owned();
    given.split(',').filter_map(|port| Some((port.trim().parse().ok()?, "a server"))).collect()
}

#[derive(Deserialize)]
struct ModelList {
    data: Vec<ListedModel>,
}

#[derive(Deserialize)]
struct ListedModel {
    id: String,
}

async fn find(client: &Client, port: u16, name: &'static str) -> Option<FoundServer> {
    let base_url = format!("http://127.0.0.1:{port}/v1");
    let mut response = client.get(format!("{base_url}/models")).send().await.ok()?;
    if !response.status().is_success() {
        return None;
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.ok()? {
        body.extend_from_slice(&chunk);
        if body.len() > MAX_LIST_BYTES {
            return None;
        }
    }
    let list: ModelList = serde_json::from_slice(&body).ok()?;
    let is_name = |id: &String| {
        !id.trim().is_empty() && id.chars().count() <= NAME_CHARS && !id.contains(char::is_control)
    };
    let mut models: Vec<String> =
        list.data.into_iter().map(|model| model.id).filter(is_name).take(MAX_MODELS).collect();
    models.sort_by_key(|id| id.to_lowercase().contains("embed"));
    Some(FoundServer { name, base_url, models })
}
