//! Who calls the broker. For an embody agent in this process the broker also knows the prompt of its model.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    pub user: String,
    pub agent: String,
    pub channel: String,
    /// The conversation, if other people read it: private data of the user is not shown there.
    pub shared_conversation: Option<String>,
    /// Whether the host's answer to a form counts as the owner's.
    pub may_approve: bool,
    /// The id of its token over HTTP: a session belongs to one token.
    pub token: Option<String>,
    in_process: Option<InProcessAgent>,
}

impl Principal {
    pub fn new(user: impl Into<String>, agent: impl Into<String>, channel: impl Into<String>) -> Self {
        let (user, agent, channel) = (user.into(), agent.into(), channel.into());
        Self {
            user,
            agent,
            channel,
            shared_conversation: None,
            may_approve: false,
            token: None,
            in_process: None,
        }
    }

    pub fn approving(self, may_approve: bool) -> Self {
        Self { may_approve, ..self }
    }

    pub fn with_token(self, token: impl Into<String>) -> Self {
        Self { token: Some(token.into()), ..self }
    }

    pub fn in_shared_conversation(self, conversation: impl Into<String>) -> Self {
        Self { shared_conversation: Some(conversation.into()), ..self }
    }

    pub(crate) fn in_process(self, agent: InProcessAgent) -> Self {
        Self { in_process: Some(agent), ..self }
    }

    pub(crate) fn prompt(&self) -> Option<Arc<str>> {
        self.in_process.as_ref().and_then(InProcessAgent::prompt)
    }

    /// The mark by which an embody agent recognizes the broker's results.
    pub(crate) fn mark(&self) -> Option<&str> {
        self.in_process.as_ref().map(InProcessAgent::mark)
    }
}

/// The state of an embody agent in this process. Equal only to itself.
#[derive(Clone)]
pub(crate) struct InProcessAgent(Arc<AgentState>);

struct AgentState {
    prompt: Mutex<Option<Arc<str>>>,
    /// Only the broker's results contain it. No body sees it, so none can imitate the broker.
    mark: String,
}

impl InProcessAgent {
    pub(crate) fn new() -> Self {
        Self(Arc::new(AgentState {
            prompt: Mutex::default(),
            mark: uuid::Uuid::new_v4().simple().to_string(),
        }))
    }

    pub(crate) fn set_prompt(&self, prompt: &str) {
        *self.0.prompt.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::from(prompt));
    }

    pub(crate) fn mark(&self) -> &str {
        &self.0.mark
    }

    fn prompt(&self) -> Option<Arc<str>> {
        self.0.prompt.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl PartialEq for InProcessAgent {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for InProcessAgent {}

/// Neither the prompt nor the mark may be logged.
impl fmt::Debug for InProcessAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InProcessAgent")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_our_own_is_equal_only_to_itself() {
        let host = Principal::new("ann", "assistant", "web");
        let agent = InProcessAgent::new();
        let own = host.clone().in_process(agent.clone());
        assert_eq!(own, own.clone());
        assert_ne!(own, host);
        assert_ne!(own, host.clone().in_process(InProcessAgent::new()));
        assert_eq!(own.prompt(), None);
        agent.set_prompt("be kind");
        assert_eq!(own.prompt().as_deref(), Some("be kind"));
        assert!(!format!("{own:?}").contains("be kind") && !format!("{own:?}").contains(agent.mark()));
    }
}
