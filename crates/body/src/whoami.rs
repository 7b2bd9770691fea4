//! Who acts here, for whom, and where.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Body, Caller, Result, format_timestamp};

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
    /// Says who acts, for whom, and where.
    pub async fn whoami(&self, caller: &Caller, _: Whoami) -> Result<Identity> {
        let Caller { scope, channel, shared_conversation, .. } = caller;
        let (user, agent) = (scope.user().to_owned(), scope.agent().to_owned());
        let reachable_channels = self.config.channels.clone();
        if shared_conversation.is_some() {
            // Where else the user speaks is theirs alone.
            let (channel, channels) = (channel.clone(), vec![channel.clone()]);
            return Ok(Identity { user, agent, channel, channels, reachable_channels, last_heard: None });
        }
        let mut channels: Vec<String> = Vec::new();
        for thread in self.store.threads().list(scope, MAX_THREADS).await? {
            if !channels.contains(&thread.channel) {
                channels.push(thread.channel);
            }
        }
        let heard = self.store.incoming().last_seen_channel(scope.user(), scope.agent()).await?;
        Ok(Identity {
            user,
            agent,
            channel: channel.clone(),
            channels,
            reachable_channels,
            last_heard: heard.map(|heard| HeardOn { channel: heard.channel, at: format_timestamp(heard.at) }),
        })
    }
}
