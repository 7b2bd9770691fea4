//! Who is calling: known from the connection, never from a message.

use crate::error::Result;
use crate::store::Scope;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    pub scope: Scope,
    pub channel: String,
    /// The thread of a conversation with embody's own agent.
    pub thread: Option<String>,
    /// The conversation, if other people read it: private data of the user is not shown there.
    pub shared_conversation: Option<String>,
    /// Whether the host's answer to a form counts as the owner's.
    pub may_approve: bool,
    /// The id of its token over HTTP: a session belongs to one token.
    pub token: Option<String>,
    /// Whether the broker calls an embedded server on behalf of a host. Only the broker sees every call and knows what the
    /// owner approved.
    pub is_broker: bool,
}

impl Principal {
    /// An agent of a user on this channel.
    pub fn new(user: &str, agent: &str, channel: &str) -> Result<Self> {
        Ok(Self::of(Scope::new(user, agent)?, channel))
    }

    /// A host that is connected over MCP.
    pub fn host(user: &str, agent: &str) -> Result<Self> {
        Self::new(user, agent, "mcp")
    }

    pub fn of(scope: Scope, channel: &str) -> Self {
        Self {
            scope,
            channel: channel.to_owned(),
            thread: None,
            shared_conversation: None,
            may_approve: false,
            token: None,
            is_broker: false,
        }
    }

    #[must_use]
    pub fn in_shared_conversation(self, conversation: impl Into<String>) -> Self {
        Self { shared_conversation: Some(conversation.into()), ..self }
    }

    pub fn user(&self) -> &str {
        self.scope.user()
    }

    pub fn agent(&self) -> &str {
        self.scope.agent()
    }
}
