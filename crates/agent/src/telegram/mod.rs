//! The Telegram channel: updates in, messages out, each at most once.
//!
//! ```text
//! getUpdates ─► incoming rows, with the offset ─► one turn per chat at a time ─► outgoing rows ─► sendMessage, part by part
//! ```
//! An update is stored before it is confirmed to Telegram; a part is recorded before it is sent. Work that was in
//! progress when a process died is never repeated: its outcome is `unknown`, and it is listed. One process at a time is
//! the bot.
//!
//! | module | owns |
//! |---|---|
//! | [`format`] | Markdown to messages |
//! | `api` | the methods of the Bot API |
//! | `error` | the errors of the Bot API |
//! | `update` | an update as Telegram sends it |
//! | `inbound_message` | a message as it is stored and as the agent reads it |
//! | `chat_ref` | a chat, or a topic in it |
//! | `allowlist` | who may write, and who decides |
//! | `poller` | updates into the store |
//! | `worker` | turns |
//! | `sender` | messages out of the store |
//! | `approvals` | calls that wait for approval, with buttons |
//! | `orphans` | work that was in progress when a process died |
//! | `leader` | leader election |

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

use embody_store::outgoing::NewOutgoing;
use embody_store::{Scope, Store};
use embody_wire::server::CancellationToken;
use embody_wire::{Proxies, Secret, Url};

use self::allowlist::Allowlist;
pub use self::allowlist::user_for;
use self::api::{Api, Me};
pub use self::error::ApiError;
pub use self::worker::resume_conversation;
use crate::turn::{Agent, TurnInput};

pub const CHANNEL: &str = "telegram";

/// The operator's settings.
#[derive(Debug, Clone)]
pub struct BotSettings {
    pub token: Secret,
    pub api_url: Url,
    pub proxies: Proxies,
    /// The Telegram users that may write.
    pub allow_users: Vec<i64>,
    /// The embody users for Telegram users, where they are not `telegram:ID`.
    pub users: BTreeMap<i64, String>,
    /// The user who runs the agent.
    pub owner: String,
    pub agent: String,
    /// The time, in microseconds since 1970.
    pub clock: fn() -> i64,
    pub times: BotTimes,
}

#[derive(Debug, Clone)]
pub struct BotTimes {
    /// The lease on a piece of work, which is renewed while it runs.
    pub lease: Duration,
    /// How long one poll waits.
    pub poll: Duration,
    /// How often the typing indicator is renewed.
    pub typing: Duration,
    /// How long turns may take to end at shutdown.
    pub ending: Duration,
    /// How often the store is polled without a notification.
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

/// A bot that is ready to run.
#[derive(Debug, Clone)]
pub struct Bot {
    api: Api,
    allowlist: Allowlist,
    agent: String,
    clock: fn() -> i64,
    times: BotTimes,
}

impl Bot {
    /// Builds a bot. Makes no request.
    ///
    /// # Errors
    /// When the token is malformed.
    pub fn new(settings: &BotSettings) -> Result<Self, ApiError> {
        Ok(Self {
            api: Api::new(&settings.api_url, &settings.token, &settings.proxies)?,
            allowlist: Allowlist::new(&settings.allow_users, &settings.users, &settings.owner),
            agent: settings.agent.clone(),
            clock: settings.clock,
            times: settings.times.clone(),
        })
    }

    /// The bot's user name, for `doctor`.
    ///
    /// # Errors
    /// When Telegram cannot be reached, or rejects the token.
    pub async fn name(&self) -> Result<String, ApiError> {
        self.api.me().await.map(|me| me.username)
    }
}

/// The reply of a turn, if any, or a text that says why it failed.
pub type TurnReply = Result<Option<String>, String>;
type TurnFuture = Pin<Box<dyn Future<Output = TurnReply> + Send>>;

pub struct TurnHandler(Box<dyn Fn(TurnInput) -> TurnFuture + Send + Sync>);

impl TurnHandler {
    /// `turn` is called for every message. Dropping the future interrupts the turn.
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

/// Fences lines that are meant to be copied.
fn fenced(hint: &str) -> String {
    match hint.split_once('\n') {
        Some((first, lines)) => format!("{first}\n```\n{lines}\n```"),
        None => hint.to_owned(),
    }
}

/// Runs the bot until shutdown, whenever no other process on this store does.
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
    /// The name of the worker in the store, for people to read.
    worker: String,
    shown: approvals::ApprovalMessages,
}

impl Channel {
    fn scope(&self, user: &str) -> embody_store::Result<Scope> {
        Scope::new(user, &self.agent)
    }

    /// Queues a notice to the chat of a user. A failure is logged and does not affect others.
    async fn notify(&self, notice: NewOutgoing) {
        let user = notice.scope.user().to_owned();
        if let Err(error) = self.store.outgoing().enqueue(notice).await {
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
