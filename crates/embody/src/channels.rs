//! What goes on in `embody up` beside the web: schedules, Telegram, messages that leave, calls that were approved later.

use std::sync::Arc;
use std::time::Duration;

use embody_agent::delivery::deliver_to_web;
use embody_agent::schedule::{Scheduler, SchedulerSettings, turns};
use embody_agent::telegram::{self, Bot, BotSettings, BotTimes};
use embody_agent::turn::TurnInput;
use embody_store::Store;
use embody_wire::serve::Ending;
use embody_wire::{Secret, Url};
use tokio::task::JoinSet;

use crate::config::env::non_empty;
use crate::config::resolved::Config;
use crate::failure::Failure;
use crate::web::{WEB, Web};

/// How long everything may take to come to its end.
const LAST_WORDS: Duration = Duration::from_secs(20);

/// How often old messages are looked for, how long they are kept, and how many go at once.
const PRUNE: Duration = Duration::from_secs(600);
const KEPT: Duration = Duration::from_secs(90 * 24 * 3600);
const AT_ONCE: u32 = 1000;

/// Everything that goes on.
pub(crate) struct Channels(JoinSet<()>);

impl Channels {
    /// Begins.
    pub(crate) fn start(web: &Arc<Web>, bot: Option<Bot>, ending: &Ending) -> Self {
        let (store, agent) = (&web.store, &web.agent);
        let mut going = JoinSet::new();
        let owner = format!("up {}", std::process::id());
        going.spawn(deliver_to_web(store.clone(), owner, ending.clone()));
        going.spawn(follow(Arc::clone(web), ending.clone()));
        going.spawn(prune(store.clone(), ending.clone()));
        let scheduler = Scheduler::new(store.clone(), turns(agent), SchedulerSettings::default());
        going.spawn(scheduler.run(ending.clone()));
        if let Some(bot) = bot {
            going.spawn(telegram::run(bot, agent.clone().into(), store.clone(), ending.clone()));
        }
        Self(going)
    }

    /// Returns when something has ended, which nothing does before the end has begun.
    pub(crate) async fn broken(&mut self) -> Failure {
        let ended = self.0.join_next().await;
        let failure = Failure::new("a channel has stopped, so everything ends");
        match ended {
            Some(Err(error)) => failure.because(&error),
            _ => failure,
        }
    }

    /// Waits until everything has ended, which it does once the end has begun.
    pub(crate) async fn end(mut self) {
        let all = async { while self.0.join_next().await.is_some() {} };
        if tokio::time::timeout(LAST_WORDS, all).await.is_err() {
            tracing::warn!("not everything came to its end in time");
        }
        self.0.shutdown().await;
    }
}

/// Forgets what arrived and left long ago.
async fn prune(store: Store, mut ending: Ending) {
    loop {
        for pruned in [store.prune_incoming(KEPT, AT_ONCE).await, store.prune_outgoing(KEPT, AT_ONCE).await] {
            if let Err(error) = pruned {
                tracing::warn!(reason = %error, "old messages cannot be forgotten");
            }
        }
        tokio::select! {
            () = ending.wait() => return,
            () = tokio::time::sleep(PRUNE) => {}
        }
    }
}

/// The bot, if a token is set.
pub(crate) fn bot(config: &Config, owner: &str, agent: &str) -> Result<Option<Bot>, Failure> {
    let settings = &config.telegram;
    let Some(token) = non_empty(&settings.token_env).and_then(|token| token.into_string().ok()) else {
        return Ok(None);
    };
    let api_url = Url::parse(settings.api_url.expose())
        .map_err(|error| Failure::usage("`telegram.api_url` is no address").because(&error))?;
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
    let bot = Bot::new(&settings).map_err(|error| {
        Failure::new(format!("the bot's token in {} cannot be used", config.telegram.token_env))
            .because(&error)
    });
    bot.map(Some)
}

/// Calls that were decided after their turn: their conversation goes on where it was.
async fn follow(web: Arc<Web>, ending: Ending) {
    let agent = web.agent.clone();
    let go_on = move |input: TurnInput| {
        let web = Arc::clone(&web);
        async move {
            let failed = match input.channel.as_str() {
                WEB => {
                    web.go_on(input).await;
                    None
                }
                telegram::CHANNEL => {
                    telegram::go_on(&web.store, &input).await.err().map(|error| error.to_string())
                }
                _ => web.agent.turn(input, &mut |_| {}).await.err().map(|error| error.to_string()),
            };
            if let Some(reason) = failed {
                tracing::warn!(reason, "a conversation could not go on");
            }
        }
    };
    agent.follow(ending, go_on).await;
}
