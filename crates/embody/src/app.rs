//! Everything that `up`, `run` and `schedule run` need, opened and closed in order: store, prompts, broker, agent, telemetry.

use std::sync::Arc;
use std::time::Duration;

use embody_agent::model::{ChatModel, ModelSettings, ModelTimes, Provider};
use embody_agent::turn::{Agent, AgentSetup, TurnError};
use embody_broker::Broker;
use embody_store::Store;
use embody_wire::{Secret, Url};

use crate::config::choices;
use crate::config::env::non_empty;
use crate::config::resolved::{Config, ModelTimeouts, Setting};
use crate::config::tree::Origin;
use crate::error::{CliError, ErrorContext};
use crate::prompt_service::PromptService;
use crate::settings::Settings;
use crate::telemetry::Telemetry;
use crate::{broker_setup, store};

pub(crate) struct App {
    pub(crate) store: Store,
    pub(crate) prompts: Arc<PromptService>,
    pub(crate) broker: Arc<Broker>,
    pub(crate) agent: Agent,
    telemetry: Telemetry,
}

impl App {
    pub(crate) async fn open(
        settings: Arc<Settings>,
        owner: &str,
        agent: &str,
        times: ModelTimes,
    ) -> Result<Self, CliError> {
        let config = &settings.config;
        let model = model(config, model_times(config.model.timeouts, times))?;
        let store = Store::open(store::database_url(&settings)).await?;
        let prompts = PromptService::new(settings, Some(store.clone()), owner.to_owned());
        let telemetry = Telemetry::start(&prompts.settings().config)?;
        let setup = broker_setup::build(&prompts, store.clone(), agent, telemetry.meter())?;
        prompts.load_zone_or_warn(agent).await;
        let broker = Arc::new(Broker::start(setup));
        let agent = Agent::new(AgentSetup {
            broker: Arc::clone(&broker),
            store: store.clone(),
            model,
            prompt_source: prompts.prompt_source(),
        });
        Ok(Self { store, prompts, broker, agent, telemetry })
    }

    /// Stops all child processes and flushes everything to disk.
    pub(crate) async fn close(self) {
        let Self { store, prompts, broker, agent, telemetry } = self;
        agent.close_sessions().await;
        drop(agent);
        broker.end().await;
        drop(broker);
        telemetry.end().await;
        drop(prompts);
        store.close().await;
    }
}

/// The timeouts of a model where a person waits on a terminal.
pub(crate) fn terminal_timeouts() -> ModelTimes {
    let (first_byte, retrying) = (Duration::from_secs(50), Duration::from_secs(40));
    ModelTimes { first_byte, idle: first_byte, retrying, ..ModelTimes::default() }
}

/// The defaults with the configured timeouts in their place. Defaults are adapted so that no part exceeds the whole.
fn model_times(timeouts: ModelTimeouts, times: ModelTimes) -> ModelTimes {
    let most = timeouts.total.unwrap_or(Duration::MAX);
    let first_byte = timeouts.first_byte.unwrap_or_else(|| {
        // It includes the connection: a longer connect timeout must not shorten the rest.
        let more = timeouts.connect.unwrap_or_default().saturating_sub(times.connect);
        times.first_byte.saturating_add(more).min(most)
    });
    let idle = timeouts.idle.unwrap_or(first_byte);
    let retrying = timeouts.retrying.unwrap_or(times.retrying.min(most));
    // The last attempt may start when the retry time ends.
    let last = retrying.saturating_add(first_byte).saturating_add(idle);
    ModelTimes {
        connect: timeouts.connect.unwrap_or(times.connect.min(first_byte)),
        first_byte,
        idle,
        total: timeouts.total.unwrap_or(times.total.max(last)),
        retrying,
        // A configured retry time replaces the limit on attempts.
        attempts: if timeouts.retrying.is_some() { None } else { times.attempts },
    }
}

pub(crate) fn no_model_error(config: &Config) -> CliError {
    missing_model_name(config).unwrap_or_else(|| TurnError::NoModel.into())
}

