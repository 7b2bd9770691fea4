//! The messages of a stored conversation, for people: on the console and on the command line.

use embody_agent::model::ChatMessage;
use embody_agent::turn::CallDecision;
use embody_store::threads::Message;
use serde::Deserialize;

pub(crate) struct ParsedMessage {
    pub(crate) seq: i64,
    pub(crate) at: i64,
    pub(crate) message: ChatMessage,
    pub(crate) decided: CallDecision,
}

impl ParsedMessage {
    /// `None` for messages that are not part of the conversation, such as a summary.
    pub(crate) fn read(stored: &Message) -> Option<Self> {
        #[derive(Deserialize)]
        struct Content {
            #[serde(flatten)]
            message: ChatMessage,
            #[serde(flatten)]
            decided: CallDecision,
        }
        let Content { message, decided } = serde_json::from_str(&stored.message.content).ok()?;
        Some(Self { seq: stored.seq, at: stored.created_at, message, decided })
    }
}
