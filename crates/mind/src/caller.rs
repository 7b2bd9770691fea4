//! Who is speaking, as the connection says it. Nothing that a model writes into a call changes any of this.

use embody_store::Scope;

/// Who is speaking.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Whose mind it is: the user and the agent.
    pub scope: Scope,
    /// The authenticated name of whoever writes.
    pub writer: String,
    /// How far the connection is trusted.
    pub trust: Trust,
    /// The host's session, if it has one.
    pub session: Option<String>,
    /// Whether what it observes teaches the predictor: true for the broker alone, which sees every call.
    pub trains: bool,
}

/// How far a connection is trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trust {
    /// A model wrote it.
    Agent,
    /// The owner's own hand: the terminal or the console, never a model.
    Owner,
}

impl Trust {
    /// Its name, as memories record it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Owner => "owner",
        }
    }
}
