//! What operators do, in the words of the record.

use serde::Serialize;

#[derive(Clone, Debug, Serialize)]
pub struct Operation {
    pub action: Action,
    /// An id or a name, never a secret.
    pub subject: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    TokenMade,
    TokenRevoked,
    UserLockedOut,
    UserLetIn,
    ApprovalGranted,
    ApprovalDenied,
    PinAccepted,
    InstructionsSet,
    InstructionsReverted,
    AgentSet,
    AgentRemoved,
    KeyMade,
    /// The note says what.
    Other,
}
