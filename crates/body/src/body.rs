//! The body: its configuration, its callers, and `whoami`. It reads the time, the time zone, schedules and skills through functions that
//! its owner passes in.

use std::fmt;
use std::sync::Arc;

use embody_store::{Scope, Store};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Error, Result, Tool};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    pub scope: Scope,
    pub channel: String,
    /// The thread of a conversation with embody's own agent.
    pub thread: Option<String>,
    /// The conversation, if others read it.
    pub shared_conversation: Option<String>,
    pub is_approved: bool,
}

impl Caller {
    /// Fails in a conversation that others read.
    pub(crate) fn require_private(&self, tool: Tool) -> Result<()> {
        if self.shared_conversation.is_some() {
            Err(Error::SharedConversation { tool: tool.name() })
        } else {
            Ok(())
        }
    }
}

type Zone = dyn Fn(&Scope) -> std::result::Result<String, String> + Send + Sync;
type Skill = dyn Fn(&Caller, &str) -> std::result::Result<String, String> + Send + Sync;
type Due = dyn Fn(&str, &str, i64) -> std::result::Result<Option<i64>, String> + Send + Sync;

pub struct BodyConfig {
    /// When something is due next, from a timetable, its time zone and the current time in microseconds since 1970; or why the
    /// timetable is invalid.
    pub due: Box<Due>,
    /// The default time zone of a user, or why it is unknown.
    pub zone: Box<Zone>,
    /// The text of a skill by its name, or the reason why this caller cannot read it. It may block.
    pub skill: Arc<Skill>,
    /// The time, in microseconds since 1970.
    pub clock: Box<dyn Fn() -> i64 + Send + Sync>,
    pub gives_orders: Arc<dyn Fn(&str) -> bool + Send + Sync>,
    pub channels: Vec<String>,
}

impl fmt::Debug for BodyConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BodyConfig").field("channels", &self.channels).finish_non_exhaustive()
    }
}

/// Has a method for each tool.
#[derive(Debug)]
pub struct Body {
    pub(crate) store: Store,
    pub(crate) config: BodyConfig,
}

impl Body {
    #[must_use]
    pub fn new(store: Store, config: BodyConfig) -> Self {
        Self { store, config }
    }
}

/// The start of a text that is quoted in an error.
pub(crate) fn excerpt(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(64).collect()
}

/// RFC 3339, to the second.
pub(crate) fn format_timestamp(micros: i64) -> String {
    Timestamp::from_microsecond(micros).map_or_else(|_| micros.to_string(), |at| format!("{at:.0}"))
}

const MAX_THREADS: u32 = 100;

/// The arguments of `whoami`: none.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Whoami {}

/// Who acts here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Identity {
    /// The user that the agent acts for.
    pub user: String,
    /// The agent.
    pub agent: String,
    /// The channel of this session.
    pub channel: String,
    /// The channels on which there were conversations, the latest first.
    pub channels: Vec<String>,
    /// The channels over which other people can be reached.
    pub reachable_channels: Vec<String>,
    /// Where the user was last heard.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_heard: Option<HeardOn>,
}

/// Where the user was heard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HeardOn {
    /// The channel.
    pub channel: String,
    /// When.
    pub at: String,
}

impl Body {
    pub async fn whoami(&self, caller: &Caller, _: Whoami) -> Result<Identity> {
        let Caller { scope, channel, shared_conversation, .. } = caller;
        let (user, agent) = (scope.user().to_owned(), scope.agent().to_owned());
        let reachable_channels = self.config.channels.clone();
        if shared_conversation.is_some() {
            // The other channels of the user are private.
            let (channel, channels) = (channel.clone(), vec![channel.clone()]);
            return Ok(Identity { user, agent, channel, channels, reachable_channels, last_heard: None });
        }
        let mut channels: Vec<String> = Vec::new();
        for thread in self.store.threads().list(scope, MAX_THREADS).await? {
            if !channels.contains(&thread.channel) {
                channels.push(thread.channel);
            }
        }
        let last = self.store.incoming().last_seen_channel(scope.user(), scope.agent()).await?;
        Ok(Identity {
            user,
            agent,
            channel: channel.clone(),
            channels,
            reachable_channels,
            last_heard: last.map(|last| HeardOn { channel: last.channel, at: format_timestamp(last.at) }),
        })
    }
}
