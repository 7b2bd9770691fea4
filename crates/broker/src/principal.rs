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
    inside: Option<InProcessAgent>,
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
            inside: None,
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

    pub(crate) fn inside(self, inside: InProcessAgent) -> Self {
        Self { inside: Some(inside), ..self }
    }

    pub(crate) fn is_inside(&self, inside: &InProcessAgent) -> bool {
        self.inside.as_ref() == Some(inside)
    }

    pub(crate) fn prompt(&self) -> Option<Arc<str>> {
        self.inside.as_ref().and_then(InProcessAgent::prompt)
    }

    /// The mark by which an embody agent recognizes the broker's results.
    pub(crate) fn mark(&self) -> Option<&str> {
        self.inside.as_ref().map(|inside| &*inside.0.mark)
    }
}

/// The state of an embody agent in this process. Equal only to itself.
#[derive(Clone)]
pub(crate) struct InProcessAgent(Arc<Cell>);

struct Cell {
    prompt: Mutex<Option<Arc<str>>>,
    /// Only the broker's results contain it. No body sees it, so none can imitate the broker.
    mark: String,
}

impl InProcessAgent {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Cell { prompt: Mutex::default(), mark: uuid::Uuid::new_v4().simple().to_string() }))
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
    fn one_of_our_own_is_known_by_its_cell() {
        let host = Principal::new("ann", "assistant", "web");
        let inside = InProcessAgent::new();
        let own = host.clone().inside(inside.clone());
        assert_eq!(own, own.clone());
        assert_ne!(own, host);
        assert_ne!(own, host.clone().inside(InProcessAgent::new()));
        assert_eq!(own.prompt(), None);
        inside.set_prompt("be kind");
        assert_eq!(own.prompt().as_deref(), Some("be kind"));
        assert!(!format!("{own:?}").contains("be kind") && !format!("{own:?}").contains(inside.mark()));
    }
}
