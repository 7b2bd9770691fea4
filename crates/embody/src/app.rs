//! Everything that `up`, `run` and `schedule run` need, opened and closed in order: store, prompts, broker, agent, telemetry.

use std::sync::Arc;
use std::time::Duration;

use embody_agent::model::{ChatModel, FailureLog, ModelError, ModelSettings, ModelTimes};
use embody_agent::turn::{Agent, AgentSettings, AgentSetup, TurnError};
use embody_agent::usage::UsageContext;
use embody_broker::Broker;
use embody_broker::meter::Meter;
use embody_store::Store;
use embody_wire::Url;

use crate::broker_setup::SettingsBuilder;
use crate::config::reference::Setting;
use crate::config::settings::{Config, Model};
use crate::config::tree::Origin;
use crate::error::{CliError, ErrorContext};
use crate::model_key::ModelKey;
use crate::prompt_service::PromptService;
use crate::settings::Settings;
use crate::telemetry::Telemetry;
use crate::{broker_setup, embedded, store};

pub(crate) struct App {
    pub(crate) store: Store,
    pub(crate) prompts: Arc<PromptService>,
    pub(crate) broker: Arc<Broker>,
    pub(crate) agent: Agent,
    pub(crate) settings_builder: Arc<SettingsBuilder>,
    telemetry: Telemetry,
}

impl App {
    pub(crate) async fn open(
        settings: Arc<Settings>,
        owner: &str,
        agent: &str,
        times: ModelTimes,
        failures: FailureLog,
    ) -> Result<Self, CliError> {
        let agent_settings = agent_settings(&settings.config, times, failures)?;
        let store = Store::open(store::database_url(&settings)).await?;
        let prompts = PromptService::new(settings, Some(store.clone()), owner.to_owned());
        let telemetry = Telemetry::start(&prompts.settings().config)?;
        let (setup, settings_builder) =
            broker_setup::build(&prompts, store.clone(), agent, telemetry.meter())?;
        prompts.load_zone_or_warn(agent).await;
        let broker = Arc::new(Broker::start(setup));
        let usage = usage_context(&prompts, &store, owner, agent, telemetry.meter());
        let agent = Agent::new(AgentSetup {
            broker: Arc::clone(&broker),
            store: store.clone(),
            settings: agent_settings,
            prompt_source: prompts.prompt_source(),
            usage,
        });
        Ok(Self { store, prompts, broker, agent, settings_builder: Arc::new(settings_builder), telemetry })
    }

    /// Stops all child processes and flushes everything to disk.
    pub(crate) async fn close(self) {
        let Self { store, prompts, broker, agent, telemetry, .. } = self;
        agent.close_sessions().await;
        drop(agent);
        broker.shutdown().await;
        drop(broker);
        telemetry.end().await;
        drop(prompts);
        store.close().await;
    }
}

fn usage_context(
    prompts: &Arc<PromptService>,
    store: &Store,
    owner: &str,
    agent: &str,
    meter: Arc<Meter>,
) -> UsageContext {
    let zone = {
        let prompts = Arc::clone(prompts);
        move || prompts.owner_zone()
    };
    UsageContext {
        zone: Box::new(zone),
        meter,
        notify: embedded::budget_notice(store, prompts, owner, agent),
    }
}

/// The timeouts of a model where a person waits on a terminal.
pub(crate) fn terminal_timeouts() -> ModelTimes {
    let (first_byte, retrying) = (Duration::from_secs(50), Duration::from_secs(40));
    ModelTimes { first_byte, idle: first_byte, retrying, ..ModelTimes::default() }
}

/// The defaults with the configured timeouts in their place. Defaults are adapted so that no part exceeds the whole.
pub(crate) fn model_times(model: &Model, times: ModelTimes) -> ModelTimes {
    let seconds = |key: Option<u32>| key.map(|seconds| Duration::from_secs(seconds.into()));
    let (connect, total) = (seconds(model.connect_timeout_s), seconds(model.total_timeout_s));
    let most = total.unwrap_or(Duration::MAX);
    let first_byte = seconds(model.first_byte_timeout_s).unwrap_or_else(|| {
        // It includes the connection: a longer connect timeout must not shorten the rest.
        let more = connect.unwrap_or_default().saturating_sub(times.connect);
        times.first_byte.saturating_add(more).min(most)
    });
    let idle = seconds(model.idle_timeout_s).unwrap_or(first_byte);
    let retrying = seconds(model.retry_s).unwrap_or(times.retrying.min(most));
    // The last attempt may start when the retry time ends.
    let last = retrying.saturating_add(first_byte).saturating_add(idle);
    ModelTimes {
        connect: connect.unwrap_or(times.connect.min(first_byte)),
        first_byte,
        idle,
        total: total.unwrap_or(times.total.max(last)),
        retrying,
        // A configured retry time replaces the limit on attempts.
        attempts: if model.retry_s.is_some() { None } else { times.attempts },
    }
}

/// What the agent runs with, from the configuration. A configured timeout replaces the one in `times`.
pub(crate) fn agent_settings(
    config: &Config,
    times: ModelTimes,
    failures: FailureLog,
) -> Result<AgentSettings, CliError> {
    Ok(AgentSettings {
        model: model(config, model_times(&config.model, times), failures)?,
        prices: config.prices.clone(),
        budget: config.budget.clone(),
    })
}

