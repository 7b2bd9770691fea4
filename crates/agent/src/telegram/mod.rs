//! The Telegram channel: updates in, messages out, each once.
//!
//! ```text
//! getUpdates ─► incoming rows, with the offset ─► one turn per chat at a time ─► outgoing rows ─► sendMessage, part by part
//! ```
//! An update is durable before Telegram is told that we have it; a part is written down before it is sent. What was under
//! way when a process was killed is never done again: it is `unknown`, and listed. One process at a time is the bot.
//!
//! | module | owns |
//! |---|---|
//! | [`format`] | Markdown to messages |
//! | `api` | the methods of the Bot API |
//! | `error` | what it means when one of them fails |
//! | `update` | an update as Telegram sends it |
//! | `said` | what was said, as it is kept and as the agent reads it |
//! | `place` | a chat, or a topic in it |
//! | `people` | who may speak, and who decides |
//! | `poll` | updates into the store |
//! | `work` | turns |
//! | `deliver` | messages out of the store |
//! | `approvals` | calls that wait for a person, with buttons |
//! | `lost` | what was under way when somebody was killed |
//! | `post` | being the one process that is the bot |

mod allowlist;
mod api;
mod approvals;
mod chat_ref;
mod error;
pub mod format;
mod inbound_message;
mod leader;
mod orphans;
mod poller;
mod sender;
mod update;
mod worker;

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use embody_store::{NewOutgoing, Scope, Store};
use embody_wire::server::CancellationToken;
use embody_wire::{Proxies, Secret, Url};

use self::allowlist::Allowlist;
pub use self::allowlist::user_for;
use self::api::{Api, Me};
pub use self::error::ApiError;
pub use self::worker::resume_conversation;
use crate::turn::{Agent, TurnInput};

/// The channel's name.
pub const CHANNEL: &str = "telegram";

/// What the operator says about the bot.
#[derive(Debug, Clone)]
pub struct BotSettings {
    /// The bot's token.
    pub token: Secret,
    /// Where the Bot API is.
    pub api_url: Url,
    /// The proxies before it.
    pub proxies: Proxies,
    /// The Telegram users that may write.
    pub allow_users: Vec<i64>,
    /// The users that they are, where it is not `telegram:ID`.
    pub users: BTreeMap<i64, String>,
    /// The user who runs the agent.
    pub owner: String,
    /// The agent that answers.
    pub agent: String,
    /// The time, in microseconds since 1970.
    pub clock: fn() -> i64,
    /// How long things take.
    pub times: BotTimes,
}

/// How long things take.
#[derive(Debug, Clone)]
pub struct BotTimes {
    /// How long work belongs to whoever began it, unless they say that they are still at it.
    pub lease: Duration,
    /// How long one poll waits.
    pub poll: Duration,
    /// How often it is shown that somebody is at it.
    pub typing: Duration,
    /// How long turns may take to come to an end when the process ends.
    pub ending: Duration,
    /// How often the store is looked at without being told to.
    pub look: Duration,
}

impl Default for BotTimes {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(20),
            poll: Duration::from_secs(50),
            typing: Duration::from_secs(4),
            ending: Duration::from_secs(8),
            look: Duration::from_secs(5),
        }
    }
}

/// A bot that is ready to be run.
#[derive(Debug, Clone)]
pub struct Bot {
    api: Api,
    allowlist: Allowlist,
    agent: String,
    clock: fn() -> i64,
    times: BotTimes,
}

impl Bot {
    /// By these settings. Nobody is asked for anything.
    ///
    /// # Errors
    /// When the token cannot be one.
    pub fn new(settings: &BotSettings) -> Result<Self, ApiError> {
        Ok(Self {
            api: Api::new(&settings.api_url, &settings.token, &settings.proxies)?,
            allowlist: Allowlist::new(&settings.allow_users, &settings.users, &settings.owner),
            agent: settings.agent.clone(),
            clock: settings.clock,
            times: settings.times.clone(),
        })
    }

    /// The name of the bot, as Telegram knows it; for `doctor`.
    ///
    /// # Errors
    /// When Telegram cannot be asked, or does not know the token.
    pub async fn name(&self) -> Result<String, ApiError> {
        self.api.me().await.map(|me| me.username)
    }
}

/// What a turn says, or in words why it says nothing.
pub type TurnReply = Result<Option<String>, String>;
type TurnFuture = Pin<Box<dyn Future<Output = TurnReply> + Send>>;

/// Who answers what is said.
pub struct TurnHandler(Box<dyn Fn(TurnInput) -> TurnFuture + Send + Sync>);

impl TurnHandler {
    /// Called for every message. Dropping what it returns breaks the turn off.
    pub fn new<F>(turn: impl Fn(TurnInput) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = TurnReply> + Send + 'static,
    {
        Self(Box::new(move |input| Box::pin(turn(input))))
    }

    fn run_turn(&self, input: TurnInput) -> TurnFuture {
        (self.0)(input)
    }
}

impl From<Agent> for TurnHandler {
    fn from(agent: Agent) -> Self {
        Self::new(move |input| {
            let agent = agent.clone();
            async move {
                match agent.run_turn(input, &mut |_| {}).await {
                    Ok(turned) => Ok(turned.reply),
                    Err(error) => {
                        let hint =
                            error.hint().map(|hint| format!("\n\n{}", fenced(&hint))).unwrap_or_default();
                        Err(format!("{error}{hint}"))
                    }
                }
            }
        })
    }
}

impl fmt::Debug for TurnHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Turns")
    }
}

/// Lines to copy stay as they are.
fn fenced(hint: &str) -> String {
    match hint.split_once('\n') {
        Some((first, lines)) => format!("{first}\n```\n{lines}\n```"),
        None => hint.to_owned(),
    }
}

/// Runs the bot until the end, whenever no other process on this store does.
pub async fn run(bot: Bot, turns: TurnHandler, store: Store, ending: CancellationToken) {
    let channel = leader::Candidate { bot, turns, store };
    leader::run_when_leader(channel, ending).await;
}

/// The channel while this process is the bot.
#[derive(Debug)]
struct Channel {
    api: Api,
    me: Me,
    allowlist: Allowlist,
    agent: String,
    clock: fn() -> i64,
    times: BotTimes,
    turns: std::sync::Arc<TurnHandler>,
    store: Store,
    /// Who works, for people to read in the store.
    worker: String,
    shown: approvals::ApprovalMessages,
}

impl Channel {
    fn scope(&self, user: &str) -> embody_store::Result<Scope> {
        Scope::new(user, &self.agent)
    }

    /// Queues a notice to the chat of a user. One that cannot be queued keeps nobody else's from it.
    async fn notify(&self, notice: NewOutgoing) {
        let user = notice.scope.user().to_owned();
        if let Err(error) = self.store.add_outgoing(notice).await {
            tracing::warn!(reason = %error, user, "a notice for Telegram could not be queued");
        }
    }

    fn lease(&self) -> embody_store::Lease {
        embody_store::Lease { owner: self.worker.clone(), duration: self.times.lease }
    }
}

/// A message to a chat.
fn message(scope: Scope, to: &str, kind: &str, text: String) -> NewOutgoing {
    NewOutgoing {
        scope,
        channel: CHANNEL.to_owned(),
        to: to.to_owned(),
        text,
        kind: kind.to_owned(),
        urgency: "normal".to_owned(),
        about: None,
    }
}
