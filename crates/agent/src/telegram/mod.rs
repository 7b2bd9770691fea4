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
//! | `api` | the methods of the Bot API, and their errors |
//! | `update` | an update as Telegram sends it, and the chat that it comes from |
//! | `inbound_message` | a message as it is stored and as the agent reads it |
//! | `poller` | updates into the store |
//! | `worker` | turns |
//! | `sender` | messages out of the store |
//! | `approvals` | calls that wait for approval, with buttons |
//! | `leader` | leader election, and work that was in progress when a process died |

mod api;
mod approvals;
pub mod format;
mod inbound_message;
mod leader;
mod poller;
mod sender;
mod update;
mod worker;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use embody_prompt::Audience;
use embody_store::outgoing::NewOutgoing;
use embody_store::{Scope, Store};
use embody_wire::{Proxies, Secret, Url};
use tokio::sync::watch;

use self::api::{Api, Me};
use crate::AsyncCallback;
use crate::event::TurnEvent;
use crate::turn::{Agent, TurnError, TurnInput};

pub use self::api::ApiError;
pub use self::leader::run;
pub use self::worker::resume_conversation;

pub const CHANNEL: &str = "telegram";

/// The operator's settings.
#[derive(Debug, Clone)]
pub struct BotSettings {
    pub token: Secret,
    pub api_url: Url,
    pub proxies: Proxies,
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
    pub store_poll: Duration,
}

impl Default for BotTimes {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(20),
            poll: Duration::from_secs(50),
            typing: Duration::from_secs(4),
            ending: Duration::from_secs(8),
            store_poll: Duration::from_secs(5),
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
    policy: CurrentPolicy,
}

/// The version of the policy in force, which may change while the bot runs; without one, every version counts as current.
#[derive(Clone, Default)]
struct CurrentPolicy(Option<Arc<dyn Fn() -> String + Send + Sync>>);

impl CurrentPolicy {
    fn has_version(&self, version: &str) -> bool {
        self.0.as_ref().is_none_or(|current| current() == version)
    }
}

impl fmt::Debug for CurrentPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CurrentPolicy")
    }
}

impl Bot {
    /// Builds a bot. Makes no request.
    pub fn new(settings: &BotSettings) -> Result<Self, ApiError> {
        Ok(Self {
            api: Api::new(&settings.api_url, &settings.token, &settings.proxies)?,
            allowlist: Allowlist::new(&settings.allow_users, &settings.users, &settings.owner),
            agent: settings.agent.clone(),
            clock: settings.clock,
            times: settings.times.clone(),
            policy: CurrentPolicy::default(),
        })
    }

    /// Approvals that were asked under another version of the policy cannot be approved.
    #[must_use]
    pub fn with_policy_version(self, version: impl Fn() -> String + Send + Sync + 'static) -> Self {
        Self { policy: CurrentPolicy(Some(Arc::new(version))), ..self }
    }

    /// The bot's user name, for `doctor`.
    pub async fn name(&self) -> Result<String, ApiError> {
        self.api.me().await.map(|me| me.username)
    }
}

const DID_NOT_FAIL: &str = "Your last message did not fail.";

/// The reply of a turn, if any, or a text that says why it failed.
pub type TurnReply = Result<Option<String>, String>;
/// What a turn waits for, as one line that later ones replace.
pub type TurnStatus = watch::Sender<Option<String>>;
/// Runs the turn of a message. Dropping the future interrupts the turn.
pub type TurnHandler = AsyncCallback<(TurnInput, TurnStatus), TurnReply>;

impl From<Agent> for TurnHandler {
    fn from(agent: Agent) -> Self {
        Self::new(move |(input, status): (TurnInput, TurnStatus)| {
            let agent = agent.clone();
            async move {
                // Others in the chat must not learn which servers the owner has.
                let is_told = input.prompt.audience == Audience::Owner;
                let mut missing = Vec::new();
                let mut on = |event: TurnEvent| {
                    match event.retry_line() {
                        Some(line) => drop(status.send_replace(Some(format!("{line} …")))),
                        None => drop(status.send_if_modified(|line| line.take().is_some())),
                    }
                    if let (true, TurnEvent::Missing { servers }) = (is_told, event) {
                        missing = servers.into_iter().map(|server| format!("`{}`", server.name)).collect();
                    }
                };
                let turned = agent.run_turn(input, &mut on).await;
                match turned {
                    Ok(result) => Ok(result.reply.map(|reply| with_missing(reply, &missing))),
                    Err(TurnError::NothingToRetry) => Ok(Some(DID_NOT_FAIL.to_owned())),
                    Err(error) => {
                        let hint =
                            error.hint().map(|hint| format!("\n\n{}", fenced(&hint))).unwrap_or_default();
                        let retry = if error.is_kept() { "\n\n/retry tries again." } else { "" };
                        Err(format!("{error}{hint}{retry}"))
                    }
                }
            }
        })
    }
}

