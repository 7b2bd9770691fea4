//! Who speaks to the broker. One of our own agents speaks from inside this process, and so the broker knows what its
//! model is prompted with; of a host nobody can know that.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Who speaks to the broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// The user that it is for.
    pub user: String,
    /// The agent that speaks.
    pub agent: String,
    /// The channel that it comes through.
    pub channel: String,
    /// The conversation, if others read what is said in it: what is the user's alone is not read out there.
    pub room: Option<String>,
    /// Whether a form that its host answers counts as the owner's answer.
    pub may_approve: bool,
    /// The id of the token that let it in over HTTP: what one token opened is not another's.
    pub token: Option<String>,
    inside: Option<Inside>,
}

impl Principal {
    /// A host that speaks for this user and agent, through this channel.
    pub fn new(user: impl Into<String>, agent: impl Into<String>, channel: impl Into<String>) -> Self {
        let (user, agent, channel) = (user.into(), agent.into(), channel.into());
        Self { user, agent, channel, room: None, may_approve: false, token: None, inside: None }
    }

    /// The same, with or without the right to answer for the owner.
    #[must_use]
    pub fn approving(self, may_approve: bool) -> Self {
        Self { may_approve, ..self }
    }

    /// The same, let in by the token of this id.
    #[must_use]
    pub fn with_token(self, token: impl Into<String>) -> Self {
        Self { token: Some(token.into()), ..self }
    }

    /// The same in a conversation that others read.
    #[must_use]
    pub fn in_room(self, conversation: impl Into<String>) -> Self {
        Self { room: Some(conversation.into()), ..self }
    }

    /// The same as one of our own.
    pub(crate) fn inside(self, inside: Inside) -> Self {
        Self { inside: Some(inside), ..self }
    }

    /// Whether this is the agent with this cell.
    pub(crate) fn is_inside(&self, inside: &Inside) -> bool {
        self.inside.as_ref() == Some(inside)
    }

    /// What its model was last prompted with, if it is one of our own and has said so.
    pub(crate) fn prompt(&self) -> Option<Arc<str>> {
        self.inside.as_ref().and_then(Inside::prompt)
    }

    /// The mark by which it knows the broker's own results.
    pub(crate) fn mark(&self) -> Option<&str> {
        self.inside.as_ref().map(|inside| &*inside.0.mark)
    }
}

/// What only this process knows of one of our own agents. Two are the same if they are one.
#[derive(Clone)]
pub(crate) struct Inside(Arc<Cell>);

struct Cell {
    prompt: Mutex<Option<Arc<str>>>,
    /// Only results that the broker makes carry it: no body sees it, so none can pass its own words for the broker's.
    mark: String,
}

impl Inside {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Cell { prompt: Mutex::default(), mark: uuid::Uuid::new_v4().simple().to_string() }))
    }

    /// The model is about to see this.
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

impl PartialEq for Inside {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Inside {}

/// Neither a prompt nor the mark belongs into a log.
impl fmt::Debug for Inside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Inside")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_our_own_is_known_by_its_cell() {
        let host = Principal::new("ann", "assistant", "web");
        let inside = Inside::new();
        let own = host.clone().inside(inside.clone());
        assert_eq!(own, own.clone());
        assert_ne!(own, host);
        assert_ne!(own, host.clone().inside(Inside::new()));
        assert_eq!(own.prompt(), None);
        inside.set_prompt("be kind");
        assert_eq!(own.prompt().as_deref(), Some("be kind"));
        assert!(!format!("{own:?}").contains("be kind") && !format!("{own:?}").contains(inside.mark()));
    }
}