/// The error for a `[model]` with other keys but no `model`.
pub(crate) fn missing_model_name(config: &Config) -> Option<CliError> {
    let is_set = |key: &&Setting| key.key.starts_with("model.") && key.origin != Origin::Default;
    let set = config.keys.iter().find(is_set).filter(|_| config.model.model.is_none())?;
    let source = set.origin.source().map(|source| format!(" ({source})")).unwrap_or_default();
    let failure =
        CliError::new(format!("`model.model` is not set, so nobody can answer; `{}` is{source}", set.key));
    Some(failure.hint("add the model's name to `[model]`, such as `model = \"gpt-4o\"`"))
}

pub(crate) fn model(config: &Config, times: ModelTimes) -> Result<Option<ChatModel>, CliError> {
    let settings = &config.model;
    let Some(model) = settings.model.clone() else { return Ok(None) };
    let base_url = Url::parse(settings.base_url.expose()).usage_context("`model.base_url` is no address")?;
    let key = non_empty(&settings.api_key_env).and_then(|key| key.into_string().ok());
    let settings = ModelSettings {
        provider: match settings.provider {
            choices::Provider::Openai => Provider::OpenAi,
            choices::Provider::Anthropic => Provider::Anthropic,
        },
        base_url,
        model,
        api_key: key.map(|key| Secret::new(key.trim())),
        key_variable: settings.api_key_env.clone(),
        native_tools: settings.native_tools,
        max_output_tokens: settings.max_output_tokens,
        times,
        proxies: config.proxies.clone(),
    };
    let model = ChatModel::new(settings);
    Ok(Some(model.context("the model cannot be asked")?))
}

impl From<TurnError> for CliError {
    fn from(error: TurnError) -> Self {
        Self::new(&error).with_sources_of(&error).hint_opt(error.hint())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNSET: ModelTimeouts =
        ModelTimeouts { connect: None, first_byte: None, idle: None, total: None, retrying: None };

    #[test]
    fn configured_timeouts_hold_and_defaults_adapt() {
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        let secs = |timeouts| {
            let times = model_times(timeouts, ModelTimes::default());
            [times.connect, times.first_byte, times.idle, times.total, times.retrying]
                .map(|time| time.as_secs())
        };
        assert_eq!(model_times(UNSET, ModelTimes::default()), ModelTimes::default());
        assert_eq!(model_times(UNSET, terminal_timeouts()), terminal_timeouts());
        for (timeouts, expected) in [
            (ModelTimeouts { first_byte: seconds(900), ..UNSET }, [10, 900, 900, 1830, 30]),
            (ModelTimeouts { first_byte: seconds(900), idle: seconds(60), ..UNSET }, [10, 900, 60, 990, 30]),
            (ModelTimeouts { idle: seconds(5), ..UNSET }, [10, 120, 5, 600, 30]),
            (ModelTimeouts { total: seconds(60), ..UNSET }, [10, 60, 60, 60, 30]),
            (ModelTimeouts { total: seconds(7200), ..UNSET }, [10, 120, 120, 7200, 30]),
            (ModelTimeouts { retrying: seconds(0), connect: seconds(1), ..UNSET }, [1, 120, 120, 600, 0]),
            (ModelTimeouts { retrying: seconds(600), ..UNSET }, [10, 120, 120, 840, 600]),
            (
                ModelTimeouts { retrying: seconds(600), total: seconds(700), ..UNSET },
                [10, 120, 120, 700, 600],
            ),
            (ModelTimeouts { connect: seconds(300), ..UNSET }, [300, 410, 410, 850, 30]),
            (ModelTimeouts { connect: seconds(300), total: seconds(350), ..UNSET }, [300, 350, 350, 350, 30]),
            (ModelTimeouts { first_byte: seconds(4), ..UNSET }, [4, 4, 4, 600, 30]),
            (ModelTimeouts { total: seconds(5), ..UNSET }, [5, 5, 5, 5, 5]),
        ] {
            assert_eq!(secs(timeouts), expected, "{timeouts:?}");
        }
    }

    #[test]
    fn a_configured_retry_time_removes_the_limit_on_attempts() {
        let attempts =
            |retrying| model_times(ModelTimeouts { retrying, ..UNSET }, ModelTimes::default()).attempts;
        assert_eq!(attempts(None), ModelTimes::default().attempts);
        assert_eq!(attempts(Some(Duration::from_secs(600))), None);
    }
}
