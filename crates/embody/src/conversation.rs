//! The messages of a stored conversation, for people: on the console and on the command line.

use embody_agent::model::ChatMessage;
use embody_agent::turn::{CallDecision, TurnFailure};
use embody_store::threads::Message;
use serde::Deserialize;

pub(crate) struct ParsedMessage {
    pub(crate) seq: i64,
    pub(crate) at: i64,
    pub(crate) content: Content,
}

pub(crate) enum Content {
    Message {
        message: ChatMessage,
        decided: CallDecision,
    },
    /// Why a turn has no reply.
    Failure(TurnFailure),
}

impl ParsedMessage {
    /// `None` for messages that are not part of the conversation, such as a summary.
    pub(crate) fn read(stored: &Message) -> Option<Self> {
        #[derive(Deserialize)]
        struct Stored {
            #[serde(flatten)]
            message: ChatMessage,
            #[serde(flatten)]
            decided: CallDecision,
        }
        let content = match TurnFailure::read(&stored.message) {
            Some(failure) => Content::Failure(failure),
            None => {
                let Stored { message, decided } = serde_json::from_str(&stored.message.content).ok()?;
                Content::Message { message, decided }
            }
        };
        Some(Self { seq: stored.seq, at: stored.created_at, content })
    }
}
