//! What operators do, in the words of the record.

use serde::Serialize;

/// What an operator did.
#[derive(Clone, Debug, Serialize)]
pub struct Operation {
    /// The action.
    pub action: Action,
    /// What it was done to: an id or a name, never a secret.
    pub subject: String,
    /// Anything worth adding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The actions of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Made a token.
    TokenMade,
    /// Revoked a token.
    TokenRevoked,
    /// Set a user up, or changed how they are called.
    UserSet,
    /// Locked a user out.
    UserLockedOut,
    /// Let a user in again.
    UserLetIn,
    /// Approved a call.
    ApprovalGranted,
    /// Refused a call.
    ApprovalDenied,
    /// Accepted the changed definition of a tool.
    PinAccepted,
    /// Replaced the standing instructions; the note says who did, and the version.
    InstructionsSet,
    /// Went back to older instructions.
    InstructionsReverted,
    /// Set an agent's soul or identity.
    AgentSet,
    /// Removed them.
    AgentRemoved,
    /// Made a key.
    KeyMade,
    /// Anything else; the note says what.
    Other,
}