/// The reply, with the servers that the turn had to do without.
fn with_missing(reply: String, missing: &[String]) -> String {
    match missing.is_empty() {
        true => reply,
        false => format!("{reply}\n\n(Without the tools of {}.)", missing.join(", ")),
    }
}

/// Fences lines that are meant to be copied.
fn fenced(hint: &str) -> String {
    match hint.split_once('\n') {
        Some((first, lines)) => format!("{first}\n```\n{lines}\n```"),
        None => hint.to_owned(),
    }
}

/// The channel while this process is the bot.
struct Channel {
    bot: Bot,
    me: Me,
    turns: Arc<TurnHandler>,
    store: Store,
    /// The name of the worker in the store, for people to read.
    worker: String,
    shown: approvals::ApprovalMessages,
}

impl Channel {
    fn scope(&self, user: &str) -> embody_store::Result<Scope> {
        Scope::new(user, &self.bot.agent)
    }

    /// Queues a notice to the chat of a user. A failure is logged and does not affect others.
    async fn notify(&self, notice: NewOutgoing) {
        let user = notice.scope.user().to_owned();
        if let Err(error) = self.store.outgoing().enqueue(notice).await {
            tracing::warn!(reason = %error, user, "a notice for Telegram could not be queued");
        }
    }

    fn lease(&self) -> embody_store::Lease {
        embody_store::Lease { owner: self.worker.clone(), duration: self.bot.times.lease }
    }
}

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

#[derive(Debug, Clone)]
struct Allowlist {
    names: BTreeMap<i64, String>,
    owner: String,
    deciders: Vec<i64>,
}

impl Allowlist {
    fn new(allowed: &[i64], users: &BTreeMap<i64, String>, owner: &str) -> Self {
        let named = |id: &i64| (*id, user_for(*id, users));
        let names: BTreeMap<i64, String> = allowed.iter().map(named).collect();
        let is_owner = |name: &String| name == owner;
        let deciders = if users.values().any(is_owner) {
            names.iter().filter(|(_, name)| is_owner(name)).map(|(id, _)| *id).collect()
        } else {
            allowed.iter().take(1).copied().collect()
        };
        Self { names, owner: owner.to_owned(), deciders }
    }

    /// The user for this Telegram id; `None` if it is not on the list.
    fn user(&self, person: i64) -> Option<&str> {
        self.names.get(&person).map(String::as_str)
    }

    /// Whether a person on the list is this user.
    fn has(&self, user: &str) -> bool {
        self.names.values().any(|name| name == user)
    }

    fn is_owner(&self, user: &str) -> bool {
        user == self.owner
    }

    /// The people who decide about calls of all users: those on the list whom the operator has mapped to the owner, or
    /// the first on the list if no mapping names the owner.
    fn deciders(&self) -> &[i64] {
        &self.deciders
    }
}

/// The user for a person on the list: as mapped by the operator, else by Telegram id.
pub fn user_for(person: i64, users: &BTreeMap<i64, String>) -> String {
    users.get(&person).cloned().unwrap_or_else(|| unnamed(person))
}

/// The user for a person without a mapping.
fn unnamed(person: i64) -> String {
    format!("telegram:{person}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_alone_decides() {
        let users = BTreeMap::from([(1, "owner".to_owned()), (3, "ann".to_owned()), (9, "eve".to_owned())]);
        let allowlist = Allowlist::new(&[2, 1, 3], &users, "owner");
        assert_eq!(
            (allowlist.user(1), allowlist.user(2), allowlist.user(3)),
            (Some("owner"), Some("telegram:2"), Some("ann"))
        );
        // Mapped, but not on the list.
        assert_eq!((allowlist.user(9), allowlist.has("eve"), allowlist.has("ann")), (None, false, true));
        assert_eq!(allowlist.deciders(), [1]);
        let two = BTreeMap::from([(1, "owner".to_owned()), (3, "owner".to_owned())]);
        assert_eq!(Allowlist::new(&[3, 2, 1], &two, "owner").deciders(), [1, 3]);
        // No mapping names the owner: the first on the list.
        assert_eq!(Allowlist::new(&[5, 2], &BTreeMap::new(), "owner").deciders(), [5]);
        // The mapped owner was removed from the list, and is not replaced.
        assert_eq!(Allowlist::new(&[2], &users, "owner").deciders(), [0_i64; 0]);
    }
}
