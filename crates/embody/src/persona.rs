//! Fetches the remote persona: a token, a connection, one call of `get_system_prompt`. A failure leaves the persona out.

use std::error::Error;
use std::time::Duration;

use embody_prompt::{Note, NoteKind, Source};
use embody_wire::{ClientOptions, Limits, dial};
use embody_workspace::LoadedWorkspace;
use serde::Deserialize;
use serde_json::value::to_raw_value;

use crate::config::Config;
use crate::config::mask::Address;
use crate::config::settings::CommandLine;
use crate::error::chain_text;
use crate::token_cache::{TOKEN_COMMAND_TIMEOUT, run_token_command};

const SIZE_LIMIT: usize = 256 * 1024;

#[derive(Clone)]
pub(crate) enum FetchedPersona {
    Unset,
    /// The agent has a soul of its own.
    NotNeeded,
    /// One of `url` and `token_command` is not set.
    Incomplete(&'static str),
    Text(String),
    /// The reason, without secrets.
    Failed(String),
}

/// Takes no longer than the timeouts of the token command and the persona.
pub(crate) async fn fetch(config: &Config) -> FetchedPersona {
    let persona = &config.persona;
    let (url, command) = match (&persona.url, &persona.token_command) {
        (None, None) => return FetchedPersona::Unset,
        (None, Some(_)) => return FetchedPersona::Incomplete("persona.url is not set"),
        (Some(_), None) => return FetchedPersona::Incomplete("persona.token_command is not set"),
        (Some(url), Some(command)) => (url.expose(), command),
    };
    match call(url, command, config).await {
        Ok(text) => FetchedPersona::Text(text),
        Err(error) => FetchedPersona::Failed(chain_text(error.as_ref())),
    }
}

pub(crate) struct PersonaOutcome {
    pub(crate) state: &'static str,
    pub(crate) reason: Option<String>,
}

/// Adds the persona to what was loaded, or a note with the reason why it is missing.
pub(crate) fn apply(
    loaded: &mut LoadedWorkspace,
    config: &Config,
    fetched: FetchedPersona,
) -> PersonaOutcome {
    let source =
        config.persona.url.as_ref().map_or(Source::fixed("persona"), |url| Source::named(&url.to_string()));
    let (state, reason) = match fetched {
        FetchedPersona::Unset => ("unset", None),
        FetchedPersona::NotNeeded => ("not needed", None),
        FetchedPersona::Incomplete(reason) => ("incomplete", Some(reason.to_owned())),
        FetchedPersona::Failed(reason) => ("failed", Some(reason)),
        FetchedPersona::Text(text) => {
            loaded.set_persona(text, source.clone());
            ("loaded", None)
        }
    };
    let mut note = |kind, message: String| loaded.input.notes.push(Note::new(kind, message, source.clone()));
    if let Some(reason) = &reason {
        note(NoteKind::PersonaUnavailable, format!("the remote persona is left out: {reason}"));
    }
    if matches!(state, "loaded" | "failed") && config.persona.url.as_ref().is_some_and(Address::is_open) {
        note(NoteKind::Insecure, "the persona's token travels over plain http: use https".to_owned());
    }
    PersonaOutcome { state, reason }
}

type BoxError = Box<dyn Error + Send + Sync>;

async fn call(url: &str, command: &CommandLine, config: &Config) -> Result<String, BoxError> {
    let timeout = Duration::from_secs(config.persona.timeout_s.into());
    let bearer = run_token_command(command, TOKEN_COMMAND_TIMEOUT).await?;
    let secret = bearer.clone();
    let call = async {
        let terms = ClientOptions {
            bearer: Some(bearer),
            proxies: config.proxies.clone(),
            limits: Limits::default(),
        };
        let client = dial(url, &terms).await?;
        let params = to_raw_value(&serde_json::json!({"name": "get_system_prompt", "arguments": {}}))?;
        let result = client.request("tools/call", &params).await;
        client.close().await;
        // A server may echo the token, which must not reach a prompt.
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

fn text_of(result: &str) -> Result<String, BoxError> {
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
