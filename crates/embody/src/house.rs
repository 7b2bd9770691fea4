//! The whole house, open: store, voice, broker, agents. What `up`, `run` and `schedule run` live in.

use std::sync::Arc;
use std::time::Duration;

use embody_agent::model::{ChatModel, ModelSettings, ModelTimes, Provider};
use embody_agent::turn::{Agent, AgentSetup, TurnError};
use embody_broker::Broker;
use embody_store::Store;
use embody_wire::{Secret, Url};

use crate::cli::Context;
use crate::config::choices;
use crate::config::env::non_empty;
use crate::config::origin::Origin;
use crate::config::resolved::{Config, Patience, Setting};
use crate::contract::Voice;
use crate::failure::Failure;
use crate::telemetry::Telemetry;
use crate::{nerves, store};

/// Everything that is open.
pub(crate) struct House {
    pub(crate) store: Store,
    pub(crate) voice: Arc<Voice>,
    pub(crate) broker: Arc<Broker>,
    pub(crate) agent: Agent,
    telemetry: Telemetry,
}

impl House {
    /// Opens everything for this agent in the workspace of this owner.
    pub(crate) async fn open(
        context: Context,
        owner: &str,
        agent: &str,
        times: ModelTimes,
    ) -> Result<Self, Failure> {
        let model = model(&context.config, times_of(context.config.model.patience, times))?;
        let store = Store::open(store::place(&context)).await?;
        let voice = Voice::new(context, store.clone(), owner.to_owned());
        let telemetry = Telemetry::start(&voice.context().config)?;
        let setup = nerves::setup(voice.context(), store.clone(), &voice, agent, telemetry.meter())?;
        if let Err(failure) = voice.find_zone(agent).await {
            tracing::warn!(reason = failure.in_short().0, "the workspace cannot be read");
        }
        let broker = Arc::new(Broker::start(setup));
        let agent = Agent::new(AgentSetup {
            broker: Arc::clone(&broker),
            store: store.clone(),
            model,
            composer: voice.composer(),
        });
        Ok(Self { store, voice, broker, agent, telemetry })
    }

    /// Ends everything: no process of ours is left, and everything is on disk.
    pub(crate) async fn close(self) {
        let Self { store, voice, broker, agent, telemetry } = self;
        agent.end().await;
        drop(agent);
        broker.end().await;
        drop(broker);
        telemetry.end().await;
        drop(voice);
        store.close().await;
    }
}

/// How long a person waits for one answer on a terminal.
pub(crate) fn patient_for_a_terminal() -> ModelTimes {
    let (first_byte, retrying) = (Duration::from_secs(50), Duration::from_secs(40));
    ModelTimes { first_byte, idle: first_byte, retrying, ..ModelTimes::default() }
}

/// These times, with what the operator says in their place. What is not said gives way to what is.
fn times_of(patience: Patience, times: ModelTimes) -> ModelTimes {
    let most = patience.total.unwrap_or(Duration::MAX);
    let first_byte = patience.first_byte.unwrap_or_else(|| {
        // It includes the connection: what that gets more must not be taken from the answer.
        let more = patience.connect.unwrap_or_default().saturating_sub(times.connect);
        times.first_byte.saturating_add(more).min(most)
    });
    let idle = patience.idle.unwrap_or(first_byte);
    let retrying = patience.retrying.unwrap_or(times.retrying.min(most));
    // The last attempt may begin when the time to try again ends.
    let last = retrying.saturating_add(first_byte).saturating_add(idle);
    ModelTimes {
        connect: patience.connect.unwrap_or(times.connect.min(first_byte)),
        first_byte,
        idle,
        total: patience.total.unwrap_or(times.total.max(last)),
        retrying,
        // Where somebody says how long, it is not for us to say how often.
        attempts: if patience.retrying.is_some() { None } else { times.attempts },
    }
}