pub(crate) fn no_model_error(config: &Config) -> CliError {
    missing_model_name(config).unwrap_or_else(|| TurnError::NoModel.into())
}

/// The error for a `[model]` with other keys but no `model`.
pub(crate) fn missing_model_name(config: &Config) -> Option<CliError> {
    let is_set = |key: &&Setting| key.key.starts_with("model.") && key.origin != Origin::Default;
    let set = config.keys.iter().find(is_set).filter(|_| config.model.model.is_none())?;
    let source = set.origin.source().map(|source| format!(" ({source})")).unwrap_or_default();
    let failure = CliError::new(format!("`model.model` is not set, but `{}` is{source}", set.key));
    Some(failure.hint("add the model's name to `[model]`, such as `model = \"gpt-4o\"`"))
}

pub(crate) fn model(
    config: &Config,
    times: ModelTimes,
    failures: FailureLog,
) -> Result<Option<ChatModel>, CliError> {
    if config.model.model.is_none() {
        return Ok(None);
    }
    let key = ModelKey::configured(&config.model)?;
    let model = ChatModel::new(model_settings(config, key, times, failures)?);
    Ok(Some(model.context("the model cannot be used")?))
}

/// The configured model, with this key.
pub(crate) fn model_settings(
    config: &Config,
    key: ModelKey,
    times: ModelTimes,
    failures: FailureLog,
) -> Result<ModelSettings, CliError> {
    let settings = &config.model;
    let base_url =
        Url::parse(settings.base_url.expose()).usage_context("`model.base_url` is not a valid URL")?;
    Ok(ModelSettings {
        provider: settings.provider,
        base_url,
        model: settings.model.clone().ok_or_else(|| no_model_error(config))?,
        api_key: key.secret,
        key_source: key.source,
        native_tools: settings.native_tools,
        max_output_tokens: settings.max_output_tokens,
        times,
        proxies: config.proxies.clone(),
        failures,
    })
}

impl From<ModelError> for CliError {
    fn from(error: ModelError) -> Self {
        Self::new(&error).hint_opt(error.hint())
    }
}

impl From<TurnError> for CliError {
    fn from(error: TurnError) -> Self {
        Self::new(&error).with_sources_of(&error).hint_opt(error.hint())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A model with these timeouts: connect, first byte, idle, total, retry.
    fn timeouts([connect, first_byte, idle, total, retry]: [u32; 5]) -> Model {
        let set = |seconds: u32| Some(seconds).filter(|seconds| *seconds != UNSET);
        Model {
            connect_timeout_s: set(connect),
            first_byte_timeout_s: set(first_byte),
            idle_timeout_s: set(idle),
            total_timeout_s: set(total),
            retry_s: set(retry),
            ..Model::default()
        }
    }

    const UNSET: u32 = u32::MAX;

    #[test]
    fn configured_timeouts_hold_and_defaults_adapt() {
        let secs = |keys| {
            let times = model_times(&timeouts(keys), ModelTimes::default());
            [times.connect, times.first_byte, times.idle, times.total, times.retrying]
                .map(|time| time.as_secs())
        };
        assert_eq!(model_times(&Model::default(), ModelTimes::default()), ModelTimes::default());
        assert_eq!(model_times(&Model::default(), terminal_timeouts()), terminal_timeouts());
        for (keys, expected) in [
            ([UNSET, 900, UNSET, UNSET, UNSET], [10, 900, 900, 1830, 30]),
            ([UNSET, 900, 60, UNSET, UNSET], [10, 900, 60, 990, 30]),
            ([UNSET, UNSET, 5, UNSET, UNSET], [10, 120, 5, 600, 30]),
            ([UNSET, UNSET, UNSET, 60, UNSET], [10, 60, 60, 60, 30]),
            ([UNSET, UNSET, UNSET, 7200, UNSET], [10, 120, 120, 7200, 30]),
            ([1, UNSET, UNSET, UNSET, 0], [1, 120, 120, 600, 0]),
            ([UNSET, UNSET, UNSET, UNSET, 600], [10, 120, 120, 840, 600]),
            ([UNSET, UNSET, UNSET, 700, 600], [10, 120, 120, 700, 600]),
            ([300, UNSET, UNSET, UNSET, UNSET], [300, 410, 410, 850, 30]),
            ([300, UNSET, UNSET, 350, UNSET], [300, 350, 350, 350, 30]),
            ([UNSET, 4, UNSET, UNSET, UNSET], [4, 4, 4, 600, 30]),
            ([UNSET, UNSET, UNSET, 5, UNSET], [5, 5, 5, 5, 5]),
        ] {
            assert_eq!(secs(keys), expected, "{keys:?}");
        }
    }

    #[test]
    fn a_configured_retry_time_removes_the_limit_on_attempts() {
        let attempts =
            |retry_s| model_times(&Model { retry_s, ..Model::default() }, ModelTimes::default()).attempts;
        assert_eq!(attempts(None), ModelTimes::default().attempts);
        assert_eq!(attempts(Some(600)), None);
    }
}
