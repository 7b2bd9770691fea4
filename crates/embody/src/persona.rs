//! The remote persona: a token, a connection, one call of `get_system_prompt`. Any failure means: no persona, and why.

use std::error::Error;

use embody_wire::{Identity, Limits, Terms, dial};
use serde::Deserialize;
use serde_json::value::to_raw_value;

use crate::config::resolved::{CommandLine, Config};
use crate::store::block_on;
use crate::token;

const SIZE_LIMIT: usize = 256 * 1024;

/// What became of the remote persona.
#[derive(Clone)]
pub(crate) enum Fetched {
    /// It is not configured.
    Unset,
    /// The agent has a soul of its own, so nobody was asked.
    NotNeeded,
    /// One of its two keys is missing.
    Incomplete(&'static str),
    /// Here it is.
    Text(String),
    /// It could not be had, and why; no secret in it.
    Failed(String),
}

/// Fetches the persona if it is configured. Takes no longer than the token command's limit and its own.
pub(crate) async fn fetch(config: &Config) -> Fetched {
    let persona = &config.persona;
    let (url, command) = match (&persona.url, &persona.token_command) {
        (None, None) => return Fetched::Unset,
        (None, Some(_)) => return Fetched::Incomplete("persona.url is not set"),
        (Some(_), None) => return Fetched::Incomplete("persona.token_command is not set"),
        (Some(url), Some(command)) => (url.expose(), command),
    };
    match ask(url, command, config).await {
        Ok(text) => Fetched::Text(text),
        Err(error) => Fetched::Failed(chain(error.as_ref())),
    }
}

/// The same, for a command that does nothing else meanwhile.
pub(crate) fn fetch_now(config: &Config) -> Fetched {
    block_on(async { Ok(fetch(config).await) })
        .unwrap_or_else(|_| Fetched::Failed("the runtime could not be started".to_owned()))
}

type Failed = Box<dyn Error + Send + Sync>;

async fn ask(url: &str, command: &CommandLine, config: &Config) -> Result<String, Failed> {
    let timeout = config.persona.timeout;
    let bearer = token::mint(command, token::LIMIT).await?;
    let secret = bearer.clone();
    let call = async {
        let terms = Terms {
            identity: Identity { name: "embody".into(), version: env!("CARGO_PKG_VERSION").into() },
            bearer: Some(bearer),
            proxies: config.proxies.clone(),
            limits: Limits::default(),
        };
        let client = dial(url, &terms).await?;
        let params = to_raw_value(&serde_json::json!({"name": "get_system_prompt", "arguments": {}}))?;
        let result = client.request("tools/call", &params).await;
        client.close().await;
        // A server may repeat what it was sent; the token must not reach a prompt that way.
        text_of(result?.get()).map(|text| secret.redact(&text))
    };
    tokio::time::timeout(timeout, call)
        .await
        .unwrap_or_else(|_| Err(format!("no answer within {} s", timeout.as_secs()).into()))
}

#[derive(Deserialize)]
struct ToolResult {
    #[serde(default)]
    content: Vec<Content>,
    #[serde(default, rename = "isError")]
    is_error: bool,
}

#[derive(Deserialize)]
struct Content {
    text: Option<String>,
}

fn text_of(result: &str) -> Result<String, Failed> {
    let result: ToolResult = serde_json::from_str(result).map_err(|_| "the answer is not a tool result")?;
    let text = result.content.into_iter().filter_map(|content| content.text).collect::<Vec<_>>().join("\n");
    if result.is_error {
        return Err("get_system_prompt failed on the server".into());
    }
    if text.trim().is_empty() {
        return Err("get_system_prompt returned no text".into());
    }
    if text.len() > SIZE_LIMIT {
        return Err(
            format!("get_system_prompt returned {} bytes, the limit is {SIZE_LIMIT}", text.len()).into()
        );
    }
    Ok(text)
}

fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