/// What is missing where no model is named.
pub(crate) fn no_model(config: &Config) -> Failure {
    unnamed_model(config).unwrap_or_else(|| TurnError::NoModel.into())
}

/// What is missing where a model is half configured: its name.
pub(crate) fn unnamed_model(config: &Config) -> Option<Failure> {
    let is_set = |key: &&Setting| key.key.starts_with("model.") && key.origin != Origin::Default;
    let set = config.keys.iter().find(is_set).filter(|_| config.model.model.is_none())?;
    let source = set.origin.source().map(|source| format!(" ({source})")).unwrap_or_default();
    let failure =
        Failure::new(format!("`model.model` is not set, so nobody can answer; `{}` is{source}", set.key));
    Some(failure.hint("add the model's name to `[model]`, such as `model = \"gpt-4o\"`"))
}

/// The model that is configured, if one is.
pub(crate) fn model(config: &Config, times: ModelTimes) -> Result<Option<ChatModel>, Failure> {
    let settings = &config.model;
    let Some(model) = settings.model.clone() else { return Ok(None) };
    let base_url = Url::parse(settings.base_url.expose())
        .map_err(|error| Failure::usage("`model.base_url` is no address").because(&error))?;
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
    Ok(Some(model.map_err(|error| Failure::new("the model cannot be asked").because(&error))?))
}

impl From<TurnError> for Failure {
    fn from(error: TurnError) -> Self {
        let failure = Self::new(&error);
        let failure = match std::error::Error::source(&error) {
            Some(source) => failure.because(source),
            None => failure,
        };
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNSET: Patience =
        Patience { connect: None, first_byte: None, idle: None, total: None, retrying: None };

    #[test]
    fn what_the_operator_says_holds_and_the_rest_gives_way() {
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        let secs = |patience| {
            let times = times_of(patience, ModelTimes::default());
            [times.connect, times.first_byte, times.idle, times.total, times.retrying]
                .map(|time| time.as_secs())
        };
        assert_eq!(times_of(UNSET, ModelTimes::default()), ModelTimes::default());
        assert_eq!(times_of(UNSET, patient_for_a_terminal()), patient_for_a_terminal());
        for (patience, expected) in [
            (Patience { first_byte: seconds(900), ..UNSET }, [10, 900, 900, 1830, 30]),
            (Patience { first_byte: seconds(900), idle: seconds(60), ..UNSET }, [10, 900, 60, 990, 30]),
            (Patience { idle: seconds(5), ..UNSET }, [10, 120, 5, 600, 30]),
            (Patience { total: seconds(60), ..UNSET }, [10, 60, 60, 60, 30]),
            (Patience { total: seconds(7200), ..UNSET }, [10, 120, 120, 7200, 30]),
            (Patience { retrying: seconds(0), connect: seconds(1), ..UNSET }, [1, 120, 120, 600, 0]),
            (Patience { retrying: seconds(600), ..UNSET }, [10, 120, 120, 840, 600]),
            (Patience { retrying: seconds(600), total: seconds(700), ..UNSET }, [10, 120, 120, 700, 600]),
            (Patience { connect: seconds(300), ..UNSET }, [300, 410, 410, 850, 30]),
            (Patience { connect: seconds(300), total: seconds(350), ..UNSET }, [300, 350, 350, 350, 30]),
            (Patience { first_byte: seconds(4), ..UNSET }, [4, 4, 4, 600, 30]),
            (Patience { total: seconds(5), ..UNSET }, [5, 5, 5, 5, 5]),
        ] {
            assert_eq!(secs(patience), expected, "{patience:?}");
        }
    }

    #[test]
    fn only_a_time_to_try_again_that_nobody_set_ends_after_some_attempts() {
        let attempts = |retrying| times_of(Patience { retrying, ..UNSET }, ModelTimes::default()).attempts;
        assert_eq!(attempts(None), ModelTimes::default().attempts);
        assert_eq!(attempts(Some(Duration::from_secs(600))), None);
    }
}
