//! The background tasks of `embody up`: schedules, Telegram, calls that were approved after their turn.

use std::sync::Arc;
use std::time::Duration;

use embody_agent::schedule::{Scheduler, SchedulerSettings, agent_job};
use embody_agent::telegram::{self, Bot, BotSettings, BotTimes};
use embody_agent::turn::TurnInput;
use embody_store::Store;
use embody_wire::server::CancellationToken;
use embody_wire::{Secret, Url};
use tokio::task::JoinSet;

use crate::broker_setup;
use crate::config::Config;
use crate::config::env::non_empty;
use crate::error::{CliError, ErrorContext};
use crate::web::{WEB, WebState};

const SHUTDOWN_GRACE: Duration = Duration::from_secs(20);

/// How often old messages and records of usage are deleted, after how long, and how many at once.
const PRUNE_INTERVAL: Duration = Duration::from_secs(600);
const RETENTION: Duration = Duration::from_secs(90 * 24 * 3600);
/// So that a month can be compared with the same one a year before.
const USAGE_RETENTION: Duration = Duration::from_secs(400 * 24 * 3600);
const PRUNE_BATCH: u32 = 1000;

pub(crate) struct Channels(JoinSet<()>);

impl Channels {
    pub(crate) fn start(web: &Arc<WebState>, bot: Option<Bot>, ending: &CancellationToken) -> Self {
        let (store, agent) = (&web.store, &web.agent);
        let mut tasks = JoinSet::new();
        tasks.spawn(resume_deferred_calls(Arc::clone(web), ending.clone()));
        tasks.spawn(prune(store.clone(), ending.clone()));
        let scheduler = Scheduler::new(store.clone(), agent_job(agent), SchedulerSettings::default());
        tasks.spawn(scheduler.run(ending.clone()));
        if let Some(bot) = bot {
            let prompts = Arc::clone(&web.prompts);
            let version = move || broker_setup::policy_version(&prompts.settings().config.policy);
            let bot = bot.with_policy_version(version);
            tasks.spawn(telegram::run(bot, agent.clone().into(), store.clone(), ending.clone()));
        }
        Self(tasks)
    }

    /// Returns when a task has ended, which none does before shutdown.
    pub(crate) async fn wait_for_failure(&mut self) -> CliError {
        let ended = self.0.join_next().await;
        let failure = CliError::new("a channel has stopped, so the process ends");
        match ended {
            Some(Err(error)) => failure.caused_by(&error),
            _ => failure,
        }
    }

    /// Waits for all tasks, which end once the shutdown has begun.
    pub(crate) async fn shutdown(mut self) {
        let all = async { while self.0.join_next().await.is_some() {} };
        if tokio::time::timeout(SHUTDOWN_GRACE, all).await.is_err() {
            tracing::warn!("not all channels stopped in time");
        }
        self.0.shutdown().await;
    }
}

async fn prune(store: Store, ending: CancellationToken) {
    loop {
        for pruned in [
            store.incoming().prune(RETENTION, PRUNE_BATCH).await,
            store.outgoing().prune(RETENTION, PRUNE_BATCH).await,
            store.usage().prune(USAGE_RETENTION, PRUNE_BATCH).await,
        ] {
            if let Err(error) = pruned {
                tracing::warn!(reason = %error, "old messages and records of usage cannot be deleted");
            }
        }
        tokio::select! {
            () = ending.cancelled() => return,
            () = tokio::time::sleep(PRUNE_INTERVAL) => {}
        }
    }
}

pub(crate) fn bot(config: &Config, owner: &str, agent: &str) -> Result<Option<Bot>, CliError> {
    let settings = &config.telegram;
    let Some(token) = non_empty(&settings.token_env).and_then(|token| token.into_string().ok()) else {
        return Ok(None);
    };
    let api_url =
        Url::parse(settings.api_url.expose()).usage_context("`telegram.api_url` is not a valid URL")?;
    let settings = BotSettings {
        token: Secret::new(token.trim()),
        api_url,
        proxies: config.proxies.clone(),
        allow_users: settings.allow_users.clone(),
        users: settings.users.clone(),
        owner: owner.to_owned(),
        agent: agent.to_owned(),
        clock: || jiff::Timestamp::now().as_microsecond(),
        times: BotTimes::default(),
    };
    let bot = Bot::new(&settings)
        .context(format!("the bot's token in {} cannot be used", config.telegram.token_env));
    bot.map(Some)
}

/// Resumes conversations whose calls were decided after their turn.
async fn resume_deferred_calls(web: Arc<WebState>, ending: CancellationToken) {
    let agent = web.agent.clone();
    let resume = move |input: TurnInput| {
        let web = Arc::clone(&web);
        async move {
            let failed = match input.channel() {
                WEB => {
                    web.resume_thread(input).await;
                    None
                }
                telegram::CHANNEL => telegram::resume_conversation(&web.store, &input)
                    .await
                    .err()
                    .map(|error| error.to_string()),
                _ => web.agent.run_turn(input, &mut |_| {}).await.err().map(|error| error.to_string()),
            };
            if let Some(reason) = failed {
                tracing::warn!(reason, "a conversation could not be resumed");
            }
        }
    };
    agent.run_deferred_calls(ending, resume).await;
}
